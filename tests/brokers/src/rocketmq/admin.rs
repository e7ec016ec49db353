use serde_json::json;

use super::RocketMq;
use crate::Error;
use crate::remoting::{Answer, call, code};

/// Readable and writable.
const READ_WRITE: &str = "6";

/// What a topic takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicKind {
    /// Messages without order.
    Normal,
    /// Messages in the order of their group.
    Fifo,
    /// Messages that wait for a time before they are given.
    Delay,
}

impl TopicKind {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "NORMAL",
            Self::Fifo => "FIFO",
            Self::Delay => "DELAY",
        }
    }
}

impl RocketMq {
    /// Makes a topic with this many queues on every broker; changes it if it is there. With a
    /// login the Java client does, which takes a second.
    ///
    /// # Errors
    /// When a broker does not answer or refuses.
    pub async fn create_topic(
        &self,
        name: &str,
        queues: u32,
        kind: TopicKind,
    ) -> Result<(), Error> {
        if self.login.is_some() {
            let input = json!({
                "do": "topic", "topic": name, "queues": queues, "kind": kind.name(),
                "brokers": self.brokers(),
            });
            return self.java_client().manage(input).await;
        }
        let (queues, attributes) = (queues.to_string(), format!("+message.type={}", kind.name()));
        let fields = [
            ("topic", name),
            ("defaultTopic", "TBW102"),
            ("readQueueNums", &queues),
            ("writeQueueNums", &queues),
            ("perm", READ_WRITE),
            ("topicFilterType", "SINGLE_TAG"),
            ("topicSysFlag", "0"),
            ("order", "false"),
            ("attributes", &attributes),
        ];
        self.tell(code::UPDATE_AND_CREATE_TOPIC, &fields, &[]).await
    }

    /// Makes a consumer group on every broker, one that gives messages in order or not; changes
    /// it if it is there. With a login the Java client does, which takes a second.
    ///
    /// # Errors
    /// When a broker does not answer or refuses.
    pub async fn create_group(&self, name: &str, in_order: bool) -> Result<(), Error> {
        if self.login.is_some() {
            let brokers = self.brokers();
            let input =
                json!({ "do": "group", "group": name, "inOrder": in_order, "brokers": brokers });
            return self.java_client().manage(input).await;
        }
        let group = json!({
            "groupName": name, "consumeEnable": true, "consumeMessageOrderly": in_order,
        });
        let group = group.to_string();
        self.tell(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, &[], group.as_bytes()).await
    }

    async fn tell(&self, code: i32, fields: &[(&str, &str)], body: &[u8]) -> Result<(), Error> {
        for broker in self.brokers() {
            let answer = call(&broker, code, fields, body).await?;
            refused(&broker, &answer)?;
        }
        Ok(())
    }
}

fn refused(broker: &str, answer: &Answer) -> Result<(), Error> {
    if answer.code == code::SUCCESS {
        return Ok(());
    }
    let remark = answer.remark.as_deref().unwrap_or("without a reason");
    let detail = format!("refused with code {}, {remark}", answer.code);
    Err(Error::Call { endpoint: broker.to_owned(), detail })
}
