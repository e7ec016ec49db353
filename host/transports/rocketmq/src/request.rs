//! One request to one broker, spelled by ourselves: the client's own calls keep the broker's words to themselves.

use std::time::Duration;

use cheetah_string::CheetahString;
use rocketmq_protocol::RemotingCommand;

use crate::Rocketmq;
use crate::calls::{Fault, bounded, meaning, millis};

const SUCCESS: i32 = 0;

/// Asks a broker, `host:port`. Any answer but success is a fault, with the broker's code and words.
pub(crate) async fn ask(
    rocketmq: &Rocketmq,
    broker: &CheetahString,
    request: RemotingCommand,
    limit: Duration,
) -> Result<RemotingCommand, Fault> {
    let handle = rocketmq.lease()?;
    let call = handle.invoke_remoting(broker, request, millis(limit));
    let answer = bounded(limit, call).await?;
    match answer.code() {
        SUCCESS => Ok(answer),
        code => Err(fault(code, answer.remark().map(CheetahString::as_str))),
    }
}

fn fault(code: i32, remark: Option<&str>) -> Fault {
    let text = match remark.map(str::trim).filter(|remark| !remark.is_empty()) {
        Some(remark) => format!("code {code}, {remark}"),
        None => format!("code {code}"),
    };
    Fault { meaning: meaning(code), text, code: Some(code) }
}
