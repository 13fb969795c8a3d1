//! Opaque cursors: where a page ended.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use uuid::Uuid;

use crate::ids::PaymentId;

pub const LIMIT_DEFAULT: i64 = 20;
pub const LIMIT_MAX: i64 = 100;

/// Says what a cursor is, so that one of another list, or of a later version, is refused.
const PAYMENTS_V1: u8 = 1;

/// The cursor after which the next page begins.
pub fn cursor(last: PaymentId) -> String {
    let mut bytes = vec![PAYMENTS_V1];
    bytes.extend_from_slice(last.uuid().as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a cursor of ours.
pub fn read_cursor(text: &str) -> Option<PaymentId> {
    match URL_SAFE_NO_PAD.decode(text).ok()?.split_first()? {
        (&PAYMENTS_V1, id) => Uuid::from_slice(id).ok().map(PaymentId::from_uuid),
        _ => None,
    }
}

/// Reads a page size.
pub fn read_limit(text: &str) -> Option<i64> {
    text.parse()
        .ok()
        .filter(|limit| (1..=LIMIT_MAX).contains(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_no_other_text_does() {
        let id = PaymentId::generate(chrono::DateTime::UNIX_EPOCH);

        assert_eq!(read_cursor(&cursor(id)), Some(id));
        for text in [
            "",
            "AA",
            "not base64!",
            &id.to_string(),
            &cursor(id).replace('A', "B"),
        ] {
            assert_ne!(read_cursor(text), Some(id), "{text}");
        }
    }

    #[test]
    fn a_page_has_one_to_a_hundred_rows() {
        for text in ["0", "101", "-1", "1.0", "", "many"] {
            assert_eq!(read_limit(text), None, "{text}");
        }
        assert_eq!(read_limit("100"), Some(100));
    }
}
