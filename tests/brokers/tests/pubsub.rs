//! The Pub/Sub emulator as it is: it starts, does what tests rely on, and where it differs from
//! Google Pub/Sub, a test says so, so that a new version is noticed.

// The lints' exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use pumphouse_test_brokers::{PubsubEmulator, raw};
use serde_json::{Value, json};
use tokio::process::Command;

const TOPIC: &str = "projects/pumphouse/topics/orders";
const SUBSCRIPTION: &str = "projects/pumphouse/subscriptions/orders-work";

async fn ask(endpoint: &str, method: &str, path: &str, input: Value) -> raw::Answer {
    raw::pubsub(endpoint, method, path, &input).await.unwrap()
}

async fn call(endpoint: &str, method: &str, path: &str, input: Value) -> Value {
    let answer = ask(endpoint, method, path, input).await;
    assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
    answer.body
}

/// A topic with a subscription that has these settings besides.
async fn create(endpoint: &str, mut settings: Value) {
    call(endpoint, "PUT", TOPIC, Value::Null).await;
    settings["topic"] = json!(TOPIC);
    call(endpoint, "PUT", SUBSCRIPTION, settings).await;
}

async fn publish(endpoint: &str, messages: Value) {
    call(endpoint, "POST", &format!("{TOPIC}:publish"), json!({ "messages": messages })).await;
}

async fn pull(endpoint: &str, most: usize) -> Vec<Value> {
    let path = format!("{SUBSCRIPTION}:pull");
    let answer = call(endpoint, "POST", &path, json!({ "maxMessages": most })).await;
    answer["receivedMessages"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn it_loses_everything_when_killed_and_keeps_its_endpoint() {
    let mut server = PubsubEmulator::start().await.unwrap();
    let endpoint = server.endpoint();
    assert_eq!(endpoint, format!("http://{}", server.host()));
    create(&endpoint, json!({})).await;
    publish(&endpoint, json!([{ "data": "aGVsbG8=", "attributes": { "colour": "blue" } }])).await;
    let messages = pull(&endpoint, 10).await;
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["message"]["data"], "aGVsbG8=");
    assert_eq!(messages[0]["message"]["attributes"], json!({ "colour": "blue" }));

    let first = server.id();
    server.kill();
    assert_eq!(server.id(), None);
    assert!(raw::pubsub(&endpoint, "GET", TOPIC, &Value::Null).await.is_err(), "nobody listens");
    server.restart().await.unwrap();
    assert_eq!(server.endpoint(), endpoint);
    assert_ne!(server.id(), first);
    assert_eq!(ask(&endpoint, "GET", TOPIC, Value::Null).await.status, 404);
}

/// The process must be the server itself: a kill of a wrapper would leave it running.
#[tokio::test]
async fn its_process_is_java() {
    let server = PubsubEmulator::start().await.unwrap();
    let process = std::path::PathBuf::from(format!("/proc/{}", server.id().unwrap()));
    let name = std::fs::read_to_string(process.join("comm")).unwrap();
    assert_eq!(name.trim(), "java");
}

#[tokio::test]
async fn the_command_line_starts_it() {
    let mut starter = Command::new(env!("CARGO_BIN_EXE_pumphouse-test-brokers"))
        .args(["start", "pubsub"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = tokio::io::BufReader::new(starter.stdout.take().unwrap());
    let mut endpoint = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut endpoint).await.unwrap();
    call(endpoint.trim(), "PUT", TOPIC, Value::Null).await;
    drop(starter.stdin.take());
    assert!(starter.wait().await.unwrap().success());
    assert!(raw::pubsub(endpoint.trim(), "GET", TOPIC, &Value::Null).await.is_err());
}

/// The error must name what to install, and a name that leads nowhere is not replaced by a guess.
#[tokio::test]
async fn a_missing_emulator_is_named_with_what_brings_it() {
    let nothing = tempfile::tempdir().unwrap();
    let place = nothing.path().join("none");
    let output = Command::new(env!("CARGO_BIN_EXE_pumphouse-test-brokers"))
        .args(["start", "pubsub"])
        .env("PUMPHOUSE_PUBSUB_EMULATOR", &place)
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    let place = place.to_str().unwrap();
    let package = "google-cloud-cli-pubsub-emulator";
    for part in [place, package, "gcloud components install pubsub-emulator"] {
        assert!(text.contains(part), "{text}");
    }
}
