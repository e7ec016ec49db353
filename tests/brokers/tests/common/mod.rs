//! The emulator that tests share, and a gRPC client as small as it gets: messages are written and read by hand.

#![allow(dead_code)]

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pumphouse_test_brokers::PubsubEmulator;
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, mpsc};
use tokio::time::timeout;

/// Far longer than anything here takes.
pub(crate) const PLENTY: Duration = Duration::from_secs(20);

/// One for all tests of a file; it ends with their process.
static SHARED: OnceCell<PubsubEmulator> = OnceCell::const_new();

pub(crate) async fn emulator() -> &'static PubsubEmulator {
    SHARED.get_or_init(async || PubsubEmulator::start().await.unwrap()).await
}

/// A field of a protobuf message: its number and what it holds.
pub(crate) fn text(number: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    assert!(length < 128, "one byte is enough for the lengths of these tests");
    [&[number << 3 | 2, length], value].concat()
}

pub(crate) fn small(number: u8, value: u8) -> Vec<u8> {
    assert!(value < 128);
    vec![number << 3, value]
}

/// The values of a field, of a message that has lengths and small numbers alone.
pub(crate) fn values(mut message: &[u8], number: u8) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let [key, rest @ ..] = message {
        let (value, rest) = variable(rest);
        if key & 7 == 2 {
            let (value, rest) = rest.split_at(value);
            if key >> 3 == number {
                found.push(value);
            }
            message = rest;
        } else {
            message = rest;
        }
    }
    found
}

fn variable(bytes: &[u8]) -> (usize, &[u8]) {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let (number, rest) = bytes.split_at(end + 1);
    let value = number.iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
    (value, rest)
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat().into()
}

/// A request whose messages come as they are sent.
pub(crate) struct Outgoing(mpsc::Receiver<Bytes>);

impl Body for Outgoing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// The answer of a unary call: its status and its message, of which there is none on an error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u32,
    pub(crate) detail: String,
    pub(crate) message: Vec<u8>,
}

/// One connection.
pub(crate) struct Client(SendRequest<Outgoing>);

impl Client {
    pub(crate) async fn connect(host: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let stream = TcpStream::connect(host).await?;
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    pub(crate) async fn call(
        &mut self,
        method: &str,
        message: &[u8],
    ) -> Result<Reply, hyper::Error> {
        self.call_within(method, message, None).await
    }

    /// With a limit that the server is told; such as `1500m`, in milliseconds.
    pub(crate) async fn call_within(
        &mut self,
        method: &str,
        message: &[u8],
        limit: Option<&str>,
    ) -> Result<Reply, hyper::Error> {
        let (sender, response) = self.begin(method, limit);
        sender.send(framed(message)).await.unwrap();
        drop(sender);
        let exchange = async {
            let (parts, body) = response.await?.into_parts();
            let body = body.collect().await?;
            let trailers = body.trailers().cloned().unwrap_or(parts.headers);
            let (status, detail) = status(&trailers);
            let message = body.to_bytes().get(5..).unwrap_or_default().to_vec();
            Ok(Reply { status, detail, message })
        };
        timeout(PLENTY, exchange).await.unwrap()
    }

    /// A stream that begins with this message.
    pub(crate) async fn stream(&mut self, method: &str, first: &[u8]) -> Stream {
        let (sender, response) = self.begin(method, None);
        sender.send(framed(first)).await.unwrap();
        let response = Box::pin(response);
        Stream { sender: Some(sender), head: Some(response), body: None, read: Vec::new() }
    }

    fn begin(
        &mut self,
        method: &str,
        limit: Option<&str>,
    ) -> (mpsc::Sender<Bytes>, impl Future<Output = hyper::Result<Response<Incoming>>> + use<>)
    {
        let service = if method == "Publish" { "Publisher" } else { "Subscriber" };
        let mut request =
            Request::post(format!("http://server/google.pubsub.v1.{service}/{method}"))
                .header("content-type", "application/grpc")
                .header("te", "trailers");
        if let Some(limit) = limit {
            request = request.header("grpc-timeout", limit);
        }
        let (sender, receiver) = mpsc::channel(8);
        (sender, self.0.send_request(request.body(Outgoing(receiver)).unwrap()))
    }
}

fn status(headers: &HeaderMap) -> (u32, String) {
    let text = |name| headers.get(name).map_or("", |value| value.to_str().unwrap());
    (text("grpc-status").parse().unwrap(), text("grpc-message").to_owned())
}

/// What a stream brings next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Message(Vec<u8>),
    End(u32),
    /// The call was reset, or its connection closed.
    Reset,
}

type Head = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

/// An open stream; cancelled when dropped.
pub(crate) struct Stream {
    sender: Option<mpsc::Sender<Bytes>>,
    head: Option<Head>,
    body: Option<Incoming>,
    read: Vec<u8>,
}

impl Stream {
    pub(crate) async fn send(&mut self, message: &[u8]) {
        self.sender.as_ref().unwrap().send(framed(message)).await.unwrap();
    }

    pub(crate) fn half_close(&mut self) {
        self.sender = None;
    }

    pub(crate) async fn next(&mut self) -> Next {
        timeout(PLENTY, self.next_frame()).await.unwrap()
    }

    /// Cancel-safe: a head that has not come is awaited again.
    pub(crate) async fn next_frame(&mut self) -> Next {
        loop {
            if let Some(head) = &mut self.head {
                let Ok(head) = head.await else { return Next::Reset };
                self.head = None;
                if head.headers().contains_key("grpc-status") {
                    return Next::End(status(head.headers()).0);
                }
                self.body = Some(head.into_body());
            }
            if self.read.len() >= 5 {
                let length = u32::from_be_bytes(self.read[1..5].try_into().unwrap());
                let end = 5 + usize::try_from(length).unwrap();
                if self.read.len() >= end {
                    return Next::Message(self.read.drain(..end).skip(5).collect());
                }
            }
            match self.body.as_mut().unwrap().frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.read.extend(data),
                    Err(frame) => return Next::End(status(frame.trailers_ref().unwrap()).0),
                },
                Some(Err(_)) => return Next::Reset,
                None => panic!("an end without a status"),
            }
        }
    }
}
