//! `GET /v1/payments`: filters, pages, and parameters that are refused.

use serde_json::Value;

use crate::support::{
    app::TestApp,
    client::{Reply, payment, payment_with},
};

fn ids(page: &Reply) -> Vec<String> {
    page.json()["data"]
        .as_array()
        .unwrap_or_else(|| panic!("no page: {}", page.text()))
        .iter()
        .map(|payment| payment["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Pays `count` times under the keys `P0`, `P1`, …; gives the payments, oldest first.
async fn pay_times(app: &TestApp, count: usize) -> Vec<Value> {
    let mut payments = Vec::new();
    for number in 0..count {
        let mut body = payment();
        body["reference"] = format!("r{number}").into();
        let reply = app.client.pay(&format!("P{number}"), &body).await;
        payments.push(reply.assert_status(201).json());
    }
    payments
}

fn id(payment: &Value) -> String {
    payment["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn payments_are_listed_newest_first_and_one_is_read_as_it_is_listed() {
    let app = TestApp::start().await;
    let mut paid = pay_times(&app, 3).await;
    paid.reverse();

    let page = app.client.get("/v1/payments").await;
    let one = app
        .client
        .get(&format!("/v1/payments/{}", id(&paid[0])))
        .await;

    page.assert_status(200);
    assert_eq!(page.json()["data"], Value::from(paid.clone()));
    assert_eq!(page.json()["has_more"], false);
    assert_eq!(page.json()["next_cursor"], Value::Null);
    assert_eq!(one.assert_status(200).json(), paid[0]);
}

/// A page ends where the next begins, whoever is inserted meanwhile.
#[tokio::test]
async fn pages_are_complete_and_without_repetition_while_others_insert() {
    let app = TestApp::start().await;
    let mut expected: Vec<_> = pay_times(&app, 7).await.iter().map(id).collect();
    expected.reverse();
    let mut seen = Vec::new();
    let mut path = "/v1/payments?limit=3".to_owned();
    for number in 0.. {
        let page = app.client.get(&path).await;
        let inserted = app.client.pay(&format!("new{number}"), &payment()).await;

        inserted.assert_status(201);
        seen.extend(ids(&page));
        let document = page.json();
        let Some(cursor) = document["next_cursor"].as_str() else {
            assert_eq!(document["has_more"], false);
            break;
        };
        assert_eq!(document["has_more"], true);
        path = format!("/v1/payments?limit=3&cursor={cursor}");
    }

    assert_eq!(seen, expected);
}

#[tokio::test]
async fn filters_narrow_the_list_and_combine() {
    let app = TestApp::start().await;
    let paid = pay_times(&app, 3).await;
    let mut refused = payment_with("pm_card_declined");
    refused["reference"] = "declined".into();
    let declined = app.client.pay("D", &refused).await;
    let declined = declined.json()["payment_id"].as_str().unwrap().to_owned();
    let (first, second, third) = (id(&paid[0]), id(&paid[1]), id(&paid[2]));
    let middle = paid[1]["created_at"].as_str().unwrap();
    let after = format!("created_after={middle}");
    let before = format!("created_before={middle}");
    for (query, expected) in [
        ("status=failed".to_owned(), vec![declined.clone()]),
        ("status=processing".to_owned(), vec![]),
        ("reference=r1".to_owned(), vec![second.clone()]),
        ("reference=r1&status=failed".to_owned(), vec![]),
        ("idempotency_key=P2".to_owned(), vec![third.clone()]),
        ("idempotency_key=p2".to_owned(), vec![]),
        (after.clone(), vec![declined, third, second.clone()]),
        (before, vec![first]),
        (format!("{after}&limit=1&reference=r1"), vec![second]),
    ] {
        let page = app.client.get(&format!("/v1/payments?{query}")).await;

        assert_eq!(ids(&page), expected, "{query}");
    }
}

/// PostgreSQL and RFC 3339 do not end at the same dates: what cannot match is an empty page.
#[tokio::test]
async fn dates_far_away_are_an_empty_or_a_whole_page_and_no_server_error() {
    let app = TestApp::start().await;
    pay_times(&app, 1).await;
    for (query, count) in [
        ("created_after=0000-01-01T00:00:00Z", 1),
        ("created_after=0000-01-01T00:00:00%2B23:59", 1),
        ("created_before=0000-01-01T00:00:00Z", 0),
        ("created_after=9999-12-31T23:59:60-23:59", 0),
        ("created_before=9999-12-31T23:59:59.999999999Z", 1),
    ] {
        let page = app.client.get(&format!("/v1/payments?{query}")).await;

        assert_eq!(ids(page.assert_status(200)).len(), count, "{query}");
    }
}

/// A filter that is misspelt must not list everything.
#[tokio::test]
async fn unknown_repeated_and_invalid_parameters_are_refused_by_name() {
    let app = TestApp::start().await;
    for (query, pointer, code) in [
        ("limit=0", "limit", "invalid"),
        ("limit=101", "limit", "invalid"),
        ("limit=-1", "limit", "invalid"),
        ("limit=ten", "limit", "invalid"),
        ("limit=", "limit", "invalid"),
        ("limit=1&limit=1", "limit", "repeated"),
        ("cursor=AAAA", "cursor", "invalid"),
        ("cursor=%F0%9F%92%B6", "cursor", "invalid"),
        ("status=succeded", "status", "invalid"),
        ("refrence=r1", "refrence", "unknown-parameter"),
        ("a%00b=1", "ab", "unknown-parameter"),
        ("reference=a%00b", "reference", "nul-character"),
        ("idempotency_key=a%20b", "idempotency_key", "invalid"),
        ("created_after=yesterday", "created_after", "invalid"),
        (
            "created_after=10000-01-01T00:00:00Z",
            "created_after",
            "invalid",
        ),
        (
            "created_before=-0001-01-01T00:00:00Z",
            "created_before",
            "invalid",
        ),
        (
            "created_before=2026-13-01T00:00:00Z",
            "created_before",
            "invalid",
        ),
    ] {
        let reply = app.client.get(&format!("/v1/payments?{query}")).await;

        reply.assert_problem(400, "query-invalid");
        let expected = (pointer.to_owned(), code.to_owned());
        assert_eq!(reply.errors(), [expected], "{query}");
    }
}
