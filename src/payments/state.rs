//! The states of a payment and the edges between them: one `match`, which the trigger
//! `payments_edge` repeats in SQL and a test compares with it.

use std::{fmt, str::FromStr};

use super::model::UnknownValue;

/// Where a payment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaymentStatus {
    /// Not decided yet.
    Processing,
    /// The money is taken.
    Succeeded,
    /// The money is authorised, and waits to be taken.
    RequiresCapture,
    /// The gateway refused.
    Failed,
    /// The authorisation was let go.
    Canceled,
    /// A person must look.
    RequiresReview,
}

impl PaymentStatus {
    pub const ALL: [Self; 6] = [
        Self::Processing,
        Self::Succeeded,
        Self::RequiresCapture,
        Self::Failed,
        Self::Canceled,
        Self::RequiresReview,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Succeeded => "succeeded",
            Self::RequiresCapture => "requires_capture",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::RequiresReview => "requires_review",
        }
    }

    /// Whether a payment may go from here to `next`. Terminal states never regress.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Processing => !matches!(next, Self::Processing),
            Self::RequiresCapture => matches!(next, Self::Processing | Self::Canceled),
            Self::RequiresReview => matches!(
                next,
                Self::Succeeded | Self::RequiresCapture | Self::Failed | Self::Canceled
            ),
            Self::Succeeded | Self::Failed | Self::Canceled => false,
        }
    }
}

impl fmt::Display for PaymentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PaymentStatus {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or(UnknownValue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_edges_of_the_design_exist() {
        use PaymentStatus::{
            Canceled, Failed, Processing, RequiresCapture, RequiresReview, Succeeded,
        };
        let edges = [
            (Processing, Succeeded),
            (Processing, RequiresCapture),
            (Processing, Failed),
            (Processing, Canceled),
            (Processing, RequiresReview),
            (RequiresCapture, Processing),
            (RequiresCapture, Canceled),
            (RequiresReview, Succeeded),
            (RequiresReview, RequiresCapture),
            (RequiresReview, Failed),
            (RequiresReview, Canceled),
        ];

        for from in PaymentStatus::ALL {
            for to in PaymentStatus::ALL {
                assert_eq!(
                    from.may_become(to),
                    edges.contains(&(from, to)),
                    "{from} → {to}"
                );
            }
        }
    }

    #[test]
    fn a_status_reads_back_from_its_name() {
        for status in PaymentStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert_eq!("unknown".parse::<PaymentStatus>(), Err(UnknownValue));
    }
}
