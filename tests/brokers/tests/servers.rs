//! The servers as they are: each starts, does what tests rely on, and keeps what it should.
//! Where a server differs from Amazon SQS, a test says so, so that a new version is noticed.

// The lints' exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use pumphouse_test_brokers::proxy::Proxy;
use pumphouse_test_brokers::{ElasticMq, Fauxqs, Storage, raw};
use serde_json::{Value, json};

async fn call(endpoint: &str, operation: &str, input: Value) -> Value {
    let answer = raw::sqs(endpoint, operation, &input).await.unwrap();
    assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    answer.body
}

async fn create(endpoint: &str, name: &str) -> String {
    let mut attributes = json!({});
    if name.ends_with(".fifo") {
        attributes = json!({ "FifoQueue": "true" });
    }
    let input = json!({ "QueueName": name, "Attributes": attributes });
    call(endpoint, "CreateQueue", input).await["QueueUrl"].as_str().unwrap().to_owned()
}

async fn send(endpoint: &str, queue: &str, body: &str) {
    let mut input = json!({ "QueueUrl": queue, "MessageBody": body });
    if queue.ends_with(".fifo") {
        input["MessageGroupId"] = json!("group");
        input["MessageDeduplicationId"] = json!(body);
    }
    call(endpoint, "SendMessage", input).await;
}

async fn receive(endpoint: &str, queue: &str) -> Vec<Value> {
    let input = json!({
        "QueueUrl": queue, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 2,
        "MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"],
    });
    let answer = call(endpoint, "ReceiveMessage", input).await;
    answer["Messages"].as_array().cloned().unwrap_or_default()
}

async fn change(endpoint: &str, queue: &str, message: &Value, seconds: u32) -> u16 {
    let input = json!({
        "QueueUrl": queue, "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": seconds,
    });
    raw::sqs(endpoint, "ChangeMessageVisibility", &input).await.unwrap().status
}

fn bodies(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["Body"].as_str().unwrap()).collect()
}

fn count(message: &Value) -> &str {
    message["Attributes"]["ApproximateReceiveCount"].as_str().unwrap()
}

/// What every SQS server must do for the rest to make sense: C-1 (the broker counts) and release.
async fn counts_and_releases(endpoint: &str) {
    let queue = create(endpoint, "plain").await;
    assert!(queue.starts_with(endpoint), "{queue} is not on {endpoint}");
    send(endpoint, &queue, "hello").await;
    for expected in ["1", "2", "3"] {
        let messages = receive(endpoint, &queue).await;
        assert_eq!(bodies(&messages), ["hello"]);
        assert_eq!(count(&messages[0]), expected);
        assert_eq!(change(endpoint, &queue, &messages[0], 0).await, 200);
    }
}

/// A redrive policy is kept as it was set, and acts: after two receives the third finds nothing.
async fn redrives(endpoint: &str) {
    let dead = create(endpoint, "dead").await;
    let arn = json!({ "QueueUrl": dead, "AttributeNames": ["QueueArn"] });
    let arn = call(endpoint, "GetQueueAttributes", arn).await["Attributes"]["QueueArn"].clone();
    let policy = json!({ "deadLetterTargetArn": arn, "maxReceiveCount": 2 });
    let attributes = json!({ "RedrivePolicy": policy.to_string() });
    let input = json!({ "QueueName": "poisoned", "Attributes": attributes });
    let queue = call(endpoint, "CreateQueue", input).await["QueueUrl"].clone();
    let queue = queue.as_str().unwrap();
    let read = json!({ "QueueUrl": queue, "AttributeNames": ["RedrivePolicy"] });
    let read = call(endpoint, "GetQueueAttributes", read).await;
    let read = read["Attributes"]["RedrivePolicy"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(read).unwrap(), policy);

    send(endpoint, queue, "poison").await;
    for _ in 0..2 {
        let messages = receive(endpoint, queue).await;
        change(endpoint, queue, &messages[0], 0).await;
    }
    assert!(receive(endpoint, queue).await.is_empty());
    assert_eq!(bodies(&receive(endpoint, &dead).await), ["poison"]);
}

/// A handle whose lease was lost and given to another receive.
async fn stale_handle(endpoint: &str) -> (u16, u16) {
    let queue = create(endpoint, "stale").await;
    send(endpoint, &queue, "moved on").await;
    let first = receive(endpoint, &queue).await;
    change(endpoint, &queue, &first[0], 0).await;
    let second = receive(endpoint, &queue).await;
    assert_eq!(second.len(), 1);
    let changed = change(endpoint, &queue, &first[0], 0).await;
    let input = json!({ "QueueUrl": queue, "ReceiptHandle": first[0]["ReceiptHandle"] });
    let deleted = raw::sqs(endpoint, "DeleteMessage", &input).await.unwrap().status;
    assert_eq!(change(endpoint, &queue, &second[0], 0).await, 200, "the message is still there");
    (changed, deleted)
}

async fn fifo_batch(endpoint: &str) -> usize {
    let queue = create(endpoint, "ordered.fifo").await;
    for body in ["a", "b", "c"] {
        send(endpoint, &queue, body).await;
    }
    let first = receive(endpoint, &queue).await;
    assert_eq!(first[0]["Body"], "a");
    assert_eq!(first[0]["Attributes"]["MessageGroupId"], "group");
    assert!(receive(endpoint, &queue).await.is_empty(), "the group is locked while one is held");
    change(endpoint, &queue, &first[0], 0).await;
    first.len()
}

async fn attributes_taken(endpoint: &str, number: usize) -> u16 {
    let queue = create(endpoint, "attributes").await;
    let attributes: serde_json::Map<_, _> = (0..number)
        .map(|i| (format!("k{i}"), json!({ "DataType": "String", "StringValue": "v" })))
        .collect();
    let input = json!({ "QueueUrl": queue, "MessageBody": "b", "MessageAttributes": attributes });
    raw::sqs(endpoint, "SendMessage", &input).await.unwrap().status
}

#[tokio::test]
async fn fauxqs_is_an_sqs_server() {
    let server = Fauxqs::start().await.unwrap();
    let endpoint = server.endpoint();
    counts_and_releases(&endpoint).await;
    redrives(&endpoint).await;
    assert_eq!(stale_handle(&endpoint).await, (400, 200));
    assert_eq!(fifo_batch(&endpoint).await, 1, "one of a group in a batch, where AWS gives more");
    assert_eq!(attributes_taken(&endpoint, 11).await, 200, "no limit of ten, where AWS has one");
}

#[tokio::test]
async fn elasticmq_is_an_sqs_server() {
    let server = ElasticMq::start(Storage::Memory).await.unwrap();
    let endpoint = server.endpoint();
    let proxy = Proxy::start(&endpoint).await.unwrap();
    counts_and_releases(&proxy.endpoint()).await;
    assert_eq!(proxy.count("ChangeMessageVisibility"), 3);
    redrives(&endpoint).await;
    assert_eq!(stale_handle(&endpoint).await, (400, 400), "AWS lets a stale delete pass");
    assert_eq!(fifo_batch(&endpoint).await, 3);
    assert_eq!(attributes_taken(&endpoint, 10).await, 200);
    assert_eq!(attributes_taken(&endpoint, 11).await, 400);
}

#[tokio::test]
async fn fauxqs_loses_everything_when_killed_and_keeps_its_endpoint() {
    let mut server = Fauxqs::start().await.unwrap();
    let endpoint = server.endpoint();
    create(&endpoint, "gone").await;
    let first = server.id();
    server.kill();
    assert_eq!(server.id(), None);
    assert!(raw::sqs(&endpoint, "ListQueues", &json!({})).await.is_err(), "nobody listens");
    server.restart().await.unwrap();
    assert_eq!(server.endpoint(), endpoint);
    assert_ne!(server.id(), first);
    let queues = call(&endpoint, "ListQueues", json!({})).await;
    assert!(queues["QueueUrls"].as_array().is_none_or(Vec::is_empty), "{queues}");
}

#[tokio::test]
async fn durable_elasticmq_keeps_every_confirmed_message_over_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = ElasticMq::start(Storage::Durable(folder.path().into())).await.unwrap();
    let endpoint = server.endpoint();
    let queues = [create(&endpoint, "kept").await, create(&endpoint, "kept.fifo").await];
    let sent: Vec<String> = (0..15).map(|number| format!("m{number:02}")).collect();
    for (queue, body) in queues.iter().flat_map(|queue| sent.iter().map(move |m| (queue, m))) {
        send(&endpoint, queue, body).await;
    }
    server.kill();
    server.restart().await.unwrap();
    assert_eq!(server.endpoint(), endpoint);
    for queue in &queues {
        let mut found = Vec::new();
        while found.len() < sent.len() {
            let messages = receive(&endpoint, queue).await;
            assert!(!messages.is_empty(), "{queue} has only {found:?}");
            found.extend(bodies(&messages).into_iter().map(str::to_owned));
            for message in &messages {
                let handle = &message["ReceiptHandle"];
                let input = json!({ "QueueUrl": queue, "ReceiptHandle": handle });
                call(&endpoint, "DeleteMessage", input).await;
            }
        }
        found.sort();
        assert_eq!(found, sent);
    }
}

/// Three subscribers of SNS: raw, in an envelope, and from a FIFO topic to a FIFO queue.
#[tokio::test]
async fn fauxqs_delivers_from_sns_raw_enveloped_and_in_order() {
    let server = Fauxqs::start().await.unwrap();
    let endpoint = server.endpoint();
    let raw_queue = subscribed(&endpoint, "topic", "raw", true).await;
    let enveloped = subscribed(&endpoint, "topic", "enveloped", false).await;
    let ordered = subscribed(&endpoint, "topic.fifo", "ordered.fifo", true).await;
    let attribute = [
        ("MessageAttributes.entry.1.Name", "colour"),
        ("MessageAttributes.entry.1.Value.DataType", "String"),
        ("MessageAttributes.entry.1.Value.StringValue", "blue"),
    ];
    publish(&endpoint, "topic", &attribute).await;
    let fifo = [("MessageGroupId", "g"), ("MessageDeduplicationId", "d")];
    publish(&endpoint, "topic.fifo", &fifo).await;
    publish(&endpoint, "topic.fifo", &fifo).await;

    let plain = receive(&endpoint, &raw_queue).await;
    assert_eq!(bodies(&plain), ["a & b"]);
    assert_eq!(plain[0]["MessageAttributes"]["colour"]["StringValue"], "blue");

    let wrapped = receive(&endpoint, &enveloped).await;
    let envelope: Value = serde_json::from_str(bodies(&wrapped)[0]).unwrap();
    assert_eq!(envelope["Type"], "Notification");
    assert_eq!(envelope["Message"], "a & b");
    assert_eq!(envelope["MessageAttributes"]["colour"]["Value"], "blue");
    assert!(wrapped[0].get("MessageAttributes").is_none());

    let in_order = receive(&endpoint, &ordered).await;
    assert_eq!(bodies(&in_order), ["a & b"]);
    assert_eq!(in_order[0]["Attributes"]["MessageGroupId"], "g");
    change(&endpoint, &ordered, &in_order[0], 0).await;
    let again = receive(&endpoint, &ordered).await;
    assert_eq!(again.len(), 1, "the second publish was a duplicate");
}

fn topic_arn(name: &str) -> String {
    format!("arn:aws:sns:us-east-1:000000000000:{name}")
}

async fn subscribed(endpoint: &str, topic: &str, queue: &str, raw_delivery: bool) -> String {
    let url = create(endpoint, queue).await;
    let fifo = topic.ends_with(".fifo").to_string();
    let parameters = [
        ("Name", topic),
        ("Attributes.entry.1.key", "FifoTopic"),
        ("Attributes.entry.1.value", fifo.as_str()),
    ];
    let created = raw::sns(endpoint, "CreateTopic", &parameters).await.unwrap();
    assert_eq!(created.element("TopicArn"), Some(topic_arn(topic).as_str()));
    let (topic, queue) = (topic_arn(topic), format!("arn:aws:sqs:us-east-1:000000000000:{queue}"));
    let raw_delivery = raw_delivery.to_string();
    let parameters = [
        ("TopicArn", topic.as_str()),
        ("Protocol", "sqs"),
        ("Endpoint", queue.as_str()),
        ("Attributes.entry.1.key", "RawMessageDelivery"),
        ("Attributes.entry.1.value", raw_delivery.as_str()),
    ];
    let subscribed = raw::sns(endpoint, "Subscribe", &parameters).await.unwrap();
    assert_eq!(subscribed.status, 200, "{}", subscribed.body);
    let subscription = [("SubscriptionArn", subscribed.element("SubscriptionArn").unwrap())];
    let read = raw::sns(endpoint, "GetSubscriptionAttributes", &subscription).await.unwrap();
    assert!(read.body.contains("RawMessageDelivery"), "{}", read.body);
    url
}

async fn publish(endpoint: &str, topic: &str, more: &[(&str, &str)]) {
    let arn = topic_arn(topic);
    let parameters = [&[("TopicArn", arn.as_str()), ("Message", "a & b")], more].concat();
    let answer = raw::sns(endpoint, "Publish", &parameters).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// A server must not outlive a test process that could not clean up.
#[tokio::test]
async fn a_server_dies_with_a_process_that_was_killed() {
    let mut starter = tokio::process::Command::new(env!("CARGO_BIN_EXE_pumphouse-test-brokers"))
        .args(["start", "fauxqs"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = tokio::io::BufReader::new(starter.stdout.take().unwrap());
    let mut endpoint = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut endpoint).await.unwrap();
    let endpoint = endpoint.trim();
    call(endpoint, "ListQueues", json!({})).await;
    starter.kill().await.unwrap();
    for _ in 0..200 {
        if raw::sqs(endpoint, "ListQueues", &json!({})).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{endpoint} still answers");
}

/// The error must name what to install.
#[tokio::test]
async fn a_missing_program_is_named_with_what_brings_it() {
    let nothing = tempfile::tempdir().unwrap();
    for (server, program, package) in [
        ("fauxqs", "npm", "Node.js"),
        ("elasticmq", "java", "openjdk-17-jre-headless"),
        ("rocketmq", "javac", "openjdk-17-jdk-headless"),
    ] {
        let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_pumphouse-test-brokers"))
            .args(["install", server])
            .env("PATH", nothing.path())
            .env("PUMPHOUSE_TEST_CACHE", nothing.path())
            .output()
            .await
            .unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(program) && text.contains(package), "{text}");
    }
}
