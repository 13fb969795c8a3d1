//! What a client asks for, validated: no value of these types breaks a rule of D4.
//!
//! A request is refused with *all* its errors at once, each with a pointer to the member. What is
//! refused here is not remembered under the key: the corrected request may use it again.

use std::{collections::BTreeMap, fmt};

use super::{
    currency::Currency,
    field_error::{FieldError, FieldFault},
    fields::Fields,
    metadata::metadata,
    model::CaptureMethod,
    money::{Money, read_amount},
    text::{TextRule, string},
};
use crate::idempotency::document::{Document, Value};

const PAYMENT_METHOD: TextRule = TextRule::line(64);
const REFERENCE: TextRule = TextRule::line(255);
const DESCRIPTION: TextRule = TextRule::lines(1000);
const CUSTOMER: TextRule = TextRule::line(255);

/// Creates a payment.
#[derive(Clone, PartialEq, Eq)]
pub struct CreatePayment {
    pub money: Money,
    /// A gateway's token for a means of payment, such as `pm_card_visa`; never card data.
    pub payment_method: String,
    pub capture_method: CaptureMethod,
    pub reference: Option<String>,
    pub description: Option<String>,
    pub customer: Option<String>,
    pub metadata: BTreeMap<String, String>,
}

impl CreatePayment {
    /// Validates what was sent, or what was stored of it.
    pub fn from_document(document: &Document) -> Result<Self, Vec<FieldError>> {
        let mut fields = Fields::of(document);
        let amount = fields.required("amount", read_amount);
        let currency = fields.required("currency", currency);
        let payment_method = fields.required("payment_method", payment_method);
        let capture_method = fields.optional("capture_method", capture_method);
        let reference = fields.optional("reference", |value| REFERENCE.read(value));
        let description = fields.optional("description", |value| DESCRIPTION.read(value));
        let customer = fields.optional("customer", |value| CUSTOMER.read(value));
        let metadata = metadata(&mut fields);
        let errors = fields.finish();

        match (amount, currency, payment_method) {
            (Some(amount_minor), Some(currency), Some(payment_method)) if errors.is_empty() => {
                Ok(Self {
                    money: Money {
                        amount_minor,
                        currency,
                    },
                    payment_method,
                    capture_method: capture_method.unwrap_or(CaptureMethod::Automatic),
                    reference,
                    description,
                    customer,
                    metadata,
                })
            }
            _ => Err(errors),
        }
    }
}

/// Shows what is needed to understand a log line; names, references and notes stay out (D11).
impl fmt::Debug for CreatePayment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatePayment")
            .field("money", &self.money)
            .field("capture_method", &self.capture_method)
            .finish_non_exhaustive()
    }
}

fn currency(value: &Value) -> Result<Currency, FieldFault> {
    Currency::from_code(string(value)?).ok_or(FieldFault::UnknownCurrency)
}

/// `[A-Za-z][A-Za-z0-9_]{2,63}`: what the tokens of the gateways that we know are made of.
fn payment_method(value: &Value) -> Result<String, FieldFault> {
    let token = PAYMENT_METHOD.read(value)?;
    let well_formed = token.len() >= 3
        && token.starts_with(|first: char| first.is_ascii_alphabetic())
        && token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if well_formed {
        Ok(token)
    } else {
        Err(FieldFault::InvalidToken {
            expected: "3 to 64 letters, digits and underscores, with a letter first",
        })
    }
}

fn capture_method(value: &Value) -> Result<CaptureMethod, FieldFault> {
    string(value)?
        .parse()
        .map_err(|_unknown| FieldFault::UnknownValue {
            expected: "`automatic` or `manual`",
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(body: &str) -> Document {
        Document::parse(body.as_bytes()).unwrap()
    }

    fn read(body: &str) -> Result<CreatePayment, Vec<FieldError>> {
        CreatePayment::from_document(&document(body))
    }

    /// A valid body with `member` in place of, or in addition to, what it says there.
    fn read_with(name: &str, value: &str) -> Result<CreatePayment, Vec<FieldError>> {
        let others = [
            ("amount", "1999"),
            ("currency", "\"EUR\""),
            ("payment_method", "\"pm_card_visa\""),
        ];
        let members: Vec<_> = others
            .into_iter()
            .filter(|(other, _)| *other != name)
            .chain([(name, value)])
            .map(|(name, value)| format!("\"{name}\": {value}"))
            .collect();
        read(&format!("{{{}}}", members.join(",")))
    }

    fn code(name: &str, value: &str) -> &'static str {
        match read_with(name, value).as_ref().map_err(Vec::as_slice) {
            Ok(_) => "ok",
            Err([error]) if error.pointer == format!("/{name}") => error.code,
            Err(errors) => panic!("one error at /{name}, not {errors:?}"),
        }
    }

    #[test]
    fn a_full_body_is_read_as_it_was_written() {
        let body = r#"{"amount": 1000000000000, "currency": "JPY", "payment_method": "pm_1",
            "capture_method": "manual", "reference": "r1", "description": "a\n\tb",
            "customer": "c", "metadata": {"k": "v"}}"#;

        let command = read(body).unwrap();

        assert_eq!(command.money.amount_minor, 1_000_000_000_000);
        assert_eq!(command.money.currency.code(), "JPY");
        assert_eq!(command.payment_method, "pm_1");
        assert_eq!(command.capture_method, CaptureMethod::Manual);
        assert_eq!(command.reference.as_deref(), Some("r1"));
        assert_eq!(command.description.as_deref(), Some("a\n\tb"));
        assert_eq!(command.customer.as_deref(), Some("c"));
        assert_eq!(command.metadata, BTreeMap::from([("k".into(), "v".into())]));
    }

    #[test]
    fn what_is_not_sent_has_its_default() {
        let command = read_with("reference", "null").unwrap();

        assert_eq!(command.capture_method, CaptureMethod::Automatic);
        assert_eq!(command.reference, None);
        assert_eq!(command.metadata, BTreeMap::new());
    }

    #[test]
    fn what_was_stored_gives_the_same_command() {
        let body = r#"{"amount":1,"currency":"KWD","payment_method":"pm_x","metadata":{"a":"b"}}"#;
        let sent = document(body);
        let stored = Document::from_json(&sent.to_json()).unwrap();

        let command = CreatePayment::from_document(&sent);

        assert!(command.is_ok());
        assert_eq!(CreatePayment::from_document(&stored), command);
    }

    #[test]
    fn an_amount_is_a_plain_integer_within_its_range() {
        for (value, expected) in [
            ("1", "ok"),
            ("1000000000000", "ok"),
            ("1000000000001", "out-of-range"),
            ("0", "out-of-range"),
            ("-1", "out-of-range"),
            ("9007199254740993", "out-of-range"),
            ("9223372036854775807", "out-of-range"),
            ("9223372036854775808", "not-an-integer"),
            ("-0", "not-an-integer"),
            ("1e0", "not-an-integer"),
            ("1.0", "not-an-integer"),
            ("19.99", "not-an-integer"),
            ("\"\"", "wrong-type"),
            ("\"1999\"", "wrong-type"),
            ("true", "wrong-type"),
            ("[]", "wrong-type"),
            ("[1999]", "wrong-type"),
            ("{}", "wrong-type"),
            ("null", "required"),
        ] {
            assert_eq!(code("amount", value), expected, "{value}");
        }
    }

    #[test]
    fn each_member_has_its_rule() {
        let (longest, too_long) = (
            format!("\"{}\"", "x".repeat(255)),
            format!("\"{}\"", "x".repeat(256)),
        );
        for (name, value, expected) in [
            ("currency", "\"eur\"", "unknown-currency"),
            ("currency", "\"XXX\"", "unknown-currency"),
            ("currency", "978", "wrong-type"),
            ("currency", "null", "required"),
            ("payment_method", "\"pm\"", "invalid-token"),
            ("payment_method", "\"1pm_x\"", "invalid-token"),
            ("payment_method", "\"pm-card\"", "invalid-token"),
            ("payment_method", "\"pm_\u{E9}\"", "invalid-token"),
            ("payment_method", "\"\"", "empty"),
            ("payment_method", &too_long, "too-long"),
            ("payment_method", "\"4111111111111111\"", "card-number"),
            ("payment_method", "{\"number\": \"x\"}", "wrong-type"),
            ("capture_method", "\"manual\"", "ok"),
            ("capture_method", "\"Manual\"", "unknown-value"),
            ("capture_method", "true", "wrong-type"),
            ("reference", &longest, "ok"),
            ("reference", &too_long, "too-long"),
            ("reference", "\"\"", "empty"),
            ("reference", "\"a\\nb\"", "control-character"),
            ("reference", "1", "wrong-type"),
            ("reference", "\"1796072999123\"", "ok"),
            ("customer", &too_long, "too-long"),
            ("customer", "\"5555-5555-5555-4444\"", "card-number"),
            ("description", &too_long, "ok"),
            ("description", "\"a\\u0007\"", "control-character"),
            ("amuont", "1", "unknown-member"),
            ("Amount", "1", "unknown-member"),
        ] {
            assert_eq!(code(name, value), expected, "{name}: {value}");
        }
        assert_eq!(
            code("description", &format!("\"{}\"", "x".repeat(1001))),
            "too-long"
        );
    }

    #[test]
    fn all_errors_are_reported_at_once_and_show_no_value() {
        let body = r#"{"amount": 1.5, "currency": "EURO", "reference": "4111 1111 1111 1111",
            "metadata": {"a": 1, "b": ""}, "card": {"number": "5555555555554444"}}"#;

        let errors = read(body).unwrap_err();

        let found: Vec<_> = errors
            .iter()
            .map(|error| (&*error.pointer, error.code))
            .collect();
        assert_eq!(
            found,
            [
                ("/card/number", "card-number"),
                ("/reference", "card-number"),
                ("/amount", "not-an-integer"),
                ("/currency", "unknown-currency"),
                ("/payment_method", "required"),
                ("/metadata/a", "wrong-type"),
                ("/metadata/b", "empty"),
                ("/card", "unknown-member"),
            ]
        );
        let shown = format!("{errors:?}");
        assert!(
            !shown.contains("4111") && !shown.contains("5555"),
            "{shown}"
        );
    }

    #[test]
    fn debug_shows_no_text_of_the_client() {
        let command = read_with("customer", "\"Ada Lovelace\"").unwrap();

        let shown = format!("{command:?}");

        assert!(
            !shown.contains("Ada") && !shown.contains("pm_card"),
            "{shown}"
        );
    }
}
