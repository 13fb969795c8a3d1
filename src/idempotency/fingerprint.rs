//! The name of one request: what makes two requests the same.
