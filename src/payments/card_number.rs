//! Recognises card numbers, which must never enter.
