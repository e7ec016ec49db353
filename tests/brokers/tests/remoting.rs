//! The remoting proxy in front of a real RocketMQ: it counts, and each fault is what it says.

// The lints' exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pumphouse_test_brokers::remoting::{RemotingProxy, Server, call, code};
use pumphouse_test_brokers::{RocketMq, Setup, TopicKind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;

const GET_MAX_OFFSET: i32 = 30;

/// Far longer than anything here takes.
const PLENTY: Duration = Duration::from_secs(20);

/// How long a test waits for what must not come.
const SILENCE: Duration = Duration::from_millis(700);

/// One for all tests; it ends with their process.
static SHARED: OnceCell<RocketMq> = OnceCell::const_new();

async fn servers() -> &'static RocketMq {
    SHARED.get_or_init(async || RocketMq::start(Setup::default()).await.unwrap()).await
}

struct Setting {
    proxy: RemotingProxy,
    client: Client,
    upstream: String,
    topic: String,
}

impl Setting {
    /// A topic of this name, without the proxy's knowledge.
    async fn new(topic: &str) -> Self {
        Self::before(servers().await, topic).await
    }

    async fn before(servers: &RocketMq, topic: &str) -> Self {
        servers.create_topic(topic, 1, TopicKind::Normal).await.unwrap();
        let proxy = RemotingProxy::start(servers).await.unwrap();
        let client = Client::connect(&proxy.brokers()[0]).await.unwrap();
        let upstream = servers.brokers().remove(0);
        Self { proxy, client, upstream, topic: topic.to_owned() }
    }

    async fn reconnect(&mut self) {
        self.client = Client::connect(&self.proxy.brokers()[0]).await.unwrap();
    }

    async fn begin_send(&mut self, body: &str) -> i32 {
        let fields = fields(&self.topic);
        self.client.begin(code::SEND_MESSAGE, 0, &fields, body.as_bytes()).await
    }

    async fn send(&mut self, body: &str) -> Option<Reply> {
        let number = self.begin_send(body).await;
        let reply = self.client.reply().await?;
        assert_eq!(reply.number, number);
        Some(reply)
    }

    /// How many messages the broker got, asked without the proxy.
    async fn stored(&self) -> u64 {
        let fields = [("topic", self.topic.as_str()), ("queueId", "0")];
        let answer = call(&self.upstream, GET_MAX_OFFSET, &fields, &[]).await.unwrap();
        answer.fields["offset"].parse().unwrap()
    }

    async fn stored_becomes(&self, count: u64) {
        let begin = Instant::now();
        while self.stored().await != count {
            assert!(begin.elapsed() < PLENTY, "not in time");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn fields(topic: &str) -> BTreeMap<&str, &str> {
    BTreeMap::from([
        ("producerGroup", "p"),
        ("topic", topic),
        ("defaultTopic", "TBW102"),
        ("defaultTopicQueueNums", "1"),
        ("queueId", "0"),
        ("sysFlag", "0"),
        ("bornTimestamp", "0"),
        ("flag", "0"),
        ("properties", ""),
    ])
}

#[derive(Debug)]
struct Reply {
    code: i64,
    number: i32,
    header: Value,
    body: Vec<u8>,
}

/// One connection, its frames written and read by hand.
struct Client {
    stream: TcpStream,
    last: i32,
}

impl Client {
    async fn connect(host: &str) -> std::io::Result<Self> {
        Ok(Self { stream: TcpStream::connect(host).await?, last: 0 })
    }

    async fn begin(
        &mut self,
        code: i32,
        flag: i32,
        fields: &BTreeMap<&str, &str>,
        body: &[u8],
    ) -> i32 {
        self.last += 1;
        let header = json!({
            "code": code, "flag": flag, "opaque": self.last, "language": "CPP", "version": 475,
            "extFields": fields,
        });
        self.write(0, header.to_string().as_bytes(), body).await;
        self.last
    }

    async fn write(&mut self, encoding: u8, header: &[u8], body: &[u8]) {
        let length = u32::try_from(4 + header.len() + body.len()).unwrap().to_be_bytes();
        let mut head = u32::try_from(header.len()).unwrap().to_be_bytes();
        head[0] = encoding;
        let frame = [&length[..], &head[..], header, body].concat();
        // A connection that is closed is seen by the next read.
        let _ = self.stream.write_all(&frame).await;
    }

    /// The next answer; `None` when the connection ended.
    async fn reply(&mut self) -> Option<Reply> {
        timeout(PLENTY, self.next()).await.unwrap()
    }

    async fn next(&mut self) -> Option<Reply> {
        let length = self.stream.read_u32().await.ok()?;
        let mut frame = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut frame).await.ok()?;
        let length = u32::from_be_bytes(frame[..4].try_into().unwrap());
        let (header, body) = frame[4..].split_at(usize::try_from(length & 0xff_ffff).unwrap());
        let header: Value = serde_json::from_slice(header).unwrap();
        let number = i32::try_from(header["opaque"].as_i64().unwrap()).unwrap();
        Some(Reply { code: header["code"].as_i64().unwrap(), number, header, body: body.to_vec() })
    }

    async fn is_silent(&mut self) -> bool {
        let mut byte = [0];
        timeout(SILENCE, self.stream.peek(&mut byte)).await.is_err()
    }
}

fn is_success(reply: Option<Reply>) -> bool {
    reply.is_some_and(|reply| reply.code == i64::from(code::SUCCESS))
}

async fn until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PLENTY, "not in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn it_leads_clients_to_itself() {
    let setting = Setting::new("leading").await;
    let proxy = &setting.proxy;
    let (own, upstream) = (proxy.brokers().remove(0), setting.upstream.clone());
    for (code, name) in
        [(code::GET_ROUTEINFO_BY_TOPIC, "leading"), (code::GET_BROKER_CLUSTER_INFO, "")]
    {
        let fields: &[_] = if name.is_empty() { &[] } else { &[("topic", name)] };
        let answer = call(&proxy.namesrv(), code, fields, &[]).await.unwrap();
        assert_eq!(answer.code, code::SUCCESS, "{answer:?}");
        let body = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(body.contains(&own) && !body.contains(&upstream), "{body}");
    }
    assert_eq!(proxy.count(code::GET_ROUTEINFO_BY_TOPIC), 1);
    assert_eq!(proxy.requests()[0].server, Server::Namesrv);
}

#[tokio::test]
async fn it_forwards_and_counts_by_code() {
    let mut setting = Setting::new("counting").await;
    assert!(is_success(setting.send("one").await));
    assert!(is_success(setting.send("two").await));
    let unknown = BTreeMap::from([("topic", "nowhere"), ("queueId", "0")]);
    setting.client.begin(GET_MAX_OFFSET, 0, &unknown, &[]).await;
    assert!(setting.client.reply().await.is_some());

    let proxy = &setting.proxy;
    let counts: Vec<_> = proxy.counts().into_iter().collect();
    assert_eq!(counts, [(code::SEND_MESSAGE, 2), (GET_MAX_OFFSET, 1)]);
    assert_eq!((proxy.count(code::SEND_MESSAGE), proxy.count(code::ANY)), (2, 3));
    until(|| proxy.in_flight(code::ANY) == 0).await;
    let seen = proxy.requests();
    assert_eq!((seen[1].code, seen[1].server), (code::SEND_MESSAGE, Server::Broker(0)));
    assert_eq!((seen[1].field("topic"), &seen[1].body[..]), (Some("counting"), &b"two"[..]));
    assert!(proxy.wait_for(code::SEND_MESSAGE, 2, PLENTY).await);
    assert!(!proxy.wait_for(code::SEND_MESSAGE, 3, Duration::from_millis(20)).await);
    proxy.reset();
    assert_eq!((proxy.count(code::ANY), proxy.requests().len()), (0, 0));
}

#[tokio::test]
async fn it_answers_in_the_servers_stead() {
    let mut setting = Setting::new("answering").await;
    let chosen = setting.proxy.on(code::SEND_MESSAGE).when(|request| &request.body[..] == b"x");
    let chosen = chosen.skip(1).times(1).answer(code::SYSTEM_BUSY, "too many requests");
    assert!(is_success(setting.send("a").await));
    assert!(is_success(setting.send("x").await));
    let busy = setting.send("x").await.unwrap();
    assert_eq!(busy.code, i64::from(code::SYSTEM_BUSY));
    assert_eq!(busy.header["remark"], "too many requests");
    assert!(is_success(setting.send("x").await));
    assert_eq!((chosen.count(), setting.stored().await), (1, 3));
}

#[tokio::test]
async fn it_loses_requests_and_answers() {
    let mut setting = Setting::new("losing").await;
    let before = setting.proxy.on(code::SEND_MESSAGE).nth(1).drop_before();
    setting.begin_send("never").await;
    assert!(setting.client.is_silent().await);
    assert_eq!((before.count(), setting.stored().await), (1, 0));
    assert_eq!(setting.proxy.in_flight(code::ANY), 0);

    let after = setting.proxy.on(code::SEND_MESSAGE).nth(1).drop_after();
    setting.begin_send("done").await;
    setting.stored_becomes(1).await;
    assert!(setting.client.is_silent().await);
    assert_eq!(after.count(), 1);
    assert!(is_success(setting.send("next").await), "on the same connection");
    assert_eq!(setting.stored().await, 2);
}

#[tokio::test]
async fn it_closes_the_connection_before_and_after_the_server_acts() {
    let mut setting = Setting::new("closing").await;
    setting.proxy.on(code::SEND_MESSAGE).nth(1).close_before();
    assert!(setting.send("never").await.is_none());
    assert_eq!(setting.stored().await, 0);
    setting.reconnect().await;
    setting.proxy.on(code::SEND_MESSAGE).nth(1).close_after();
    assert!(setting.send("done").await.is_none());
    assert_eq!(setting.stored().await, 1);
    until(|| setting.proxy.open_connections() == 0).await;
    setting.reconnect().await;
    assert!(is_success(setting.send("next").await));
}

#[tokio::test]
async fn it_holds_requests_and_answers_back_one_by_one() {
    let mut setting = Setting::new("delaying").await;
    let delay = Duration::from_millis(500);
    let begin = Instant::now();
    setting.proxy.on(code::SEND_MESSAGE).nth(1).delay(delay);
    setting.proxy.on(code::SEND_MESSAGE).nth(1).delay_answer(delay);
    let late = setting.begin_send("late").await;
    let late_answer = setting.begin_send("late answer").await;
    let early = setting.begin_send("early").await;
    assert_eq!(setting.client.reply().await.unwrap().number, early);
    assert_eq!(setting.stored().await, 2, "the answer alone is late");
    assert_eq!(setting.proxy.in_flight(code::SEND_MESSAGE), 2);
    let numbers = [setting.client.reply().await.unwrap(), setting.client.reply().await.unwrap()];
    assert!(begin.elapsed() >= delay);
    assert!([late, late_answer].iter().all(|late| numbers.iter().any(|n| n.number == *late)));

    let hung = setting.proxy.on(code::SEND_MESSAGE).nth(1).hang();
    setting.begin_send("hung").await;
    assert!(setting.client.is_silent().await);
    assert_eq!((hung.count(), setting.proxy.in_flight(code::SEND_MESSAGE)), (1, 1));
    assert!(is_success(setting.send("next").await), "on the same connection");
    assert_eq!(setting.stored().await, 4);
    setting.reconnect().await;
    until(|| setting.proxy.in_flight(code::ANY) == 0).await;
}

#[tokio::test]
async fn it_forwards_twice_and_rewrites() {
    let mut setting = Setting::new("doubling").await;
    let twice = setting.proxy.on(code::SEND_MESSAGE).nth(1).twice();
    assert!(is_success(setting.send("a").await));
    setting.stored_becomes(2).await;
    assert!(setting.client.is_silent().await);
    assert_eq!((twice.count(), setting.proxy.count(code::SEND_MESSAGE)), (1, 1));

    setting.proxy.on(code::SEND_MESSAGE).nth(1).rewrite(|request, answer| {
        answer.code = code::FLUSH_DISK_TIMEOUT;
        answer.fields.insert("topic".to_owned(), request.field("topic").unwrap().to_owned());
        answer.body = "new".into();
    });
    let reply = setting.send("b").await.unwrap();
    assert_eq!(reply.code, i64::from(code::FLUSH_DISK_TIMEOUT));
    assert_eq!(reply.header["extFields"]["topic"], "doubling");
    assert_eq!(reply.body, b"new");
    assert_eq!(setting.stored().await, 3);
}

/// The other encoding of headers, in which clients may speak.
#[tokio::test]
async fn it_reads_binary_headers() {
    let mut setting = Setting::new("binary").await;
    let twice = setting.proxy.on(code::SEND_MESSAGE).when(|r| r.field("topic") == Some("binary"));
    let twice = twice.twice();
    let mut texts = Vec::new();
    for (name, value) in fields("binary") {
        texts.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        texts.extend(name.as_bytes());
        texts.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        texts.extend(value.as_bytes());
    }
    let code = i16::try_from(code::SEND_MESSAGE).unwrap().to_be_bytes();
    // Language, version, number, flag, an empty remark.
    let rest = [0, 1, 219, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0, 0];
    let length = u32::try_from(texts.len()).unwrap().to_be_bytes();
    let header = [&code[..], &rest[..], &length[..], &texts].concat();
    setting.client.write(1, &header, b"body").await;
    setting.stored_becomes(2).await;
    assert_eq!(twice.count(), 1);
}

#[tokio::test]
async fn one_way_requests_pass_and_wait_for_nothing() {
    let mut setting = Setting::new("oneway").await;
    let topic = fields("oneway");
    setting.client.begin(code::SEND_MESSAGE, 2, &topic, b"a").await;
    setting.stored_becomes(1).await;
    let busy = setting.proxy.on(code::SEND_MESSAGE).nth(1).answer(code::SYSTEM_BUSY, "");
    setting.client.begin(code::SEND_MESSAGE, 2, &topic, b"b").await;
    assert!(setting.client.is_silent().await);
    assert_eq!((busy.count(), setting.stored().await), (1, 1));
    assert_eq!(setting.proxy.in_flight(code::ANY), 0);
    assert!(setting.proxy.requests().iter().all(|request| request.is_one_way));
}

#[tokio::test]
async fn it_cuts_refuses_and_heals() {
    let mut setting = Setting::new("cutting").await;
    setting.proxy.on(code::SEND_MESSAGE).hang();
    setting.begin_send("hung").await;
    until(|| setting.proxy.in_flight(code::ANY) == 1).await;
    setting.proxy.refuse_only(Server::Broker(0), true).await;
    assert!(Client::connect(&setting.proxy.brokers()[0]).await.is_err());
    assert!(Client::connect(&setting.proxy.namesrv()).await.is_ok());
    assert!(setting.client.is_silent().await, "what is open stays");
    setting.proxy.refuse(true).await;
    assert!(Client::connect(&setting.proxy.namesrv()).await.is_err());
    setting.proxy.cut_only(Server::Namesrv).await;
    assert!(setting.client.is_silent().await);
    setting.proxy.cut().await;
    assert!(setting.client.reply().await.is_none());
    assert_eq!((setting.proxy.open_connections(), setting.proxy.in_flight(code::ANY)), (0, 0));
    setting.proxy.heal().await;
    setting.reconnect().await;
    assert!(is_success(setting.send("taken").await), "healing ends the rules");
}

#[tokio::test]
async fn half_open_connections_fall_silent_and_new_ones_work() {
    let mut setting = Setting::new("silent").await;
    assert!(is_success(setting.send("one").await));
    setting.proxy.half_open();
    setting.begin_send("lost").await;
    assert!(setting.client.is_silent().await);
    let mut old = std::mem::replace(
        &mut setting.client,
        Client::connect(&setting.proxy.brokers()[0]).await.unwrap(),
    );
    assert!(is_success(setting.send("two").await));
    setting.proxy.cut().await;
    assert!(old.reply().await.is_none());
    assert_eq!(setting.stored().await, 2);
}

#[tokio::test]
async fn it_slows() {
    let mut setting = Setting::new("slowing").await;
    setting.proxy.slow(10_000);
    let begin = Instant::now();
    assert!(is_success(setting.send(&"x".repeat(20_000)).await));
    assert!(begin.elapsed() > Duration::from_millis(1_700), "{:?}", begin.elapsed());
    setting.proxy.slow(0);
    let begin = Instant::now();
    assert!(is_success(setting.send(&"x".repeat(3_000_000)).await), "large ones pass whole");
    assert!(begin.elapsed() < Duration::from_millis(1_700), "{:?}", begin.elapsed());
    assert_eq!(setting.proxy.requests()[1].body.len(), 16 * 1024);
}

#[tokio::test]
async fn what_is_no_frame_ends_its_connection() {
    let setting = Setting::new("broken").await;
    for bytes in [&[0xff; 8], b"GET / HT", &[0, 0, 0, 8, 9, 0, 0, 4]] {
        let mut client = Client::connect(&setting.proxy.brokers()[0]).await.unwrap();
        client.stream.write_all(bytes).await.unwrap();
        client.stream.write_all(b"rest").await.unwrap();
        assert!(client.reply().await.is_none());
    }
    assert_eq!(setting.proxy.count(code::ANY), 0);
}

#[tokio::test]
async fn a_server_that_is_down_is_a_closed_connection_and_comes_back() {
    let mut servers = RocketMq::start(Setup::default()).await.unwrap();
    let mut setting = Setting::before(&servers, "killed").await;
    assert!(is_success(setting.send("one").await));
    servers.kill_broker(0);
    assert!(setting.client.reply().await.is_none());
    until(|| setting.proxy.open_connections() == 0).await;
    servers.restart_broker(0).await.unwrap();
    setting.reconnect().await;
    assert!(is_success(setting.send("two").await));
    assert_eq!(setting.stored().await, 2);
}

#[tokio::test]
async fn dropping_it_closes_all() {
    let Setting { proxy, mut client, .. } = Setting::new("dropped").await;
    let host = proxy.namesrv();
    drop(proxy);
    assert!(client.reply().await.is_none());
    let begin = Instant::now();
    while Client::connect(&host).await.is_ok() {
        assert!(begin.elapsed() < PLENTY);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
