//! Field reports that no other test here is about, and the coarse clock.

use std::time::Duration;

use pumphouse_contract::{FaultKind, Outcome};
use pumphouse_sandbox::{DeployError, Grants, HandlerSpec, Limits, Sandbox, SandboxSettings};

use crate::common::{self, call, component, description, fault, file, guest, handler_with, within};

const MIB: usize = 1 << 20;

/// FR-21: an instance may have so many core instances, memories and tables as the pool has room for, and a component that
/// wants more is refused by name.
#[tokio::test]
async fn fr_21_a_guest_of_many_instances_is_refused() {
    let more =
        "(core module $empty) ".to_owned() + &"(core instance (instantiate $empty)) ".repeat(100);
    let text = handler_with(&(more + &common::text_of("handlers/ack.wat")));
    let refused = common::load("instances", &component(&text), Limits::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("than an instance of this host has"), "{refused}");
}

/// FR-24: what one tenant was given, another does not see, though both run the same component in one process.
#[tokio::test]
async fn fr_24_one_tenants_grants_are_nothing_to_another() {
    let log = common::log();
    let granted = |tenant: &str, greeting: Option<&str>| HandlerSpec {
        name: format!("{tenant}/greeter"),
        grants: Grants {
            logging: true,
            config: Some(
                greeting.map(|text| ("greeting".into(), text.into())).into_iter().collect(),
            ),
            ..Grants::default()
        },
        ..common::spec("greeter", &guest("greeter"))
    };
    let sandbox = common::shared();
    let one = sandbox.load(granted("fr24-one", Some("Secret of one"))).await.unwrap();
    let other = sandbox.load(granted("fr24-other", None)).await.unwrap();
    for handler in [&one, &other, &one, &other] {
        assert_eq!(call(handler, "Ada").await.result, Ok(Outcome::Ack));
    }
    assert!(!log.lines_with("fr24-one/greeter").is_empty());
    let others = log.lines_with("fr24-other/greeter");
    assert!(others.iter().any(|line| line.contains("Hello, Ada!")), "{others:?}");
    assert!(!others.iter().any(|line| line.contains("Secret of one")), "{others:?}");
}

/// FR-29: the size of a component has one limit, which is stated: what is below it is taken, and what is above it is
/// refused with the limit, before it is read.
#[tokio::test]
async fn fr_29_a_component_has_one_limit_of_size() {
    let settings =
        SandboxSettings { max_component: 21 * MIB as u64, pool_slots: 2, ..common::settings() };
    let sandbox = Sandbox::new(settings).unwrap();
    for size in [1, 3, 20].map(|size| size * MIB) {
        let path = file(&padded(size));
        let handler = sandbox.load(common::spec("padded", &path)).await.unwrap();
        assert_eq!(call(&handler, "").await.result, Ok(Outcome::Ack), "{size} bytes");
    }
    let path = file(&padded(22 * MIB));
    let refused = sandbox.load(common::spec("padded", &path)).await.unwrap_err();
    assert!(matches!(refused, DeployError::TooLarge { .. }), "{refused}");
    assert!(refused.to_string().contains(&(21 * MIB).to_string()), "{refused}");
}

/// An honest handler with a section that makes it so large, or a few bytes larger.
fn padded(size: usize) -> Vec<u8> {
    let mut bytes = wat::parse_str(handler_with(&common::text_of("handlers/ack.wat"))).unwrap();
    let name = b"padding";
    let mut length = size + 1 + name.len();
    bytes.push(0);
    while length > 0x7f {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.push(u8::try_from(name.len()).unwrap());
    bytes.extend_from_slice(name);
    bytes.resize(bytes.len() + size, 0);
    bytes
}

/// A guest can't measure what others do to the processor's caches: both clocks step by what the host set.
#[tokio::test]
async fn clocks_are_as_coarse_as_the_host_says() {
    for step in [1, 7].map(Duration::from_millis) {
        let settings =
            SandboxSettings { clock_resolution: step, pool_slots: 2, ..common::settings() };
        let sandbox = Sandbox::new(settings).unwrap();
        let handler = sandbox.load(common::spec("timer", &guest("hostile_timer"))).await.unwrap();
        let ended = call(&handler, "").await;
        let steps: Vec<u128> = description(&ended)
            .split(' ')
            .map(|part| part.split_once('=').unwrap().1.parse().unwrap())
            .collect();
        let [monotonic, wall, claimed] = steps[..] else { panic!("{steps:?}") };
        assert_eq!(claimed, step.as_nanos());
        assert!(monotonic >= step.as_nanos() && monotonic.is_multiple_of(step.as_nanos()));
        // Somebody may set the machine's clock meanwhile, but never to a part of a step.
        assert!(wall.is_multiple_of(step.as_nanos()), "{wall}");
    }
}

/// A handle that the host never gave is none, and what a guest keeps goes with its instance.
#[tokio::test]
async fn handles_are_the_instances_own() {
    let forged = component(&common::text_of("whole/handle-forged.wat"));
    let forged = common::load("forged", &forged, Limits::default()).await.unwrap();
    let fault = fault(&forged, "").await;
    assert_eq!(fault.kind, FaultKind::InvalidResult, "{fault:?}");
    assert_eq!(call(&forged, "good").await.result, Ok(Outcome::Ack));
    let keeper = common::load("keeper", &guest("hostile_keep"), within(20_000)).await.unwrap();
    // Twice five hundred are more than one instance may hold.
    for _ in 0..10 {
        assert_eq!(call(&keeper, "").await.result, Ok(Outcome::Ack));
    }
}
