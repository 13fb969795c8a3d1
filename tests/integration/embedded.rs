//! The private PostgreSQL of `oncepay dev` and of these tests: what it keeps, and what it never
//! leaves behind.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, getpgid},
};
use oncepay::db::embedded::{
    Cluster, Durability, EmbeddedError, Options, Placement, Server, discovery,
};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;

/// What a guardian may take to stop PostgreSQL once its parent has been killed.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// The name under which libtest knows [`holds_a_server_until_it_is_killed`].
const PARENT: &str = "embedded::holds_a_server_until_it_is_killed";

#[tokio::test]
async fn a_second_start_finds_the_data_of_the_first() {
    let folder = TempDir::new().unwrap();

    let first = open(folder.path()).await;
    let mut session = connect(&first).await;
    session
        .execute("CREATE TABLE kept AS SELECT 42 AS answer")
        .await
        .unwrap();
    session.close().await.unwrap();
    let first_pid = first.postmaster_pid();
    first.stop().await.unwrap();
    assert!(!is_alive(first_pid), "stop must wait for PostgreSQL");
    let second = open(folder.path()).await;

    assert_eq!(second.placement(), Placement::Wanted);
    assert_eq!(ask_int(&second, "SELECT answer FROM kept").await, 42);
    second.stop().await.unwrap();
}

#[tokio::test]
async fn the_server_is_private_and_durable_where_that_is_asked() {
    let folder = TempDir::new().unwrap();
    let mut options = options(folder.path());
    options.durability = Durability::Full;
    options.max_connections = 17;

    let server = Cluster::open(options).await.unwrap();

    for (setting, value) in [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("max_connections", "17"),
        ("server_encoding", "UTF8"),
        ("password_encryption", "scram-sha-256"),
    ] {
        assert_eq!(show(&server, setting).await, value, "{setting}");
    }
    let wrong = server.connect_options("postgres").password("wrong");
    assert!(wrong.connect().await.is_err(), "a password must be needed");
    for (file, mode) in [("password", 0o600), ("server.log", 0o600), ("data", 0o700)] {
        let about = fs::metadata(folder.path().join(file)).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, mode, "{file}");
    }
    server.stop().await.unwrap();
}

#[tokio::test]
async fn postgres_stops_when_its_parent_is_killed() {
    let folder = TempDir::new().unwrap();
    let mut parent = spawn_parent(folder.path());
    let postmaster = parent.postmaster_pid;

    parent.process.kill().unwrap();
    parent.process.wait().unwrap();

    wait_until_gone(postmaster);
    let second = open(folder.path()).await;
    assert_ne!(second.postmaster_pid(), postmaster);
    second.stop().await.unwrap();
}

#[tokio::test]
async fn postgres_stops_when_its_server_is_dropped() {
    let folder = TempDir::new().unwrap();
    let server = open(folder.path()).await;
    let postmaster = server.postmaster_pid();

    drop(server);

    wait_until_gone(postmaster);
}

#[tokio::test]
async fn a_start_waits_for_the_server_that_has_the_folder() {
    let folder = TempDir::new().unwrap();
    let first = open(folder.path()).await;
    let first_pid = first.postmaster_pid();

    let (second, stopped) = tokio::join!(Cluster::open(options(folder.path())), first.stop());

    stopped.unwrap();
    let second = second.unwrap();
    assert_ne!(second.postmaster_pid(), first_pid);
    second.stop().await.unwrap();
}

#[tokio::test]
async fn of_two_first_starts_at_once_one_has_the_folder_and_the_other_says_so() {
    let folder = TempDir::new().unwrap();
    let impatient = Options {
        patience: Duration::ZERO,
        ..options(folder.path())
    };

    let (one, other) = tokio::join!(Cluster::open(impatient.clone()), Cluster::open(impatient));

    let (server, error) = match (one, other) {
        (Ok(server), Err(error)) | (Err(error), Ok(server)) => (server, error),
        both => panic!("exactly one start may have the folder: {both:?}"),
    };
    assert!(matches!(error, EmbeddedError::InUse { .. }), "{error}");
    assert_eq!(ask_int(&server, "SELECT 1").await, 1);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_whose_guardian_was_killed_is_ended_by_the_next_start() {
    let folder = TempDir::new().unwrap();
    let first = open(folder.path()).await;
    let postmaster = first.postmaster_pid();

    kill(guardian_of(postmaster), Signal::SIGKILL).unwrap();
    let second = open(folder.path()).await;

    assert!(!is_alive(postmaster), "two servers must not share data");
    second.stop().await.unwrap();
}

#[tokio::test]
async fn signals_of_the_terminal_do_not_end_the_guardian_before_postgres() {
    let folder = TempDir::new().unwrap();
    let server = open(folder.path()).await;
    let postmaster = server.postmaster_pid();
    let guardian = guardian_of(postmaster);
    let ours = getpgid(None).unwrap();

    assert_ne!(getpgid(Some(guardian)).unwrap(), ours, "Ctrl-C hits it");
    kill(guardian, Signal::SIGINT).unwrap();
    kill(guardian, Signal::SIGHUP).unwrap();
    assert_eq!(ask_int(&server, "SELECT 1").await, 1);
    kill(guardian, Signal::SIGTERM).unwrap();

    wait_until_gone(postmaster);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_process_number_left_by_a_crash_of_the_machine_does_not_block_a_start() {
    let folder = TempDir::new().unwrap();
    let first = open(folder.path()).await;
    let pid_file = first.folder().join("data/postmaster.pid");
    let left_over = fs::read_to_string(&pid_file).unwrap();
    first.stop().await.unwrap();
    // After the restart, the number belongs to a process of the account that runs PostgreSQL.
    let mut stranger = stranger_as_owner_of(&folder.path().join("data"));
    let lines: Vec<&str> = left_over.lines().skip(1).collect();
    let text = format!("{}\n{}\n", stranger.id(), lines.join("\n"));
    fs::write(&pid_file, text).unwrap();

    let second = open(folder.path()).await;

    assert!(is_alive(stranger.id()), "a stranger must not be stopped");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    second.stop().await.unwrap();
}

#[tokio::test]
async fn postgres_that_root_starts_is_not_roots() {
    let folder = TempDir::new().unwrap();

    let server = open(folder.path()).await;

    let process = format!("/proc/{}", server.postmaster_pid());
    let owner = fs::metadata(&process).unwrap().uid();
    assert_ne!(owner, 0, "PostgreSQL must not run as root");
    assert_eq!(
        owner,
        fs::metadata(server.folder().join("data")).unwrap().uid()
    );
    server.stop().await.unwrap();
}

/// Only root meets a folder that PostgreSQL's account cannot enter; others place data as wanted.
#[tokio::test]
async fn data_below_a_closed_folder_of_roots_lie_in_the_systems_own_place() {
    let closed = TempDir::new().unwrap();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let wanted = closed.path().join("postgres");

    let server = open(&wanted).await;
    let place = server.folder().to_owned();
    let placement = server.placement();
    server.stop().await.unwrap();

    if nix::unistd::geteuid().is_root() {
        assert_eq!(placement, Placement::SystemPlace);
        assert!(place.starts_with("/var/lib/oncepay"), "{place:?}");
        fs::remove_dir_all(place).unwrap();
    } else {
        assert_eq!(placement, Placement::Wanted);
        assert_eq!(place, fs::canonicalize(wanted).unwrap());
    }
}

/// Not a test but the process that [`postgres_stops_when_its_parent_is_killed`] kills: this
/// program, started once more. It reads the folder from its standard input.
#[tokio::test]
#[ignore = "started, and killed, by another test"]
async fn holds_a_server_until_it_is_killed() {
    let mut folder = String::new();
    io::stdin().read_line(&mut folder).unwrap();
    let server = open(Path::new(folder.trim())).await;
    writeln!(io::stdout(), "postmaster={}", server.postmaster_pid()).unwrap();

    let asked_to_end = io::stdin().read_line(&mut folder).unwrap();
    panic!("must be killed before it is asked to end ({asked_to_end} bytes)");
}

struct Parent {
    process: Child,
    postmaster_pid: u32,
}

fn spawn_parent(folder: &Path) -> Parent {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", PARENT, "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = process.stdin.as_ref().unwrap();
    writeln!(orders, "{}", folder.display()).unwrap();
    let said = BufReader::new(process.stdout.take().unwrap());
    let postmaster_pid = said
        .lines()
        .map(Result::unwrap)
        .find_map(|line| line.split_once("postmaster=")?.1.parse().ok())
        .expect("the parent says which server it holds");
    Parent {
        process,
        postmaster_pid,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests find PostgreSQL on PATH as the program does, and have no configuration"
)]
fn options(folder: &Path) -> Options {
    let path = std::env::var_os("PATH");
    Options::new(
        folder,
        discovery::find(None, path.as_deref()).unwrap(),
        PathBuf::from(env!("CARGO_BIN_EXE_oncepay")),
        Durability::ForTests,
    )
}

async fn open(folder: &Path) -> Server {
    Cluster::open(options(folder)).await.unwrap()
}

async fn connect(server: &Server) -> PgConnection {
    server.connect_options("postgres").connect().await.unwrap()
}

async fn ask_int(server: &Server, sql: &'static str) -> i32 {
    let mut session = connect(server).await;
    let answer = sqlx::query_scalar(sql)
        .fetch_one(&mut session)
        .await
        .unwrap();
    session.close().await.unwrap();
    answer
}

async fn show(server: &Server, setting: &str) -> String {
    let mut session = connect(server).await;
    let value = sqlx::query_scalar("SELECT current_setting($1)")
        .bind(setting)
        .fetch_one(&mut session)
        .await
        .unwrap();
    session.close().await.unwrap();
    value
}

fn guardian_of(postmaster: u32) -> Pid {
    let status = fs::read_to_string(format!("/proc/{postmaster}/status")).unwrap();
    let parent = status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))
        .unwrap();
    Pid::from_raw(parent.trim().parse().unwrap())
}

/// A process that is no server and works elsewhere than in the data. It ends with this test, also
/// when that panics, because its standard input ends then.
fn stranger_as_owner_of(data: &Path) -> Child {
    use std::os::unix::process::CommandExt as _;

    let owner = fs::metadata(data).unwrap();
    Command::new("cat")
        .stdin(Stdio::piped())
        .current_dir("/")
        .uid(owner.uid())
        .gid(owner.gid())
        .spawn()
        .unwrap()
}

fn wait_until_gone(pid: u32) {
    let asked_at = Instant::now();
    while is_alive(pid) {
        assert!(
            asked_at.elapsed() < GONE_WITHIN,
            "PostgreSQL (process {pid}) must have stopped by now"
        );
        std::thread::yield_now();
    }
}

/// A process that has ended but that nobody has waited for yet counts as gone.
fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim().starts_with('Z'))
}
