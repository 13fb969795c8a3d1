//! The idempotency protocol as a model: stateright takes every order of steps and faults that two
//! clients, two workers, one key, a database and a gateway allow, and looks for one that breaks an
//! invariant of D13.
//!
//! # What it promises
//!
//! Every reachable state of [`scenario::Scenario::BUILT`] keeps [`invariants::ALWAYS`], and from
//! each of them the key resolves once the faults stop ([`calm`]). Each bug of [`scenario::Bug`] is
//! found, and each invariant is broken by one of them. `src/idempotency` is authoritative: where
//! the model does something else, one of the two has a bug.
//!
//! # What happens without limits
//!
//! Crashes at any point, retries, impatient clients, leases that run out while their holder goes
//! on, lost answers to COMMIT, take-overs, releases and claims after them, refused, lost and delayed
//! sends (a refused one after an unknown one, too), searches that lag, expiry and cleaning, closing
//! key windows. The states stay finite because [`symmetry`] keeps of fences and owners only what is
//! ever compared.
//!
//! # Limits
//!
//! | limit | why |
//! | --- | --- |
//! | [`state::CLIENTS`], [`state::WORKERS`] | two meet in every way that two can; three at once are not explored |
//! | one delayed send at a time | more than one delayed send of a key is not explored |
//! | one failover ([`time::fail_over`]), to any earlier state | a second one is not explored |
//! | states are told apart by 64 bit hashes (stateright) | two that collide hide one |
//!
//! # Assumptions, without which the promise does not hold
//!
//! 1. Between its last look at its lease and its act a holder is stalled for less than the margin of
//!    the key window, an hour ([`time::gateway_forgets`]). The lease's clock starts when the
//!    claim was *sent*, so that a late answer to a claim falls under it.
//! 2. The database knows a key again before the gateway forgets it. After an asynchronous failover
//!    that lost the record, nobody else can know that there was an effect; a test shows the second
//!    payment.
//! 3. After such a failover a 503 `gateway-unavailable` may be wrong: an owner without memory was
//!    refused, and its lost predecessor was not. So I20, and I4 of a release, are asked for only
//!    where nothing was lost. I1 holds all the same.
//!
//! # What is left out
//!
//! Other requests and other merchants under the key (`decide` refuses them before anything is
//! done), `Pending` and webhooks, another gateway than the record's, review by a person, the wait of
//! `Prefer`, batches, and the texts of answers: all 202, 409 and 503 are interim, but for a
//! release. A lease is trusted longer than by `lease.rs`: a holder *may* notice that it has run out
//! and need not, since only the fence has to stop it. A claim that commits after its sender gave up
//! is a claim whose owner crashes. `LetGo` is a lease that expires, its holder having crashed. A statement that certainly did
//! nothing ends like a crash.
//!
//! # Where the code is
//!
//! | step | code |
//! | --- | --- |
//! | `Request`, `Disconnect` | `run::run`, `run::execute`; `http` drops the request and the task goes on |
//! | `Commit` while `Claiming`, `Reclaiming` | `acquire::{claim, reclaim}`; `payments::store::{Claim, Reclaim}` |
//! | `Look` while `Recognising` | `acquire::acquired_by`, after `DbError::Unanswered` |
//! | `Look` while `Looking` | `acquire::see`, `store::Read`, `decide::decide` |
//! | `Rescue`; `Commit` while `TakingOver` | the rescuer; `acquire::take_over`, `store::TakeOver` |
//! | `Find` | `perform::successor`: `create::ask`, key window |
//! | `Send`, `SendAgain` | `perform::{first, successor}`: `create::send` |
//! | `Commit` while `Ending` | `finish::{settle, rest, release}`; `Settle`, `Park`, `Release` |
//! | `Look` while `Reading` | `finish::stored`, `finish::answer_of` |
//! | `Renew`, `LeaseExpires`, `NoticeLeaseLost` | `store::Renew`, `store::LetGo`, `Lease::trusted` |
//! | `RecordExpires`, `Clean` | `row.rs`; `delete_expired_idempotency_keys` |
//! | `MarginIsReached`, `GatewayForgets` | `perform::KEY_WINDOW_MARGIN`, `Gateway::key_window` |
//! | `Replicate`, `FailOver` | PostgreSQL |
//! | `DelayedSendArrives`, `Delivery`, `Search` | the gateway and the way there |

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    unreachable_pub,
    reason = "workers and clients are numbered by the model; its tests print what was explored"
)]

mod calm;
mod checks;
mod client;
mod database;
mod gateway;
mod invariants;
mod protocol;
mod scenario;
mod state;
mod symmetry;
mod table;
mod time;
mod worker;
