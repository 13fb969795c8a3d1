//! Makes the data on first use.
//!
//! `initdb` works in `data.new`; a rename makes it `data`. A crash at any line leaves either
//! finished data with their password, or something that the next start throws away.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    process::Stdio,
    time::Duration,
};

use tokio::{process::Command, time::timeout};

use super::{
    cluster::Durability, error::EmbeddedError, folder::sync_names, guardian::Orders,
    run_as::command, server::SUPERUSER,
};

/// `initdb` takes about a second; a machine busy with other tests may need many.
pub(super) const INITDB_WITHIN: Duration = Duration::from_mins(2);

const PASSWORD_BYTES: usize = 32;

/// For the holder of the lock only.
pub(super) async fn ensure(orders: &Orders) -> Result<(), EmbeddedError> {
    let folder = &orders.folder;
    if exists(&folder.data())? {
        return if exists(&folder.password_file())? {
            Ok(())
        } else {
            Err(EmbeddedError::PasswordMissing(folder.path().to_owned()))
        };
    }
    write_new_password(orders)?;
    make_new_data(orders)?;
    run(orders).await?;
    fs::rename(folder.new_data(), folder.data())
        .and_then(|()| sync_names(folder.path()))
        .map_err(EmbeddedError::io("finish", &folder.data()))
}

/// Random, and in a file that only its reader can open: other users of the machine reach the port.
fn write_new_password(orders: &Orders) -> Result<(), EmbeddedError> {
    let file = orders.folder.password_file();
    let password = hex::encode(rand::random::<[u8; PASSWORD_BYTES]>());
    remove_if_there(fs::remove_file(&file)).map_err(EmbeddedError::io("remove", &file))?;
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&file)
        .and_then(|mut opened| {
            opened.write_all(password.as_bytes())?;
            opened.sync_all()
        })
        .map_err(EmbeddedError::io("write", &file))?;
    give_away(orders, &file)
}

fn make_new_data(orders: &Orders) -> Result<(), EmbeddedError> {
    let data = orders.folder.new_data();
    remove_if_there(fs::remove_dir_all(&data)).map_err(EmbeddedError::io("remove", &data))?;
    DirBuilder::new()
        .mode(0o700)
        .create(&data)
        .map_err(EmbeddedError::io("create", &data))?;
    give_away(orders, &data)
}

async fn run(orders: &Orders) -> Result<(), EmbeddedError> {
    let folder = &orders.folder;
    let program = orders.programs.initdb();
    let mut initdb = command(&program, folder.path(), orders.run_as);
    initdb
        .arg("--pgdata")
        .arg(folder.new_data())
        .arg("--pwfile")
        .arg(folder.password_file())
        .args(["--username", SUPERUSER])
        .args(["--auth", "scram-sha-256"])
        // The one locale that every machine has; what we compare is compared as bytes anyway.
        .args(["--encoding", "UTF8", "--locale", "C"])
        .stdin(Stdio::null());
    if orders.durability == Durability::ForTests {
        initdb.arg("--no-sync");
    }
    let output = timeout(
        INITDB_WITHIN,
        Command::from(initdb).kill_on_drop(true).output(),
    )
    .await
    .map_err(|_elapsed| EmbeddedError::Initdb {
        output: format!("no end after {}", humantime::format_duration(INITDB_WITHIN)),
    })?
    .map_err(EmbeddedError::io("run", &program))?;
    if output.status.success() {
        return Ok(());
    }
    Err(EmbeddedError::Initdb {
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

fn give_away(orders: &Orders, path: &Path) -> Result<(), EmbeddedError> {
    match orders.run_as {
        Some(account) => account.own(path),
        None => Ok(()),
    }
}

fn exists(path: &Path) -> Result<bool, EmbeddedError> {
    path.try_exists()
        .map_err(EmbeddedError::io("look at", path))
}

fn remove_if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
