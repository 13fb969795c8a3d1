//! What is wrong with one member of a request.
//!
//! An error names the place and the rule and never repeats the value: it goes into answers and
//! logs, and the value may be card data.

use crate::idempotency::pointer::Pointer;

/// One member that is refused. A request is refused with all of them at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// RFC 6901.
    pub pointer: String,
    /// Stable, kebab-case.
    pub code: &'static str,
    /// For people.
    pub message: String,
}

impl FieldError {
    pub fn new(pointer: &Pointer<'_>, fault: &FieldFault) -> Self {
        Self {
            pointer: pointer.to_string(),
            code: fault.code(),
            message: fault.to_string(),
        }
    }
}

/// A rule that a member breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    #[error("is required")]
    Required,
    #[error("is not a member of this request")]
    UnknownMember,
    #[error("must be {expected}")]
    WrongType { expected: &'static str },
    #[error("must be an integer of at most 64 bits, without fraction, exponent or negative zero")]
    NotAnInteger,
    #[error("must be between {min} and {max}")]
    OutOfRange { min: i64, max: i64 },
    #[error("must not be empty")]
    Empty,
    #[error("must have at most {chars_max} characters")]
    TooLong { chars_max: usize },
    #[error("must hold no control characters")]
    ControlCharacter,
    #[error("must have at most {members_max} members")]
    TooManyMembers { members_max: usize },
    #[error("must be an active ISO 4217 currency code in capital letters")]
    UnknownCurrency,
    #[error("must be {expected}")]
    UnknownValue { expected: &'static str },
    #[error("must be {expected}")]
    InvalidToken { expected: &'static str },
    #[error("is a card number; card data must not be sent here")]
    CardNumber,
}

impl FieldFault {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::UnknownMember => "unknown-member",
            Self::WrongType { .. } => "wrong-type",
            Self::NotAnInteger => "not-an-integer",
            Self::OutOfRange { .. } => "out-of-range",
            Self::Empty => "empty",
            Self::TooLong { .. } => "too-long",
            Self::ControlCharacter => "control-character",
            Self::TooManyMembers { .. } => "too-many-members",
            Self::UnknownCurrency => "unknown-currency",
            Self::UnknownValue { .. } => "unknown-value",
            Self::InvalidToken { .. } => "invalid-token",
            Self::CardNumber => "card-number",
        }
    }
}
