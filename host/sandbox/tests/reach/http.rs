//! Outgoing HTTP, against real servers on this machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Redirect;
use axum::routing::any;
use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_contract::{Ended, FaultKind, Message};
use pumphouse_sandbox::{
    Grants, HandlerSpec, HttpGrant, HttpHost, HttpRule, HttpScheme, Limits, LoadedHandler, Sandbox,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{self, call, description, guest, invocation};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A rule for a server of these tests.
fn rule(host: &str, port: u16) -> HttpRule {
    HttpRule {
        scheme: HttpScheme::Http,
        port,
        methods: vec!["GET".into(), "POST".into()],
        private: true,
        ..HttpRule::new(HttpHost::parse(host).unwrap())
    }
}

fn grant(rules: Vec<HttpRule>) -> HttpGrant {
    HttpGrant { rules, ..HttpGrant::default() }
}

fn spec(name: &str, grant: HttpGrant) -> HandlerSpec {
    HandlerSpec {
        grants: Grants { http: Some(grant), ..Grants::default() },
        watch: false,
        ..HandlerSpec::new(format!("test/{name}"), guest("http"))
    }
}

async fn load(name: &str, grant: HttpGrant) -> Arc<LoadedHandler> {
    common::shared().load(spec(name, grant)).await.unwrap()
}

/// The plan of one request.
fn plan(authority: &str, more: &str) -> String {
    format!(r#"{{"requests":[{{"authority":"{authority}"{more}}}]}}"#)
}

/// What the guest says of a plan.
async fn run(handler: &LoadedHandler, plan: &str) -> String {
    description(&call(handler, plan).await).to_owned()
}

/// A server that answers every request so: what it got, in order.
async fn server(answer: &'static [u8]) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let got = seen.clone();
    let address = raw(move |mut stream, head| {
        got.lock().unwrap().push(head);
        async move {
            let _ = stream.write_all(answer).await;
        }
    })
    .await;
    (address, seen)
}

/// A server that does as it is told with each connection, once a request's head has come.
async fn raw<F, T>(answer: F) -> SocketAddr
where
    F: Fn(TcpStream, String) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let head = head(&mut stream).await;
                answer(stream, head).await;
            });
        }
    });
    address
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// A server of a framework's, which says what it got.
async fn echo() -> SocketAddr {
    let app = Router::new().fallback(any(async |headers: HeaderMap, request: Request| {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let body = axum::body::to_bytes(request.into_body(), 8 << 20).await.unwrap();
        let mut names: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap_or("?")))
            .collect();
        names.sort();
        format!("{method} {uri} {} bytes; {}", body.len(), names.join(" "))
    }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// An allowed request arrives as it was sent, and is counted.
#[tokio::test]
async fn what_is_allowed_arrives() {
    let server = echo().await;
    let handler = load("http-allowed", grant(vec![rule("127.0.0.1", server.port())])).await;
    let more = r#","path":"/v1?q=1","headers":[["x-test","yes"]],"method":"POST","body":5"#;
    let ended = call(&handler, &plan(&server.to_string(), more)).await;
    let answer = description(&ended);
    assert!(answer.contains(r#""status":200"#), "{answer}");
    assert!(answer.contains("POST /v1?q=1 5 bytes"), "{answer}");
    assert!(answer.contains(&format!("host={server}")), "{answer}");
    assert!(answer.contains("x-test=yes"), "{answer}");
    assert!(ended.usage.bytes_out > 5 && ended.usage.bytes_in > 50, "{:?}", ended.usage);
}

/// FR-24: each part of the rule counts, and what is refused never reaches the server.
#[tokio::test]
async fn fr_24_another_host_method_scheme_or_port_is_refused() {
    let (server, seen) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let port = server.port();
    let handler = load("http-refused", grant(vec![rule("localhost", port)])).await;
    for (authority, more) in [
        (format!("127.0.0.1:{port}"), ""),
        (format!("localhost:{port}"), r#","method":"PUT""#),
        (format!("localhost:{port}"), r#","method":"CONNECT""#),
        (format!("localhost:{port}"), r#","scheme":"https""#),
        (format!("localhost:{}", port ^ 1), ""),
        ("localhost".to_owned(), ""),
        (format!("evil.localhost:{port}"), ""),
    ] {
        let answer = run(&handler, &plan(&authority, more)).await;
        assert!(answer.contains("HttpRequestDenied"), "{authority} {more}: {answer}");
    }
    let hidden = run(&handler, &plan(&format!("localhost@127.0.0.1:{port}"), "")).await;
    assert!(hidden.contains("HttpRequestUriInvalid"), "{hidden}");
    assert_eq!(seen.lock().unwrap().len(), 0);
    let allowed = run(&handler, &plan(&format!("localhost:{port}"), "")).await;
    assert!(allowed.contains(r#""status":200"#), "{allowed}");
}

/// FR-24: an address that is not public needs a word of its own, however it is written or found.
#[tokio::test]
async fn fr_24_a_private_address_is_refused_unless_it_is_granted() {
    let (server, seen) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let port = server.port();
    let public = |host: &str| HttpRule { private: false, ..rule(host, port) };
    let hosts =
        ["127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1", "169.254.169.254", "10.0.0.1"];
    let handler = load("http-private", grant(hosts.map(public).to_vec())).await;
    for host in hosts {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let answer = run(&handler, &plan(&format!("{host}:{port}"), "")).await;
        assert!(answer.contains("DestinationIpProhibited"), "{host}: {answer}");
    }
    assert_eq!(seen.lock().unwrap().len(), 0);
    let granted = load("http-granted", grant(vec![rule("localhost", port)])).await;
    let answer = run(&granted, &plan(&format!("localhost:{port}"), "")).await;
    assert!(answer.contains(r#""status":200"#), "{answer}");
}

/// A redirect is the guest's own business, and its next request is judged like the first.
#[tokio::test]
async fn a_redirect_is_not_followed_and_judged_again() {
    let (secret, seen) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret").await;
    let location = format!("http://{secret}/latest/meta-data");
    let app = Router::new().fallback(any(async move || Redirect::temporary(&location)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let handler = load("http-redirect", grant(vec![rule("127.0.0.1", open.port())])).await;
    let answer = run(&handler, &plan(&open.to_string(), "")).await;
    assert!(answer.contains(r#""status":307"#), "{answer}");
    let answer = run(&handler, &plan(&open.to_string(), r#","follow":true"#)).await;
    assert!(answer.contains("HttpRequestDenied"), "{answer}");
    assert_eq!(seen.lock().unwrap().len(), 0);
}

/// FR-19: a server that does not answer ends by the guest's time, the grant's, or the call's.
#[tokio::test]
async fn fr_19_a_slow_server_is_not_waited_for() {
    let open = Arc::new(AtomicUsize::new(0));
    let counted = open.clone();
    let server = raw(move |mut stream, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        let counted = counted.clone();
        async move {
            // Until the other side is gone.
            while stream.read_u8().await.is_ok() {}
            counted.fetch_sub(1, Ordering::SeqCst);
        }
    })
    .await;
    let rules = vec![rule("127.0.0.1", server.port())];
    let patient = load("http-slow", grant(rules.clone())).await;
    let guests = run(&patient, &plan(&server.to_string(), r#","first_byte_ms":100"#)).await;
    assert!(guests.contains("ConnectionReadTimeout"), "{guests}");
    let brief = HttpGrant { timeout: Duration::from_millis(500), ..grant(rules.clone()) };
    let grants = run(&*load("http-brief", brief).await, &plan(&server.to_string(), "")).await;
    assert!(grants.contains("HttpResponseTimeout"), "{grants}");
    let limits = Limits { deadline: Duration::from_secs(1), ..Limits::default() };
    let spec = HandlerSpec { limits, ..spec("http-cut", grant(rules)) };
    let cut = common::shared().load(spec).await.unwrap();
    let fault = common::fault(&cut, &plan(&server.to_string(), "")).await;
    assert_eq!(fault.kind, FaultKind::Deadline, "{fault:?}");
    common::eventually("all connections end with their calls", || open.load(Ordering::SeqCst) == 0)
        .await;
}

/// A response has a size and a time, whatever the server says of them.
#[tokio::test]
async fn a_response_is_bounded() {
    let endless = raw(async |mut stream: TcpStream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b'x'; 8192]).await.is_ok() {}
    })
    .await;
    let (announced, _) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 100001\r\n\r\nxxxx").await;
    let (short, _) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nxxxx").await;
    let dripping = raw(async |mut stream: TcpStream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nx").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    let head = raw(async |mut stream: TcpStream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        for n in 0..100_000 {
            if stream.write_all(format!("x-{n}: {n}\r\n").as_bytes()).await.is_err() {
                break;
            }
        }
    })
    .await;
    let (garbage, _) = server(b"\x16\x03\x01 not HTTP at all\r\n\r\n").await;
    let servers = [endless, announced, short, dripping, head, garbage];
    let rules = servers.iter().map(|server| rule("127.0.0.1", server.port())).collect();
    let bounded =
        HttpGrant { response_bytes: 100_000, timeout: Duration::from_secs(5), ..grant(rules) };
    let handler = load("http-bounded", bounded).await;
    for (server, more, error) in [
        (endless, "", "HttpResponseBodySize(Some(100000))"),
        (announced, "", "HttpResponseBodySize(Some(100001))"),
        (short, "", "HttpResponseIncomplete"),
        (dripping, r#","between_bytes_ms":100"#, "ConnectionReadTimeout"),
        (dripping, "", "HttpResponseTimeout"),
        (head, "", "HttpResponseHeaderSectionSize"),
        (garbage, "", "HttpProtocolError"),
    ] {
        let answer = run(&handler, &plan(&server.to_string(), more)).await;
        assert!(answer.contains(error), "{error}: {answer}");
    }
}

/// A request has a size, too, and a large one within it arrives whole.
#[tokio::test]
async fn a_request_is_bounded() {
    let server = echo().await;
    let rules = vec![rule("127.0.0.1", server.port())];
    let handler = load("http-large", grant(rules)).await;
    let large = r#","method":"POST","body":1000000"#;
    let answer = run(&handler, &plan(&server.to_string(), large)).await;
    assert!(answer.contains("1000000 bytes"), "{answer}");
    let larger = r#","method":"POST","body":2000000"#;
    let answer = run(&handler, &plan(&server.to_string(), larger)).await;
    assert!(answer.contains("HttpRequestBodySize(Some(1048576))"), "{answer}");
    let announced = r#","method":"POST","body":2000000,"headers":[["content-length","2000000"]]"#;
    let answer = run(&handler, &plan(&server.to_string(), announced)).await;
    assert!(answer.contains("HttpRequestBodySize(Some(1048576))"), "{answer}");
}

#[tokio::test]
async fn requests_at_once_are_bounded() {
    let slow = raw(async |mut stream: TcpStream, _| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    let rules = vec![rule("127.0.0.1", slow.port())];
    let handler = load("http-many", HttpGrant { concurrency: 2, ..grant(rules) }).await;
    let one = format!(r#"{{"authority":"{slow}"}}"#);
    let answer = run(&handler, &format!(r#"{{"requests":[{one},{one},{one},{one},{one}]}}"#)).await;
    assert_eq!(answer.matches(r#""status":200"#).count(), 2, "{answer}");
    assert_eq!(answer.matches("ConnectionLimitReached").count(), 3, "{answer}");
}

async fn with_headers(handler: &LoadedHandler, plan: &str, headers: &[(&str, &str)]) -> Ended {
    let headers = headers.iter().map(|(name, value)| (*name, *value)).collect();
    let body = plan.to_owned().into_bytes().into();
    let message = Message { id: "m-1".into(), headers, body, ..Message::default() };
    let invocation = Invocation { message: Arc::new(message), ..invocation("m-1", "") };
    handler.begin().call(invocation).await
}

#[tokio::test]
async fn the_messages_trace_goes_on_and_a_guests_own_is_left_alone() {
    let server = echo().await;
    let handler = load("http-trace", grant(vec![rule("127.0.0.1", server.port())])).await;
    let headers = [("traceparent", PARENT), ("tracestate", "acme=1")];
    let ended = with_headers(&handler, &plan(&server.to_string(), ""), &headers).await;
    let answer = description(&ended);
    assert!(answer.contains(&format!("traceparent={PARENT} tracestate=acme=1")), "{answer}");
    let own = r#","headers":[["traceparent","00-own"]]"#;
    let ended = with_headers(&handler, &plan(&server.to_string(), own), &headers).await;
    let answer = description(&ended);
    assert!(answer.contains("traceparent=00-own"), "{answer}");
    assert!(!answer.contains("tracestate"), "{answer}");
    let none = run(&handler, &plan(&server.to_string(), "")).await;
    assert!(!none.contains("traceparent"), "{none}");
}

#[tokio::test]
async fn a_guest_sets_no_header_of_the_connections() {
    let server = echo().await;
    let handler = load("http-headers", grant(vec![rule("127.0.0.1", server.port())])).await;
    for name in ["Host", "connection", "transfer-encoding", "upgrade", "proxy-authorization"] {
        let more = format!(r#","headers":[["{name}","evil"]]"#);
        let answer = run(&handler, &plan(&server.to_string(), &more)).await;
        assert!(answer.contains("Forbidden"), "{name}: {answer}");
    }
    let split = r#","headers":[["x-a","1\r\nhost: evil"]]"#;
    let answer = run(&handler, &plan(&server.to_string(), split)).await;
    assert!(answer.contains("InvalidSyntax"), "{answer}");
}

/// Headers are the host's memory: a guest that hoards them ends.
#[tokio::test]
async fn a_requests_headers_are_bounded() {
    let server = echo().await;
    let handler = load("http-fields", grant(vec![rule("127.0.0.1", server.port())])).await;
    let header = format!(r#"["x-large","{}"]"#, "x".repeat(4_000));
    let more = |count| format!(r#","headers":[{}]"#, vec![header.as_str(); count].join(","));
    let answer = run(&handler, &plan(&server.to_string(), &more(5))).await;
    assert!(answer.contains(r#""status":200"#), "{answer}");
    let fault = common::fault(&handler, &plan(&server.to_string(), &more(9))).await;
    assert_eq!(fault.kind, FaultKind::ResultSize, "{fault:?}");
    assert!(fault.detail.contains("32KiB"), "{fault:?}");
}

/// The log has the host, the method and the outcome, and nothing that may be a secret.
#[tokio::test]
async fn the_log_shows_where_to_and_not_what() {
    let log = common::log();
    let server = echo().await;
    let handler = load("http-logged", grant(vec![rule("127.0.0.1", server.port())])).await;
    let more = r#","path":"/hush-path?key=hush-query","headers":[["authorization","hush-header"]]"#;
    run(&handler, &plan(&server.to_string(), more)).await;
    let denied = r#","path":"/hush-path","method":"PUT""#;
    run(&handler, &plan(&server.to_string(), denied)).await;
    let lines = log.lines_with("test/http-logged");
    let requests: Vec<_> = lines.iter().filter(|line| line.contains("outgoing request")).collect();
    assert_eq!(requests.len(), 2, "{lines:?}");
    assert!(requests[0].contains(r#""outcome":"200""#) && requests[0].contains("127.0.0.1"));
    assert!(requests[1].contains("denied") && requests[1].contains("PUT"), "{requests:?}");
    assert_eq!(log.lines_with("hush-").len(), 0);
}

/// A certificate authority, and a server with a certificate of it.
async fn secure(folder: &std::path::Path) -> (SocketAddr, PathBuf) {
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let path = folder.join("ca.pem");
    std::fs::write(&path, ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsealed").await;
            let _ = stream.shutdown().await;
        }
    });
    (address, path)
}

#[tokio::test]
async fn a_server_must_prove_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (server, ca) = secure(folder.path()).await;
    let port = server.port();
    let https = |host: &str| HttpRule { scheme: HttpScheme::Https, ..rule(host, port) };
    let grant = || grant(vec![https("localhost"), https("127.0.0.1")]);
    let settings = pumphouse_sandbox::SandboxSettings {
        http_trust: vec![ca],
        pool_slots: 2,
        ..common::settings()
    };
    let trusting = Sandbox::new(settings).unwrap();
    let trusting = trusting.load(spec("http-tls", grant())).await.unwrap();
    let localhost = plan(&format!("localhost:{port}"), r#","scheme":"https""#);
    let answer = run(&trusting, &localhost).await;
    assert!(answer.contains("sealed"), "{answer}");
    let other_name = plan(&format!("127.0.0.1:{port}"), r#","scheme":"https""#);
    let answer = run(&trusting, &other_name).await;
    assert!(answer.contains("TlsCertificateError"), "{answer}");
    let missing = pumphouse_sandbox::SandboxSettings {
        http_trust: vec![folder.path().join("none.pem")],
        pool_slots: 2,
        ..common::settings()
    };
    let refused = Sandbox::new(missing).unwrap().load(spec("http-none", grant())).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("none.pem"), "{refused}");
}

/// FR-28: without the grant a component that calls out is refused, with the line that would allow it.
#[tokio::test]
async fn fr_28_outgoing_http_must_be_granted() {
    let spec = HandlerSpec { grants: Grants::default(), ..spec("http-not", HttpGrant::default()) };
    let refused = common::shared().load(spec).await.unwrap_err().to_string();
    assert!(refused.contains("wasi:http/outgoing-handler@0.2"), "{refused}");
    assert!(refused.contains("`grants.http = ["), "{refused}");
    // Granted with no rule it is there and allows nothing.
    let closed = load("http-closed", HttpGrant::default()).await;
    let answer = run(&closed, &plan("example.com", "")).await;
    assert!(answer.contains("HttpRequestDenied"), "{answer}");
}
