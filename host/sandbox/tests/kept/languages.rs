//! One handler in every language: the vectors of guests/vectors, by components as `cargo xtask guests --all` builds them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_contract::{Count, Message, Outcome, Timestamp};
use pumphouse_sandbox::{HandlerSpec, Instances, Limits, LoadedHandler};
use serde::Deserialize;

use crate::common::{self, root};

/// Set where a language that was not built is a mistake: in CI.
const ALL: &str = "PUMPHOUSE_ALL_GUESTS";

#[derive(Deserialize)]
struct Vector {
    name: String,
    message: Described,
    outcome: Wanted,
}

/// As `pumphouse invoke` takes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Described {
    id: String,
    source: String,
    delivery_count: u32,
    headers: std::collections::BTreeMap<String, String>,
    content_type: Option<String>,
    ordering_key: Option<String>,
    published_at: Option<u64>,
    body: String,
    body_base64: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Wanted {
    Ack(String),
    Reject { reject: String, description: Option<String> },
    // Last: a member that is absent is taken for null.
    Defer { defer: Option<u64> },
}

fn vectors() -> Vec<Vector> {
    let text = std::fs::read_to_string(root().join("guests/vectors/orders.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn invocation(described: Described) -> Invocation {
    let body = match described.body_base64 {
        Some(text) => BASE64.decode(text).unwrap(),
        None => described.body.into_bytes(),
    };
    let message = Message {
        id: described.id,
        headers: described.headers.into_iter().collect(),
        content_type: described.content_type,
        ordering_key: described.ordering_key,
        published_at: described.published_at.map(Timestamp),
        body: body.into(),
    };
    Invocation {
        message: Arc::new(message),
        source: described.source.into(),
        subscription: "shared".into(),
        count: Count(described.delivery_count),
    }
}

fn is(outcome: &Outcome, wanted: &Wanted) -> bool {
    match (outcome, wanted) {
        (Outcome::Ack, Wanted::Ack(text)) => text == "ack",
        (Outcome::Defer(after), Wanted::Defer { defer }) => {
            *after == defer.map(Duration::from_millis)
        }
        (Outcome::Reject(rejection), Wanted::Reject { reject, description }) => {
            let text = &rejection.description;
            rejection.reason.label() == reject
                && description.as_ref().map_or(!text.is_empty(), |wanted| wanted == text)
        }
        _ => false,
    }
}

/// Every vector, three times, by fresh instances and by one that is kept.
async fn holds(language: &str, component: PathBuf) {
    if !is_built(language, &component) {
        return;
    }
    for instances in [Instances::Fresh, Instances::REUSED] {
        let handler = load(language, &component, instances).await;
        for _ in 0..3 {
            for Vector { name, message, outcome } in vectors() {
                let result = handler.begin().call(invocation(message)).await.result;
                let fits = result.as_ref().is_ok_and(|given| is(given, &outcome));
                assert!(fits, "{language}, {instances:?}: {name}: {result:?}, not {outcome:?}");
            }
        }
    }
}

/// A kept instance whose runtime has garbage to collect many times over.
async fn lasts(language: &str) {
    let component = built(language);
    if !is_built(language, &component) {
        return;
    }
    let handler = load(language, &component, Instances::REUSED).await;
    let note = "n".repeat(16 * 1_024);
    let body = format!(r#"{{"id":"A-1","quantity":2,"note":"{note}"}}"#);
    for call in 1..=800 {
        let described = Described { id: "m-1".into(), body: body.clone(), ..Described::default() };
        let result = handler.begin().call(invocation(described)).await.result;
        assert_eq!(result, Ok(Outcome::Ack), "{language}, call {call}");
    }
}

#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn is_built(language: &str, component: &Path) -> bool {
    if component.exists() {
        return true;
    }
    let may_miss = std::env::var_os(ALL).is_none();
    assert!(may_miss, "{} is missing: run `cargo xtask guests --all`", component.display());
    eprintln!("skipped: no handler in {language} is built; `cargo xtask guests --all` builds it");
    false
}

async fn load(language: &str, component: &Path, instances: Instances) -> Arc<LoadedHandler> {
    let limits = Limits { deadline: Duration::from_secs(60), ..Limits::default() };
    let spec = HandlerSpec {
        limits,
        instances: Some(instances),
        grants: Default::default(),
        ..common::spec(&format!("orders-{language}"), component)
    };
    common::shared().load(spec).await.unwrap()
}

fn built(language: &str) -> PathBuf {
    root().join("guests/target/languages").join(format!("orders-{language}.wasm"))
}

#[tokio::test]
async fn a_handler_in_rust_answers_every_vector() {
    holds("rust", common::guest("orders")).await;
}

#[tokio::test]
async fn a_handler_in_c_answers_every_vector() {
    holds("c", built("c")).await;
}

#[tokio::test]
async fn a_handler_in_go_answers_every_vector() {
    holds("go", built("go")).await;
}

#[tokio::test]
async fn a_handler_in_javascript_answers_every_vector() {
    holds("js", built("js")).await;
}

#[tokio::test]
async fn a_handler_in_typescript_answers_every_vector() {
    holds("ts", built("ts")).await;
}

#[tokio::test]
async fn a_handler_in_python_answers_every_vector() {
    holds("python", built("python")).await;
}

/// Go's collector asks for the time, which traps while the host writes a message into the component.
#[tokio::test]
async fn a_kept_handler_in_go_collects_its_garbage() {
    lasts("go").await;
}

#[tokio::test]
async fn a_kept_handler_in_c_frees_what_it_took() {
    lasts("c").await;
}

#[tokio::test]
async fn a_kept_handler_in_javascript_collects_its_garbage() {
    lasts("js").await;
}

#[tokio::test]
async fn a_kept_handler_in_python_collects_its_garbage() {
    lasts("python").await;
}
