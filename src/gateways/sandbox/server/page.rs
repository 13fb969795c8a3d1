//! A page of a list: the newest first, each one after the last object of the one before.

use std::{cmp::Reverse, collections::BTreeMap};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::render::{self, Answer};

/// What a list can be asked for.
const PAGE_PARAMETERS: &[&str] = &["limit", "starting_after", "created[gte]", "payment_intent"];

/// Objects of a page, unless another number is asked for.
const LIMIT: usize = 10;
const LIMIT_MAX: usize = 100;

/// Part of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    limit: usize,
    starting_after: Option<String>,
    created_from: Option<i64>,
    intent: Option<String>,
}

/// What lists go by.
pub(super) struct About<'a> {
    pub(super) id: &'a str,
    pub(super) number: u64,
    pub(super) intent: &'a str,
    pub(super) created_at: DateTime<Utc>,
}

impl Page {
    pub(super) fn read(query: &BTreeMap<String, String>) -> Result<Self, Answer> {
        // One that is ignored would make a list longer than was asked for, and never say so.
        let unknown = |name: &&String| !PAGE_PARAMETERS.contains(&name.as_str());
        if let Some(name) = query.keys().find(unknown) {
            let message = format!("Unknown here: {name}.");
            return Err(render::invalid("parameter_unknown", &message));
        }
        let created_from = match query.get("created[gte]").map(|text| text.parse()) {
            None => None,
            Some(Ok(seconds)) => Some(seconds),
            Some(Err(_)) => {
                return Err(render::invalid(
                    "parameter_invalid",
                    "created[gte]: seconds.",
                ));
            }
        };
        Ok(Self {
            limit: limit(query)?,
            starting_after: query.get("starting_after").cloned(),
            created_from,
            intent: query.get("payment_intent").cloned(),
        })
    }

    /// The part that was asked for.
    pub(super) fn of<'a, T: 'a>(
        &self,
        url: &str,
        all: impl Iterator<Item = &'a T>,
        about: impl Fn(&T) -> About<'_>,
        document: impl Fn(&T) -> Value,
    ) -> Answer {
        let mut listed: Vec<&T> = all.collect();
        listed.sort_by_key(|object| Reverse(about(object).number));
        let start = match &self.starting_after {
            None => 0,
            // A list that began anew would never end for who goes on after its last object.
            Some(id) => match listed.iter().position(|object| about(object).id == id) {
                None => return render::missing_parameter("starting_after", id),
                Some(place) => place.saturating_add(1),
            },
        };
        let mut rest = listed
            .into_iter()
            .skip(start)
            .filter(|object| self.is_asked_for(&about(object)));
        let data: Vec<Value> = rest.by_ref().take(self.limit).map(document).collect();
        let has_more = rest.next().is_some();
        Answer::new(
            200,
            &json!({"object": "list", "url": url, "has_more": has_more, "data": data}),
        )
    }

    fn is_asked_for(&self, object: &About<'_>) -> bool {
        let created = object.created_at.timestamp();
        self.created_from.is_none_or(|from| created >= from)
            && self.intent.as_deref().is_none_or(|id| id == object.intent)
    }
}

/// How many objects were asked for.
pub(super) fn limit(query: &BTreeMap<String, String>) -> Result<usize, Answer> {
    match query.get("limit").map(|limit| limit.parse()) {
        None => Ok(LIMIT),
        Some(Ok(limit)) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(_) => Err(render::invalid(
            "parameter_invalid",
            "limit: from 1 to 100.",
        )),
    }
}
