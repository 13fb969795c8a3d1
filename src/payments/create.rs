//! `payments.create`.
