//! `Prefer: wait=N` (RFC 7240, section 4.3): for how long a duplicate waits for the first request.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The longest wait that is honoured; a longer one is cut to it. Below the usual 30 s after which
/// clients and proxies give up.
pub const WAIT_MAX_SECONDS: u64 = 25;

pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// The wait that is asked for. A preference that cannot be read is ignored, as the RFC demands.
pub fn wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers
        .get_all(PREFER)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|preference| preference.split(';').next()?.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("wait"))
        .and_then(|(_, value)| value.trim().trim_matches('"').parse().ok())?;
    Some(Duration::from_secs(seconds.min(WAIT_MAX_SECONDS)))
}

/// Says that a wait was honoured.
pub fn applied(wait: Duration) -> Option<(HeaderName, HeaderValue)> {
    let value = HeaderValue::try_from(format!("wait={}", wait.as_secs())).ok()?;
    Some((PREFERENCE_APPLIED, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_of(value: &'static str) -> Option<u64> {
        let headers = HeaderMap::from_iter([(PREFER, HeaderValue::from_static(value))]);
        wait(&headers).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_wait_is_read_and_capped() {
        assert_eq!(wait_of("wait=3"), Some(3));
        assert_eq!(wait_of("respond-async, Wait = 10; x=y"), Some(10));
        assert_eq!(wait_of("wait=\"5\""), Some(5));
        assert_eq!(wait_of("wait=3600"), Some(WAIT_MAX_SECONDS));
    }

    #[test]
    fn what_cannot_be_read_is_ignored() {
        for value in [
            "",
            "wait",
            "wait=",
            "wait=-1",
            "wait=1.5",
            "wait=soon",
            "waiting=3",
        ] {
            assert_eq!(wait_of(value), None, "{value}");
        }
    }
}
