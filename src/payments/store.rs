//! The rows of payments.
