//! Judges a trial by what its clients were told, what the gateway noted, and what is stored: which
//! of the invariants of D13 are broken. It knows nothing of how the service works.

use std::{collections::BTreeSet, fmt, time::Duration};

use chrono::{DateTime, Utc};
use oncepay::{
    audit,
    gateways::sandbox::journal::{Call, Kind, Line},
};

use super::buyer::{Asked, Said};

/// How the key must end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// 201, and one effect for each key.
    #[default]
    Paid,
    /// 402, and no effect.
    Declined,
    /// 202, and a person is to look.
    InReview,
    /// 201, and 410 once the record has expired.
    Expired,
}

/// Everything that is known when a trial is over.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub end: End,
    pub said: Vec<Said>,
    pub lines: Vec<Line>,
    /// What `oncepay audit` found.
    pub breaches: Vec<audit::Breach>,
    /// Records that are neither finished nor in front of a person.
    pub unresolved: i64,
    /// How often the busiest record was acquired.
    pub attempts: i64,
    /// How often it may have been, where nobody died and no outcome was unknown.
    pub attempts_max: Option<i64>,
    pub at_death: Option<AtDeath>,
    /// From the death to the last answer that was waited for, and how long that may take.
    pub took: Option<(Duration, Duration)>,
}

/// What stood where at the moment of a death.
#[derive(Clone, Copy, Debug)]
pub struct AtDeath {
    pub requests: usize,
    pub claims: i64,
    pub finished: i64,
    pub answered: usize,
}

/// An invariant that is broken, and how that shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verdict {
    pub invariant: &'static str,
    pub detail: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.detail)
    }
}

/// Every invariant that the evidence shows to be broken.
pub fn judge(evidence: &Evidence) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = [
        effects(evidence),
        answers(evidence),
        owners(evidence),
        death(evidence),
        end(evidence),
    ]
    .concat();
    verdicts.extend(evidence.breaches.iter().map(|breach| Verdict {
        invariant: breach.invariant,
        detail: format!("audit: {}: {}", breach.check, breach.detail),
    }));
    verdicts.sort();
    verdicts.dedup();
    verdicts
}

/// The verdict, where the rule is broken.
fn broken(rule_holds: bool, invariant: &'static str, detail: impl Into<String>) -> Vec<Verdict> {
    let detail = detail.into();
    let verdict = Verdict { invariant, detail };
    if rule_holds {
        Vec::new()
    } else {
        vec![verdict]
    }
}

fn effects(evidence: &Evidence) -> Vec<Verdict> {
    let keys = keys(evidence).len();
    let executed: Vec<&Line> = of_kind(evidence, Kind::Effect).collect();
    let gateway_keys: BTreeSet<&str> = of_kind(evidence, Kind::Request)
        .map(|line| line.gateway_key.as_str())
        .collect();
    let expected = if evidence.end == End::Declined {
        0
    } else {
        keys
    };
    let (count, sent) = (executed.len(), gateway_keys.len());
    [
        broken(
            count <= expected,
            "I1",
            format!("{count} effects for {expected}"),
        ),
        broken(
            count >= expected,
            "I2",
            format!("{count} effects for {expected}"),
        ),
        broken(
            sent <= keys,
            "I11",
            format!("{sent} gateway keys for {keys} keys"),
        ),
    ]
    .concat()
}

fn answers(evidence: &Evidence) -> Vec<Verdict> {
    let charged_at = of_kind(evidence, Kind::Effect).map(|line| line.at).min();
    let mut verdicts = Vec::new();
    for said in &evidence.said {
        let status = said.reply.status.as_u16();
        let charged = charged_at.is_some_and(|at| at < said.heard_at);
        let denied = status == 402 && charged;
        verdicts.extend(broken(!denied, "I4", "402 after the effect"));
        let released = status == 503 && said.reply.text().contains("gateway-unavailable");
        let unanswered = released && unanswered(evidence, said.heard_at);
        verdicts.extend(broken(
            !unanswered,
            "I20",
            "released after an unanswered send",
        ));
        let charged = released && charged;
        verdicts.extend(broken(!charged, "I20", "released after the effect"));
        let obeyed = said.asked == Asked::Other && status != 422;
        verdicts.extend(broken(
            !obeyed,
            "I6",
            format!("{status} for another request"),
        ));
    }
    for key in keys(evidence) {
        let definite = definite(evidence, key);
        let Some(first) = definite.first() else {
            continue;
        };
        let differs = definite.iter().find(|said| !same(first, said));
        let differs = differs.map(|said| format!("{} and {}", shown(first), shown(said)));
        verdicts.extend(broken(differs.is_none(), "I5", differs.unwrap_or_default()));
    }
    verdicts
}

/// Whether a send of that time never had its answer, so that it could have had an effect.
fn unanswered(evidence: &Evidence, at: DateTime<Utc>) -> bool {
    let count = |kind| {
        let lines = of_kind(evidence, kind);
        lines.filter(|line| line.at < at).count()
    };
    count(Kind::Request) > count(Kind::Answer)
}

/// Two owners that both wrote both say that they executed.
fn owners(evidence: &Evidence) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for key in keys(evidence) {
        let executed = definite(evidence, key);
        let executed = executed.iter().filter(|said| !said.reply.replayed());
        let count = executed.count();
        let detail = format!("{count} answers of an owner under one key");
        verdicts.extend(broken(count <= 1, "I9", detail));
    }
    let attempts = evidence.attempts;
    let allowed = evidence.attempts_max.unwrap_or(attempts);
    let detail = format!("acquired {attempts} times, and its owner lived");
    verdicts.extend(broken(attempts <= allowed, "I8", detail));
    verdicts
}

fn death(evidence: &Evidence) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    if let Some(death) = evidence.at_death {
        let claimed = death.requests == 0 || death.claims > 0;
        verdicts.extend(broken(claimed, "I10", "sent and not claimed"));
        let kept = death.answered == 0 || death.finished > 0;
        verdicts.extend(broken(kept, "I15", "answered and not stored"));
    }
    if let Some((took, limit)) = evidence.took {
        let detail = format!("answered {took:?} after the death, limit {limit:?}");
        verdicts.extend(broken(took <= limit, "I18", detail));
    }
    verdicts
}

fn end(evidence: &Evidence) -> Vec<Verdict> {
    let unresolved = evidence.unresolved;
    let mut verdicts = broken(
        unresolved == 0,
        "I18",
        format!("{unresolved} records are not resolved"),
    );
    for key in keys(evidence) {
        let of_key = |said: &&Said| said.key == key && said.asked == Asked::First;
        let last = evidence.said.iter().rfind(of_key);
        let status = last.map_or(0, |said| said.reply.status.as_u16());
        let (expected, invariant) = match (evidence.end, status) {
            // The record was deleted before its time.
            (End::Paid, 410) => (201, "I12"),
            (End::Paid, _) => (201, "I18"),
            (End::Declined, _) => (402, "I4"),
            (End::InReview, _) => (202, "I18"),
            (End::Expired, _) => (410, "I12"),
        };
        let detail = format!("{key} ends with {status} and not {expected}");
        verdicts.extend(broken(status == expected, invariant, detail));
    }
    verdicts
}

fn keys(evidence: &Evidence) -> BTreeSet<&str> {
    let keys = evidence.said.iter().map(|said| said.key.as_str());
    keys.collect()
}

/// Last words about a key, the refusals of its later life left out.
fn definite<'a>(evidence: &'a Evidence, key: &str) -> Vec<&'a Said> {
    let definite = evidence.said.iter().filter(|said| {
        said.key == key
            && said.asked == Asked::First
            && said.is_definite()
            && said.reply.status != 410
    });
    definite.collect()
}

fn of_kind(evidence: &Evidence, kind: Kind) -> impl Iterator<Item = &Line> {
    let lines = evidence.lines.iter();
    lines.filter(move |line| line.kind == kind && line.call != Call::Find)
}

fn same(one: &Said, other: &Said) -> bool {
    let (one, other) = (&one.reply, &other.reply);
    let headers = ["content-type", "location"];
    one.status == other.status
        && one.body == other.body
        && headers
            .iter()
            .all(|name| one.header(name) == other.header(name))
}

fn shown(said: &Said) -> String {
    format!("{} {}", said.reply.status.as_u16(), said.reply.text())
}
