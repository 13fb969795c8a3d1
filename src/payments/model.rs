//! The nouns of a payment.

use std::{fmt, str::FromStr};

/// When the money is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMethod {
    /// At once, with the authorisation.
    Automatic,
    /// Later, by `payments.capture`.
    Manual,
}

impl CaptureMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Manual => "manual",
        }
    }
}

impl fmt::Display for CaptureMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no value of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a known value")]
pub struct UnknownValue;

impl FromStr for CaptureMethod {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        match text {
            "automatic" => Ok(Self::Automatic),
            "manual" => Ok(Self::Manual),
            _ => Err(UnknownValue),
        }
    }
}
