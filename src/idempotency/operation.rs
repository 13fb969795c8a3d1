//! What a request asks for: one dotted name, the same in columns, spans and metric labels.

use std::{fmt, str::FromStr};

/// An operation that runs under an idempotency key.
///
/// The name goes into fingerprints and gateway keys, so that it can never be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    PaymentsCreate,
}

impl Operation {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PaymentsCreate => "payments.create",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a known operation")]
pub struct UnknownOperation;

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(text: &str) -> Result<Self, UnknownOperation> {
        match text {
            "payments.create" => Ok(Self::PaymentsCreate),
            _ => Err(UnknownOperation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_read_back_from_its_name_only() {
        let name = Operation::PaymentsCreate.to_string();

        assert_eq!(name.parse(), Ok(Operation::PaymentsCreate));
        assert_eq!(
            "Payments.Create".parse::<Operation>(),
            Err(UnknownOperation)
        );
    }
}
