//! `oncepay serve`: the service.
