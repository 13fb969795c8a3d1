//! Whatever a gateway answers: success is only what shows that it is.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

use super::*;

/// A call, and a document that would be its success.
#[derive(Clone, Copy, Debug)]
enum Case {
    Automatic,
    Manual,
    Capture,
    Cancel,
    Refund,
}

const CASES: [Case; 5] = [
    Case::Automatic,
    Case::Manual,
    Case::Capture,
    Case::Cancel,
    Case::Refund,
];

impl Case {
    fn asked(self) -> Asked {
        match self {
            Self::Automatic => asked(CaptureMethod::Automatic),
            Self::Manual => asked(CaptureMethod::Manual),
            Self::Capture => asked_capture(),
            Self::Cancel => asked_cancel(),
            Self::Refund => asked_refund(),
        }
    }

    fn success(self) -> Value {
        match self {
            Self::Automatic => intent(json!({})),
            Self::Manual => intent(json!({
                "status": "requires_capture", "capture_method": "manual", "amount_received": 0,
            })),
            Self::Capture => intent(json!({"amount_received": 1000})),
            Self::Cancel => intent(json!({"status": "canceled"})),
            Self::Refund => refund(json!({})),
        }
    }

    /// The members that make it a success, each with the only value that does.
    fn proof(self) -> Value {
        let key = json!({"oncepay_gateway_key": "oncepay_1"});
        match self {
            Self::Automatic => json!({
                "object": "payment_intent", "status": "succeeded", "amount": 1999,
                "amount_received": 1999, "currency": "eur", "capture_method": "automatic",
                "metadata": key,
            }),
            Self::Manual => json!({
                "object": "payment_intent", "status": "requires_capture", "amount": 1999,
                "currency": "eur", "capture_method": "manual", "metadata": key,
            }),
            Self::Capture => json!({
                "object": "payment_intent", "id": "pi_1", "status": "succeeded",
                "amount_received": 1000, "currency": "eur",
                "metadata": {"oncepay_capture_key": "oncepay_1"},
            }),
            Self::Cancel => json!({
                "object": "payment_intent", "id": "pi_1", "status": "canceled",
            }),
            Self::Refund => json!({
                "object": "refund", "status": "succeeded", "amount": 500, "currency": "eur",
                "payment_intent": "pi_1", "metadata": key,
            }),
        }
    }

    /// Whether this answer shows the success, under the id that was read.
    fn proven_by(self, status: u16, body: &[u8], id: &str) -> bool {
        let Ok(document) = serde_json::from_slice::<Value>(body) else {
            return false;
        };
        // A second capture or cancel is refused with the payment that the first one left.
        let shown = match (status, self) {
            (200..=299, _) => &document,
            (400 | 404, Self::Capture | Self::Cancel) => &document["error"]["payment_intent"],
            _ => return false,
        };
        !id.is_empty() && shown["id"] == id && contains(shown, &self.proof())
    }
}

/// Whether every member of `part`, at any depth, is in `whole`.
fn contains(whole: &Value, part: &Value) -> bool {
    match part {
        Value::Object(members) => members
            .iter()
            .all(|(name, member)| contains(&whole[name], member)),
        _ => whole == part,
    }
}

/// Values that are near to what counts, and some that are not.
fn value() -> impl Strategy<Value = Value> {
    let near = select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1999),
        json!(500),
        json!(1000),
        json!(1999),
        json!(1999.0),
        json!("1999"),
        json!(2000),
        json!(u64::MAX),
        json!(""),
        json!("eur"),
        json!("EUR"),
        json!("usd"),
        json!("pi_1"),
        json!("pi_2"),
        json!("re_1"),
        json!("succeeded"),
        json!("requires_capture"),
        json!("canceled"),
        json!("processing"),
        json!("requires_action"),
        json!("automatic"),
        json!("manual"),
        json!("payment_intent"),
        json!("refund"),
        json!({}),
        json!([]),
        json!({"oncepay_gateway_key": "oncepay_2"}),
        json!({"oncepay_gateway_key": "oncepay_1"}),
        json!({"oncepay_capture_key": "oncepay_1"}),
        json!({"type": "card_error", "code": "card_declined"}),
    ]);
    prop_oneof![
        4 => near,
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
    ]
}

/// One change of a document.
#[derive(Clone, Debug)]
enum Change {
    Set(&'static str, Value),
    Remove(&'static str),
    /// Puts it into a member of another document.
    Wrap(&'static str),
}

fn change_of_document() -> impl Strategy<Value = Change> {
    let name = || {
        select(vec![
            "id",
            "object",
            "status",
            "amount",
            "amount_received",
            "currency",
            "capture_method",
            "metadata",
            "last_payment_error",
            "payment_intent",
            "error",
        ])
    };
    prop_oneof![
        6 => (name(), value()).prop_map(|(name, value)| Change::Set(name, value)),
        2 => name().prop_map(Change::Remove),
        1 => name().prop_map(Change::Wrap),
    ]
}

fn changed(mut document: Value, changes: Vec<Change>) -> Value {
    for change in changes {
        match (change, document.as_object_mut()) {
            (Change::Set(name, value), Some(members)) => {
                members.insert(name.to_owned(), value);
            }
            (Change::Remove(name), Some(members)) => {
                members.remove(name);
            }
            (Change::Wrap(name), _) => {
                document = Map::from_iter([(name.to_owned(), document)]).into();
            }
            (Change::Set(..) | Change::Remove(_), None) => {}
        }
    }
    document
}

fn statuses() -> impl Strategy<Value = u16> {
    prop_oneof![3 => Just(200), 1 => select(vec![201, 400, 402, 404, 409, 429, 500]), 1 => 100u16..1000]
}

fn assert_only_proven(case: Case, status: u16, body: &[u8]) -> Result<(), TestCaseError> {
    let outcome = answer(&case.asked(), status, body.to_vec());

    if let Outcome::Approved { reference } = outcome {
        prop_assert!(
            case.proven_by(status, body, &reference.0),
            "{case:?}: {status} {}",
            String::from_utf8_lossy(body)
        );
    }
    Ok(())
}

/// The other two would hold if nothing ever succeeded.
#[test]
fn what_proves_a_success_is_one() {
    for case in CASES {
        let body = case.success().to_string();

        let outcome = answer(&case.asked(), 200, body.clone());

        let Outcome::Approved { reference } = outcome else {
            panic!("{case:?}: {outcome:?}");
        };
        assert!(
            case.proven_by(200, body.as_bytes(), &reference.0),
            "{case:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// I2: every success has its effect, and the amount, currency, payment and key are those asked for.
    #[test]
    fn a_changed_answer_succeeds_only_where_it_proves_it(
        case in select(CASES.to_vec()),
        status in statuses(),
        changes in vec(change_of_document(), 0..4),
        cut in proptest::option::weighted(0.1, 0usize..400),
    ) {
        let mut body = changed(case.success(), changes).to_string().into_bytes();
        body.truncate(cut.unwrap_or(usize::MAX));

        assert_only_proven(case, status, &body)?;
    }

    #[test]
    fn arbitrary_bytes_are_never_a_success(
        case in select(CASES.to_vec()),
        status in 100u16..1000,
        body in vec(any::<u8>(), 0..512),
    ) {
        assert_only_proven(case, status, &body)?;
    }

    #[test]
    fn a_success_with_one_byte_changed_succeeds_only_where_it_proves_it(
        case in select(CASES.to_vec()),
        place in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut body = case.success().to_string().into_bytes();
        let place = place.index(body.len());
        body[place] = byte;

        assert_only_proven(case, 200, &body)?;
    }
}
