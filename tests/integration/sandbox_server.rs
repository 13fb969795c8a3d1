//! `oncepay sandbox` as its users see it: a process that they start, kill and ask for faults.

use std::{io::Write as _, path::PathBuf};

use oncepay::gateways::sandbox::journal::Kind;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    race::{PATIENCE, in_background},
    sandbox::{Control, SandboxHere, SandboxProcess, command, fault, fault_status},
    wait::wait_until,
};

const PAY: &str = "amount=1999&currency=eur&payment_method=pm_card_visa&confirm=true";
const HOLD: &str =
    "amount=1999&currency=eur&payment_method=pm_card_visa&confirm=true&capture_method=manual";

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal.ndjson");
    (folder, journal)
}

async fn pay(control: &Control, key: &str) -> crate::support::client::Reply {
    control.post("/v1/payment_intents", key, PAY).await
}

#[tokio::test]
async fn a_killed_sandbox_remembers_keys_objects_and_effects() {
    let (_folder, journal) = place();
    let mut sandbox = SandboxProcess::start(&journal);
    let first = pay(&sandbox.control, "K").await;
    sandbox.control.fault(fault("status_after")).await;
    let failed = pay(&sandbox.control, "F").await;

    sandbox.kill();
    sandbox.restart();

    let again = pay(&sandbox.control, "K").await;
    again.assert_replays(&first);
    let failed_again = pay(&sandbox.control, "F").await;
    failed_again.assert_status(500).assert_replays(&failed);
    let other = format!("{PAY}&description=other");
    let differs = sandbox.control.post("/v1/payment_intents", "K", &other);
    assert_eq!(
        differs.await.assert_status(400).json()["error"]["type"],
        "idempotency_error"
    );
    let id = first.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/payment_intents/{id}");
    assert_eq!(sandbox.control.get(&path).await.json(), first.json());
    assert_eq!(sandbox.control.effects_told("K").await, 1);
    assert_eq!(sandbox.control.effects(), 2);
}

#[tokio::test]
async fn a_memory_without_its_effect_in_the_journal_never_happened() {
    let (_folder, journal) = place();
    let mut sandbox = SandboxProcess::start(&journal);
    pay(&sandbox.control, "before").await;
    sandbox.kill();
    let before = std::fs::read(&journal).unwrap();
    sandbox.restart();
    pay(&sandbox.control, "K").await;
    sandbox.kill();
    // As if it had been killed between the two files, in the middle of the effect's line.
    let mut torn = before.clone();
    torn.extend_from_slice(b"{\"at\":\"1970");
    std::fs::write(&journal, torn).unwrap();

    sandbox.restart();

    assert_eq!(sandbox.control.effects_told("K").await, 0);
    let executed = pay(&sandbox.control, "K").await;
    executed.assert_status(200);
    assert_eq!(executed.header("idempotent-replayed"), None);
    assert_eq!(sandbox.control.effects(), 2, "one before, one now");
}

#[tokio::test]
async fn two_sandboxes_do_not_share_a_journal() {
    let (_folder, journal) = place();
    let sandbox = SandboxProcess::start(&journal);

    let second = command("127.0.0.1:0", &journal).output().unwrap();

    assert_eq!(second.status.code(), Some(1));
    pay(&sandbox.control, "K").await.assert_status(200);
}

#[tokio::test]
async fn every_request_and_effect_is_in_the_journal_before_it_is_answered() {
    let sandbox = SandboxHere::start().await;

    pay(&sandbox.control, "K").await;
    pay(&sandbox.control, "K").await;

    let kinds: Vec<Kind> = sandbox
        .control
        .lines()
        .iter()
        .inspect(|line| assert_eq!(line.gateway_key, "K"))
        .map(|line| line.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            Kind::Request,
            Kind::Effect,
            Kind::Answer,
            Kind::Request,
            Kind::Answer
        ]
    );
}

#[tokio::test]
async fn metadata_counts_when_a_key_comes_back() {
    let sandbox = SandboxHere::start().await;
    let with = |value: &str| format!("{PAY}&metadata[a]={value}");
    let path = "/v1/payment_intents";
    sandbox.control.post(path, "K", &with("1")).await;

    let same = sandbox.control.post(path, "K", &with("1")).await;
    let other = sandbox.control.post(path, "K", &with("2")).await;

    assert!(same.replayed());
    assert_eq!(
        other.assert_status(400).json()["error"]["type"],
        "idempotency_error"
    );
    assert_eq!(sandbox.control.effects(), 1);
}

#[tokio::test]
async fn what_it_does_not_imitate_is_refused_and_not_kept() {
    let sandbox = SandboxHere::start().await;
    let path = "/v1/payment_intents";
    for form in [
        "",
        "amount=1999&currency=eur&payment_method=pm_card_visa",
        &PAY.replace("1999", "0"),
        &PAY.replace("1999", "-1"),
        &PAY.replace("1999", "19.99"),
        &PAY.replace("1999", "99999999999999999999"),
        &PAY.replace("eur", "EUR"),
        &PAY.replace("eur", "xxx"),
        &format!("{PAY}&amount=1999"),
        &format!("{PAY}&capture_method=later"),
        &format!("{PAY}&customer=cus_1"),
    ] {
        let refused = sandbox.control.post(path, "K", form).await;

        refused.assert_status(400);
        assert_eq!(refused.json()["error"]["type"], "invalid_request_error");
    }
    pay(&sandbox.control, "K").await.assert_status(200);
    let unknown = sandbox
        .control
        .post("/v1/payment_intents/pi_x/capture", "C", "");
    unknown.await.assert_status(404);
    let nowhere = sandbox.control.get("/v1/charges").await;
    nowhere.assert_status(404);
    assert_eq!(sandbox.control.effects(), 1);
}

#[tokio::test]
async fn a_request_without_a_secret_key_is_refused() {
    let sandbox = SandboxHere::start().await;
    let url = format!("{}/v1/payment_intents", sandbox.control.base);

    let answer = reqwest::Client::new()
        .post(url)
        .body(PAY)
        .send()
        .await
        .unwrap();

    assert_eq!(answer.status(), 401);
    assert_eq!(sandbox.control.effects(), 0);
}

#[tokio::test]
async fn a_hold_is_captured_once_and_for_no_more_than_it_is() {
    let sandbox = SandboxHere::start().await;
    let control = &sandbox.control;
    let hold = control.post("/v1/payment_intents", "H", HOLD).await.json();
    assert_eq!(hold["status"], "requires_capture");
    let capture = format!(
        "/v1/payment_intents/{}/capture",
        hold["id"].as_str().unwrap()
    );

    let beyond = control.post(&capture, "A", "amount_to_capture=2000").await;
    let captured = control.post(&capture, "B", "amount_to_capture=1500").await;
    let twice = control.post(&capture, "C", "").await;

    beyond.assert_status(400);
    assert_eq!(captured.assert_status(200).json()["amount_received"], 1500);
    assert_eq!(
        twice.assert_status(400).json()["error"]["payment_intent"]["status"],
        "succeeded"
    );
    assert_eq!(control.effects(), 2);
}

#[tokio::test]
async fn lists_go_page_by_page_the_newest_first() {
    let sandbox = SandboxHere::start().await;
    let control = &sandbox.control;
    for key in ["1", "2", "3"] {
        let form = format!("{PAY}&metadata[n]={key}");
        control.post("/v1/payment_intents", key, &form).await;
    }

    let first = control.get("/v1/payment_intents?limit=2").await.json();
    let last = first["data"][1]["id"].as_str().unwrap();
    let path = format!("/v1/payment_intents?limit=2&starting_after={last}");
    let second = control.get(&path).await.json();
    let later = control
        .get("/v1/payment_intents?created[gte]=1")
        .await
        .json();

    let numbers = |page: &serde_json::Value| -> Vec<String> {
        let data = page["data"].as_array().unwrap().clone();
        let number =
            |intent: &serde_json::Value| intent["metadata"]["n"].as_str().map(str::to_owned);
        data.iter().filter_map(number).collect()
    };
    assert_eq!(numbers(&first), ["3", "2"]);
    assert_eq!(first["has_more"], true);
    assert_eq!(numbers(&second), ["1"]);
    assert_eq!(second["has_more"], false);
    assert!(numbers(&later).is_empty(), "all were made at second 0");
}

/// A caller that goes on after what it was given must come to an end.
#[tokio::test]
async fn a_list_ends_and_says_so_and_goes_on_after_known_objects_only() {
    let sandbox = SandboxHere::start().await;
    let control = &sandbox.control;
    for key in ["1", "2"] {
        pay(control, key).await.assert_status(200);
    }
    let intents = "/v1/payment_intents";

    let exact = control.get(&format!("{intents}?limit=2")).await.json();
    let last = exact["data"][1]["id"].as_str().unwrap();
    let beyond = control
        .get(&format!("{intents}?starting_after={last}"))
        .await;

    assert_eq!(exact["object"], "list");
    assert_eq!(exact["url"], intents);
    assert_eq!(exact["has_more"], false);
    assert_eq!(beyond.assert_status(200).json()["data"], json!([]));
    for query in [
        "starting_after=pi_unknown",
        "ending_before=pi_unknown",
        "limit=0",
        "limit=101",
        "created[gte]=yesterday",
        "created[gt]=1",
    ] {
        for path in [intents, "/v1/refunds"] {
            let refused = control.get(&format!("{path}?{query}")).await;
            refused.assert_status(400);
        }
    }
}

/// D9: keys are forgotten after a window, and a key that comes back after it is a new payment.
#[tokio::test]
async fn a_key_is_forgotten_after_the_window_that_was_asked_for() {
    let (_folder, journal) = place();
    let sandbox = SandboxProcess::start_with(&journal, &["--key-window", "1s"]);
    let first = pay(&sandbox.control, "K").await;
    pay(&sandbox.control, "K").await.assert_replays(&first);
    assert_eq!(sandbox.control.effects_told("K").await, 1);

    let mut last = first.clone();
    wait_until(PATIENCE, async || {
        last = pay(&sandbox.control, "K").await;
        !last.replayed()
    })
    .await;

    assert_ne!(last.assert_status(200).json()["id"], first.json()["id"]);
    assert_eq!(sandbox.control.effects_told("K").await, 2);
}

#[tokio::test]
async fn a_rate_limit_is_asked_for_by_status_and_not_kept_with_the_key() {
    let (_folder, journal) = place();
    let sandbox = SandboxProcess::start(&journal);
    let limit = json!({"fault": "status_before", "status": 429, "times": 2});
    sandbox.control.fault(limit).await;

    let limited = [
        pay(&sandbox.control, "K").await,
        pay(&sandbox.control, "K").await,
    ];
    let made = pay(&sandbox.control, "K").await;

    for reply in limited {
        reply.assert_status(429);
        assert_eq!(reply.json()["error"]["code"], json!(null));
        assert!(!reply.replayed());
    }
    made.assert_status(200);
    assert_eq!(sandbox.control.effects_told("K").await, 1);
}

#[tokio::test]
async fn a_fault_waits_for_its_call_and_can_be_taken_back() {
    let sandbox = SandboxHere::start().await;
    let control = &sandbox.control;
    control
        .fault(json!({"fault": "refuse", "call": "capture"}))
        .await;
    pay(control, "K").await.assert_status(200);
    control.fault(fault("refuse")).await;

    control.clear_faults().await;

    pay(control, "L").await.assert_status(200);
}

/// A retry that comes after the window is a new payment, also at a server that was started anew.
#[tokio::test]
async fn keys_that_were_forgotten_on_request_are_new_also_after_a_restart() {
    let (_folder, journal) = place();
    let mut sandbox = SandboxProcess::start(&journal);
    pay(&sandbox.control, "K").await.assert_status(200);

    sandbox.control.fault(fault("forget_keys")).await;
    sandbox.kill();
    sandbox.restart();

    let again = pay(&sandbox.control, "K").await;
    assert_eq!(again.assert_status(200).header("idempotent-replayed"), None);
    assert_eq!(sandbox.control.effects_told("K").await, 2);
}

#[tokio::test]
async fn keys_are_not_forgotten_while_a_request_is_under_way() {
    let sandbox = SandboxHere::start().await;
    let control = sandbox.control.clone();
    control.fault(fault("hang_before")).await;
    let hanging = in_background(async move { pay(&control, "K").await });
    let control = &sandbox.control;
    wait_until(PATIENCE, async || control.struck("hang_before").await == 1).await;

    let refused = control.try_fault(&fault("forget_keys")).await;
    hanging.abort();

    refused.assert_status(409);
    wait_until(PATIENCE, async || {
        let reply = control.try_fault(&fault("forget_keys")).await;
        reply.status == 201
    })
    .await;
}

/// Whoever asks for a fault can see whether it struck: one that comes after the deed has not struck
/// a call that was declined.
#[tokio::test]
async fn a_fault_is_counted_when_it_strikes() {
    let sandbox = SandboxHere::start().await;
    let control = &sandbox.control;
    let declined = PAY.replace("visa", "declined");
    for _twice in 0..2 {
        control.fault(fault_status("status_after", 503)).await;
    }

    let first = control.post("/v1/payment_intents", "D", &declined).await;
    let struck_then = control.struck("status_after").await;
    let second = pay(control, "K").await;

    first.assert_status(402);
    second.assert_status(503);
    assert_eq!((struck_then, control.struck("status_after").await), (0, 1));
}

#[tokio::test]
async fn a_fault_that_cannot_be_done_is_a_400_that_says_why() {
    let sandbox = SandboxHere::start().await;

    let webhook = sandbox.control.try_fault(&fault("webhook_twice")).await;
    let unknown = sandbox.control.try_fault(&fault("explode")).await;

    webhook.assert_status(400);
    assert_eq!(
        webhook.json()["error"]["message"],
        "this version sends no webhooks"
    );
    unknown.assert_status(400);
}

#[test]
fn help_tells_of_every_fault_and_payment_method() {
    let (_folder, journal) = place();

    let help = command("127.0.0.1:0", &journal)
        .arg("--help")
        .output()
        .unwrap();

    let help = String::from_utf8(help.stdout).unwrap();
    let methods = oncepay::gateways::sandbox::method::METHODS;
    for word in [
        "drop_after_effect",
        "hang_before",
        "\"status\": 429",
        "--key-window",
        "--search-lag",
    ]
    .into_iter()
    .chain(methods.iter().map(|(method, _)| *method))
    {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
}

#[tokio::test]
async fn a_journal_that_cannot_be_read_is_no_empty_one() {
    let (_folder, journal) = place();
    let mut file = std::fs::File::create(&journal).unwrap();
    file.write_all(b"something else\n").unwrap();

    let refused = command("127.0.0.1:0", &journal).output().unwrap();

    assert_eq!(refused.status.code(), Some(1));
}
