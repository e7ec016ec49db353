//! The admin listener, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should say so at once")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pumphouse_admin::{
    AdminPorts, CONNECTION_TIMEOUT, HEADER_TIMEOUT, MOST_CONNECTIONS, STOP_GRACE, serve,
};
use pumphouse_contract::ports::{
    Condition, HandlerStatus, HandlerTerms, Handlers, SubscriptionStatus, Subscriptions,
    TenantStatus, TenantTerms, Tenants, Terms,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A host whose state the test sets.
#[derive(Default)]
struct House {
    subscriptions: Mutex<Vec<SubscriptionStatus>>,
    rejected: Mutex<Option<String>>,
}

impl Subscriptions for House {
    fn list(&self) -> Vec<SubscriptionStatus> {
        self.subscriptions.lock().unwrap().clone()
    }

    fn rejected_configuration(&self) -> Option<String> {
        self.rejected.lock().unwrap().clone()
    }
}

struct Orders;

impl Handlers for Orders {
    fn list(&self) -> Vec<HandlerStatus> {
        vec![HandlerStatus {
            name: "acme/orders".into(),
            digest: "0123abcd".into(),
            component: "handlers/orders.wasm".into(),
            problem: Some("not a component".into()),
        }]
    }
}

impl Tenants for Orders {
    fn list(&self) -> Vec<TenantStatus> {
        Vec::new()
    }
}

impl Terms for Orders {
    fn of_tenant(&self, _: &str) -> Option<TenantTerms> {
        None
    }

    fn of_handler(&self, _: &str) -> Option<HandlerTerms> {
        None
    }
}

fn subscription(name: &str, condition: Condition, problem: Option<&str>) -> SubscriptionStatus {
    SubscriptionStatus {
        name: name.into(),
        condition,
        problem: problem.map(Into::into),
        in_flight: 2,
        oldest_in_progress: Some(Duration::from_millis(1500)),
        handler: "acme/orders".into(),
    }
}

struct Admin {
    house: Arc<House>,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Admin {
    async fn start() -> Self {
        Self::start_with(Arc::new(|| "# EOF\n".to_owned())).await
    }

    async fn start_with(metrics: pumphouse_admin::Metrics) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let house = Arc::new(House::default());
        let subscriptions: Arc<dyn Subscriptions> = Arc::clone(&house) as _;
        let ports = AdminPorts {
            subscriptions,
            handlers: Arc::new(Orders),
            tenants: Arc::new(Orders),
            terms: Arc::new(Orders),
            metrics,
            queues: None,
            version: "1.2.3",
        };
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(serve(listener, ports, async {
            let _ = stopped.await;
        }));
        Self { house, address, stop, served }
    }

    async fn stop(self) -> Duration {
        let began = Instant::now();
        self.stop.send(()).unwrap();
        self.served.await.unwrap().unwrap();
        began.elapsed()
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn ask(&self, method: &str, path: &str) -> Answer {
        self.send(format!("{method} {path} HTTP/1.1\r\nhost: admin\r\n\r\n").as_bytes()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path).await
    }

    async fn send(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        stream.write_all(request).await.unwrap();
        Answer::read(&mut stream).await
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// Reads until the other side closes, which it does after each answer.
    async fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_lowercase(), body: body.into() }
    }

    fn json(&self) -> Value {
        assert!(self.head.contains("content-type: application/json"), "{}", self.head);
        serde_json::from_str(&self.body).unwrap()
    }
}

#[tokio::test]
async fn a_host_that_serves_is_alive_whatever_its_subscriptions_do() {
    let admin = Admin::start().await;
    *admin.house.subscriptions.lock().unwrap() =
        vec![subscription("orders", Condition::Waiting, Some("no broker"))];
    let answer = admin.get("/healthz").await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "status": "alive" })));
}

#[tokio::test]
async fn a_host_is_ready_where_every_subscription_is() {
    let admin = Admin::start().await;
    let answer = admin.get("/readyz").await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "ready": true, "not_ready": [] })));
    for (condition, status) in [
        (Condition::Running, 200),
        (Condition::Starting, 503),
        (Condition::Waiting, 503),
        (Condition::Draining, 503),
        (Condition::Stopped, 503),
    ] {
        *admin.house.subscriptions.lock().unwrap() = vec![
            subscription("orders", Condition::Running, None),
            subscription("returns", condition, Some("broker is away")),
        ];
        let answer = admin.get("/readyz").await;
        assert_eq!(answer.status, status, "{condition:?}");
        let expected = if status == 200 {
            json!([])
        } else {
            json!([{ "name": "returns", "condition": condition.label(), "problem": "broker is away" }])
        };
        assert_eq!(answer.json()["not_ready"], expected, "{condition:?}");
    }
}

/// FR-31: a rejected configuration is told, and does not make the host unready.
#[tokio::test]
async fn fr_31_the_status_says_why_the_configuration_on_disk_is_not_in_force() {
    let admin = Admin::start().await;
    assert_eq!(admin.get("/status").await.json()["configuration_problem"], Value::Null);
    *admin.house.rejected.lock().unwrap() = Some("line 3: unknown key".into());
    let answer = admin.get("/status").await;
    assert_eq!(answer.json()["configuration_problem"], "line 3: unknown key");
    assert_eq!(admin.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn the_status_names_everything_that_can_be_seen() {
    let admin = Admin::start().await;
    *admin.house.subscriptions.lock().unwrap() =
        vec![subscription("orders", Condition::Waiting, Some("broker is away"))];
    let answer = admin.get("/status").await;
    assert_eq!(answer.status, 200);
    let expected = json!({
        "version": "1.2.3",
        "configuration_problem": null,
        "subscriptions": [{
            "name": "orders",
            "condition": "waiting",
            "problem": "broker is away",
            "in_flight": 2,
            "oldest_in_progress_seconds": 1.5,
            "handler": "acme/orders",
        }],
        "handlers": [{
            "name": "acme/orders",
            "digest": "0123abcd",
            "component": "handlers/orders.wasm",
            "problem": "not a component",
        }],
    });
    assert_eq!(answer.json(), expected);
    assert!(answer.head.contains("cache-control: no-store"), "{}", answer.head);
}

#[tokio::test]
async fn metrics_are_had_at_the_moment_of_the_scrape_however_many() {
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    let admin = Admin::start_with(Arc::new(move || {
        let mut asked = counted.lock().unwrap();
        *asked += 1;
        format!("x_total {asked}\n{}# EOF\n", "# a long line of nothing\n".repeat(100_000))
    }))
    .await;
    for n in 1..=2 {
        let answer = admin.get("/metrics").await;
        assert_eq!(answer.status, 200);
        let media_type = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert!(answer.head.contains(media_type), "{}", answer.head);
        assert!(
            answer.body.starts_with(&format!("x_total {n}\n")) && answer.body.ends_with("# EOF\n")
        );
    }
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_json() {
    let admin = Admin::start().await;
    for path in ["/", "/healthz/", "/Metrics", "/status/../x", "/%00"] {
        let answer = admin.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.json()["error"].as_str().unwrap().contains("/healthz"), "{path}");
    }
    for path in ["/healthz", "/readyz", "/status", "/metrics", "/v1/tenants", "/v1/handlers"] {
        for method in ["POST", "DELETE", "PUT", "BREW"] {
            let answer = admin.ask(method, path).await;
            assert_eq!(answer.status, 405, "{method} {path}");
            assert!(answer.json()["error"].is_string());
            assert!(answer.head.contains("allow: get,head"), "{}", answer.head);
        }
    }
}

#[tokio::test]
async fn a_request_that_is_none_or_too_long_is_refused() {
    let admin = Admin::start().await;
    assert_eq!(admin.send(b"no request at all\r\n\r\n").await.status, 400);
    let long =
        format!("GET /healthz HTTP/1.1\r\nhost: admin\r\nx: {}\r\n\r\n", "y".repeat(64 * 1024));
    let mut stream = admin.connect().await;
    // The answer may come, and the connection close, before all was sent.
    let _ = stream.write_all(long.as_bytes()).await;
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    assert!(!bytes.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&bytes));
    assert_eq!(admin.get("/healthz").await.status, 200);
}

/// A body is not read, however large it says it is.
#[tokio::test]
async fn a_body_is_never_waited_for() {
    let admin = Admin::start().await;
    let began = Instant::now();
    let head = "POST /status HTTP/1.1\r\nhost: admin\r\ncontent-length: 99999999999\r\n\r\n";
    assert_eq!(admin.send(head.as_bytes()).await.status, 405);
    assert!(began.elapsed() < HEADER_TIMEOUT, "{:?}", began.elapsed());
}

/// FR-20: clients that say nothing hold every connection, and the next is answered all the same.
#[tokio::test]
async fn fr_20_slow_clients_can_not_hold_the_listener() {
    let admin = Admin::start().await;
    let mut slow = Vec::new();
    for n in 0..MOST_CONNECTIONS + 10 {
        let mut stream = admin.connect().await;
        if n % 2 == 0 {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nx").await.unwrap();
        }
        slow.push(stream);
    }
    let answer = tokio::time::timeout(HEADER_TIMEOUT * 3, admin.get("/healthz")).await.unwrap();
    assert_eq!(answer.status, 200);
}

/// A client that does not read its answer is cut off.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let admin = Admin::start_with(Arc::new(|| "x".repeat(64 * 1024 * 1024))).await;
    let mut stream = admin.connect().await;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: admin\r\n\r\n").await.unwrap();
    tokio::time::sleep(CONNECTION_TIMEOUT + Duration::from_secs(1)).await;
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes).await;
    assert!(read.is_err() || bytes.len() < 64 * 1024 * 1024, "{} bytes", bytes.len());
}

#[tokio::test]
async fn stopping_takes_no_longer_than_its_grace() {
    let admin = Admin::start().await;
    let address = admin.address;
    let idle = admin.connect().await;
    let mut asking = admin.connect().await;
    asking.write_all(b"GET /healthz HTTP/1.1\r\nx").await.unwrap();
    // Both were accepted once a later one was answered.
    assert_eq!(admin.get("/healthz").await.status, 200);
    let took = admin.stop().await;
    assert!(took < STOP_GRACE + Duration::from_secs(1), "{took:?}");
    TcpStream::connect(address).await.unwrap_err();
    drop(idle);
}

#[tokio::test]
async fn stopping_with_nobody_there_is_immediate() {
    let admin = Admin::start().await;
    let idle = admin.connect().await;
    assert_eq!(admin.get("/healthz").await.status, 200);
    let took = admin.stop().await;
    assert!(took < STOP_GRACE, "{took:?}");
    drop(idle);
}

#[tokio::test]
async fn a_request_that_panics_takes_nothing_else_with_it() {
    let admin = Admin::start_with(Arc::new(|| panic!("metrics are broken"))).await;
    let mut stream = admin.connect().await;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: admin\r\n\r\n").await.unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    assert!(bytes.is_empty(), "{}", String::from_utf8_lossy(&bytes));
    assert_eq!(admin.get("/healthz").await.status, 200);
}
