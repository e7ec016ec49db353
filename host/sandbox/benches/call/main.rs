//! What one message costs, with a body of 256 bytes: `cargo bench -p pumphouse-sandbox`.
//!
//! | group | what |
//! |---|---|
//! | `native` | a handler behind the same trait object, in the host |
//! | `bare` | the engine with the product's settings, a fresh instance for each message, in a plain loop |
//! | `bare-async` | the same, asynchronously and yielding at every tick, as any host must that has deadlines |
//! | `product/here` | the product's call on the caller's task |
//! | `product/one` | the product's call as pumps make it, one at a time: twice from thread to thread |
//! | `product/many` | the same with 16 in flight, by message |
//! | `reused` | one instance for all messages, for comparison |
//!
//! Each of the WebAssembly ones with a guest of Rust's standard library, and with one that imports nothing.
//! The guests are built by `cargo xtask guests`.

#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a benchmark may give up")]

mod bare;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use pumphouse_contract::ports::{BoxFuture, Handler, Invocation, Version};
use pumphouse_contract::{Count, Ended, Message, Outcome};
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, Sandbox, SandboxSettings};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const IN_FLIGHT: u64 = 16;
const GUESTS: [(&str, &str); 2] = [("wasip2", "bench"), ("without-wasi", "bare")];

struct Native;

impl Version for Native {
    fn name(&self) -> &str {
        "native"
    }

    fn digest(&self) -> &str {
        ""
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Ended> {
        Box::pin(async move {
            let copy = Message::clone(&invocation.message);
            let body = copy.body.to_vec();
            std::hint::black_box((copy, body, invocation.source.to_string()));
            Ended::outcome(Outcome::Ack)
        })
    }
}

fn invocation() -> Invocation {
    let message = Message {
        id: "5fea7756-0ea4-451a-a703-a558b933e274".into(),
        headers: [("type", "order"), ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-01")]
            .into_iter()
            .collect(),
        body: vec![b'x'; 256].into(),
        ..Message::default()
    };
    Invocation {
        message: Arc::new(message),
        source: "orders".into(),
        subscription: "orders".into(),
        count: Count(0),
    }
}

fn guest(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.join("../../guests/target/wasm32-wasip2/release").join(name).with_extension("wasm")
}

fn load(runtime: &Runtime, sandbox: &Sandbox, name: &str) -> Arc<LoadedHandler> {
    let mut spec = HandlerSpec::new(format!("bench/{name}"), guest(name));
    spec.watch = false;
    runtime.block_on(sandbox.load(spec)).expect("run `cargo xtask guests` first")
}

fn ack(ended: &Ended) {
    assert_eq!(ended.result, Ok(Outcome::Ack));
}

fn native(criterion: &mut Criterion) {
    let runtime = runtime();
    let version: Arc<dyn Version> = Arc::new(Native);
    let call = invocation();
    criterion.bench_function("native", |bencher| {
        bencher.iter_custom(|times| runtime.block_on(one_by_one(&version, &call, times)));
    });
}

async fn one_by_one(version: &Arc<dyn Version>, call: &Invocation, times: u64) -> Duration {
    let began = Instant::now();
    for _ in 0..times {
        ack(&version.call(call.clone()).await);
    }
    began.elapsed()
}

async fn many(version: &Arc<dyn Version>, call: &Invocation, times: u64) -> Duration {
    let began = Instant::now();
    let mut lanes = JoinSet::new();
    for lane in 0..IN_FLIGHT {
        let (version, call) = (version.clone(), call.clone());
        let own = times / IN_FLIGHT + u64::from(lane < times % IN_FLIGHT);
        lanes.spawn(async move { one_by_one(&version, &call, own).await });
    }
    lanes.join_all().await;
    began.elapsed()
}

fn product(criterion: &mut Criterion) {
    let runtime = runtime();
    let sandbox = Sandbox::new(SandboxSettings::default()).expect("a sandbox");
    let call = invocation();
    for (label, name) in GUESTS {
        let handler = load(&runtime, &sandbox, name);
        let (here, version) = (handler.current(), handler.begin());
        criterion.bench_function(&format!("product/here/{label}"), |bencher| {
            bencher.iter_custom(|times| {
                runtime.block_on(async {
                    let began = Instant::now();
                    for _ in 0..times {
                        ack(&here.call_here(call.clone()).await);
                    }
                    began.elapsed()
                })
            });
        });
        criterion.bench_function(&format!("product/one/{label}"), |bencher| {
            bencher.iter_custom(|times| runtime.block_on(one_by_one(&version, &call, times)));
        });
        criterion.bench_function(&format!("product/many/{label}"), |bencher| {
            bencher.iter_custom(|times| runtime.block_on(many(&version, &call, times)));
        });
    }
}

fn engine_alone(criterion: &mut Criterion) {
    let runtime = runtime();
    let call = invocation();
    for (label, name) in GUESTS {
        let bare = bare::Bare::new(&guest(name)).expect("a component");
        criterion.bench_function(&format!("bare/{label}"), |bencher| {
            bencher.iter(|| bare.fresh(&call).expect("an answer"));
        });
        criterion.bench_function(&format!("bare-async/{label}"), |bencher| {
            bencher.iter_custom(|times| {
                runtime.block_on(async {
                    let began = Instant::now();
                    for _ in 0..times {
                        bare.fresh_async(&call).await.expect("an answer");
                    }
                    began.elapsed()
                })
            });
        });
        criterion.bench_function(&format!("reused/{label}"), |bencher| {
            let mut reused = bare.reused().expect("an instance");
            bencher.iter(|| reused.call(&call).expect("an answer"));
        });
    }
}

/// As pumps have it: another runtime than the guests'.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

criterion_group! {
    name = calls;
    config = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4))
        .without_plots();
    targets = native, engine_alone, product
}
criterion_main!(calls);
