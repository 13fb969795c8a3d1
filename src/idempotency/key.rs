//! The idempotency key, as a client may write it.
