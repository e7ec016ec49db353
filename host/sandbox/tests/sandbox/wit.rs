//! The WIT grows, and what was built for an earlier version goes on.
//!
//! Two hosts stand for that. This one, with the components that were frozen when 1.0.0 was made. And one of the
//! future, which lives in these tests alone: its package is at 1.1.0, where a new interface and a second world
//! were added and nothing that existed was touched. It serves both worlds from one linker.

use pumphouse_contract::Outcome;
use pumphouse_sandbox::Limits;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Store};

use crate::common::{self, call, description, handler_with, root};

/// 1.0.0 with growth: one more function, in an interface of its own, and a world that imports it.
mod grown {
    #![allow(missing_docs, unreachable_pub, reason = "generated")]
    wasmtime::component::bindgen!({
        inline: r#"
            package pumphouse:handler@1.1.0;

            interface types {
                record message {
                    id: string,
                    source: string,
                    delivery-count: u32,
                    headers: list<tuple<string, string>>,
                    content-type: option<string>,
                    ordering-key: option<string>,
                    published-at: option<u64>,
                    body: list<u8>,
                }
                enum rejection-reason { unacceptable, delivery-error, none }
                record rejection { reason: rejection-reason, description: string }
                variant outcome { ack, defer(option<u64>), reject(rejection) }
            }

            interface incoming-handler {
                use types.{message, outcome};
                handle: func(message: message) -> outcome;
            }

            /// New in 1.1.0.
            interface effects {
                publish: func(topic: u32) -> u32;
            }

            world handler {
                export incoming-handler;
            }

            /// New in 1.1.0, served beside the other.
            world handler-with-effects {
                import effects;
                export incoming-handler;
            }
        "#,
        world: "handler-with-effects",
    });
}

use grown::pumphouse::handler::{effects, types};

#[derive(Default)]
struct Future {
    published: Vec<u32>,
}

impl effects::Host for Future {
    fn publish(&mut self, topic: u32) -> u32 {
        self.published.push(topic);
        topic + 1
    }
}

/// Runs a component on the host of the future: its answer, and what it published.
fn on_the_grown_host(component: &[u8]) -> wasmtime::Result<(types::Outcome, Vec<u32>)> {
    let engine = Engine::default();
    let component = Component::new(&engine, component)?;
    let mut linker = Linker::<Future>::new(&engine);
    effects::add_to_linker::<_, HasSelf<Future>>(&mut linker, |future| future)?;
    let mut store = Store::new(&engine, Future::default());
    let handler = grown::HandlerWithEffects::instantiate(&mut store, &component, &linker)?;
    let outcome = handler.pumphouse_handler_incoming_handler().call_handle(
        &mut store,
        &types::Message {
            id: "m-1".into(),
            source: "orders".into(),
            delivery_count: 2,
            headers: vec![("type".into(), "order".into())],
            content_type: None,
            ordering_key: None,
            published_at: Some(7),
            body: b"body".to_vec(),
        },
    )?;
    Ok((outcome, store.into_data().published))
}

/// A handler of 1.0.0 that knows nothing of later versions.
fn of_1_0() -> Vec<u8> {
    wat::parse_str(handler_with(&common::text_of("handlers/ack.wat"))).unwrap()
}

/// A handler of 1.1.0 that uses what is new there.
fn of_1_1() -> Vec<u8> {
    let fields = r#"
        (import "pumphouse:handler/effects@1.1.0" (instance $effects
          (export "publish" (func (param "topic" u32) (result u32)))))
        (alias export $effects "publish" (func $publish'))
        (core func $publish (canon lower (func $publish')))
        (core module $module
          (import "effects" "publish" (func $publish (param i32) (result i32)))
          (memory (export "memory") 1)
          (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
          (func (export "handle") (param i32) (result i32)
            (if (i32.ne (i32.const 42) (call $publish (i32.const 41))) (then (unreachable)))
            (i32.const 16))
          (func (export "post") (param i32)))"#;
    let linked = r#"
        (core instance $imports (export "publish" (func $publish)))
        (core instance $instance (instantiate $module (with "effects" (instance $imports))))"#;
    let text = handler_with(fields)
        .replace("(core instance $instance (instantiate $guest))", linked)
        .replace("@1.0.0", "@1.1.0");
    wat::parse_str(text).unwrap()
}

/// A 1.0.0 guest links and runs on a host that has grown.
#[test]
fn a_guest_of_1_0_runs_on_a_host_of_1_1() {
    let (outcome, published) = on_the_grown_host(&of_1_0()).unwrap();
    assert!(matches!(outcome, types::Outcome::Ack));
    assert!(published.is_empty());
}

/// The two worlds are served side by side, from one linker.
#[test]
fn a_guest_of_1_1_uses_what_is_new_on_the_same_host() {
    let (outcome, published) = on_the_grown_host(&of_1_1()).unwrap();
    assert!(matches!(outcome, types::Outcome::Ack));
    assert_eq!(published, [41]);
}

/// A guest that needs what this host has not is refused by name; one that was merely built for 1.1.0 runs.
#[tokio::test]
async fn a_guest_of_1_1_on_this_host_is_judged_by_what_it_needs() {
    let refused = common::load("new", &common::file(&of_1_1()), Limits::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("pumphouse:handler/effects@1.1.0"), "{refused}");
    let plain = handler_with(&common::text_of("handlers/ack.wat")).replace("@1.0.0", "@1.1.0");
    let plain = common::load("plain", &common::component(&plain), Limits::default()).await.unwrap();
    assert_eq!(call(&plain, "").await.result, Ok(Outcome::Ack));
}

/// Why records and variants are frozen: a field more is another type, and the guest is refused.
#[tokio::test]
async fn a_record_that_grew_is_another_type() {
    let text = handler_with(&common::text_of("handlers/ack.wat"))
        .replace(r#"(field "body" $bytes)"#, r#"(field "body" $bytes) (field "trace" string)"#);
    let path = common::component(&text);
    let refused = common::load("field", &path, Limits::default()).await.unwrap_err().to_string();
    assert!(refused.contains("another shape"), "{refused}");
    let error = on_the_grown_host(&wat::parse_str(text).unwrap()).unwrap_err();
    assert!(format!("{error:#}").contains("record"), "{error:#}");
}

/// The frozen guests, as they were built: every field, every outcome, both grants.
#[tokio::test]
async fn the_frozen_guests_of_1_0_0_run_as_they_are() {
    let log = common::log();
    let frozen = root().join("tests/frozen/handler-1.0.0");
    let conformance = frozen.join("conformance.wasm");
    let conformance = common::load("frozen", &conformance, Limits::default()).await.unwrap();
    assert_eq!(call(&conformance, r#"{"do":"ack"}"#).await.result, Ok(Outcome::Ack));
    let deferred = call(&conformance, r#"{"do":"defer","ms":1500}"#).await.result;
    assert_eq!(deferred, Ok(Outcome::Defer(Some(std::time::Duration::from_millis(1_500)))));
    let rejected = r#"{"do":"reject","reason":"delivery-error","text":"no"}"#;
    assert_eq!(description(&call(&conformance, rejected).await), "no");
    let counted = call(&conformance, r#"{"do":"expect-count","n":0}"#).await.result;
    assert_eq!(counted, Ok(Outcome::Ack));
    let greeter = frozen.join("greeter.wasm");
    let greeter = common::load("frozen-greeter", &greeter, Limits::default()).await.unwrap();
    assert_eq!(call(&greeter, "Ada").await.result, Ok(Outcome::Ack));
    let lines = log.lines_with("test/frozen-greeter");
    assert!(lines.iter().any(|line| line.contains("Hi, Ada!")), "{lines:?}");
}
