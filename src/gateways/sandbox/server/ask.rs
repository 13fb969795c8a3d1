//! What a POST asks for, read strictly: a parameter that the server does not imitate is refused.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};

use super::{
    objects::CaptureMethod,
    render::{self, Answer},
};
use crate::{
    gateways::{
        sandbox::{
            journal::{Call, Kind, Line},
            request::Sum,
        },
        stripe::amount::from_wire,
    },
    payments::currency::Currency,
};

/// Accepted and ignored: they change nothing here.
const IGNORED: &[&str] = &[
    "payment_method_types[]",
    "payment_method_types[0]",
    "error_on_requires_action",
    "off_session",
    "cancellation_reason",
    "reason",
];

/// One POST.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) key: Option<String>,
    /// Tells requests of one key apart: a hash over path and parameters.
    pub(super) fingerprint: String,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Authorize {
        sum: Sum,
        payment_method: String,
        capture_method: CaptureMethod,
        description: Option<String>,
        metadata: BTreeMap<String, String>,
    },
    Capture {
        intent: String,
        amount: Option<i64>,
        metadata: BTreeMap<String, String>,
    },
    Cancel {
        intent: String,
    },
    Refund {
        intent: String,
        amount: Option<i64>,
        metadata: BTreeMap<String, String>,
    },
}

impl Ask {
    /// Reads the call at `segments`; `None` where there is no such call.
    pub(super) fn read(
        segments: &[&str],
        key: Option<String>,
        body: &[u8],
    ) -> Option<Result<Self, Answer>> {
        let read: fn(&str, &mut Form) -> Result<What, Answer> = match segments {
            ["v1", "payment_intents"] => |_, form| authorize(form),
            ["v1", "payment_intents", _, "capture"] => capture,
            ["v1", "payment_intents", _, "cancel"] => |id, _| {
                Ok(What::Cancel {
                    intent: id.to_owned(),
                })
            },
            ["v1", "refunds"] => |_, form| refund(form),
            _ => return None,
        };
        let id = segments.get(2).copied().unwrap_or_default();
        Some(Form::read(body).and_then(|mut form| {
            let fingerprint = form.fingerprint(segments);
            let what = read(id, &mut form)?;
            form.finish()?;
            Ok(Self {
                key,
                fingerprint,
                what,
            })
        }))
    }

    pub(super) const fn call(&self) -> Call {
        match &self.what {
            What::Authorize { .. } => Call::Authorize,
            What::Capture { .. } => Call::Capture,
            What::Cancel { .. } => Call::Cancel,
            What::Refund { .. } => Call::Refund,
        }
    }

    /// A line about this call. An amount that is left out is not known here.
    pub(super) fn line(&self, kind: Kind, at: DateTime<Utc>, object_id: Option<String>) -> Line {
        let sum = match &self.what {
            What::Authorize { sum, .. } => Some(sum),
            What::Capture { .. } | What::Cancel { .. } | What::Refund { .. } => None,
        };
        let line = Line {
            at,
            kind,
            gateway_key: self.key.clone().unwrap_or_default(),
            call: self.call(),
            amount: None,
            currency: None,
            object_id,
        };
        with_sum(line, sum)
    }

    pub(super) fn subject(&self) -> Option<&str> {
        match &self.what {
            What::Authorize { .. } => None,
            What::Capture { intent, .. }
            | What::Cancel { intent }
            | What::Refund { intent, .. } => Some(intent),
        }
    }
}

/// The journal counts in ISO minor units, as the service does.
pub(super) fn with_sum(line: Line, sum: Option<&Sum>) -> Line {
    let Some(sum) = sum else { return line };
    let amount = Currency::from_code(&sum.currency)
        .and_then(|currency| from_wire(sum.amount, currency))
        // Only a wrong amount has none; it stays what it is, wrong.
        .unwrap_or(sum.amount);
    Line {
        amount: Some(amount),
        currency: Some(sum.currency.clone()),
        ..line
    }
}

fn authorize(form: &mut Form) -> Result<What, Answer> {
    if form.take("confirm").as_deref() != Some("true") {
        return Err(render::invalid(
            "parameter_missing",
            "This sandbox creates and confirms in one request: send confirm=true.",
        ));
    }
    let amount = form.amount("amount")?;
    let amount = amount.ok_or_else(|| parameter_missing("amount"))?;
    let currency = form.required("currency")?;
    let lower = currency.bytes().all(|byte| byte.is_ascii_lowercase());
    let currency = Currency::from_code(&currency.to_ascii_uppercase())
        .filter(|currency| lower && from_wire(amount, *currency).is_some())
        .ok_or_else(|| {
            render::invalid("parameter_invalid", "No such currency, or no such amount.")
        })?;
    let capture_method = match form.take("capture_method").as_deref() {
        None | Some("automatic") => CaptureMethod::Automatic,
        Some("manual") => CaptureMethod::Manual,
        Some(_) => {
            return Err(render::invalid(
                "parameter_invalid",
                "No such capture_method.",
            ));
        }
    };
    Ok(What::Authorize {
        sum: Sum {
            amount,
            currency: currency.code().to_owned(),
        },
        payment_method: form.required("payment_method")?,
        capture_method,
        description: form.take("description"),
        metadata: form.metadata(),
    })
}

fn capture(id: &str, form: &mut Form) -> Result<What, Answer> {
    Ok(What::Capture {
        intent: id.to_owned(),
        amount: form.amount("amount_to_capture")?,
        metadata: form.metadata(),
    })
}

fn refund(form: &mut Form) -> Result<What, Answer> {
    Ok(What::Refund {
        intent: form.required("payment_intent")?,
        amount: form.amount("amount")?,
        metadata: form.metadata(),
    })
}

fn parameter_missing(name: &str) -> Answer {
    render::invalid("parameter_missing", &format!("Missing: {name}."))
}

/// The parameters; taken out one by one, so that what is left over shows.
#[derive(Debug)]
struct Form(BTreeMap<String, String>);

impl Form {
    fn read(body: &[u8]) -> Result<Self, Answer> {
        let mut form = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(body) {
            if form
                .insert(name.clone().into_owned(), value.into_owned())
                .is_some()
            {
                let message = format!("Sent twice: {name}.");
                return Err(render::invalid("parameter_invalid", &message));
            }
        }
        Ok(Self(form))
    }

    fn fingerprint(&self, segments: &[&str]) -> String {
        // Maps and lists of text have a JSON form, so there is always one.
        let text = serde_json::json!([segments, self.0]).to_string();
        hex::encode(Sha256::digest(text))
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    fn required(&mut self, name: &str) -> Result<String, Answer> {
        self.take(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| parameter_missing(name))
    }

    fn amount(&mut self, name: &str) -> Result<Option<i64>, Answer> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(amount) if digits && amount > 0 => Ok(Some(amount)),
            _ => Err(render::invalid(
                "parameter_invalid_integer",
                &format!("Invalid positive integer: {name}."),
            )),
        }
    }

    fn metadata(&mut self) -> BTreeMap<String, String> {
        let named = |name: &str| {
            let inner = name.strip_prefix("metadata[")?.strip_suffix(']')?;
            Some(inner.to_owned())
        };
        let mut metadata = BTreeMap::new();
        self.0.retain(|name, value| match named(name) {
            Some(inner) => {
                metadata.insert(inner, value.clone());
                false
            }
            None => true,
        });
        metadata
    }

    fn finish(mut self) -> Result<(), Answer> {
        self.0.retain(|name, _| !IGNORED.contains(&name.as_str()));
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(render::invalid(
                "parameter_unknown",
                &format!("Unknown here: {name}."),
            )),
        }
    }
}
