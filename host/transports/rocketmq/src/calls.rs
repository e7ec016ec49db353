//! One request: its bound, and what its failure means.

use std::future::Future;
use std::time::Duration;

use cheetah_string::CheetahString;
use pumphouse_contract::with_causes;
use rocketmq_client_rust::{ClientError, ClientResult};
use rocketmq_protocol::protocol::remoting_command::RemotingCommand;

use crate::Rocketmq;

/// The code of an answer that the request was done.
pub(crate) const SUCCESS: i32 = 0;

/// How the client calls how far a request got, and what it says of those that did not leave.
const PHASE: &str = "phase";
const UNSENT: [&str; 2] = ["connect", "before_write"];

/// What a failed request means for whoever made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// No answer, or the broker's own fault.
    Unavailable,
    /// The broker has too much to do.
    Busy,
    /// No such topic or group.
    Missing,
    /// This access key may not.
    Denied,
    /// The broker will not take this request.
    Refused,
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) meaning: Meaning,
    pub(crate) text: String,
    /// The broker's response code; none where it did not answer.
    pub(crate) code: Option<i32>,
}

impl Fault {
    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        Self { meaning: Meaning::Unavailable, text: text.into(), code: None }
    }

    /// What an answer means that is no success.
    pub(crate) fn of(answer: &RemotingCommand) -> Self {
        let code = answer.code();
        let remark = answer.remark().map(CheetahString::as_str).filter(|text| !text.is_empty());
        let text = format!("code {code}: {}", remark.unwrap_or("the broker gives no reason"));
        Self { meaning: meaning(code), text, code: Some(code) }
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        let code = error.broker_response_code();
        let text = match phase(&error) {
            Some(phase) => format!("{} ({phase})", with_causes(&error)),
            None => with_causes(&error),
        };
        Self { meaning: code.map_or(Meaning::Unavailable, meaning), text, code }
    }
}

/// What a response code means (`ResponseCode`, `RemotingSysResponseCode`). What the broker calls its own fault, and
/// what may pass, is `Unavailable`.
pub(crate) fn meaning(code: i32) -> Meaning {
    match code {
        // SYSTEM_BUSY, FLOW_CONTROL, POLLING_FULL
        2 | 215 | 209 => Meaning::Busy,
        // NO_PERMISSION
        16 => Meaning::Denied,
        // TOPIC_NOT_EXIST, SUBSCRIPTION_NOT_EXIST, SUBSCRIPTION_GROUP_NOT_EXIST
        17 | 24 | 26 => Meaning::Missing,
        // REQUEST_CODE_NOT_SUPPORTED, MESSAGE_ILLEGAL, SUBSCRIPTION_PARSE_FAILED, INVALID_PARAMETER
        3 | 13 | 23 | 29 => Meaning::Refused,
        _ => Meaning::Unavailable,
    }
}

/// Waits for a request for at most `limit`. The client goes on with a request that is given up.
pub(crate) async fn bounded<T>(
    limit: Duration,
    call: impl Future<Output = ClientResult<T>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Fault::unavailable(format!("no answer within {limit:?}"))),
    }
}

/// Asks a server and gives its answer, whatever the code: the client's own methods for a receipt tell every failure as
/// the same, and lose what can't be read.
pub(crate) async fn exchange(
    rocketmq: &Rocketmq,
    address: &CheetahString,
    request: RemotingCommand,
    limit: Duration,
) -> Result<RemotingCommand, Fault> {
    let handle = rocketmq.lease()?;
    bounded(limit, handle.invoke_remoting(address, request, millis(limit))).await
}

/// Whether a request failed before anything of it was sent.
pub(crate) fn is_unsent(error: &ClientError) -> bool {
    phase(error).is_some_and(|phase| UNSENT.contains(&phase.as_str()))
}

/// How far a request got that failed, where the client says.
fn phase(error: &ClientError) -> Option<String> {
    let view = error.shared_error().diagnostic_view().ok()?;
    let field = view.fields().find(|field| field.name() == PHASE)?;
    Some(format!("{:?}", field.value()).trim_matches('"').to_owned())
}

/// A limit as the client spells it.
pub(crate) fn millis(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
}
