//! Mistakes in settings, all at once.

use std::fmt;

/// One option that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The name of the environment variable; the option is the same in kebab-case.
    pub name: &'static str,
    /// What it must be. The value that was written is left out: it may be a secret.
    pub message: String,
}

/// Every option that is wrong, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// `value` if nothing was wrong.
    pub(super) fn unless_any<T>(errors: Vec<ConfigError>, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if errors.is_empty() => Ok(value),
            _ => Err(Self(errors)),
        }
    }

    pub fn as_slice(&self) -> &[ConfigError] {
        &self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings are not usable")?;
        for error in &self.0 {
            write!(f, "\n  {}: {}", error.name, error.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
