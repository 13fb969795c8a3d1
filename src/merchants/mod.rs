//! Merchants and their API keys.
