//! One request and its response.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::body::{self, Times, Traffic};
use super::grant::{HttpRule, HttpScheme};
use super::target::Target;
use super::{Reach, address, connect, errors};
use crate::text::escaped;

const MOST_HEADERS: usize = 128;

/// Requests of one call that are shown in the log. A guest could fill a disk with more.
const MOST_SHOWN: usize = 100;
const LONGEST_METHOD: usize = 32;
const LONGEST_HOST: usize = 253;

/// What drives the connection while the response is read.
pub(super) type Driver = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// A request that is being sent.
pub(super) struct Exchange {
    pub(super) reach: Arc<Reach>,
    pub(super) place: Option<OwnedSemaphorePermit>,
    pub(super) traffic: Arc<Traffic>,
    pub(super) shown: Arc<AtomicUsize>,
    pub(super) trace: Vec<(HeaderName, HeaderValue)>,
    pub(super) options: RequestOptions,
    /// The end of the call.
    pub(super) deadline: Instant,
}

impl Exchange {
    /// Sends a request and shows how it went: the host, the method and the outcome.
    pub(super) async fn run(
        mut self,
        request: Request<WasiBody>,
    ) -> Result<(Response<WasiBody>, Driver), Error> {
        let (reach, shown) = (self.reach.clone(), self.shown.clone());
        let method = escaped(request.method().as_str(), LONGEST_METHOD);
        let host = request.uri().host().map(|host| escaped(host, LONGEST_HOST));
        let sent = self.send(request).await;
        if shown.fetch_add(1, Ordering::Relaxed) < MOST_SHOWN {
            let outcome = match &sent {
                Ok((response, _)) => response.status().as_u16().to_string(),
                Err(error) => error.to_string(),
            };
            let handler = &*reach.handler;
            tracing::debug!(handler, method, host, outcome, "outgoing request");
        }
        sent
    }

    async fn send(
        &mut self,
        request: Request<WasiBody>,
    ) -> Result<(Response<WasiBody>, Driver), Error> {
        let place = self.place.take().ok_or(Error::ConnectionLimitReached)?;
        let target = Target::of(&request)?;
        let reach = self.reach.clone();
        let rule = target.rule(&reach.grant, request.method().as_str());
        let rule = rule.ok_or(Error::HttpRequestDenied)?;
        let request = self.prepared(request, &target)?;
        let until = self.deadline.min(after(Some(self.reach.grant.timeout), self.deadline));
        let connecting = after(self.options.connect_timeout, until);
        let stream = self.connect(&target, rule, connecting).await?;
        let exceeded = request.body().exceeded();
        let (response, driver) = self.exchange(request, stream, until, &exceeded).await?;
        let times = Times { until, between: self.options.between_bytes_timeout };
        Ok((self.bounded(response, times, place)?, driver))
    }

    /// The request as it goes over the wire.
    fn prepared(
        &self,
        request: Request<WasiBody>,
        target: &Target,
    ) -> Result<Request<body::Request>, Error> {
        let limit = self.reach.grant.request_bytes;
        let (mut parts, body) = request.into_parts();
        let announced = parts.headers.get(http::header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > limit) {
            return Err(Error::HttpRequestBodySize(Some(limit)));
        }
        let path = parts.uri.path_and_query().cloned();
        parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        let host = HeaderValue::try_from(target.host_header());
        parts.headers.insert(HOST, host.map_err(|_| Error::HttpRequestUriInvalid)?);
        add_trace(&mut parts.headers, &self.trace);
        self.traffic.send(weight(&parts.headers) + parts.uri.path().len() as u64);
        Ok(Request::from_parts(parts, body::Request::new(body, limit, self.traffic.clone())))
    }

    /// Connects to the very addresses that were checked.
    async fn connect(
        &self,
        target: &Target,
        rule: &HttpRule,
        until: Instant,
    ) -> Result<Box<dyn connect::Stream>, Error> {
        let found = timeout_at(until, self.reach.resolver.resolve(&target.host)).await;
        let addresses = found.map_err(|_| Error::DnsTimeout)??;
        check(&addresses, rule)?;
        let stream = connect::tcp(&addresses, target.port, until).await?;
        match target.scheme {
            HttpScheme::Http => Ok(Box::new(stream)),
            HttpScheme::Https => {
                let config = self.reach.tls.clone().ok_or(Error::ConfigurationError)?;
                let stream = timeout_at(until, connect::tls(config, &target.host, stream)).await;
                stream.map_err(|_| Error::ConnectionTimeout)?
            }
        }
    }

    async fn exchange(
        &self,
        request: Request<body::Request>,
        stream: Box<dyn connect::Stream>,
        until: Instant,
        exceeded: &AtomicBool,
    ) -> Result<(Response<Incoming>, Driver), Error> {
        let failed = |error: hyper::Error| {
            if exceeded.load(Ordering::Relaxed) {
                Error::HttpRequestBodySize(Some(self.reach.grant.request_bytes))
            } else if Instant::now() >= until {
                // The connection is cut when its time is over, and may be seen first.
                Error::HttpResponseTimeout
            } else {
                errors::of_request(&error)
            }
        };
        let mut builder = http1::Builder::new();
        builder.max_buf_size(errors::MOST_HEAD).max_headers(MOST_HEADERS);
        let (mut sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(failed)?;
        // A task of its own, which ends with its handle: the response is waited for, and read, beside it.
        let connection =
            wasmtime_wasi::runtime::spawn(async move { timeout_at(until, connection).await });
        let first = after(self.options.first_byte_timeout, until);
        let response = match timeout_at(first, sender.send_request(request)).await {
            Ok(response) => response.map_err(failed)?,
            Err(_) if first < until => return Err(Error::ConnectionReadTimeout),
            Err(_) => return Err(Error::HttpResponseTimeout),
        };
        let driver = async move {
            // What went wrong is found where the body is read.
            let _ = connection.await;
            Ok(())
        };
        Ok((response, Box::new(driver)))
    }

    fn bounded(
        &self,
        response: Response<Incoming>,
        times: Times,
        place: OwnedSemaphorePermit,
    ) -> Result<Response<WasiBody>, Error> {
        let limit = self.reach.grant.response_bytes;
        let (parts, body) = response.into_parts();
        self.traffic.receive(weight(&parts.headers));
        if let Some(size) = http_body::Body::size_hint(&body).exact().filter(|size| *size > limit) {
            return Err(Error::HttpResponseBodySize(Some(size)));
        }
        let body = body::Response::new(body, limit, times, self.traffic.clone(), place);
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }
}

/// FR-24: a name is judged by all that it leads to.
fn check(addresses: &[IpAddr], rule: &HttpRule) -> Result<(), Error> {
    let open = rule.private || addresses.iter().all(|found| address::is_public(*found));
    if open { Ok(()) } else { Err(Error::DestinationIpProhibited) }
}

/// So long from now, and never later than that.
fn after(time: Option<Duration>, latest: Instant) -> Instant {
    let then = time.and_then(|time| Instant::now().checked_add(time));
    then.map_or(latest, |then| then.min(latest))
}

/// The message's place in its trace, where the guest says nothing of its own.
fn add_trace(headers: &mut HeaderMap, trace: &[(HeaderName, HeaderValue)]) {
    if headers.contains_key(pumphouse_contract::trace::TRACEPARENT) {
        return;
    }
    for (name, value) in trace {
        headers.insert(name.clone(), value.clone());
    }
}

/// About what headers are on the wire.
fn weight(headers: &HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len() + 4) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpHost;

    #[test]
    fn fr_24_one_private_address_among_others_is_enough_to_refuse() {
        let mut rule = HttpRule::new(HttpHost::parse("api.example.com").unwrap());
        let addresses = ["1.1.1.1".parse().unwrap(), "169.254.169.254".parse().unwrap()];
        assert!(matches!(check(&addresses, &rule), Err(Error::DestinationIpProhibited)));
        assert!(check(&addresses[..1], &rule).is_ok());
        rule.private = true;
        assert!(check(&addresses, &rule).is_ok());
    }

    #[test]
    fn a_guests_own_trace_is_left_alone() {
        let trace = vec![
            (HeaderName::from_static("traceparent"), HeaderValue::from_static("ours")),
            (HeaderName::from_static("tracestate"), HeaderValue::from_static("a=1")),
        ];
        let mut own = HeaderMap::new();
        own.insert("traceparent", HeaderValue::from_static("theirs"));
        add_trace(&mut own, &trace);
        assert_eq!((own["traceparent"].to_str().unwrap(), own.len()), ("theirs", 1));
        let mut none = HeaderMap::new();
        add_trace(&mut none, &trace);
        assert_eq!(none.len(), 2);
    }
}
