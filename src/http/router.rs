//! Which path leads where.
