//! A handler without a sandbox: what is left is what everything around it costs.

use std::hint::black_box;
use std::sync::Arc;

use pumphouse_contract::ports::{BoxFuture, Handler, Invocation, Version};
use pumphouse_contract::{Ended, Outcome, Usage};

/// Acknowledges everything, as the guests do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Native;

impl Handler for Native {
    fn begin(&self) -> Arc<dyn Version> {
        Arc::new(Self)
    }

    fn slots(&self) -> Option<usize> {
        None
    }
}

impl Version for Native {
    fn name(&self) -> &'static str {
        "bench/native"
    }

    fn digest(&self) -> &'static str {
        "0000000000000000000000000000000000000000000000000000000000000000"
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Ended> {
        Box::pin(async move { Ended { result: Ok(handle(&invocation)), usage: Usage::default() } })
    }
}

/// With copies of its own, as a guest has them.
pub(crate) fn handle(invocation: &Invocation) -> Outcome {
    let message = &invocation.message;
    black_box((message.id.clone(), message.headers.clone(), message.body.to_vec()));
    Outcome::Ack
}
