//! A shop of the stripe gateway whose database is a primary with a standby.

use oncepay::gateways::sandbox::journal;
use tempfile::TempDir;

use super::{
    client::Client,
    command::{Said, oncepay},
    pair::sends,
    process::{Process, ProcessBuilder},
    replication::{Replicated, Replication},
    sandbox::SandboxProcess,
    shop::over_stripe,
};

/// What services of such a shop stand on.
#[derive(Debug)]
pub struct ReplicatedShop {
    pub servers: Replicated,
    pub sandbox: SandboxProcess,
    folder: TempDir,
}

impl ReplicatedShop {
    /// `None` on a machine that cannot run two servers.
    pub async fn open(replication: Replication) -> Option<Self> {
        let servers = Replicated::start(replication).await?;
        let folder = tempfile::tempdir().unwrap();
        Some(Self {
            servers,
            sandbox: SandboxProcess::start(&folder.path().join(journal::FILE_NAME)),
            folder,
        })
    }

    /// A service that finds its database at the address which moves.
    pub fn service(&self) -> ProcessBuilder {
        let service = Process::at_url(&self.servers.url(), self.folder.path());
        over_stripe(service, &self.sandbox.control)
    }

    pub fn client(&self, service: &Process) -> Client {
        Client::new(service.base(), &self.servers.secret)
    }

    pub fn effects(&self) -> usize {
        self.sandbox.control.effects()
    }

    pub fn sends(&self) -> usize {
        sends(&self.sandbox.control.lines())
    }

    /// The promoted standby, held against the journal.
    pub fn audit(&self) -> Said {
        let journal = self.folder.path().join(journal::FILE_NAME);
        let arguments = ["audit", "--journal", journal.to_str().unwrap()];
        oncepay(&self.servers.standby_url(), &arguments)
    }
}
