//! All clients in one process.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::*;
use crate::host::choose_crypto;

/// The first byte of a TLS connection: a handshake record.
const HANDSHAKE: u8 = 0x16;

const SOURCES: [(&str, &str); 3] = [
    ("sqs", "{ sqs.queue = \"orders\" }"),
    ("pubsub", "{ pubsub = { subscription = \"orders\", topic = \"orders\" } }"),
    ("rocketmq", "{ rocketmq = { topic = \"orders\", group = \"orders\" } }"),
];

/// Every transport over TLS, on a server of its own, with what its client needs to ask it anything.
fn config(ports: [u16; 3], folder: &std::path::Path) -> Config {
    let [sqs, pubsub, rocketmq] = ports;
    let credentials = format!(
        r#"{{"type":"authorized_user","client_id":"a","client_secret":"b","refresh_token":"c","token_uri":"https://127.0.0.1:{pubsub}/token"}}"#
    );
    std::fs::write(folder.join("google.json"), credentials).expect("written");
    std::fs::write(folder.join("key"), "key").expect("written");
    let sections = format!(
        r#"
        [sqs]
        region = "eu-west-1"
        endpoint = "https://127.0.0.1:{sqs}"
        access_key_id = {{ file = "key" }}
        secret_access_key = {{ file = "key" }}
        [pubsub]
        project = "demo"
        endpoint = "https://127.0.0.1:{pubsub}"
        credentials = {{ file = "google.json" }}
        [rocketmq]
        name_servers = ["127.0.0.1:{rocketmq}"]
        tls = {{}}
        [tenants.acme.handlers.orders]
        component = "orders.wasm"
        "#
    );
    let subscriptions = SOURCES.map(|(name, source)| {
        format!("[subscriptions.{name}]\nsource = {source}\nhandler = \"acme/orders\"\n")
    });
    let text = sections + &subscriptions.concat();
    let loaded = pumphouse_config::parse(&text, &folder.join("p.toml"), &build());
    loaded.unwrap_or_else(|found| panic!("{found}")).config
}

/// What a client begins with. The connection is closed then.
async fn first_byte(listener: &TcpListener) -> u8 {
    let (mut connection, _) = listener.accept().await.expect("a connection");
    connection.read_u8().await.expect("a byte")
}

/// Two implementations of TLS's cryptography are compiled in, and a client that finds none named panics. Each of the
/// three gets as far as its handshake, in one process.
#[tokio::test(flavor = "multi_thread")]
async fn every_client_speaks_tls_in_one_process() {
    choose_crypto();
    let folder = tempfile::tempdir().expect("a folder");
    let mut listeners = Vec::new();
    for _ in SOURCES {
        listeners.push(TcpListener::bind("127.0.0.1:0").await.expect("a port"));
    }
    let ports: Vec<u16> =
        listeners.iter().map(|one| one.local_addr().expect("an address").port()).collect();
    let config = config(ports.try_into().expect("three"), folder.path());
    let clock: Arc<dyn Clock> = Arc::new(pumphouse_pump::SystemClock::new());
    let transports = Transports::open(&config, &clock).await.expect("clients");
    for ((name, _), listener) in SOURCES.iter().zip(&listeners) {
        let subscription = config.subscriptions.iter().find(|one| one.name == *name);
        let opening = transports.wire(&config, subscription.expect("one"));
        let asked = async {
            let opened = opening.await.err().map(|error| error.text);
            tokio::time::sleep(Duration::from_secs(1)).await;
            panic!("{name} connected to nothing: {opened:?}");
        };
        let byte = tokio::select! {
            byte = first_byte(listener) => byte,
            () = asked => unreachable!("it panics"),
        };
        assert_eq!(byte, HANDSHAKE, "{name}");
    }
    let closing = tokio::time::timeout(Duration::from_secs(5), transports.close());
    closing.await.expect("closed in time");
}

/// A reload that leaves a section as it is keeps its client, since what reads on over the reload uses it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_keeps_rocketmqs_client_where_its_section_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config([1, 2, 3], folder.path());
    let clock: Arc<dyn Clock> = Arc::new(pumphouse_pump::SystemClock::new());
    let first = Transports::open(&config, &clock).await.expect("clients");
    let same = first.reopen(&config, &clock).await.expect("clients");
    let mut changed = config.clone();
    changed.rocketmq.as_mut().expect("there").namespace = Some("acme".to_owned());
    let other = same.reopen(&changed, &clock).await.expect("clients");
    let client = |transports: &Transports| transports.clouds.rocketmq.clone().expect("there");
    assert!(Arc::ptr_eq(&client(&first), &client(&same)));
    assert!(!Arc::ptr_eq(&client(&first), &client(&other)));
    tokio::join!(first.close(), other.close());
}
