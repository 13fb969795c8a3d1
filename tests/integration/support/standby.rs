//! Makes a standby: a copy of a running primary, with the word to stream from it.

use std::{
    fs,
    io::Write as _,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use nix::unistd::geteuid;
use oncepay::db::embedded::{Server, discovery};
use secrecy::ExposeSecret as _;

/// The name under which the standby streams.
pub const STANDBY: &str = "standby";

/// The program that copies a running server: beside the server's own program, because it must be
/// of the same version. `PATH` may have links to that one only.
#[expect(
    clippy::disallowed_methods,
    reason = "PATH is no setting of the service"
)]
pub fn backup_program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    let programs = discovery::find(None, path.as_deref()).ok()?;
    let server = fs::canonicalize(programs.postgres()).unwrap();
    let program = server.with_file_name("pg_basebackup");
    assert!(program.exists(), "{} must be there", program.display());
    Some(program)
}

/// Copies the primary into `folder`, so that a server which is opened on it streams from there.
pub fn make(program: &Path, primary: &Server, folder: &Path, stream_port: u16) {
    let data = folder.join("data");
    let owner = fs::metadata(primary.folder().join("data")).unwrap();
    fs::create_dir(&data).unwrap();
    for (path, mode) in [(data.as_path(), 0o700), (folder, 0o711)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    give(&data, &owner);
    copy(program, primary, &data, &owner);
    fs::copy(primary.folder().join("password"), folder.join("password")).unwrap();
    let signal = data.join("standby.signal");
    fs::write(&signal, "").unwrap();
    give(&signal, &owner);
    let from = conninfo(primary, stream_port);
    let settings = format!("primary_conninfo = '{from}'\nwal_retrieve_retry_interval = 100ms\n");
    let file = data.join("postgresql.auto.conf");
    let mut file = fs::File::options().append(true).open(file).unwrap();
    file.write_all(settings.as_bytes()).unwrap();
}

/// Root gives to whom the primary runs as; anybody else is that account already.
fn give(path: &Path, owner: &fs::Metadata) {
    if geteuid().is_root() {
        chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
}

fn copy(program: &Path, primary: &Server, data: &Path, owner: &fs::Metadata) {
    let mut backup = Command::new(program);
    backup
        .arg("--pgdata")
        .arg(data)
        .args(["--checkpoint", "fast", "--dbname"])
        .arg(conninfo(primary, primary.port()))
        .current_dir("/")
        .stdin(Stdio::null());
    if geteuid().is_root() {
        backup.uid(owner.uid()).gid(owner.gid());
    }
    let output = backup.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "pg_basebackup: {said}");
}

/// How the primary is reached for replication. The password is hexadecimal and needs no quotes.
fn conninfo(primary: &Server, port: u16) -> String {
    format!(
        "host=127.0.0.1 port={port} user={} password={} application_name={STANDBY} \
         sslmode=disable gssencmode=disable",
        primary.user(),
        primary.password().expose_secret(),
    )
}
