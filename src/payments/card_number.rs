//! Recognises card numbers, which must never enter.
//!
//! A string is a card number if, without spaces and dashes, the *whole* of it is digits with the
//! issuer prefix and the length of a known network and a correct check digit (ISO/IEC 7812-1,
//! annex B: the Luhn formula). A number inside a longer text does not count: there every invoice
//! text with a few long numbers would be refused once in a while, and D4 draws the line here.
//!
//! All three conditions are needed. By the check digit alone, one order number in ten would be a
//! card number; millisecond timestamps begin with `1`, where no network lives.

use std::ops::RangeInclusive;

/// The shortest and the longest number of a known network. Longer input is not looked at, so that
/// the cost does not depend on what a client sends.
const DIGITS: RangeInclusive<usize> = 12..=19;

/// The prefixes (first four digits) that one network issues under, and how long its numbers are.
struct Issuer {
    prefixes: &'static [RangeInclusive<u16>],
    lengths: &'static [usize],
}

/// The networks with their issuer prefixes (ISO/IEC 7812-1, issuer identification numbers), as
/// the networks publish them. Ranges are rather too wide than too narrow: a card number that
/// enters cannot be taken back, a refused reference can be written otherwise.
const ISSUERS: &[Issuer] = &[
    // Visa.
    Issuer {
        prefixes: &[4000..=4999],
        lengths: &[13, 16, 18, 19],
    },
    // Mastercard, with the 2-series.
    Issuer {
        prefixes: &[5100..=5599, 2221..=2720],
        lengths: &[16],
    },
    // American Express.
    Issuer {
        prefixes: &[3400..=3499, 3700..=3799],
        lengths: &[15],
    },
    // Discover.
    Issuer {
        prefixes: &[6011..=6011, 6440..=6599],
        lengths: &[16, 17, 18, 19],
    },
    // Diners Club.
    Issuer {
        prefixes: &[3000..=3059, 3095..=3095, 3600..=3699, 3800..=3999],
        lengths: &[14, 15, 16, 17, 18, 19],
    },
    // JCB.
    Issuer {
        prefixes: &[3528..=3589],
        lengths: &[16, 17, 18, 19],
    },
    // UnionPay, and the part of its range that it shares with Discover.
    Issuer {
        prefixes: &[6200..=6299, 8100..=8171],
        lengths: &[16, 17, 18, 19],
    },
    // Maestro.
    Issuer {
        prefixes: &[5000..=5099, 5600..=5899, 6300..=6399, 6700..=6799],
        lengths: &[12, 13, 14, 15, 16, 17, 18, 19],
    },
];

/// Whether the whole of `text`, without spaces and dashes, is a card number.
pub fn looks_like_card_number(text: &str) -> bool {
    digits(text).is_some_and(|digits| is_issued(&digits) && check_digit_fits(&digits))
}

/// The digits of `text`, if it holds nothing else but spaces and dashes.
fn digits(text: &str) -> Option<Vec<u8>> {
    let mut digits = Vec::with_capacity(*DIGITS.end());
    for character in text.chars() {
        if is_separator(character) {
            continue;
        }
        if digits.len() == *DIGITS.end() {
            return None;
        }
        digits.push(u8::try_from(character.to_digit(10)?).ok()?);
    }
    DIGITS.contains(&digits.len()).then_some(digits)
}

/// Spaces and dashes in all their Unicode shapes: numbers pasted from documents come with
/// no-break spaces (U+00A0) and en dashes (U+2013).
fn is_separator(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '-' | '\u{AD}' | '\u{2010}'
                ..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' | '\u{FF0D}'
        )
}

fn is_issued(digits: &[u8]) -> bool {
    let prefix = digits
        .iter()
        .take(4)
        .fold(0, |prefix, digit| prefix * 10 + u16::from(*digit));
    ISSUERS.iter().any(|issuer| {
        issuer.lengths.contains(&digits.len())
            && issuer.prefixes.iter().any(|range| range.contains(&prefix))
    })
}

/// The Luhn formula: from the right, every second digit is doubled and its digits are added.
fn check_digit_fits(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The networks' public test numbers.
    const CARD_NUMBERS: &[&str] = &[
        "4111111111111111",
        "4222222222222",
        "4000000000000000006",
        "5555555555554444",
        "2223003122003222",
        "2720990000000007",
        "378282246310005",
        "341111111111111",
        "6011111111111117",
        "6500000000000002",
        "30569309025904",
        "36227206271667",
        "3566002020360505",
        "6200000000000005",
        "6205500000000000004",
        "6304000000000000",
        "6759649826438453",
        "500000000009",
    ];

    #[test]
    fn a_test_number_of_each_network_is_a_card_number() {
        for number in CARD_NUMBERS {
            assert!(looks_like_card_number(number), "{number}");
        }
    }

    #[test]
    fn spaces_and_dashes_hide_no_card_number() {
        for number in [
            "4111 1111 1111 1111",
            "4111-1111-1111-1111",
            " 4-1-1-1 1111 1111 1111\t",
            "4111\u{A0}1111\u{2013}1111\u{2212}1111",
        ] {
            assert!(looks_like_card_number(number), "{number:?}");
        }
    }

    #[test]
    fn a_wrong_check_digit_is_no_card_number() {
        for number in CARD_NUMBERS {
            let wrong = number
                .char_indices()
                .map(|(place, digit)| match (place + 1 == number.len(), digit) {
                    (true, '9') => '0',
                    (true, '0'..='8') => char::from_u32(u32::from(digit) + 1).unwrap(),
                    _ => digit,
                })
                .collect::<String>();

            assert!(!looks_like_card_number(&wrong), "{wrong}");
        }
    }

    #[test]
    fn other_long_numbers_are_no_card_numbers() {
        // All but the last four have a correct check digit, so that the reason given decides.
        for (number, reason) in [
            ("1796072999123", "a millisecond timestamp"),
            ("1796072999123008", "a microsecond timestamp"),
            (
                "1234567890123452",
                "a correct check digit without an issuer",
            ),
            ("0000000000000000", "zeros"),
            ("41111111111114", "Visa has no 14 digits"),
            ("55555555555546", "Mastercard has no 14 digits"),
            ("2220990000000002", "just below the 2-series"),
            ("2721000000000004", "just above the 2-series"),
            ("40000000000000000002", "20 digits"),
            ("order 4111111111111111", "a number inside a text"),
            ("4111.1111.1111.1111", "dots are no separators"),
            ("018f2d3c-4b5a-7000-8000-000000000000", "a UUID"),
            ("", "nothing"),
        ] {
            assert!(!looks_like_card_number(number), "{number}: {reason}");
        }
    }

    #[test]
    fn no_millisecond_timestamp_is_a_card_number() {
        for timestamp in 1_796_072_999_000_u64..1_796_073_000_000 {
            assert!(
                !looks_like_card_number(&timestamp.to_string()),
                "{timestamp}"
            );
        }
    }
}
