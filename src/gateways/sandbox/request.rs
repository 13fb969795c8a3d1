//! What was asked of the sandbox, in the form that its folder remembers, and the names made of it.

use std::ffi::OsStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    charge,
    journal::{Call, Kind, Line},
    method,
    plan::{Deed, Plan},
};
use crate::{
    gateways::{Authorize, Cancel, Capture, Refund},
    payments::{currency::Currency, model::CaptureMethod, money::Money},
};

/// How much of the digest a name carries: 96 bits, in hexadecimal.
const NAME_LEN: usize = 24;

/// What the sandbox calls a gateway key: the start of its SHA-256, which is a file name whatever
/// characters the key has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Name(String);

impl Name {
    pub(super) fn of(gateway_key: &str) -> Self {
        let digest = hex::encode(Sha256::digest(gateway_key));
        Self(digest.chars().take(NAME_LEN).collect())
    }

    /// Reads a reference back.
    pub(super) fn in_reference(reference: &str, call: Call) -> Option<Self> {
        Self::read(reference.strip_prefix(prefix(call))?)
    }

    /// Reads the name of a key's file back.
    pub(super) fn in_file_name(file_name: &OsStr) -> Option<Self> {
        Self::read(file_name.to_str()?.strip_suffix(".json")?)
    }

    /// Strict, because a name becomes part of a path.
    fn read(name: &str) -> Option<Self> {
        let valid = name.len() == NAME_LEN
            && name
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        valid.then(|| Self(name.to_owned()))
    }

    /// The reference of what `call` made under this name: `sb_auth_` and the name, and so on.
    pub(super) fn reference(&self, call: Call) -> String {
        format!("{}{}", prefix(call), self.0)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

const fn prefix(call: Call) -> &'static str {
    match call {
        Call::Authorize => "sb_auth_",
        Call::Capture => "sb_cap_",
        Call::Cancel => "sb_can_",
        Call::Refund => "sb_ref_",
        Call::Find => "sb_find_",
    }
}

/// One send: the gateway key and its parameters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) gateway_key: String,
    #[serde(flatten)]
    pub(super) asked: Asked,
}

/// The parameters of each call. All of them count when a key comes back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub(super) enum Asked {
    Authorize {
        money: Sum,
        payment_method: String,
        capture_method: String,
        description: Option<String>,
    },
    Capture {
        authorization: String,
        money: Sum,
    },
    Cancel {
        authorization: String,
    },
    Refund {
        charge: String,
        money: Sum,
    },
}

/// [`Money`] as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sum {
    pub(super) amount: i64,
    pub(super) currency: String,
}

impl From<Money> for Sum {
    fn from(money: Money) -> Self {
        Self {
            amount: money.amount_minor,
            currency: money.currency.code().to_owned(),
        }
    }
}

impl Sum {
    pub(super) fn money(&self) -> Option<Money> {
        Some(Money {
            amount_minor: self.amount,
            currency: Currency::from_code(&self.currency)?,
        })
    }
}

impl Request {
    pub(super) fn name(&self) -> Name {
        Name::of(&self.gateway_key)
    }

    /// Tells requests apart: a hash over everything that was sent.
    pub(super) fn fingerprint(&self) -> serde_json::Result<String> {
        Ok(hex::encode(Sha256::digest(serde_json::to_vec(self)?)))
    }

    pub(super) const fn call(&self) -> Call {
        match &self.asked {
            Asked::Authorize { .. } => Call::Authorize,
            Asked::Capture { .. } => Call::Capture,
            Asked::Cancel { .. } => Call::Cancel,
            Asked::Refund { .. } => Call::Refund,
        }
    }

    /// What the `send`th send of this key does, as long as the key is undecided.
    pub(super) fn plan(&self, send: u32) -> Plan {
        match &self.asked {
            Asked::Authorize { money, .. } if money.amount < 1 => {
                Plan::prompt(Deed::Decline(charge::AMOUNT_INVALID))
            }
            Asked::Authorize { payment_method, .. } => method::plan(payment_method, send),
            Asked::Capture { .. } | Asked::Cancel { .. } | Asked::Refund { .. } => {
                Plan::prompt(Deed::Approve)
            }
        }
    }

    /// What the request is about: an existing object, where it names one.
    pub(super) fn subject(&self) -> Option<&str> {
        match &self.asked {
            Asked::Authorize { .. } => None,
            Asked::Capture { authorization, .. } | Asked::Cancel { authorization } => {
                Some(authorization)
            }
            Asked::Refund { charge, .. } => Some(charge),
        }
    }

    pub(super) fn line(&self, kind: Kind, at: DateTime<Utc>, object_id: Option<&str>) -> Line {
        let sum = match &self.asked {
            Asked::Authorize { money, .. }
            | Asked::Capture { money, .. }
            | Asked::Refund { money, .. } => Some(money),
            Asked::Cancel { .. } => None,
        };
        Line {
            at,
            kind,
            gateway_key: self.gateway_key.clone(),
            call: self.call(),
            amount: sum.map(|sum| sum.amount),
            currency: sum.map(|sum| sum.currency.clone()),
            object_id: object_id.map(ToOwned::to_owned),
        }
    }
}

impl From<&Authorize> for Request {
    fn from(request: &Authorize) -> Self {
        Self {
            gateway_key: request.gateway_key.as_str().to_owned(),
            asked: Asked::Authorize {
                money: request.money.into(),
                payment_method: request.payment_method.clone(),
                capture_method: request.capture_method.as_str().to_owned(),
                description: request.description.clone(),
            },
        }
    }
}

impl From<&Capture> for Request {
    fn from(request: &Capture) -> Self {
        Self {
            gateway_key: request.gateway_key.as_str().to_owned(),
            asked: Asked::Capture {
                authorization: request.authorization.0.clone(),
                money: request.money.into(),
            },
        }
    }
}

impl From<&Cancel> for Request {
    fn from(request: &Cancel) -> Self {
        Self {
            gateway_key: request.gateway_key.as_str().to_owned(),
            asked: Asked::Cancel {
                authorization: request.authorization.0.clone(),
            },
        }
    }
}

impl From<&Refund> for Request {
    fn from(request: &Refund) -> Self {
        Self {
            gateway_key: request.gateway_key.as_str().to_owned(),
            asked: Asked::Refund {
                charge: request.charge.0.clone(),
                money: request.money.into(),
            },
        }
    }
}

/// Whether the authorisation takes the money at once.
pub(super) fn captures_at_once(capture_method: &str) -> bool {
    capture_method == CaptureMethod::Automatic.as_str()
}
