//! Background work in rounds: jittered, supervised, stopped at shutdown.
