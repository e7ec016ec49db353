//! The gRPC proxy in front of the real emulator: it counts, and each fault is what it says.

// The lints' exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::time::{Duration, Instant};

use common::{Client, Next, PLENTY, Reply, small, text, values};
use pumphouse_test_brokers::grpc::{ANY, GrpcProxy, code};
use pumphouse_test_brokers::{PubsubEmulator, raw};
use serde_json::{Value, json};
use tokio::time::timeout;

/// How long a test waits for what must not come.
const SILENCE: Duration = Duration::from_millis(700);

struct Setting {
    proxy: GrpcProxy,
    client: Client,
    upstream: String,
    project: String,
}

impl Setting {
    /// A project of this name with a topic and a subscription, without the proxy's knowledge.
    async fn new(project: &str) -> Self {
        Self::before(common::emulator().await, project).await
    }

    async fn before(server: &PubsubEmulator, project: &str) -> Self {
        let proxy = GrpcProxy::start(&server.endpoint()).await.unwrap();
        let client = Client::connect(&proxy.host()).await.unwrap();
        let upstream = server.endpoint();
        let setting = Self { proxy, client, upstream, project: project.to_owned() };
        setting.create().await;
        setting
    }

    async fn create(&self) {
        let topic = format!("projects/{}/topics/top", self.project);
        self.rest("PUT", "topics/top", Value::Null).await;
        let input = json!({ "topic": topic, "ackDeadlineSeconds": 600 });
        self.rest("PUT", "subscriptions/sub", input).await;
    }

    /// Asks the server without the proxy.
    async fn rest(&self, method: &str, path: &str, input: Value) -> Value {
        let path = format!("projects/{}/{path}", self.project);
        let answer = raw::pubsub(&self.upstream, method, &path, &input).await.unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// How many messages the server has to give now; they are given.
    async fn available(&self) -> usize {
        let input = json!({ "maxMessages": 100, "returnImmediately": true });
        let answer = self.rest("POST", "subscriptions/sub:pull", input).await;
        answer["receivedMessages"].as_array().map_or(0, Vec::len)
    }

    fn subscription(&self) -> Vec<u8> {
        text(1, format!("projects/{}/subscriptions/sub", self.project).as_bytes())
    }

    async fn publish(&mut self, data: &str) -> Result<Reply, hyper::Error> {
        let topic = text(1, format!("projects/{}/topics/top", self.project).as_bytes());
        let message = text(2, &text(1, data.as_bytes()));
        self.client.call("Publish", &[topic, message].concat()).await
    }

    async fn pull(&mut self) -> Vec<(Vec<u8>, String)> {
        let reply = self.client.call("Pull", &[self.subscription(), small(3, 10)].concat()).await;
        let reply = reply.unwrap();
        assert_eq!(reply.status, code::OK, "{}", reply.detail);
        received(&reply.message)
    }

    async fn acknowledge(&mut self, id: &[u8]) -> Result<Reply, hyper::Error> {
        let message = [self.subscription(), text(2, id)].concat();
        self.client.call("Acknowledge", &message).await
    }

    async fn open(&mut self) -> common::Stream {
        let first = [self.subscription(), small(5, 60)].concat();
        self.client.stream("StreamingPull", &first).await
    }
}

/// Acknowledgement ids and data of a `PullResponse` or `StreamingPullResponse`.
fn received(message: &[u8]) -> Vec<(Vec<u8>, String)> {
    let one = |received: &[u8]| {
        let id = values(received, 1)[0].to_vec();
        let data = values(values(received, 2)[0], 1)[0].to_vec();
        (id, String::from_utf8(data).unwrap())
    };
    values(message, 1).into_iter().map(one).collect()
}

fn data(received: &[(Vec<u8>, String)]) -> Vec<&str> {
    received.iter().map(|(_, data)| data.as_str()).collect()
}

async fn message(stream: &mut common::Stream) -> Vec<(Vec<u8>, String)> {
    match stream.next().await {
        Next::Message(message) => received(&message),
        other => panic!("{other:?}"),
    }
}

async fn until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PLENTY, "not in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn it_forwards_and_counts_by_method() {
    let mut setting = Setting::new("counting").await;
    assert_eq!(setting.publish("one").await.unwrap().status, code::OK);
    let messages = setting.pull().await;
    assert_eq!(data(&messages), ["one"]);
    assert_eq!(setting.acknowledge(&messages[0].0).await.unwrap().status, code::OK);
    let unknown = setting.acknowledge(b"x").await.unwrap();
    assert_eq!(unknown.status, code::INVALID_ARGUMENT, "a status alone passes as well");
    assert!(unknown.detail.contains("ack"), "{}", unknown.detail);

    let proxy = &setting.proxy;
    let counts = proxy.counts();
    let counts: Vec<_> = counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(counts, [("Acknowledge", 2), ("Publish", 1), ("Pull", 1)]);
    assert_eq!((proxy.count("Pull"), proxy.count(ANY)), (1, 4));
    assert_eq!((proxy.stream_up(ANY), proxy.stream_down(ANY)), (4, 3));
    assert_eq!((proxy.stream_up("Acknowledge"), proxy.stream_down("Acknowledge")), (2, 1));
    until(|| setting.proxy.in_flight(ANY) == 0).await;
    let seen = setting.proxy.requests();
    assert_eq!(seen[3].operation, "Acknowledge");
    assert_eq!(values(&seen[3].body, 2), [b"x"]);
    assert!(setting.proxy.wait_for("Pull", 1, PLENTY).await);
    assert!(!setting.proxy.wait_for("Pull", 2, Duration::from_millis(20)).await);
    setting.proxy.reset();
    assert_eq!((setting.proxy.count(ANY), setting.proxy.stream_up(ANY)), (0, 0));
}

#[tokio::test]
async fn it_answers_with_a_status_in_the_servers_stead() {
    let mut setting = Setting::new("answering").await;
    let chosen =
        setting.proxy.on("Publish").when(|message| values(values(message, 2)[0], 1) == [b"x"]);
    let chosen = chosen.skip(1).times(1).status(code::UNAVAILABLE, "100 % busy");
    assert_eq!(setting.publish("a").await.unwrap().status, code::OK);
    assert_eq!(setting.publish("x").await.unwrap().status, code::OK);
    let refused = setting.publish("x").await.unwrap();
    assert_eq!((refused.status, refused.detail.as_str()), (code::UNAVAILABLE, "100 %25 busy"));
    assert_eq!(setting.publish("x").await.unwrap().status, code::OK);
    assert_eq!(chosen.count(), 1);
    assert_eq!(setting.available().await, 3);

    setting.proxy.on(ANY).nth(2).status(code::ABORTED, "");
    assert_eq!(setting.publish("y").await.unwrap().status, code::OK);
    let mut stream = setting.open().await;
    assert_eq!(stream.next().await, Next::End(code::ABORTED));
}

#[tokio::test]
async fn it_drops_before_and_after_the_server_acts() {
    let mut setting = Setting::new("dropping").await;
    let before = setting.proxy.on("Publish").times(1).drop_before();
    assert!(setting.publish("never").await.is_err());
    assert_eq!(setting.available().await, 0);
    let after = setting.proxy.on("Publish").times(1).drop_after();
    assert!(setting.publish("done").await.is_err());
    assert_eq!(setting.available().await, 1);
    assert_eq!((before.count(), after.count()), (1, 1));
    assert_eq!(setting.publish("next").await.unwrap().status, code::OK, "on the same connection");

    setting.proxy.on("StreamingPull").nth(1).drop_before();
    assert_eq!(setting.open().await.next().await, Next::Reset);
    setting.proxy.on("StreamingPull").nth(1).drop_after();
    assert_eq!(setting.open().await.next().await, Next::Reset);
}

#[tokio::test]
async fn it_delays_and_hangs() {
    let mut setting = Setting::new("delaying").await;
    let delay = Duration::from_millis(300);
    setting.proxy.on("Publish").times(1).delay(delay);
    let begin = Instant::now();
    assert_eq!(setting.publish("late").await.unwrap().status, code::OK);
    assert!(begin.elapsed() >= delay);

    let hung = setting.proxy.on("Publish").times(1).hang();
    assert!(timeout(SILENCE, setting.publish("lost")).await.is_err());
    assert_eq!(hung.count(), 1);
    assert_eq!(setting.available().await, 1, "a hung call is not forwarded");
    until(|| setting.proxy.in_flight(ANY) == 0).await;
    assert_eq!(setting.publish("next").await.unwrap().status, code::OK, "on the same connection");
}

#[tokio::test]
async fn it_rewrites_the_messages_of_an_answer() {
    let mut setting = Setting::new("rewriting").await;
    // The last field again: a message that comes twice.
    let twice = |_: &[u8], message: Vec<u8>| message.repeat(2);
    setting.publish("one").await.unwrap();
    setting.proxy.on("Pull").times(1).rewrite(twice);
    let messages = setting.pull().await;
    assert_eq!(data(&messages), ["one", "one"]);
    assert_eq!(messages[0], messages[1]);

    let echo = setting.proxy.on("Acknowledge").times(1).rewrite(|request, _| request.to_vec());
    let reply = setting.acknowledge(&messages[0].0).await.unwrap();
    assert_eq!(values(&reply.message, 2), [messages[0].0.as_slice()]);
    assert_eq!(echo.count(), 1);

    setting.proxy.on("StreamingPull").times(1).rewrite(twice);
    let mut stream = setting.open().await;
    for expected in ["two", "three"] {
        setting.publish(expected).await.unwrap();
        assert_eq!(data(&message(&mut stream).await), [expected, expected]);
    }
}

#[tokio::test]
async fn a_stream_passes_in_both_directions_as_it_comes() {
    let mut setting = Setting::new("streaming").await;
    let mut stream = setting.open().await;
    setting.publish("one").await.unwrap();
    let first = message(&mut stream).await;
    assert_eq!(data(&first), ["one"]);
    assert_eq!(setting.proxy.in_flight("StreamingPull"), 1);
    let mut acknowledgement = text(2, &first[0].0);
    stream.send(&acknowledgement).await;
    setting.publish("two").await.unwrap();
    let second = message(&mut stream).await;
    assert_eq!(data(&second), ["two"]);
    acknowledgement = text(2, &second[0].0);
    stream.send(&acknowledgement).await;
    until(|| setting.proxy.stream_up("StreamingPull") == 3).await;
    assert_eq!(setting.proxy.stream_down("StreamingPull"), 2);
    assert_eq!(setting.proxy.count("StreamingPull"), 1);
    stream.half_close();
    assert_eq!(stream.next().await, Next::End(code::OK));
    until(|| setting.proxy.in_flight(ANY) == 0).await;
}

#[tokio::test]
async fn it_ends_open_streams_with_a_status() {
    let mut setting = Setting::new("resetting").await;
    let mut used = setting.open().await;
    setting.publish("one").await.unwrap();
    message(&mut used).await;
    let mut idle = setting.open().await;
    setting.proxy.on("StreamingPull").times(1).hang();
    let mut hung = setting.open().await;
    until(|| setting.proxy.in_flight("StreamingPull") == 3).await;
    setting.proxy.reset_streams(code::UNAVAILABLE);
    for stream in [&mut used, &mut idle, &mut hung] {
        assert_eq!(stream.next().await, Next::End(code::UNAVAILABLE));
    }
    drop((used, idle, hung));
    until(|| setting.proxy.in_flight(ANY) == 0).await;
    let mut next = setting.open().await;
    setting.publish("two").await.unwrap();
    assert_eq!(data(&message(&mut next).await), ["two"], "none of them still takes messages");
}

/// What a client gives up, the server must see given up: it is asked through a second proxy.
#[tokio::test]
async fn a_call_that_is_given_up_ends_at_the_server_too() {
    let mut setting = Setting::new("leaving").await;
    let outer = GrpcProxy::start(&setting.proxy.host()).await.unwrap();
    setting.client = Client::connect(&outer.host()).await.unwrap();
    let stream = setting.open().await;
    until(|| setting.proxy.in_flight("StreamingPull") == 1).await;
    drop(stream);
    until(|| setting.proxy.in_flight(ANY) + outer.in_flight(ANY) == 0).await;

    assert!(timeout(SILENCE, setting.pull()).await.is_err());
    until(|| setting.proxy.in_flight(ANY) + outer.in_flight(ANY) == 0).await;
    let _stream = setting.open().await;
    until(|| setting.proxy.in_flight("StreamingPull") == 1).await;
    outer.cut().await;
    until(|| setting.proxy.in_flight(ANY) + outer.in_flight(ANY) == 0).await;
    until(|| setting.proxy.open_connections() == 0).await;
}

#[tokio::test]
async fn it_cuts_refuses_and_heals() {
    let mut setting = Setting::new("cutting").await;
    let mut stream = setting.open().await;
    setting.proxy.on("Publish").hang();
    until(|| setting.proxy.in_flight("StreamingPull") == 1).await;
    setting.proxy.refuse(true).await;
    assert!(Client::connect(&setting.proxy.host()).await.is_err());
    assert!(timeout(SILENCE, stream.next_frame()).await.is_err(), "what is open stays");
    setting.proxy.cut().await;
    assert_eq!(stream.next().await, Next::Reset);
    assert_eq!(setting.proxy.open_connections(), 0);
    until(|| setting.proxy.in_flight(ANY) == 0).await;
    setting.proxy.heal().await;
    setting.client = Client::connect(&setting.proxy.host()).await.unwrap();
    assert_eq!(setting.publish("taken").await.unwrap().status, code::OK, "healing ends the rules");
    setting.proxy.cut().await;
    setting.client = Client::connect(&setting.proxy.host()).await.unwrap();
    assert_eq!(setting.publish("taken").await.unwrap().status, code::OK, "a cut refuses nothing");
}

#[tokio::test]
async fn half_open_connections_fall_silent_and_new_ones_work() {
    let mut setting = Setting::new("silent").await;
    let mut stream = setting.open().await;
    setting.publish("one").await.unwrap();
    message(&mut stream).await;
    setting.proxy.half_open();
    assert!(timeout(SILENCE, setting.publish("lost")).await.is_err());
    let mut old = std::mem::replace(
        &mut setting.client,
        Client::connect(&setting.proxy.host()).await.unwrap(),
    );
    assert_eq!(setting.publish("two").await.unwrap().status, code::OK);
    assert!(timeout(SILENCE, stream.next_frame()).await.is_err(), "neither a message nor an end");
    setting.proxy.cut().await;
    assert_eq!(stream.next().await, Next::Reset);
    assert!(old.call("Pull", &setting.subscription()).await.is_err());
}

/// Flow control and cutting into frames must not change what passes.
#[tokio::test]
async fn large_messages_pass_whole() {
    let mut setting = Setting::new("large").await;
    let large = "x".repeat(3_000_000);
    let size = large.len();
    setting.proxy.on("Publish").rewrite(move |_, _| large.clone().into_bytes());
    let reply = setting.publish("small").await.unwrap();
    assert_eq!(reply.message.len(), size);
    let reply = setting.client.call("Acknowledge", &vec![b'y'; 3_000_000]).await.unwrap();
    assert_ne!(reply.status, code::OK, "it reached the server, which can't read it");
    until(|| setting.proxy.stream_up("Acknowledge") == 1).await;
}

#[tokio::test]
async fn it_slows_both_directions() {
    let mut setting = Setting::new("slowing").await;
    setting.proxy.slow(10_000);
    let begin = Instant::now();
    setting.client.call("Acknowledge", &[b'y'; 20_000]).await.unwrap();
    assert!(begin.elapsed() > Duration::from_millis(1_700), "{:?}", begin.elapsed());
    setting.proxy.on("Publish").rewrite(|_, _| vec![b'x'; 20_000]);
    let begin = Instant::now();
    assert_eq!(setting.publish("small").await.unwrap().message.len(), 20_000);
    assert!(begin.elapsed() > Duration::from_millis(1_700), "{:?}", begin.elapsed());
    setting.proxy.slow(0);
    let begin = Instant::now();
    setting.publish("small").await.unwrap();
    assert!(begin.elapsed() < Duration::from_millis(1_700), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_server_that_is_down_is_a_closed_connection_and_comes_back() {
    let mut server = PubsubEmulator::start().await.unwrap();
    let mut setting = Setting::before(&server, "killed").await;
    let mut stream = setting.open().await;
    until(|| setting.proxy.in_flight("StreamingPull") == 1).await;
    server.kill();
    assert_eq!(stream.next().await, Next::Reset);
    until(|| setting.proxy.open_connections() == 0).await;
    if let Ok(client) = Client::connect(&setting.proxy.host()).await {
        setting.client = client;
        assert!(setting.publish("nobody").await.is_err());
    }
    server.restart().await.unwrap();
    setting.create().await;
    setting.client = Client::connect(&setting.proxy.host()).await.unwrap();
    assert_eq!(setting.publish("back").await.unwrap().status, code::OK);
}

#[tokio::test]
async fn dropping_it_closes_all() {
    let Setting { proxy, mut client, .. } = Setting::new("dropped").await;
    let host = proxy.host();
    let mut stream = client.stream("StreamingPull", &small(5, 60)).await;
    drop(proxy);
    assert_eq!(stream.next().await, Next::Reset);
    let begin = Instant::now();
    while Client::connect(&host).await.is_ok() {
        assert!(begin.elapsed() < PLENTY);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
