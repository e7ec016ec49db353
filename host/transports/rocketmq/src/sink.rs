//! A topic, written to.

use cheetah_string::CheetahString;
use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{BoxFuture, Depth, PublishError, Sink};
use rocketmq_model::common::message::message_client_id_setter::MessageClientIDSetter;
use rocketmq_protocol::protocol::header::message_operation_header::send_message_request_header_v2::SendMessageRequestHeaderV2;
use rocketmq_protocol::{RemotingCommand, RequestCode};

use crate::calls::{Fault, Meaning};
use crate::names::ID;
use crate::outgoing::{Wire, fit};
use crate::queues::{Queue, Queues};
use crate::{Kind, Rocketmq, SinkSpec, request};

/// Who sends; it matters to transactions alone.
const PRODUCER: &str = "pumphouse";

/// The broker stored the message, and did not flush or replicate it as its configuration asks. That is no
/// confirmation (C-9): the broker or its disk may be lost with it.
const FLUSH_DISK_TIMEOUT: i32 = 10;
const SLAVE_NOT_AVAILABLE: i32 = 11;
const FLUSH_SLAVE_TIMEOUT: i32 = 12;

/// One topic, written to.
pub(crate) struct TopicSink {
    /// As configured.
    name: String,
    /// As it is on the wire.
    topic: CheetahString,
    kind: Kind,
    rocketmq: Rocketmq,
    queues: Queues,
}

impl TopicSink {
    pub(crate) fn new(rocketmq: &Rocketmq, spec: &SinkSpec) -> Self {
        let topic = CheetahString::from(rocketmq.name(&spec.topic));
        Self {
            name: spec.topic.clone(),
            kind: spec.kind,
            rocketmq: rocketmq.clone(),
            queues: Queues::new(rocketmq, topic.clone()),
            topic,
        }
    }

    async fn send(&self, message: Outgoing) -> Result<String, PublishError> {
        let limit = self.rocketmq.timeouts.publish;
        let id = MessageClientIDSetter::create_uniq_id();
        let refused = |text: String| PublishError::Refused(self.name.clone(), text);
        let mut wire = fit(message, self.kind, &id).map_err(refused)?;
        wire.properties.push((ID.to_owned(), id.clone()));
        match tokio::time::timeout(limit, self.ask(wire)).await {
            Ok(Ok(())) => Ok(id),
            Ok(Err(fault)) => Err(self.error(fault)),
            Err(_) => {
                let fault = Fault::unavailable(format!("no confirmation within {limit:?}"));
                Err(self.error(fault))
            }
        }
    }

    async fn ask(&self, wire: Wire) -> Result<(), Fault> {
        let queue = match (self.kind, &wire.group) {
            (Kind::Fifo, Some(group)) => self.queues.of_group(group).await?,
            _ => self.queues.next().await?,
        };
        let guard = Unanswered { queues: &self.queues, queue: &queue, answered: false };
        let limit = self.rocketmq.timeouts.publish;
        let answer = match self.queues.reach(&queue).await {
            Ok(()) => {
                let request = self.request(wire, &queue);
                request::ask(&self.rocketmq, &queue.address, request, limit).await
            }
            Err(fault) => Err(fault),
        };
        guard.answered(answer.as_ref().err());
        answer.map(drop).map_err(unconfirmed)
    }

    fn request(&self, wire: Wire, queue: &Queue) -> RemotingCommand {
        let header = SendMessageRequestHeaderV2 {
            a: PRODUCER.into(),
            b: self.topic.clone(),
            // What a missing topic would be made after, which is missing then, too: a publish makes nothing (C-13).
            c: self.topic.clone(),
            d: 0,
            e: queue.number,
            f: 0,
            g: i64::try_from(self.rocketmq.clock.wall().0).unwrap_or(i64::MAX),
            h: 0,
            i: Some(wire.text().into()),
            j: Some(0),
            k: Some(false),
            l: None,
            m: Some(false),
            n: Some(queue.broker.clone()),
            topic_request_header: None,
        };
        let code = RequestCode::SendMessageV2;
        RemotingCommand::create_request_command(code, header).set_body(wire.body)
    }

    fn error(&self, fault: Fault) -> PublishError {
        let (topic, text) = (self.name.clone(), fault.text);
        match fault.meaning {
            Meaning::Unavailable | Meaning::Busy => PublishError::Unavailable(topic, text),
            Meaning::Missing => PublishError::Missing(topic, text),
            Meaning::Denied | Meaning::Refused => PublishError::Refused(topic, text),
        }
    }
}

/// A request to a broker in progress. Given up, it counts as failed.
struct Unanswered<'a> {
    queues: &'a Queues,
    queue: &'a Queue,
    answered: bool,
}

impl Unanswered<'_> {
    fn answered(mut self, fault: Option<&Fault>) {
        self.answered = true;
        match fault {
            None => self.queues.answered(self.queue),
            Some(fault) => self.queues.failed(self.queue, fault),
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.queues.failed(self.queue, &Fault::unavailable("no answer"));
        }
    }
}

fn unconfirmed(fault: Fault) -> Fault {
    let why = match fault.code {
        Some(FLUSH_DISK_TIMEOUT) => "not flushed to disk in time",
        Some(SLAVE_NOT_AVAILABLE) => "not replicated, for no replica is there",
        Some(FLUSH_SLAVE_TIMEOUT) => "not replicated in time",
        _ => return fault,
    };
    Fault { text: format!("it is at the broker, and {why}: {}", fault.text), ..fault }
}

impl Sink for TopicSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn publish(&self, message: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(self.send(message))
    }

    /// A topic has messages per group, and the copies no group of ours; the host's own rate stands in (S-7).
    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        Box::pin(std::future::ready(Ok(Depth::default())))
    }
}
