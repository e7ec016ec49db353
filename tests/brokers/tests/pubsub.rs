//! The Pub/Sub emulator as it is: it starts, does what tests rely on, and where it differs from
//! Google Pub/Sub, a test says so, so that a new version is noticed.

// The lints' exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::time::Duration;

use common::{Client, Next, small, text, values};
use pumphouse_test_brokers::grpc::code;
use pumphouse_test_brokers::{PubsubEmulator, raw};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// A lease of one second has lapsed after this.
const LAPSE: Duration = Duration::from_millis(1_500);

/// A project of its own at the emulator.
struct Project {
    endpoint: String,
    name: String,
}

impl Project {
    fn new(server: &PubsubEmulator, name: &str) -> Self {
        Self { endpoint: server.endpoint(), name: name.to_owned() }
    }

    /// With a topic `orders` and a subscription `work` that has these settings besides.
    async fn with(name: &str, settings: Value) -> Self {
        let project = Self::new(common::emulator().await, name);
        project.create(settings).await;
        project
    }

    async fn create(&self, mut settings: Value) {
        self.call("PUT", "topics/orders", Value::Null).await;
        settings["topic"] = json!(self.path("topics/orders"));
        self.call("PUT", "subscriptions/work", settings).await;
    }

    fn path(&self, rest: &str) -> String {
        format!("projects/{}/{rest}", self.name)
    }

    async fn ask(&self, method: &str, path: &str, input: Value) -> raw::Answer {
        raw::pubsub(&self.endpoint, method, &self.path(path), &input).await.unwrap()
    }

    async fn call(&self, method: &str, path: &str, input: Value) -> Value {
        let answer = self.ask(method, path, input).await;
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
        answer.body
    }

    /// The HTTP status and the name of gRPC's; the name is empty when it is done.
    async fn status(&self, method: &str, path: &str, input: Value) -> (u16, String) {
        let answer = self.ask(method, path, input).await;
        let name = answer.body["error"]["status"].as_str().unwrap_or_default();
        (answer.status, name.to_owned())
    }

    async fn publish(&self, messages: &[Value]) {
        self.call("POST", "topics/orders:publish", json!({ "messages": messages })).await;
    }

    async fn pull(&self, most: usize) -> Vec<Value> {
        let input = json!({ "maxMessages": most, "returnImmediately": true });
        let answer = self.call("POST", "subscriptions/work:pull", input).await;
        answer["receivedMessages"].as_array().cloned().unwrap_or_default()
    }

    async fn pull_one(&self) -> Value {
        let messages = self.pull(10).await;
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages[0].clone()
    }

    async fn acknowledge(&self, ids: &[&Value]) -> (u16, String) {
        self.status("POST", "subscriptions/work:acknowledge", json!({ "ackIds": ids })).await
    }

    async fn modify(&self, seconds: i32, ids: &[&Value]) -> (u16, String) {
        let input = json!({ "ackIds": ids, "ackDeadlineSeconds": seconds });
        self.status("POST", "subscriptions/work:modifyAckDeadline", input).await
    }
}

fn done() -> (u16, String) {
    (200, String::new())
}

fn refused() -> (u16, String) {
    (400, "INVALID_ARGUMENT".to_owned())
}

/// A message whose data is `hello`.
fn hello() -> Value {
    json!({ "data": "aGVsbG8=" })
}

fn of_key(number: &str) -> Value {
    json!({ "attributes": { "number": number }, "orderingKey": "key" })
}

fn numbers(messages: &[Value]) -> Vec<&str> {
    let number = |message: &Value| message["message"]["attributes"]["number"].is_string();
    assert!(messages.iter().all(number), "{messages:?}");
    messages.iter().map(|m| m["message"]["attributes"]["number"].as_str().unwrap()).collect()
}

async fn dead_letters(project: &Project) -> Value {
    project.call("PUT", "topics/dead", Value::Null).await;
    project
        .call("PUT", "subscriptions/dead", json!({ "topic": project.path("topics/dead") }))
        .await;
    json!({ "deadLetterTopic": project.path("topics/dead"), "maxDeliveryAttempts": 5 })
}

#[tokio::test]
async fn it_loses_everything_when_killed_and_keeps_its_endpoint() {
    let mut server = PubsubEmulator::start().await.unwrap();
    let endpoint = server.endpoint();
    assert_eq!(endpoint, format!("http://{}", server.host()));
    let project = Project::new(&server, "killed");
    project.create(json!({})).await;
    let sent = json!({ "data": "aGVsbG8=", "attributes": { "colour": "blue" } });
    project.publish(&[sent]).await;
    let message = &project.pull_one().await["message"];
    assert_eq!(message["data"], "aGVsbG8=");
    assert_eq!(message["attributes"], json!({ "colour": "blue" }));

    let first = server.id();
    server.kill();
    assert_eq!(server.id(), None);
    let topic = project.path("topics/orders");
    assert!(raw::pubsub(&endpoint, "GET", &topic, &Value::Null).await.is_err(), "nobody listens");
    server.restart().await.unwrap();
    assert_eq!(server.endpoint(), endpoint);
    assert_ne!(server.id(), first);
    assert_eq!(project.ask("GET", "topics/orders", Value::Null).await.status, 404);
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
    let project = Project { endpoint: endpoint.trim().to_owned(), name: "started".to_owned() };
    project.create(json!({})).await;
    drop(starter.stdin.take());
    assert!(starter.wait().await.unwrap().success());
    let topic = project.path("topics/orders");
    assert!(raw::pubsub(endpoint.trim(), "GET", &topic, &Value::Null).await.is_err());
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

/// C-1: the broker counts, by releases and by lapses, and an extension is no delivery.
#[tokio::test]
async fn with_a_dead_letter_policy_it_counts_deliveries_and_not_extensions() {
    let project = Project::new(common::emulator().await, "counting");
    let policy = dead_letters(&project).await;
    project.create(json!({ "deadLetterPolicy": policy })).await;
    project.publish(&[hello()]).await;
    let first = project.pull_one().await;
    assert_eq!(first["deliveryAttempt"], 1);
    assert_eq!(project.modify(20, &[&first["ackId"]]).await, done());
    assert_eq!(project.modify(0, &[&first["ackId"]]).await, done());
    let second = project.pull_one().await;
    assert_eq!(second["deliveryAttempt"], 2);
    assert_ne!(second["ackId"], first["ackId"]);
    assert_eq!(project.modify(1, &[&second["ackId"]]).await, done());
    assert!(project.pull(10).await.is_empty(), "not before the second has passed");
    sleep(LAPSE).await;
    assert_eq!(project.pull_one().await["deliveryAttempt"], 3);
}

#[tokio::test]
async fn without_a_policy_it_does_not_count() {
    let project = Project::with("uncounted", json!({})).await;
    project.publish(&[hello()]).await;
    for _ in 0..2 {
        let message = project.pull_one().await;
        assert!(message.get("deliveryAttempt").is_none(), "{message}");
        project.modify(0, &[&message["ackId"]]).await;
    }
}

/// Google counts with a dead-letter policy alone.
#[tokio::test]
async fn with_a_retry_policy_alone_it_counts_too_and_the_first_release_is_at_once() {
    let policy = json!({ "minimumBackoff": "2s", "maximumBackoff": "2s" });
    let project = Project::with("retrying", json!({ "retryPolicy": policy })).await;
    project.publish(&[hello()]).await;
    for attempt in [1, 2] {
        let message = project.pull_one().await;
        assert_eq!(message["deliveryAttempt"], attempt);
        project.modify(0, &[&message["ackId"]]).await;
    }
    assert!(project.pull(10).await.is_empty(), "from the second on, the back-off holds");
}

/// C-15: after the last attempt the broker forwards by itself.
#[tokio::test]
async fn after_the_last_attempt_it_forwards_a_copy() {
    let project = Project::new(common::emulator().await, "forwarding");
    let policy = dead_letters(&project).await;
    project.create(json!({ "deadLetterPolicy": policy })).await;
    project.publish(&[json!({ "attributes": { "colour": "blue" } })]).await;
    for _ in 0..5 {
        let message = project.pull_one().await;
        project.modify(0, &[&message["ackId"]]).await;
    }
    assert!(project.pull(10).await.is_empty());
    let input = json!({ "maxMessages": 10 });
    let dead = project.call("POST", "subscriptions/dead:pull", input).await;
    let attributes = &dead["receivedMessages"][0]["message"]["attributes"];
    assert_eq!(attributes["colour"], "blue");
    assert_eq!(attributes["CloudPubSubDeadLetterSourceSubscription"], "work");
    assert_eq!(attributes["CloudPubSubDeadLetterSourceDeliveryCount"], "5");
}

#[tokio::test]
async fn what_comes_late_is_accepted() {
    let project = Project::with("late", json!({})).await;
    project.publish(&[hello()]).await;
    let lapsed = project.pull_one().await;
    project.modify(1, &[&lapsed["ackId"]]).await;
    sleep(LAPSE).await;
    assert_eq!(project.modify(20, &[&lapsed["ackId"]]).await, done());
    assert!(project.pull(10).await.is_empty(), "an extension after the lapse hides it again");
    project.modify(1, &[&lapsed["ackId"]]).await;
    sleep(LAPSE).await;
    assert_eq!(project.acknowledge(&[&lapsed["ackId"]]).await, done());
    assert!(project.pull(10).await.is_empty(), "an acknowledgement after the lapse removes it");

    project.publish(&[hello()]).await;
    let first = project.pull_one().await;
    project.modify(0, &[&first["ackId"]]).await;
    let second = project.pull_one().await;
    assert_eq!(project.acknowledge(&[&first["ackId"]]).await, done());
    assert_eq!(project.modify(0, &[&first["ackId"]]).await, done());
    assert!(project.pull(10).await.is_empty(), "a stale id does not touch the new lease");
    assert_eq!(project.modify(0, &[&second["ackId"]]).await, done());
    assert_eq!(project.pull(10).await.len(), 1, "a stale id did not acknowledge it");
}

#[tokio::test]
async fn it_refuses_malformed_ids_and_takes_unknown_ones() {
    let project = Project::with("identified", json!({})).await;
    project.publish(&[hello()]).await;
    let message = project.pull_one().await;
    let (known, unknown) = (&message["ackId"], json!(project.path("subscriptions/work:99999")));
    assert_eq!(project.acknowledge(&[]).await, refused());
    assert_eq!(project.acknowledge(&[&json!("x"), known]).await, refused());
    assert_eq!(project.acknowledge(&[&unknown]).await, done());
    assert_eq!(project.modify(0, &[known]).await, done());
    let again = project.pull_one().await;
    assert_eq!(project.acknowledge(&[&again["ackId"]]).await, done());
    assert_eq!(project.acknowledge(&[&again["ackId"]]).await, done(), "twice");
    assert_eq!(project.modify(600, &[&again["ackId"]]).await, done());
    assert_eq!(project.modify(601, &[&again["ackId"]]).await, done(), "Google refuses it");
    assert_eq!(project.modify(-1, &[&again["ackId"]]).await, refused());
}

#[tokio::test]
async fn exactly_once_refuses_a_second_acknowledgement() {
    let project = Project::with("once", json!({ "enableExactlyOnceDelivery": true })).await;
    project.publish(&[hello()]).await;
    let message = project.pull_one().await;
    assert_eq!(project.acknowledge(&[&message["ackId"]]).await, done());
    assert_eq!(project.acknowledge(&[&message["ackId"]]).await, refused());
}

#[tokio::test]
async fn a_pull_gets_many_of_a_key_and_their_order_depends_on_the_release() {
    let project = Project::with("ordered", json!({ "enableMessageOrdering": true })).await;
    project.publish(&["1", "2", "3"].map(of_key)).await;
    let alone = project.pull(1).await;
    assert_eq!(numbers(&alone), ["1"]);
    assert!(project.pull(10).await.is_empty(), "one that is out blocks the key");
    project.modify(1, &[&alone[0]["ackId"]]).await;
    sleep(LAPSE).await;
    let alone = project.pull(1).await;
    assert_eq!(numbers(&alone), ["1"], "a delay keeps the order");
    project.modify(0, &[&alone[0]["ackId"]]).await;
    let follower = project.pull(1).await;
    assert_eq!(numbers(&follower), ["2"], "released at once it goes behind its followers");
    project.modify(0, &[&follower[0]["ackId"]]).await;

    let batch = project.pull(10).await;
    let mut found = numbers(&batch);
    found.sort_unstable();
    assert_eq!(found, ["1", "2", "3"], "many of a key at once");
    let ids: Vec<_> = batch.iter().map(|message| &message["ackId"]).collect();
    project.modify(0, &ids).await;
    let released = numbers(&batch);
    let batch = project.pull(10).await;
    assert_eq!(numbers(&batch), released, "as they were released");
    let released: Vec<_> = released.into_iter().rev().collect();
    let ids: Vec<_> = batch.iter().rev().map(|message| &message["ackId"]).collect();
    project.modify(0, &ids).await;
    let batch = project.pull(10).await;
    assert_eq!(numbers(&batch), released, "as they were released, out of order");
}

#[tokio::test]
async fn it_seeks_and_has_no_iam() {
    let project = Project::with("administered", json!({})).await;
    let permissions = json!({ "permissions": ["pubsub.topics.publish"] });
    let unimplemented = (501, "UNIMPLEMENTED".to_owned());
    for (method, call, input) in [
        ("POST", "topics/orders:testIamPermissions", permissions),
        ("GET", "topics/orders:getIamPolicy", Value::Null),
    ] {
        assert_eq!(project.status(method, call, input).await, unimplemented);
    }
    project.publish(&[hello()]).await;
    project.pull_one().await;
    let subscription = json!({ "subscription": project.path("subscriptions/work") });
    project.call("PUT", "snapshots/shot", subscription).await;
    let shot = json!({ "snapshot": project.path("snapshots/shot") });
    project.call("POST", "subscriptions/work:seek", shot).await;
    project.pull_one().await;
}

#[tokio::test]
async fn it_does_not_enforce_most_limits() {
    let project = Project::with("limited", json!({ "ackDeadlineSeconds": 5 })).await;
    let many: serde_json::Map<_, _> = (0..101).map(|n| (format!("k{n}"), json!("v"))).collect();
    project.publish(&[json!({ "attributes": many })]).await;
    project.publish(&[json!({ "attributes": { "googclient_x": "v".repeat(1_025) } })]).await;
    project.publish(&[json!({ "attributes": { "k".repeat(257): "v" } })]).await;
    let nothing =
        project.status("POST", "topics/orders:publish", json!({ "messages": [{}] })).await;
    assert_eq!(nothing, refused(), "a message needs data or an attribute");

    let mut policy = dead_letters(&project).await;
    policy["maxDeliveryAttempts"] = json!(4);
    let settings = json!({ "topic": project.path("topics/orders"), "deadLetterPolicy": policy });
    let few = project.status("PUT", "subscriptions/few", settings).await;
    assert_eq!(few, (400, "OUT_OF_RANGE".to_owned()));
}

/// The data plane by gRPC: what REST can't show.
struct Calls {
    client: Client,
    subscription: Vec<u8>,
}

impl Calls {
    async fn to(project: &Project) -> Self {
        let host = project.endpoint.trim_start_matches("http://");
        let subscription = text(1, project.path("subscriptions/work").as_bytes());
        Self { client: Client::connect(host).await.unwrap(), subscription }
    }

    async fn stream(&mut self, lease: u8, most: u8) -> common::Stream {
        let settings = [small(5, lease), small(7, most)].concat();
        let first = [self.subscription.clone(), settings].concat();
        self.client.stream("StreamingPull", &first).await
    }
}

#[tokio::test]
async fn a_pull_is_answered_empty_before_its_deadline_and_leases_nothing() {
    let project = Project::with("waiting", json!({})).await;
    let mut calls = Calls::to(&project).await;
    let pull = [calls.subscription.clone(), small(3, 10)].concat();
    let begin = Instant::now();
    let reply = calls.client.call_within("Pull", &pull, Some("2500m")).await.unwrap();
    assert_eq!((reply.status, reply.message.len()), (code::OK, 0));
    assert!(begin.elapsed() > Duration::from_secs(1), "it does wait");
    assert!(begin.elapsed() < Duration::from_millis(2_500), "the deadline itself is not reached");
    project.publish(&[hello()]).await;
    project.pull_one().await;
}

#[tokio::test]
async fn a_stream_is_given_more_than_it_asks_for() {
    let project = Project::with("flooded", json!({})).await;
    project.publish(&vec![hello(); 20]).await;
    let mut stream = Calls::to(&project).await.stream(60, 3).await;
    let mut received = 0;
    while received < 20 {
        let Next::Message(message) = stream.next().await else { panic!("ended") };
        received += values(&message, 1).len();
    }
}

#[tokio::test]
async fn a_stream_says_its_lease_within_bounds() {
    let project = Project::with("leased", json!({})).await;
    let mut calls = Calls::to(&project).await;
    for lease in [0, 9] {
        let end = calls.stream(lease, 0).await.next().await;
        assert_eq!(end, Next::End(code::INVALID_ARGUMENT), "{lease} s");
    }
}

/// Whoever reads a stream must hold back the followers by itself.
#[tokio::test]
async fn a_stream_is_given_the_next_of_a_key_while_one_is_out() {
    let project = Project::with("followed", json!({ "enableMessageOrdering": true })).await;
    let mut stream = Calls::to(&project).await.stream(60, 0).await;
    for number in ["1", "2"] {
        project.publish(&[of_key(number)]).await;
        assert!(matches!(stream.next().await, Next::Message(_)), "{number}");
    }
}
