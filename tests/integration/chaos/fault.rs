//! Everything that can go wrong in a run, by name.

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    Process(ProcessFault),
    Network(Between, NetworkFault),
    Statement(Statement, Lost),
    Gateway(GatewayFault, GatewayCall),
    /// Both services are down for a day, and the gateway forgets all keys meanwhile.
    Day,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessFault {
    /// `kill -9` of a service, and another one.
    Kill,
    /// SIGSTOP of a service for longer than its leases, then SIGCONT.
    Pause,
    /// SIGTERM of a service, and another one.
    Terminate,
    PostgresFast,
    PostgresImmediate,
    /// `kill -9` of PostgreSQL with all its children.
    PostgresCrash,
    /// `kill -9` of the sandbox, and another one on its journal.
    SandboxKill,
}

/// A link, by what is behind it for a service; in front of it are the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Between {
    Clients,
    Postgres,
    Gateway,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkFault {
    Cut,
    BlackHole,
    Slow,
}

/// The statements of the protocol that commit something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statement {
    Claim,
    Settle,
    Renew,
    TakeOver,
    Park,
}

/// What is lost of a statement: each is one transaction, so its answer is that of its COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    Statement,
    Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GatewayFault {
    Refuse,
    Delay,
    TooMany,
    ErrorBefore,
    ErrorAfter,
    DropAfterEffect,
    HangBefore,
    HangAfterEffect,
    WrongAmount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GatewayCall {
    Authorize,
    Find,
}

pub const PROCESS: &[Fault] = &[
    Fault::Process(ProcessFault::Kill),
    Fault::Process(ProcessFault::Pause),
    Fault::Process(ProcessFault::Terminate),
    Fault::Process(ProcessFault::PostgresFast),
    Fault::Process(ProcessFault::PostgresImmediate),
    Fault::Process(ProcessFault::PostgresCrash),
    Fault::Process(ProcessFault::SandboxKill),
];

pub fn network() -> Vec<Fault> {
    let links = [Between::Clients, Between::Postgres, Between::Gateway];
    let faults = [
        NetworkFault::Cut,
        NetworkFault::BlackHole,
        NetworkFault::Slow,
    ];
    pairs(&links, &faults, Fault::Network)
}

pub fn statements() -> Vec<Fault> {
    let statements = [
        Statement::Claim,
        Statement::Settle,
        Statement::Renew,
        Statement::TakeOver,
        Statement::Park,
    ];
    pairs(
        &statements,
        &[Lost::Statement, Lost::Answer],
        Fault::Statement,
    )
}

pub fn gateway() -> Vec<Fault> {
    let faults = [
        GatewayFault::Refuse,
        GatewayFault::Delay,
        GatewayFault::TooMany,
        GatewayFault::ErrorBefore,
        GatewayFault::ErrorAfter,
        GatewayFault::DropAfterEffect,
        GatewayFault::HangBefore,
        GatewayFault::HangAfterEffect,
    ];
    let calls = [GatewayCall::Authorize, GatewayCall::Find];
    let mut all = pairs(&faults, &calls, Fault::Gateway);
    // A look-up has no amount.
    all.push(Fault::Gateway(
        GatewayFault::WrongAmount,
        GatewayCall::Authorize,
    ));
    all
}

/// Every kind, for the table.
pub fn all() -> Vec<Fault> {
    let mut all = PROCESS.to_vec();
    all.extend(network());
    all.extend(statements());
    all.extend(gateway());
    all.push(Fault::Day);
    all
}

fn pairs<A: Copy, B: Copy>(firsts: &[A], seconds: &[B], pair: fn(A, B) -> Fault) -> Vec<Fault> {
    let with = |first: A| seconds.iter().map(move |second| pair(first, *second));
    firsts.iter().copied().flat_map(with).collect()
}

impl Fault {
    /// The name in the table.
    pub fn name(self) -> String {
        match self {
            Self::Process(fault) => format!("process {fault:?}"),
            Self::Network(between, fault) => format!("network {between:?} {fault:?}"),
            Self::Statement(statement, lost) => format!("lost {lost:?} of {statement:?}"),
            Self::Gateway(fault, call) => format!("gateway {fault:?} at {call:?}"),
            Self::Day => "a day passes, keys are forgotten".to_owned(),
        }
    }
}

impl Statement {
    /// The first line of its text.
    pub const fn marker(self) -> &'static str {
        match self {
            Self::Claim => "-- claim\n",
            Self::Settle => "-- settle\n",
            Self::Renew => "-- renew\n",
            Self::TakeOver => "-- take_over\n",
            Self::Park => "-- park\n",
        }
    }
}

impl GatewayFault {
    /// The name by which the sandbox knows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Delay => "delay",
            Self::TooMany | Self::ErrorBefore => "status_before",
            Self::ErrorAfter => "status_after",
            Self::DropAfterEffect => "drop_after_effect",
            Self::HangBefore => "hang_before",
            Self::HangAfterEffect => "hang_after_effect",
            Self::WrongAmount => "wrong_amount",
        }
    }
}
