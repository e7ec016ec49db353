//! Between `wasi:http` and one call.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use http::header::{HeaderName, HeaderValue};
use http::{Request, Response};
use pumphouse_contract::Message;
use pumphouse_contract::trace::{TRACEPARENT, TraceContext};
use tokio::sync::Semaphore;
use tracing::{Instrument as _, Span};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceTable};
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView,
};

use super::body::Traffic;
use super::exchange::{Driver, Exchange};
use super::{Reach, errors};
use crate::journal::Speaker;

const TRACESTATE: &str = "tracestate";

/// The longest that the specification asks everyone to hand on.
const LONGEST_TRACESTATE: usize = 512;

/// What a guest may hold of headers in one resource, and of a body before it is sent. It may hold about a thousand
/// of either.
const MOST_FIELDS: usize = 32 * 1024;
const BODY_CHUNK: usize = 64 * 1024;

/// The interface, in the version of the library.
const TYPES: &str = "wasi:http/types@0.2.12";

/// Outgoing HTTP of one call.
pub(crate) struct HttpCall {
    ctx: WasiHttpCtx,
    hooks: Hooks,
}

impl HttpCall {
    /// Nothing of it goes on beyond the deadline.
    pub(crate) fn new(reach: Option<Arc<Reach>>, speaker: &Speaker, deadline: Instant) -> Self {
        let mut ctx = WasiHttpCtx::new();
        ctx.set_field_size_limit(MOST_FIELDS);
        let most = reach.as_ref().map_or(0, |reach| reach.grant.concurrency);
        let hooks = Hooks {
            reach,
            deadline: deadline.into(),
            open: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            traffic: Arc::default(),
            shown: Arc::default(),
            trace: trace(&speaker.message),
            about: speaker.span(),
        };
        Self { ctx, hooks }
    }

    pub(crate) fn view<'a>(&'a mut self, table: &'a mut ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { ctx: &mut self.ctx, table, hooks: &mut self.hooks }
    }

    /// What was sent, and what was received, in bytes.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        self.hooks.traffic.both()
    }
}

struct Hooks {
    reach: Option<Arc<Reach>>,
    deadline: tokio::time::Instant,
    open: Arc<Semaphore>,
    traffic: Arc<Traffic>,
    shown: Arc<AtomicUsize>,
    trace: Vec<(HeaderName, HeaderValue)>,
    about: Span,
}

type Sent = Result<(Response<WasiBody>, Driver), Error>;

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _response_read: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let Some(reach) = self.reach.clone() else {
            return Box::new(std::future::ready(Err(Error::HttpRequestDenied)));
        };
        let exchange = Exchange {
            reach,
            place: self.open.clone().try_acquire_owned().ok(),
            traffic: self.traffic.clone(),
            shown: self.shown.clone(),
            trace: self.trace.clone(),
            options: options.unwrap_or_default(),
            deadline: self.deadline,
        };
        Box::new(exchange.run(request).instrument(self.about.clone()))
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK
    }
}

/// The message's place in its trace, as headers.
fn trace(message: &Message) -> Vec<(HeaderName, HeaderValue)> {
    let Some(context) = TraceContext::of(&message.headers) else { return Vec::new() };
    let state = message.headers.text(TRACESTATE);
    let state = state.filter(|state| !state.is_empty() && state.len() <= LONGEST_TRACESTATE);
    let headers =
        [(TRACEPARENT, Some(context.to_string())), (TRACESTATE, state.map(str::to_owned))];
    let valid = headers.into_iter().filter_map(|(name, value)| {
        Some((HeaderName::from_static(name), HeaderValue::try_from(value?).ok()?))
    });
    valid.collect()
}

/// The outgoing part of `wasi:http`. The types are there with it, those of the incoming part included: nothing
/// calls a guest with them.
pub(crate) fn add_to_linker<T: WasiHttpView + 'static>(
    linker: &mut Linker<T>,
) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    linker.instance(TYPES)?.func_wrap("http-error-code", error_code)?;
    linker.allow_shadowing(false);
    Ok(())
}

type IoError = wasmtime_wasi::p2::bindings::io::error::Error;

/// In place of the library's own, which does not know the errors that end a response's body.
fn error_code<T: WasiHttpView>(
    mut store: StoreContextMut<'_, T>,
    (error,): (Resource<IoError>,),
) -> wasmtime::Result<(Option<ErrorCode>,)> {
    let view = store.data_mut().http();
    let error = view.table.get(&error)?;
    let own = error.downcast_ref::<Error>().and_then(errors::code);
    Ok((own.or_else(|| error.downcast_ref::<ErrorCode>().cloned()),))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumphouse_contract::HeaderValue as Value;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(headers: &[(&'static str, &str)]) -> Vec<(String, String)> {
        let headers = headers.iter().map(|(name, value)| (*name, Value::from(*value))).collect();
        let trace = trace(&Message { headers, ..Message::default() });
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        trace.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    #[test]
    fn a_valid_context_is_handed_on_and_nothing_else() {
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[("traceparent", "nonsense"), ("tracestate", "a=1")]), []);
        assert_eq!(of(&[("tracestate", "a=1")]), []);
        let parent = ("traceparent".to_owned(), PARENT.to_owned());
        assert_eq!(of(&[("traceparent", PARENT)]), std::slice::from_ref(&parent));
        let state = ("tracestate".to_owned(), "a=1".to_owned());
        assert_eq!(of(&[("tracestate", "a=1"), ("traceparent", PARENT)]), [parent.clone(), state]);
        let long = "x".repeat(513);
        let broken = [("traceparent", PARENT), ("tracestate", "a\r\nx: 1")];
        assert_eq!(of(&broken), std::slice::from_ref(&parent));
        assert_eq!(of(&[("traceparent", PARENT), ("tracestate", &long)]), [parent]);
    }
}
