//! The PostgreSQL server of this run: a container, one that is installed here, or one by URL.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Mutex, OnceLock, mpsc},
    time::Duration,
};

use oncepay::db::{
    embedded::{Cluster, Durability, Options, discovery},
    migrations,
};
use secrecy::ExposeSecret as _;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};
use testcontainers::{
    GenericImage, ImageExt as _,
    core::{IntoContainerPort as _, WaitFor},
    runners::AsyncRunner as _,
};
use tokio::runtime::{Builder, Handle};

/// For how long a container may take to be there, its image included, before `auto` looks for
/// programs that are installed.
const CONTAINER_PATIENCE: Duration = Duration::from_mins(1);

const DEFAULT_IMAGE: &str = "postgres:17-alpine";

/// Connections that a run may need: two tests at a time with two services each, and spare ones.
const CONNECTIONS_MAX: u16 = 400;

/// The server that all tests of this run share, with a migrated template database on it.
#[derive(Debug)]
pub struct Server {
    pub options: PgConnectOptions,
    pub template: String,
    /// A runtime that outlives every test, for what must.
    pub runtime: Handle,
}

/// Starts the server once per run, in a thread whose runtime lives as long as the process: the
/// runtime of the test that happens to come first does not.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            let handle = runtime.handle().clone();
            runtime.block_on(async move {
                let (options, guard) = start().await;
                let template = make_template(&options).await;
                sender
                    .send(Server {
                        options,
                        template,
                        runtime: handle,
                    })
                    .unwrap();
                std::future::pending::<()>().await;
                drop(guard);
            });
        });
        receiver
            .recv()
            .expect("PostgreSQL for the tests must start; the message is above")
    })
}

/// What must not be dropped while the server is needed.
type Guard = Box<dyn std::any::Any + Send>;

/// A setting of the test run; one that is empty is none.
#[expect(
    clippy::disallowed_methods,
    reason = "settings of the test run, not of the service"
)]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Past the capture of test output, which would hide it from a run that succeeds.
fn say(text: &str) {
    drop(writeln!(io::stderr(), "PostgreSQL for the tests: {text}"));
}

async fn start() -> (PgConnectOptions, Guard) {
    match variable("ONCEPAY_TEST_POSTGRES").as_deref() {
        None | Some("auto") => match container().await {
            Ok(started) => started,
            Err(reason) => {
                say(&format!("no container ({reason})"));
                local().await
            }
        },
        Some("container") => container()
            .await
            .unwrap_or_else(|reason| panic!("{reason}")),
        Some("local") => local().await,
        Some(url) => {
            say("the server of ONCEPAY_TEST_POSTGRES");
            (
                url.parse()
                    .expect("ONCEPAY_TEST_POSTGRES: auto, container, local or a URL"),
                Box::new(()),
            )
        }
    }
}

async fn container() -> Result<(PgConnectOptions, Guard), String> {
    let image = variable("ONCEPAY_TEST_POSTGRES_IMAGE").unwrap_or_else(|| DEFAULT_IMAGE.to_owned());
    let (name, tag) = image.rsplit_once(':').unwrap_or((&image, "latest"));
    let password = uuid::Uuid::new_v4().simple().to_string();
    let request = GenericImage::new(name, tag)
        .with_wait_for(WaitFor::Nothing)
        .with_exposed_port(5432.tcp())
        .with_env_var("POSTGRES_PASSWORD", &password)
        .with_cmd([
            "postgres".to_owned(),
            "-c".to_owned(),
            format!("max_connections={CONNECTIONS_MAX}"),
            "-c".to_owned(),
            "fsync=off".to_owned(),
        ]);
    let started = tokio::time::timeout(CONTAINER_PATIENCE, request.start())
        .await
        .map_err(|_elapsed| format!("{image} did not start within {CONTAINER_PATIENCE:?}"))?;
    let container = started.map_err(|error| format!("{image}: {error}"))?;
    let port = container
        .get_host_port_ipv4(5432)
        .await
        .map_err(|error| error.to_string())?;
    remove_with_this_process(container.id());
    let options = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(port)
        .username("postgres")
        .password(&password)
        .database("postgres");
    wait_until_ready(&options).await;
    say(&format!("a container of {image}"));
    Ok((options, Box::new(container)))
}

/// The shells that remove containers; in a static, because a handle that is dropped lets them go.
static GUARDIANS: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// A static is never dropped, and a killed run drops nothing at all: a shell that waits for the end
/// of its standard input, which this process holds, removes the container in both cases.
fn remove_with_this_process(id: &str) {
    let guardian = Command::new("sh")
        .args(["-c", "cat; docker rm --force --volumes \"$0\"", id])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh must be there");
    GUARDIANS.lock().unwrap().push(guardian);
}

#[expect(
    clippy::disallowed_methods,
    reason = "PATH is no setting of the service"
)]
async fn local() -> (PgConnectOptions, Guard) {
    let path = std::env::var_os("PATH");
    let programs = discovery::find(None, path.as_deref()).unwrap_or_else(|error| panic!("{error}"));
    say(&format!("the programs in {}", programs.bin().display()));
    let folder = tempfile::Builder::new()
        .prefix("oncepay-test-")
        .tempdir()
        .unwrap();
    let mut options = Options::new(
        folder.path().join("postgres"),
        programs,
        PathBuf::from(env!("CARGO_BIN_EXE_oncepay")),
        Durability::ForTests,
    );
    options.max_connections = CONNECTIONS_MAX;
    let server = Cluster::open(options)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let connect = server.url("postgres").expose_secret().parse().unwrap();
    (connect, Box::new((server, folder)))
}

/// The image's server is there twice: it restarts after it has made its database, and resets what
/// connected before. Two answers in a row, with a pause between them, are the second one.
async fn wait_until_ready(options: &PgConnectOptions) {
    let answers = async || {
        let mut connection = options.connect().await?;
        sqlx::query("SELECT 1").execute(&mut connection).await?;
        connection.close().await
    };
    let mut in_a_row = 0;
    for _attempt in 0..300 {
        in_a_row = if answers().await.is_ok() {
            in_a_row + 1
        } else {
            0
        };
        if in_a_row == 2 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("PostgreSQL did not answer within a minute");
}

async fn make_template(options: &PgConnectOptions) -> String {
    let template = format!("oncepay_template_{}", uuid::Uuid::new_v4().simple());
    let mut connection = options.connect().await.unwrap();
    execute(&mut connection, &format!("CREATE DATABASE {template}")).await;
    migrations::apply(&options.clone().database(&template))
        .await
        .unwrap();
    template
}

/// Runs a statement without parameters.
pub async fn execute(connection: &mut PgConnection, statement: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
        .execute(connection)
        .await
        .unwrap();
}
