//! What can go wrong with merchants and their API keys.

/// Why an administrative command did not happen.
#[derive(Debug, thiserror::Error)]
pub enum MerchantError {
    #[error("a name is one line of 1 to 200 characters")]
    InvalidName,
    #[error("there is no such merchant")]
    MerchantNotFound,
    #[error("there is no such API key")]
    ApiKeyNotFound,
    #[error("the database did not do it")]
    Database(#[from] sqlx::Error),
}

/// Why a request has no known sender.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Malformed, unknown, wrong or revoked: one answer, so that guessing teaches nothing.
    #[error("the API key is not accepted")]
    Refused,
    /// Nobody knows; this is not a refusal.
    #[error("the database could not be asked")]
    Database(#[from] sqlx::Error),
}
