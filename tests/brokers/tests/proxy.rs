//! The proxy in front of a real server: it counts, and each fault is what it says.

// The lints' exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use pumphouse_test_brokers::proxy::{ANY, Proxy, edit};
use pumphouse_test_brokers::{Error, Fauxqs, raw};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a test waits for an answer that must not come.
const SILENCE: Duration = Duration::from_millis(700);
const PLENTY: Duration = Duration::from_secs(10);

struct Setting {
    proxy: Proxy,
    queue: String,
    server: Fauxqs,
}

impl Setting {
    async fn new() -> Self {
        let server = Fauxqs::start().await.unwrap();
        let proxy = Proxy::start(&server.endpoint()).await.unwrap();
        let created =
            raw::sqs(&proxy.endpoint(), "CreateQueue", &json!({ "QueueName": "q" })).await;
        let queue = created.unwrap().body["QueueUrl"].as_str().unwrap().to_owned();
        proxy.reset();
        Self { proxy, queue, server }
    }

    async fn call(&self, operation: &str, input: Value) -> Result<raw::Answer, Error> {
        let mut input = input;
        input["QueueUrl"] = json!(self.queue);
        raw::sqs(&self.proxy.endpoint(), operation, &input).await
    }

    async fn send(&self, body: &str) -> Result<raw::Answer, Error> {
        self.call("SendMessage", json!({ "MessageBody": body })).await
    }

    async fn receive(&self) -> Vec<Value> {
        let input = json!({ "MaxNumberOfMessages": 10, "MessageSystemAttributeNames": ["All"] });
        let answer = self.call("ReceiveMessage", input).await.unwrap();
        answer.body["Messages"].as_array().cloned().unwrap_or_default()
    }

    /// What the server has to give now, asked without the proxy.
    async fn visible(&self) -> usize {
        let input = json!({ "QueueUrl": self.queue, "AttributeNames": ["All"] });
        let answer = raw::sqs(&self.server.endpoint(), "GetQueueAttributes", &input).await.unwrap();
        let number = answer.body["Attributes"]["ApproximateNumberOfMessages"].as_str().unwrap();
        number.parse().unwrap()
    }
}

/// One kept connection, written by hand: what a client sees that keeps it open.
struct Line(TcpStream);

impl Line {
    async fn open(proxy: &Proxy) -> Self {
        let address = proxy.endpoint();
        Self(TcpStream::connect(address.trim_start_matches("http://")).await.unwrap())
    }

    async fn ask(&mut self) {
        let request = "POST / HTTP/1.1\r\nhost: proxy\r\nx-amz-target: AmazonSQS.ListQueues\r\n\
                       content-type: application/x-amz-json-1.0\r\ncontent-length: 2\r\n\r\n{}";
        self.0.write_all(request.as_bytes()).await.unwrap();
    }

    /// What has come until it is silent for a while or ends; `None` is the end.
    async fn heard(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut buffer = [0; 4096];
        loop {
            match timeout(SILENCE, self.0.read(&mut buffer)).await {
                Ok(Ok(0) | Err(_)) => return None,
                Ok(Ok(length)) => text.push_str(std::str::from_utf8(&buffer[..length]).unwrap()),
                Err(_) => return Some(text),
            }
        }
    }
}

#[tokio::test]
async fn it_counts_by_operation_and_keeps_clients_on_itself() {
    let setting = Setting::new().await;
    let proxy = &setting.proxy;
    assert!(setting.queue.starts_with(&proxy.endpoint()), "{}", setting.queue);
    setting.send("one").await.unwrap();
    setting.send("two").await.unwrap();
    assert_eq!(setting.receive().await.len(), 2);
    let published = [("TopicArn", "arn:aws:sns:us-east-1:000000000000:none"), ("Message", "m")];
    assert_eq!(raw::sns(&proxy.endpoint(), "Publish", &published).await.unwrap().status, 404);

    let counts = proxy.counts();
    let counts: Vec<_> = counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(counts, [("Publish", 1), ("ReceiveMessage", 1), ("SendMessage", 2)]);
    assert_eq!((proxy.count("SendMessage"), proxy.count(ANY)), (2, 4));
    assert_eq!(proxy.in_flight(ANY), 0);
    let seen = proxy.requests();
    assert_eq!(seen[1].operation, "SendMessage");
    assert_eq!(seen[1].json()["MessageBody"], "two");
    assert!(proxy.wait_for("SendMessage", 2, PLENTY).await);
    assert!(!proxy.wait_for("SendMessage", 3, Duration::from_millis(20)).await);
    proxy.reset();
    assert_eq!(proxy.count(ANY), 0);
    assert!(proxy.requests().is_empty());
}

#[tokio::test]
async fn it_answers_in_the_servers_stead() {
    let setting = Setting::new().await;
    let second = setting.proxy.on("SendMessage").nth(2).error(503, "ServiceUnavailable", "busy");
    assert_eq!(setting.send("a").await.unwrap().status, 200);
    let refused = setting.send("b").await.unwrap();
    assert_eq!(refused.status, 503);
    assert_eq!(refused.body["__type"], "com.amazonaws.sqs#ServiceUnavailable");
    assert_eq!(setting.send("c").await.unwrap().status, 200);
    assert_eq!(second.count(), 1);
    assert_eq!(setting.visible().await, 2);
    setting.proxy.on(ANY).times(1).answer(200, "{\"made\":\"up\"}");
    assert_eq!(setting.send("d").await.unwrap().body["made"], "up");
}

#[tokio::test]
async fn a_condition_picks_requests_by_their_body() {
    let setting = Setting::new().await;
    let chosen = setting.proxy.on("SendMessage").when(|body| body["MessageBody"] == "x").times(1);
    let chosen = chosen.error(400, "InvalidMessageContents", "no");
    assert_eq!(setting.send("a").await.unwrap().status, 200);
    assert_eq!(setting.send("x").await.unwrap().status, 400);
    assert_eq!(setting.send("x").await.unwrap().status, 200);
    assert_eq!(chosen.count(), 1);
}

#[tokio::test]
async fn it_drops_before_and_after_the_server_acts() {
    let setting = Setting::new().await;
    setting.proxy.on("SendMessage").times(1).drop_before();
    assert!(setting.send("never").await.is_err());
    assert_eq!(setting.visible().await, 0);
    setting.proxy.on("SendMessage").times(1).drop_after();
    assert!(setting.send("done").await.is_err());
    assert_eq!(setting.visible().await, 1);
    assert_eq!(setting.send("next").await.unwrap().status, 200);
}

#[tokio::test]
async fn it_delays_and_hangs() {
    let setting = Setting::new().await;
    let delay = Duration::from_millis(300);
    setting.proxy.on("SendMessage").times(1).delay(delay);
    let begin = Instant::now();
    assert_eq!(setting.send("late").await.unwrap().status, 200);
    assert!(begin.elapsed() >= delay);

    let hung = setting.proxy.on("SendMessage").times(1).hang();
    assert!(timeout(SILENCE, setting.send("lost")).await.is_err());
    assert_eq!(hung.count(), 1);
    assert_eq!(setting.visible().await, 1, "a hung request is not forwarded");
    assert_eq!(setting.send("next").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_hung_request() {
    let setting = Setting::new().await;
    setting.proxy.on("ListQueues").hang();
    let mut line = Line::open(&setting.proxy).await;
    line.ask().await;
    assert!(setting.proxy.wait_for("ListQueues", 1, PLENTY).await);
    assert_eq!(setting.proxy.in_flight("ListQueues"), 1);
    drop(line);
    let begin = Instant::now();
    while setting.proxy.in_flight("ListQueues") + setting.proxy.open_connections() > 0 {
        assert!(begin.elapsed() < PLENTY);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn it_sends_a_head_without_its_body() {
    let setting = Setting::new().await;
    setting.proxy.on("ListQueues").headers_only();
    let mut line = Line::open(&setting.proxy).await;
    line.ask().await;
    let heard = line.heard().await.unwrap().to_ascii_lowercase();
    assert!(heard.starts_with("http/1.1 200 ok\r\n"), "{heard}");
    assert!(heard.contains("content-length: 4096"), "{heard}");
    assert!(heard.ends_with("\r\n\r\n"), "{heard}");
}

#[tokio::test]
async fn half_open_connections_fall_silent_and_new_ones_work() {
    let setting = Setting::new().await;
    let mut old = Line::open(&setting.proxy).await;
    old.ask().await;
    assert!(old.heard().await.unwrap().contains("QueueUrls"));
    setting.proxy.half_open();
    old.ask().await;
    assert_eq!(old.heard().await.as_deref(), Some(""), "neither an answer nor an end");
    let mut new = Line::open(&setting.proxy).await;
    new.ask().await;
    assert!(new.heard().await.unwrap().contains("QueueUrls"));
    setting.proxy.cut_once().await;
    assert_eq!(old.heard().await, None);
}

#[tokio::test]
async fn it_cuts_refuses_and_heals() {
    let setting = Setting::new().await;
    setting.proxy.on("ListQueues").hang();
    let mut line = Line::open(&setting.proxy).await;
    line.ask().await;
    assert!(setting.proxy.wait_for("ListQueues", 1, PLENTY).await);
    setting.proxy.cut_all().await;
    assert_eq!(line.heard().await, None);
    assert_eq!(setting.proxy.open_connections(), 0);
    assert!(setting.send("refused").await.is_err());
    setting.proxy.heal().await;
    assert_eq!(setting.send("taken").await.unwrap().status, 200);
    let mut line = Line::open(&setting.proxy).await;
    line.ask().await;
    assert!(line.heard().await.unwrap().contains("QueueUrls"), "healing ends the rules");
}

#[tokio::test]
async fn it_slows_both_directions() {
    let setting = Setting::new().await;
    let body = "x".repeat(20_000);
    setting.proxy.slow(10_000);
    let begin = Instant::now();
    assert_eq!(setting.send(&body).await.unwrap().status, 200);
    assert!(begin.elapsed() > Duration::from_millis(1_700), "{:?}", begin.elapsed());
    let begin = Instant::now();
    assert_eq!(setting.receive().await[0]["Body"], *body);
    assert!(begin.elapsed() > Duration::from_millis(1_700), "{:?}", begin.elapsed());
    setting.proxy.slow(0);
    let begin = Instant::now();
    assert_eq!(setting.send(&body).await.unwrap().status, 200);
    assert!(begin.elapsed() < Duration::from_millis(1_700), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn it_rewrites_answers() {
    let setting = Setting::new().await;
    setting.send("one").await.unwrap();
    setting.proxy.on("ReceiveMessage").nth(1).rewrite(edit::twice);
    let messages = setting.receive().await;
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0], messages[1]);

    setting.send("two").await.unwrap();
    let remove = edit::without_attribute("ApproximateReceiveCount");
    setting.proxy.on("ReceiveMessage").times(1).rewrite(remove);
    let messages = setting.receive().await;
    assert!(messages[0]["Attributes"].get("ApproximateReceiveCount").is_none());
    assert!(messages[0]["Attributes"].get("SentTimestamp").is_some());

    setting.send("three").await.unwrap();
    setting.proxy.on("ReceiveMessage").times(1).rewrite(edit::stale_handles);
    let handle = setting.receive().await[0]["ReceiptHandle"].clone();
    let input = json!({ "ReceiptHandle": handle, "VisibilityTimeout": 0 });
    assert_eq!(setting.call("ChangeMessageVisibility", input).await.unwrap().status, 400);
}

/// For FR-34: what is reported as failed did fail, and the rest was done.
#[tokio::test]
async fn it_fails_entries_of_a_batch() {
    let setting = Setting::new().await;
    for body in ["a", "b", "c"] {
        setting.send(body).await.unwrap();
    }
    let entries: Vec<_> = setting
        .receive()
        .await
        .iter()
        .enumerate()
        .map(|(id, message)| {
            json!({ "Id": format!("e{id}"), "ReceiptHandle": message["ReceiptHandle"],
                    "VisibilityTimeout": 0 })
        })
        .collect();
    let batch = json!({ "Entries": entries });
    let operation = "ChangeMessageVisibilityBatch";
    let failing = setting.proxy.on(operation).times(2);
    let failed = failing.fail_entries(2, "InternalError", false);
    let answer = setting.call(operation, batch.clone()).await.unwrap().body;
    assert_eq!(answer["Successful"], json!([{ "Id": "e2" }]));
    let ids: Vec<_> = answer["Failed"].as_array().unwrap().iter().map(|f| &f["Id"]).collect();
    assert_eq!(ids, ["e0", "e1"]);
    assert_eq!(answer["Failed"][0]["Code"], "InternalError");
    assert_eq!(answer["Failed"][0]["SenderFault"], false);
    assert_eq!(setting.visible().await, 1);

    let rest = json!({ "Entries": [batch["Entries"][0], batch["Entries"][1]] });
    let answer = setting.call(operation, rest.clone()).await.unwrap().body;
    assert_eq!(answer["Failed"].as_array().unwrap().len(), 2);
    assert_eq!(answer["Successful"], json!([]));
    assert_eq!(setting.visible().await, 1, "a batch that fails whole is not forwarded");
    setting.call(operation, rest).await.unwrap();
    assert_eq!(setting.visible().await, 3);
    assert_eq!(failed.count(), 2);
}

#[tokio::test]
async fn a_server_that_is_down_is_a_closed_connection_and_comes_back() {
    let mut setting = Setting::new().await;
    setting.server.kill();
    assert!(setting.send("nobody").await.is_err());
    setting.server.restart().await.unwrap();
    let input = json!({ "QueueName": "q" });
    let created = raw::sqs(&setting.proxy.endpoint(), "CreateQueue", &input).await.unwrap();
    assert_eq!(created.body["QueueUrl"], *setting.queue);
    assert_eq!(setting.send("back").await.unwrap().status, 200);
}

#[tokio::test]
async fn dropping_it_closes_all() {
    let Setting { proxy, server: _server, .. } = Setting::new().await;
    let mut line = Line::open(&proxy).await;
    line.ask().await;
    assert!(line.heard().await.is_some());
    let endpoint = proxy.endpoint();
    drop(proxy);
    assert_eq!(line.heard().await, None);
    assert!(raw::sqs(&endpoint, "ListQueues", &json!({})).await.is_err());
}
