//! Calls to SQS, SNS and Pub/Sub by plain HTTP, without a signature.
//!
//! For what other programs do to a queue or topic: sending what they send, and looking at what is there.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

use crate::Error;

/// Longer than the longest long poll, which is 20 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(40);

/// Ten messages of the largest size, escaped.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;

/// The answer of SQS or Pub/Sub.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The JSON body; `Null` when there was none.
    pub body: Value,
}

/// The answer of SNS.
#[derive(Debug, Clone)]
pub struct XmlAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body as text.
    pub body: String,
}

impl XmlAnswer {
    /// The text of the first element with this name.
    #[must_use]
    pub fn element(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.body.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
    }
}

/// Calls an SQS operation such as `SendMessage` by the JSON protocol. An error status is an
/// answer. Takes at most 40 s.
///
/// # Errors
/// When there is no answer, or it is not JSON.
pub async fn sqs(endpoint: &str, operation: &str, input: &Value) -> Result<Answer, Error> {
    let request = Request::post(format!("{endpoint}/"))
        .header(CONTENT_TYPE, "application/x-amz-json-1.0")
        .header("x-amz-target", format!("AmazonSQS.{operation}"))
        .body(Full::from(input.to_string()))
        .map_err(failed(endpoint))?;
    answer(endpoint, request).await
}

/// Calls Pub/Sub's REST interface: a method such as `PUT` or `POST`, and a path below `/v1/`
/// such as `projects/P/topics/T` or `projects/P/subscriptions/S:pull`. Message data is base64;
/// an input that is `Null` is sent as no body. An error status is an answer. Takes at most 40 s.
///
/// # Errors
/// When there is no answer, it is not JSON, or method or path can't be sent.
pub async fn pubsub(
    endpoint: &str,
    method: &str,
    path: &str,
    input: &Value,
) -> Result<Answer, Error> {
    let body = if input.is_null() { String::new() } else { input.to_string() };
    let request = Request::builder()
        .method(method)
        .uri(format!("{endpoint}/v1/{path}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::from(body))
        .map_err(failed(endpoint))?;
    answer(endpoint, request).await
}

async fn answer(endpoint: &str, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
    let (status, body) = call(endpoint, request).await?;
    let body = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body).map_err(failed(endpoint))?
    };
    Ok(Answer { status, body })
}

/// Calls an SNS action such as `Publish` by the query protocol with these parameters. An error
/// status is an answer. Takes at most 40 s.
///
/// # Errors
/// When there is no answer.
pub async fn sns(
    endpoint: &str,
    action: &str,
    parameters: &[(&str, &str)],
) -> Result<XmlAnswer, Error> {
    let mut form = format!("Action={action}&Version=2010-03-31");
    for (name, value) in parameters {
        form = form + "&" + &encoded(name) + "=" + &encoded(value);
    }
    let request = Request::post(format!("{endpoint}/"))
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Full::from(form))
        .map_err(failed(endpoint))?;
    let (status, body) = call(endpoint, request).await?;
    Ok(XmlAnswer { status, body: String::from_utf8_lossy(&body).into_owned() })
}

/// The status of the page at the top, which servers show that have nothing else to ask for.
pub(crate) async fn root(endpoint: &str) -> Result<u16, Error> {
    let request = Request::get(format!("{endpoint}/")).body(Full::default());
    let (status, _) = call(endpoint, request.map_err(failed(endpoint))?).await?;
    Ok(status)
}

async fn call(endpoint: &str, request: Request<Full<Bytes>>) -> Result<(u16, Bytes), Error> {
    let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
    let exchange = async {
        let response = client.request(request).await.map_err(failed(endpoint))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), ANSWER_LIMIT).collect().await;
        let body = body.map_err(|error| failed(endpoint)(error))?;
        Ok((status, body.to_bytes()))
    };
    timeout(CALL_TIMEOUT, exchange).await.map_err(failed(endpoint))?
}

fn failed<E: ToString>(endpoint: &str) -> impl Fn(E) -> Error {
    move |error| Error::Call { endpoint: endpoint.to_owned(), detail: error.to_string() }
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}
