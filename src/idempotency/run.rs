//! The guard: claim, perform, settle.
