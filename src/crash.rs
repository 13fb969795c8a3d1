//! Named points at which a test ends the process as `kill -9` would: nothing is flushed, no
//! destructor runs, and nobody is told.
//!
//! Each of [`STEPS`] has two, `claim.before` and `claim.after`: before it is sent, when nobody has
//! heard of it, and after its answer came, when it is done and nothing was concluded from it yet.
//! `FAILPOINTS=claim.before=return` kills at the first pass; `claim.before=return(FILE)` kills at
//! the first pass once FILE is there, so that a test lets a service make a history first.
//!
//! Test builds only: where the crate `fail` is off, [`point`] is empty.

use std::fmt;

/// Every step that commits, sends or asks. Those of the database bear the name of their statement,
/// and have their points in `db::pool`, where every statement passes.
pub const STEPS: &[&str] = &[
    "claim",
    "reclaim",
    "send",
    "ask",
    "settle",
    "park",
    "release",
    "renew",
    "take_over",
    "let_go",
    "list_left",
    "delete_expired",
    "take_due",
    "follow",
];

/// The side of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

/// Passes a point, or dies there.
pub fn point(step: &str, moment: Moment) {
    if fail::has_failpoints() {
        let name = format!("{step}.{moment}");
        // All of it in the macro, which leaves nothing of it in a release. `raise` does not come
        // back, unless a process may not signal itself.
        fail::fail_point!(&name, |file| {
            if file.is_none_or(|file| std::path::Path::new(&file).exists())
                && nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).is_err()
            {
                std::process::abort();
            }
        });
        tracing::trace!(point = name, "passed");
    }
}
