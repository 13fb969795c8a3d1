//! A private PostgreSQL server for `oncepay dev` and for tests.
