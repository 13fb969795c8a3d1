//! Settings: every option is also an environment variable, and all mistakes are reported together.
