//! Look-ups: by id, by metadata, and lists. Looking at a payment that is processing ends it, when
//! it is old enough.

use std::{collections::BTreeMap, io, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{
    Shared,
    ask::with_sum,
    call::Ended,
    objects::{Intent, IntentState},
    page::{About, Page, limit},
    render::{self, Answer},
    script::{Doing, Ending as Say, Script},
    store::{Record, Store},
};
use crate::gateways::sandbox::{
    journal::{Call, Kind, Line},
    method::CARD_DECLINED,
    plan::{Deed, Ending, Plan},
};

/// What is looked for.
#[derive(Clone, Debug)]
pub(super) enum Look {
    Intent(String),
    Refund(String),
    Search {
        name: String,
        value: String,
        limit: usize,
    },
    Intents(Page),
    Refunds(Page),
}

impl Look {
    /// Reads the look-up at `segments`; `None` where there is none.
    pub(super) fn read(
        segments: &[&str],
        query: &BTreeMap<String, String>,
    ) -> Option<Result<Self, Answer>> {
        Some(match segments {
            ["v1", "payment_intents", "search"] => search(query),
            ["v1", "payment_intents"] => Page::read(query).map(Self::Intents),
            ["v1", "refunds"] => Page::read(query).map(Self::Refunds),
            ["v1", "payment_intents", id] => Ok(Self::Intent((*id).to_owned())),
            ["v1", "refunds", id] => Ok(Self::Refund((*id).to_owned())),
            _ => return None,
        })
    }

    fn subject(&self) -> Option<String> {
        match self {
            Self::Intent(id) | Self::Refund(id) => Some(id.clone()),
            Self::Search { .. } | Self::Intents(_) | Self::Refunds(_) => None,
        }
    }

    /// The key that it is about, for the journal; empty where it is about many.
    fn gateway_key(&self, store: &Store) -> String {
        let known = match self {
            Self::Intent(id) => store.intents.get(id).map(|intent| &intent.gateway_key),
            Self::Refund(id) => store.refunds.get(id).map(|refund| &refund.gateway_key),
            Self::Search { value, .. } => Some(value),
            Self::Intents(_) | Self::Refunds(_) => None,
        };
        known.cloned().unwrap_or_default()
    }
}

/// One clause is understood: `metadata['name']:'value'`, with quotes of either kind.
fn search(query: &BTreeMap<String, String>) -> Result<Look, Answer> {
    let refused = || {
        render::invalid(
            "parameter_invalid",
            "This sandbox searches by metadata['name']:'value' only.",
        )
    };
    let text = query.get("query").ok_or_else(refused)?;
    let quoted = |text: &str| {
        let quote = text
            .chars()
            .next()
            .filter(|quote| matches!(quote, '\'' | '"'))?;
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.replace("\\'", "'").replace("\\\\", "\\"))
    };
    let clause = text.strip_prefix("metadata[").ok_or_else(refused)?;
    let (name, value) = clause.split_once("]:").ok_or_else(refused)?;
    Ok(Look::Search {
        name: quoted(name).ok_or_else(refused)?,
        value: quoted(value).ok_or_else(refused)?,
        limit: limit(query)?,
    })
}

/// Looks, as its script says.
pub(super) async fn get(shared: &Shared, look: Look) -> io::Result<Ended> {
    let look = Arc::new(look);
    let (arriving, sought) = (shared.clone(), Arc::clone(&look));
    let gateway_key = shared
        .step(move |store| {
            let key = sought.gateway_key(store);
            let line = line(Kind::Request, &key, arriving.clock.now(), sought.subject());
            store.arrived(&line)?;
            Ok(key)
        })
        .await?;
    let fault = shared.faults().take(Call::Find);
    let script = Script::new(Plan::prompt(Deed::Approve), fault);
    script.before.pass().await;
    let answer = match script.doing {
        Doing::Fail(status) => render::status(status),
        Doing::Deed(Deed::Refuse) => render::too_many(),
        Doing::Deed(_) => {
            let (looking, sought) = (shared.clone(), Arc::clone(&look));
            shared
                .step(move |store| find(&looking, store, &sought))
                .await?
        }
    };
    shared.faults().deed_done(script.fault, Call::Find);
    script.after.pass().await;
    let answer = match script.ending {
        Say::Drop => return Ok(Ended::Dropped),
        Say::Status(status) => render::status(status),
        Say::Tell => answer,
    };
    let now = shared.clock.now();
    let line = line(Kind::Answer, &gateway_key, now, answer.object_id.clone());
    shared.step(move |store| store.answered(&line)).await?;
    Ok(Ended::Answered(answer))
}

fn find(shared: &Shared, store: &mut Store, look: &Look) -> io::Result<Answer> {
    let now = shared.clock.now();
    end_pending(store, now)?;
    Ok(match look {
        Look::Intent(id) => match store.intents.get(id) {
            Some(intent) => Answer::new(200, &render::payment_intent(intent)),
            None => render::missing("payment_intent"),
        },
        Look::Refund(id) => match store.refunds.get(id) {
            Some(refund) => Answer::new(200, &render::refund(refund)),
            None => render::missing("refund"),
        },
        Look::Search { name, value, limit } => {
            let lag = TimeDelta::from_std(shared.options.search_lag).unwrap_or(TimeDelta::MAX);
            let found = |intent: &&Intent| {
                intent.metadata.get(name) == Some(value) && now - intent.changed_at >= lag
            };
            let found: Vec<Value> = store
                .intents
                .values()
                .filter(found)
                .map(render::payment_intent)
                .collect();
            let has_more = found.len() > *limit;
            let data: Vec<Value> = found.into_iter().take(*limit).collect();
            let page = json!({"object": "search_result", "has_more": has_more, "data": data});
            Answer::new(200, &page)
        }
        Look::Intents(page) => page.of(
            "/v1/payment_intents",
            store.intents.values(),
            |intent| About {
                id: &intent.id,
                number: intent.number,
                intent: &intent.id,
                created_at: intent.created_at,
            },
            render::payment_intent,
        ),
        Look::Refunds(page) => page.of(
            "/v1/refunds",
            store.refunds.values(),
            |refund| About {
                id: &refund.id,
                number: refund.number,
                intent: &refund.intent,
                created_at: refund.created_at,
            },
            render::refund,
        ),
    })
}

fn end_pending(store: &mut Store, now: DateTime<Utc>) -> io::Result<()> {
    let due: Vec<(Intent, Ending)> = store
        .intents
        .values()
        .filter_map(|intent| Some((intent.clone(), intent.ending(now)?)))
        .collect();
    for (mut intent, ending) in due {
        intent.changed_at = now;
        let effect = match ending {
            Ending::Succeeds => {
                intent.approve();
                let id = Some(intent.id.clone());
                let line = Line {
                    call: Call::Authorize,
                    ..line(Kind::Effect, &intent.gateway_key, now, id)
                };
                Some(with_sum(line, Some(&intent.charge.authorized)))
            }
            Ending::Fails => {
                intent.state = IntentState::Failed {
                    code: CARD_DECLINED.code.to_owned(),
                    message: CARD_DECLINED.message.to_owned(),
                };
                None
            }
        };
        store.commit(Record {
            intent: Some(intent),
            effect,
            ..Record::default()
        })?;
    }
    Ok(())
}

fn line(kind: Kind, gateway_key: &str, at: DateTime<Utc>, object_id: Option<String>) -> Line {
    Line {
        at,
        kind,
        gateway_key: gateway_key.to_owned(),
        call: Call::Find,
        amount: None,
        currency: None,
        object_id,
    }
}
