//! Talking to the gateway: bounded in time, counted, and honest about what is not known.

use std::{future::Future, time::Duration};

use tokio::time::{sleep, timeout};

use super::{acquire::Successor, lease::Lease};
use crate::{
    app::App,
    gateways::{Call, Finding, Outcome, Unknown},
    payments::{create, model::Payment, state::PaymentStatus},
    seeded::{self, Bug, seeded},
    telemetry::metrics::{self, GatewayOutcome},
};

/// How often a send that certainly did nothing is repeated within one request, the first included.
/// A gateway that is restarting is often back by the third.
const SENDS_MAX: u32 = 3;

/// The pause before the second send; doubled before the third.
const RESEND_PAUSE: Duration = Duration::from_millis(50);

/// Kept free at the end of the gateway's key window: a send that is on its way when the window
/// closes would be a new payment.
const KEY_WINDOW_MARGIN: Duration = Duration::from_hours(1);

/// What a holder knows after it tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Performed {
    /// The last word of the gateway. `NotExecuted` here speaks of the key: nothing that was ever
    /// sent for it can have had an effect.
    Outcome(Outcome),
    /// The lease ran out; whatever the gateway said is dropped.
    LeaseLost,
}

/// Sends for the first time: by whoever got the key by a claim.
pub async fn first(app: &App, lease: &Lease, payment: &Payment) -> Performed {
    if payment.gateway != app.gateway.name() {
        return Performed::Outcome(Outcome::Unknown(Unknown::GatewayChanged));
    }
    let mut pause = RESEND_PAUSE;
    for send in 1.. {
        if !lease.trusted() {
            return Performed::LeaseLost;
        }
        let outcome = create::send(app, payment).await;
        if !matches!(outcome, Outcome::NotExecuted(_)) || send == SENDS_MAX {
            return if_trusted(lease, outcome);
        }
        sleep(pause).await;
        pause *= 2;
    }
    Performed::LeaseLost
}

/// Whether a successor may send again what it does not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The gateway is sure to remember the key: another send is the same payment.
    Again,
    /// Not by this successor; the record waits for evidence, or for somebody who may.
    Never,
    /// The gateway may have forgotten the key: another send could be another payment.
    WindowOver,
}

/// Decides whether a successor may send (D6.6).
///
/// The rescuer sends young work only: nobody wants a charge at night for a cart that was left in
/// the evening. The age is counted from the first send, which the client asked for; a key that was
/// released and claimed again is as young as its second claim. What is in front of a person is sent
/// by nobody.
pub fn sending(app: &App, payment: &Payment, since_first_sent: Duration, by: Successor) -> Sending {
    let window = app.gateway.key_window().saturating_sub(KEY_WINDOW_MARGIN);
    let young = since_first_sent < app.settings.idempotency.rescue_send_max_age;
    match by {
        _ if payment.status != PaymentStatus::Processing => Sending::Never,
        _ if since_first_sent >= window && !seeded(Bug::SendAfterWindow) => Sending::WindowOver,
        Successor::Rescuer if !young => Sending::Never,
        Successor::Rescuer | Successor::Client => Sending::Again,
    }
}

/// Finishes what a predecessor began: asks first, and sends again only where `sending` allows.
///
/// It never ends in `NotExecuted`: that speaks of one send, and the predecessor may have sent. What
/// is still unknown when the gateway may have forgotten the key is for a person to look at.
///
/// A server error that the gateway replays ([`Unknown::ErrorReplayed`]) is not remembered in the
/// record, so it does not forbid the next successor's send: a gateway that replays has kept its
/// answer with the key, so what is sent has no effect, and it is sent once per take-over only, after
/// the look-up. With rests that double, the rescuer does so eight times before the work is too old
/// for it (at its default of 15 minutes), and after the window nobody does. A column for it would
/// save those, and no payment: a gateway that forgets a key inside its window charges again after a
/// lost reply as well.
pub async fn successor(app: &App, lease: &Lease, payment: &Payment, sending: Sending) -> Performed {
    if payment.gateway != app.gateway.name() {
        return Performed::Outcome(Outcome::Unknown(Unknown::GatewayChanged));
    }
    if !lease.trusted() {
        return Performed::LeaseLost;
    }
    if seeded(Bug::NewKeyAtTakeOver) {
        let rekeyed = seeded::under_another_key(payment);
        return Performed::Outcome(create::send(app, &rekeyed).await);
    }
    let outcome = match (create::ask(app, payment).await, sending) {
        (Finding::Known(Outcome::Unknown(reason)), Sending::WindowOver)
            if !reason.requires_review() =>
        {
            Outcome::Unknown(Unknown::KeyWindowOver)
        }
        (Finding::Known(outcome), _) => outcome,
        (Finding::Absent, Sending::WindowOver) => Outcome::Unknown(Unknown::KeyWindowOver),
        (Finding::Absent, Sending::Never) => Outcome::Unknown(Unknown::NotFound),
        (Finding::Absent, Sending::Again) => {
            if !lease.trusted() {
                return Performed::LeaseLost;
            }
            create::send(app, payment).await
        }
    };
    match outcome {
        Outcome::NotExecuted(_) if !seeded(Bug::RefusedSuccessorReleases) => {
            if_trusted(lease, Outcome::Unknown(Unknown::GatewayError))
        }
        outcome => if_trusted(lease, outcome),
    }
}

fn if_trusted(lease: &Lease, outcome: Outcome) -> Performed {
    if lease.trusted() {
        Performed::Outcome(outcome)
    } else {
        Performed::LeaseLost
    }
}

/// A call that may have an effect. When its time is over nobody knows what it did.
pub async fn timed(app: &App, call: Call, answer: impl Future<Output = Outcome>) -> Outcome {
    let started = tokio::time::Instant::now();
    let outcome = timeout(app.settings.gateway.timeout, answer)
        .await
        .unwrap_or(Outcome::Unknown(Unknown::Timeout));
    metrics::gateway_called(call, GatewayOutcome::from(&outcome), started.elapsed());
    if let Outcome::Unknown(reason) = &outcome {
        tracing::warn!(
            call = call.as_str(),
            reason = reason.as_str(),
            "gateway outcome unknown"
        );
        if seeded(Bug::UnknownIsFailed) {
            return seeded::declined();
        }
    }
    outcome
}

/// A look-up; one that does not answer in time found nothing out.
pub async fn timed_find(app: &App, answer: impl Future<Output = Finding>) -> Finding {
    timeout(app.settings.gateway.timeout, answer)
        .await
        .unwrap_or(Finding::Known(Outcome::Unknown(Unknown::Timeout)))
}
