//! The deed of a call: what it changes, and the true answer to it.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    ask::{Ask, What, with_sum},
    objects::{Intent, IntentState, Refund},
    render::{self, Answer},
    script::{Amount, Doing, Script},
    store::{Record, Store},
};
use crate::gateways::sandbox::{
    charge::{AUTHORIZATION_NOT_APPROVED, Charge},
    journal::{Kind, Line},
    method::METHOD_UNKNOWN,
    plan::Deed,
    request::Sum,
};

/// What the call changes, and what it is truly answered.
pub(super) fn act(
    store: &Store,
    ask: &Ask,
    script: Script,
    now: DateTime<Utc>,
) -> (Record, Answer) {
    let deed = match script.doing {
        Doing::Fail(status) => return nothing(render::status(status)),
        Doing::Deed(Deed::Refuse) => return nothing(render::too_many()),
        Doing::Deed(Deed::Break) => return nothing(render::status(500)),
        Doing::Deed(deed) => deed,
    };
    let act = Act {
        store,
        ask,
        amount: script.amount,
        now,
    };
    match &ask.what {
        What::Authorize { .. } => act.authorize(deed),
        What::Capture { .. } | What::Cancel { .. } | What::Refund { .. } => act.change(),
    }
}

fn nothing(answer: Answer) -> (Record, Answer) {
    (Record::default(), answer)
}

struct Act<'a> {
    store: &'a Store,
    ask: &'a Ask,
    amount: Amount,
    now: DateTime<Utc>,
}

impl Act<'_> {
    fn authorize(&self, deed: Deed) -> (Record, Answer) {
        if deed == Deed::Decline(METHOD_UNKNOWN) {
            return nothing(render::missing("payment method"));
        }
        let Some(mut intent) = self.new_intent() else {
            return nothing(render::status(500));
        };
        let (effect, answer) = match deed {
            Deed::Decline(reason) => {
                intent.state = IntentState::Failed {
                    code: reason.code.to_owned(),
                    message: reason.message.to_owned(),
                };
                let answer = render::declined(&intent, reason.code, reason.message);
                (None, answer)
            }
            Deed::Pend(ending) => {
                intent.state = IntentState::Processing { ending };
                (None, ok(&intent))
            }
            Deed::Approve | Deed::Refuse | Deed::Break => {
                intent.approve();
                let sum = intent.charge.authorized.clone();
                (Some(self.effect(&intent.id, Some(&sum))), ok(&intent))
            }
        };
        let record = Record {
            intent: Some(intent),
            effect,
            ..Record::default()
        };
        (record, answer)
    }

    fn new_intent(&self) -> Option<Intent> {
        let What::Authorize {
            sum,
            payment_method,
            capture_method,
            description,
            metadata,
        } = &self.ask.what
        else {
            return None;
        };
        Some(Intent {
            id: format!("pi_{}", Uuid::new_v4().simple()),
            number: self.store.next_number(),
            gateway_key: self.ask.key.clone().unwrap_or_default(),
            charge: Charge::authorized(self.charged(sum)),
            capture_method: *capture_method,
            payment_method: payment_method.clone(),
            description: description.clone(),
            metadata: metadata.clone(),
            state: IntentState::RequiresCapture,
            created_at: self.now,
            changed_at: self.now,
        })
    }

    /// A capture, a cancel or a refund: what is asked of an authorisation.
    fn change(&self) -> (Record, Answer) {
        let subject = self.ask.subject().unwrap_or_default();
        let Some(mut intent) = self.store.intents.get(subject).cloned() else {
            return nothing(render::missing("payment_intent"));
        };
        let before = render::payment_intent(&intent);
        if matches!(
            intent.state,
            IntentState::Processing { .. } | IntentState::Failed { .. }
        ) {
            return nothing(render::not_allowed(AUTHORIZATION_NOT_APPROVED, &before));
        }
        let sum = |amount: Option<i64>, rest: i64| {
            self.charged(&Sum {
                amount: amount.unwrap_or(rest),
                currency: intent.charge.authorized.currency.clone(),
            })
        };
        let (done, sum) = match &self.ask.what {
            What::Capture { amount, .. } => {
                let sum = sum(*amount, intent.charge.authorized.amount);
                (intent.charge.capture(&sum), Some(sum))
            }
            What::Refund { amount, .. } => {
                let sum = sum(*amount, intent.charge.rest());
                (intent.charge.refund(&sum), Some(sum))
            }
            What::Cancel { .. } | What::Authorize { .. } => (intent.charge.cancel(), None),
        };
        match done {
            Err(reason) => nothing(render::not_allowed(reason, &before)),
            Ok(()) => self.changed(intent, sum.as_ref()),
        }
    }

    fn changed(&self, mut intent: Intent, sum: Option<&Sum>) -> (Record, Answer) {
        intent.changed_at = self.now;
        let mut record = Record::default();
        let (object_id, answer) = match (&self.ask.what, sum) {
            (What::Refund { metadata, .. }, Some(sum)) => {
                let refund = Refund {
                    id: format!("re_{}", Uuid::new_v4().simple()),
                    number: self.store.next_number(),
                    gateway_key: self.ask.key.clone().unwrap_or_default(),
                    intent: intent.id.clone(),
                    sum: sum.clone(),
                    metadata: metadata.clone(),
                    created_at: self.now,
                };
                let answer = Answer::new(200, &render::refund(&refund));
                let id = refund.id.clone();
                record.refund = Some(refund);
                (id, answer)
            }
            (What::Capture { metadata, .. }, _) => {
                intent.state = IntentState::Succeeded;
                intent.metadata.extend(metadata.clone());
                (intent.id.clone(), ok(&intent))
            }
            (What::Refund { .. } | What::Cancel { .. } | What::Authorize { .. }, _) => {
                intent.state = IntentState::Canceled;
                (intent.id.clone(), ok(&intent))
            }
        };
        record.effect = Some(self.effect(&object_id, sum));
        record.intent = Some(intent);
        (record, answer)
    }

    fn effect(&self, object_id: &str, sum: Option<&Sum>) -> Line {
        let line = self
            .ask
            .line(Kind::Effect, self.now, Some(object_id.to_owned()));
        with_sum(line, sum)
    }

    /// What is charged for what was asked.
    fn charged(&self, sum: &Sum) -> Sum {
        let amount = match self.amount {
            Amount::AsAsked => sum.amount,
            // Smaller where it can be, so that the authorisation's rules allow it.
            Amount::Wrong if sum.amount > 1 => sum.amount.saturating_sub(1),
            Amount::Wrong => sum.amount.saturating_add(1),
        };
        Sum {
            amount,
            currency: sum.currency.clone(),
        }
    }
}

fn ok(intent: &Intent) -> Answer {
    Answer::new(200, &render::payment_intent(intent))
}
