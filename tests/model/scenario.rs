//! What a run of the checker assumes, and which bug it is given.

/// How commits reach the standby that a failover promotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// A commit that was answered is on the standby: a failover loses nothing.
    Synchronous,
    /// A failover loses any number of the last commits.
    Asynchronous,
}

/// For how long a key whose record a failover has lost stays unresolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// The database knows of the key again before the gateway forgets it.
    EndsInKeyWindow,
    /// The gateway may forget a key of which the database knows nothing any more.
    OutlastsKeyWindow,
}

/// Whether workers and clients that only differ by their number are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// They are not: far fewer states, but a path that jumps from one worker to its twin.
    Symmetric,
    /// They are, for paths that are to be read.
    Kept,
}

/// A mistake that the protocol must not contain; each must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The writes of a holder do not name its fence and owner.
    NoFence,
    /// Every acquisition of a record sends under a gateway key of its own.
    RandomGatewayKey,
    /// Whoever is refused by the gateway releases, whatever was sent before.
    ReleaseAfterUnknown,
    /// A successor sends again although the gateway may have forgotten the key.
    SendAfterWindow,
    /// The gateway is called before the claim is committed.
    ClaimAfterCall,
    /// An outcome that is not known is stored as a success.
    UnknownIsApproved,
    /// An outcome that is not known is stored as a decline.
    UnknownIsDeclined,
    /// Nobody takes over what a dead owner left.
    NoTakeOver,
    /// The cleaner deletes records that are not finished.
    CleanerIgnoresStatus,
}

/// One run: two clients, two workers, one key.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub replication: Replication,
    pub outage: Outage,
    pub numbering: Numbering,
    pub bug: Option<Bug>,
}

impl Scenario {
    /// The protocol as it is built, with every fault and the limits of the module's page.
    pub const BUILT: Self = Self {
        replication: Replication::Asynchronous,
        outage: Outage::EndsInKeyWindow,
        numbering: Numbering::Symmetric,
        bug: None,
    };

    /// The protocol with one bug, without the noise of failovers, and with paths that can be read.
    pub const fn with(bug: Bug) -> Self {
        Self {
            replication: Replication::Synchronous,
            numbering: Numbering::Kept,
            bug: Some(bug),
            ..Self::BUILT
        }
    }

    pub fn has(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}
