//! Tenants and handlers over HTTP: limits, grants, accounts, page by page.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should say so at once")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pumphouse_admin::{AdminPorts, serve};
use pumphouse_contract::ports::{
    HandlerStatus, HandlerTerms, Handlers, SubscriptionStatus, Subscriptions, TenantStatus,
    TenantTerms, Tenants, Terms,
};
use pumphouse_contract::{Account, Ended, Fault, FaultKind, HandlerAccount};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// So many tenants `t0000`, `t0001`, …, each with three handlers.
struct House(usize);

impl House {
    fn names(&self) -> impl Iterator<Item = String> {
        (0..self.0).map(|n| format!("t{n:04}"))
    }
}

fn account() -> Account {
    let mut account = Account {
        calls: 7,
        acks: 7,
        cpu: Duration::from_millis(1_500),
        memory_peak: 1 << 20,
        host_calls: 9,
        bytes_in: 100,
        bytes_out: 10,
        log_dropped: 3,
        ..Account::default()
    };
    for kind in [FaultKind::Memory, FaultKind::Memory, FaultKind::Trap] {
        account.enter(&Ended::fault(Fault::new(kind, "")));
    }
    account
}

impl Subscriptions for House {
    fn list(&self) -> Vec<SubscriptionStatus> {
        Vec::new()
    }

    fn rejected_configuration(&self) -> Option<String> {
        None
    }
}

impl Handlers for House {
    fn list(&self) -> Vec<HandlerStatus> {
        let handlers =
            self.names().flat_map(|tenant| ["a", "b", "c"].map(|h| format!("{tenant}/{h}")));
        handlers
            .map(|name| HandlerStatus {
                problem: name.ends_with('b').then(|| "not a component".to_owned()),
                name,
                digest: "0123abcd".into(),
                component: "orders.wasm".into(),
            })
            .collect()
    }
}

impl Tenants for House {
    fn list(&self) -> Vec<TenantStatus> {
        let handler = |name: String| HandlerAccount { name, account: account() };
        self.names()
            .map(|name| TenantStatus {
                handlers: ["a", "b", "c"].map(|h| handler(format!("{name}/{h}"))).to_vec(),
                name,
                account: account(),
                weight: 100,
                computing: 1,
                waiting: 2,
                slowed: true,
            })
            .collect()
    }
}

impl Terms for House {
    fn of_tenant(&self, name: &str) -> Option<TenantTerms> {
        let limits = vec![("messages_rate", "10 a second".to_owned())];
        Some(TenantTerms { name: name.into(), handlers: 3, limits })
    }

    fn of_handler(&self, name: &str) -> Option<HandlerTerms> {
        (!name.ends_with('c')).then(|| HandlerTerms {
            name: name.into(),
            component: "orders.wasm".into(),
            runtime: "lean, a fresh instance for each message".into(),
            limits: vec![("memory", "16MiB".to_owned())],
            grants: vec!["logging".into(), "secrets.token".into()],
        })
    }
}

async fn start(tenants: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let house = Arc::new(House(tenants));
    let ports = AdminPorts {
        subscriptions: house.clone(),
        handlers: house.clone(),
        tenants: house.clone(),
        terms: house,
        metrics: Arc::new(String::new),
        queues: None,
        version: "1.2.3",
    };
    tokio::spawn(serve(listener, ports, std::future::pending()));
    address
}

async fn get(address: SocketAddr, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: admin\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

fn names(page: &Value, list: &str) -> Vec<String> {
    let items = page[list].as_array().unwrap().iter();
    items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

fn shown_account() -> Value {
    json!({
        "calls": 10, "acks": 7, "defers": 0, "rejects": 0,
        "faults": { "memory": 2, "trap": 1 }, "limit_trips": { "memory": 2 }, "dropped": 0,
        "cpu_seconds": 1.5, "waited_seconds": 0.0,
        "memory_peak_bytes": 1 << 20, "memory_lately_bytes": 0,
        "host_calls": 9, "bytes_in": 100, "bytes_out": 10,
        "log_lines": 0, "log_bytes": 0, "log_dropped": 3, "instances": 0, "instances_peak": 0,
    })
}

#[tokio::test]
async fn a_tenant_shows_its_limits_and_its_account() {
    let address = start(2).await;
    let expected = json!({
        "name": "t0001", "handlers": 3, "problems": 1,
        "limits": { "messages_rate": "10 a second" },
        "weight": 100, "computing": 1, "waiting": 2, "slowed": true,
        "account": shown_account(),
    });
    assert_eq!(get(address, "/v1/tenants/t0001").await, (200, expected.clone()));
    let (status, page) = get(address, "/v1/tenants").await;
    assert_eq!((status, &page["tenants"][1], &page["next"]), (200, &expected, &Value::Null));
    let (status, answer) = get(address, "/v1/tenants/nobody").await;
    assert_eq!((status, answer["error"].as_str()), (404, Some("there is no tenant \"nobody\"")));
}

#[tokio::test]
async fn a_handler_shows_its_limits_the_names_of_its_grants_and_its_account() {
    let address = start(1).await;
    let expected = json!({
        "name": "t0000/b", "tenant": "t0000", "digest": "0123abcd", "component": "orders.wasm",
        "problem": "not a component", "runtime": "lean, a fresh instance for each message",
        "limits": { "memory": "16MiB" }, "grants": ["logging", "secrets.token"],
        "account": shown_account(),
    });
    assert_eq!(get(address, "/v1/handlers/t0000/b").await, (200, expected));
    // One that the configuration no longer has.
    let (_, gone) = get(address, "/v1/handlers/t0000/c").await;
    assert_eq!((&gone["runtime"], &gone["grants"]), (&Value::Null, &json!([])));
    assert_eq!(get(address, "/v1/handlers/t0000/d").await.0, 404);
    assert_eq!(get(address, "/v1/handlers/t0000").await.0, 404);
}

/// Ten thousand handlers are read page by page, each once and in order.
#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let address = start(3_334).await;
    let mut all = Vec::new();
    let mut path = "/v1/handlers?limit=1000".to_owned();
    loop {
        let (status, page) = get(address, &path).await;
        assert_eq!(status, 200);
        all.extend(names(&page, "handlers"));
        let Some(next) = page["next"].as_str() else { break };
        assert_eq!(Some(next), all.last().map(String::as_str));
        path = format!("/v1/handlers?limit=1000&after={next}");
    }
    assert_eq!(all.len(), 10_002);
    assert!(all.is_sorted());
    let (_, page) = get(address, "/v1/handlers?limit=1000000").await;
    assert_eq!(names(&page, "handlers").len(), 1_000, "a page is bounded");
    let (_, page) = get(address, "/v1/handlers?tenant=t0007").await;
    assert_eq!(names(&page, "handlers"), ["t0007/a", "t0007/b", "t0007/c"]);
    let (_, page) = get(address, "/v1/tenants?limit=2&after=t0001").await;
    assert_eq!((names(&page, "tenants").len(), &page["next"]), (2, &json!("t0003")));
}

#[tokio::test]
async fn a_page_that_is_none_is_refused() {
    let address = start(1).await;
    for path in ["/v1/handlers?limit=many", "/v1/tenants?page=2", "/v1/tenants?limit=-1"] {
        let (status, answer) = get(address, path).await;
        assert_eq!(status, 400, "{path}");
        assert!(answer["error"].is_string(), "{path}");
    }
}
