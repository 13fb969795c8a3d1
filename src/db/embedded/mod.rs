//! A private PostgreSQL server, for `oncepay dev` and for tests.
//!
//! It promises: a server of its own on a free loopback port, under a random password, whose data
//! stay in one folder and are there again at the next start; one server per folder at a time; and
//! no server that outlives its parent, however the parent dies.
//!
//! It refuses to work in a folder that holds anything else, to run PostgreSQL as root (it hands
//! the data to another account, see [`run_as`]), and to give out a server that has not answered.
//!
//! ```text
//! parent (dev, a test) ──pipe──> guardian (`oncepay guardian`) ──child──> postgres
//!     Cluster::open                holds the folder's lock               listens on 127.0.0.1
//! ```
//!
//! Invariants:
//! 1. PostgreSQL is started by the guardian only, so there is no moment at which it runs unguarded.
//! 2. The guardian ends after PostgreSQL, and holds the folder's lock until then.
//! 3. Files of the folder are written under that lock only. `data` appears by one rename, when
//!    `initdb` has succeeded and the password is on disk.
//! 4. The kernel says who is alive (the lock, the pipe); numbers in files (`postmaster.pid`) are
//!    believed only together with it, because a process number comes back after a crash.

mod cluster;
pub mod discovery;
mod error;
mod folder;
pub mod guardian;
mod initdb;
mod lock;
mod place;
mod postmaster;
mod ready;
mod run_as;
mod server;

pub use cluster::{Cluster, Durability, Options};
pub use discovery::Programs;
pub use error::EmbeddedError;
pub use place::Placement;
pub use server::Server;
