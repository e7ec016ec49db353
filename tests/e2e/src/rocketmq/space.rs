//! What one test has on a RocketMQ.

use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pumphouse_test_brokers::RocketMq;
use pumphouse_test_brokers::remoting::{Answer, call, code};
use rand::RngExt;
use serde_json::{Value, json};

use super::message::{ID, Message, Stored, decoded, message};
use super::{READER, rocketmq};
use crate::scene::Scene;
use crate::servers::{block_on, unique};
use crate::wait::{LONG, poll, until};

/// How many queues a topic has on each broker where nobody says otherwise.
pub const QUEUES: u32 = 8;
/// The most messages of one answer.
const BATCH: &str = "32";

/// The answer: no message at that offset, or none any more.
const OFFSET_MOVED: i32 = 21;
/// The answer: a group has read nothing of a queue.
const NOT_FOUND: i32 = 22;
const GET_MAX_OFFSET: i32 = 30;

/// What must not be given again, and since when.
static SETTLED: Mutex<Vec<(Space, String, bool, Instant)>> = Mutex::new(Vec::new());

/// Where a RocketMQ is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Where {
    /// `127.0.0.1:PORT` of the name server.
    pub namesrv: String,
    /// `127.0.0.1:PORT` of every broker.
    pub brokers: Vec<String>,
}

impl Where {
    /// Of this one.
    #[must_use]
    pub fn of(server: &RocketMq) -> Self {
        Self { namesrv: server.namesrv(), brokers: server.brokers() }
    }

    fn ask(&self, broker: usize, code: i32, fields: &[(&str, &str)], body: &[u8]) -> Answer {
        block_on(call(&self.brokers[broker], code, fields, body)).expect("an answer")
    }
}

/// The topics and groups of one test: their names begin with one that no other test has, which `{space}-` stands for
/// in a configuration.
#[derive(Debug, Clone)]
pub struct Space {
    place: Where,
    prefix: String,
}

impl Space {
    /// On the RocketMQ that many tests share.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::at(&rocketmq(), name)
    }

    /// On this one.
    #[must_use]
    pub fn at(place: &Where, name: &str) -> Self {
        Self { place: place.clone(), prefix: unique(name) + "-" }
    }

    /// On this one, with names as they are.
    #[must_use]
    pub fn bare(place: &Where) -> Self {
        Self { place: place.clone(), prefix: String::new() }
    }

    /// What is in a namespace of this one, with names as they are.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Self {
        Self { place: self.place.clone(), prefix: format!("{namespace}%") }
    }

    /// A topic or a group by its whole name.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Where {
        &self.place
    }

    /// A scene whose hosts find RocketMQ at this name server: its own, or a proxy's. They make what is missing.
    ///
    /// # Panics
    /// When there is no room for it.
    #[must_use]
    pub fn scene(&self, namesrv: &str, host: &str, text: &str) -> Scene {
        Scene::with_host(host, &self.text(namesrv, "create", text))
    }

    /// The text of such a scene, under this way to provision.
    #[must_use]
    pub fn text(&self, namesrv: &str, provision: &str, text: &str) -> String {
        let table =
            format!("[rocketmq]\nname_servers = [\"{namesrv}\"]\nprovision = \"{provision}\"\n\n");
        table + &text.replace("{space}-", &self.prefix)
    }

    /// Makes a topic with eight queues, and a consumer group `<topic>-work`, on every broker.
    ///
    /// # Panics
    /// When a broker refuses.
    pub fn create(&self, topic: &str, ordered: bool) {
        (0..self.place.brokers.len()).for_each(|broker| self.create_on(broker, topic, ordered));
    }

    /// The same on one broker alone.
    ///
    /// # Panics
    /// When it refuses.
    pub fn create_on(&self, broker: usize, topic: &str, ordered: bool) {
        let kind = if ordered { "FIFO" } else { "NORMAL" };
        let (name, queues) = (self.name(topic), QUEUES.to_string());
        let attributes = format!("+message.type={kind}");
        let fields = [
            ("topic", name.as_str()),
            ("defaultTopic", "TBW102"),
            ("readQueueNums", &queues),
            ("writeQueueNums", &queues),
            ("perm", "6"),
            ("topicFilterType", "SINGLE_TAG"),
            ("topicSysFlag", "0"),
            ("order", "false"),
            ("attributes", &attributes),
        ];
        self.tell(broker, code::UPDATE_AND_CREATE_TOPIC, &fields, &[]);
        let group = json!({
            "groupName": self.name(&format!("{topic}-work")),
            "consumeEnable": true,
            "consumeMessageOrderly": ordered,
        });
        let group = group.to_string();
        self.tell(broker, code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, &[], group.as_bytes());
    }

    fn tell(&self, broker: usize, code: i32, fields: &[(&str, &str)], body: &[u8]) {
        let answer = self.place.ask(broker, code, fields, body);
        assert_eq!(answer.code, code::SUCCESS, "{answer:?}");
    }

    /// Whether a topic is there.
    #[must_use]
    pub fn has_topic(&self, name: &str) -> bool {
        self.settings(name).code == code::SUCCESS
    }

    /// The settings of a topic, as the broker writes them.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn topic(&self, name: &str) -> String {
        let answer = self.settings(name);
        assert_eq!(answer.code, code::SUCCESS, "{name}: {answer:?}");
        String::from_utf8_lossy(&answer.body).into_owned()
    }

    fn settings(&self, name: &str) -> Answer {
        let topic = self.name(name);
        self.place.ask(0, code::GET_TOPIC_CONFIG, &[("topic", topic.as_str())], &[])
    }

    /// Sends a body without a group; its id.
    ///
    /// # Panics
    /// When the broker refuses.
    #[must_use]
    pub fn send(&self, topic: &str, body: &Value) -> String {
        self.send_message(topic, message(body))
    }

    /// Sends bodies without a group, one after the other; their ids.
    ///
    /// # Panics
    /// When the broker refuses one.
    #[must_use]
    pub fn send_all(&self, topic: &str, bodies: &[Value]) -> Vec<String> {
        bodies.iter().map(|body| self.send(topic, body)).collect()
    }

    /// Sends bodies of one message group, one after the other; their ids.
    ///
    /// # Panics
    /// When the broker refuses one.
    #[must_use]
    pub fn send_group(&self, topic: &str, group: &str, bodies: &[Value]) -> Vec<String> {
        bodies.iter().map(|body| self.send_message(topic, message(body).of(group))).collect()
    }

    /// Sends a message, to the queue that the Java client would choose; its id.
    ///
    /// # Panics
    /// When the broker refuses.
    #[must_use]
    pub fn send_message(&self, topic: &str, message: Message) -> String {
        let brokers = u32::try_from(self.place.brokers.len()).expect("few brokers");
        let (broker, queue) = match message.queue(QUEUES * brokers) {
            Some(queue) => (queue / QUEUES, (queue % QUEUES).to_string()),
            None => (rand::random_range(0..brokers), "-1".to_owned()),
        };
        self.send_to(broker as usize, &queue, topic, message)
    }

    /// Sends a message without a group to this broker; its id.
    ///
    /// # Panics
    /// When the broker refuses.
    #[must_use]
    pub fn send_by(&self, broker: usize, topic: &str, body: &Value) -> String {
        self.send_to(broker, "-1", topic, message(body))
    }

    fn send_to(&self, broker: usize, queue: &str, topic: &str, message: Message) -> String {
        let id = format!("{:032X}", rand::rng().random::<u128>());
        let message =
            if message.properties.contains_key(ID) { message } else { message.with(ID, &id) };
        let (topic, properties) = (self.name(topic), message.packed_properties());
        let (now, flags) = (now(), message.flags.to_string());
        let fields = [
            ("producerGroup", "another-program"),
            ("topic", topic.as_str()),
            ("defaultTopic", "TBW102"),
            ("defaultTopicQueueNums", "4"),
            ("queueId", queue),
            ("sysFlag", flags.as_str()),
            ("bornTimestamp", now.as_str()),
            ("flag", "0"),
            ("properties", properties.as_str()),
            ("reconsumeTimes", "0"),
            ("unitMode", "false"),
            ("batch", "false"),
        ];
        // A broker on a busy machine asks for patience.
        let answer = poll(LONG, Duration::from_millis(200), || {
            let answer = self.place.ask(broker, code::SEND_MESSAGE, &fields, &message.body);
            (answer.code != code::SYSTEM_BUSY).then_some(answer)
        });
        let answer = answer.expect("a broker that is not busy for ever");
        assert_eq!(answer.code, code::SUCCESS, "{topic}: {answer:?}");
        message.properties[ID].clone()
    }

    /// All messages that were ever put into a topic, taken or not; none where there is no such topic.
    ///
    /// # Panics
    /// When the broker refuses.
    #[must_use]
    pub fn stored(&self, topic: &str) -> Vec<Stored> {
        let topic = self.name(topic);
        let brokers = 0..self.place.brokers.len();
        let queues = brokers.flat_map(|broker| (0..QUEUES).map(move |queue| (broker, queue)));
        queues.flat_map(|(broker, queue)| self.queue(broker, &topic, queue)).collect()
    }

    fn queue(&self, broker: usize, topic: &str, queue: u32) -> Vec<Stored> {
        let (queue, mut from, mut found) = (queue.to_string(), "0".to_owned(), Vec::new());
        loop {
            let fields = [
                ("consumerGroup", READER),
                ("topic", topic),
                ("queueId", &queue),
                ("queueOffset", &from),
                ("maxMsgNums", BATCH),
                ("sysFlag", "4"),
                ("commitOffset", "0"),
                ("suspendTimeoutMillis", "0"),
                ("subscription", "*"),
                ("subVersion", "0"),
                ("expressionType", "TAG"),
            ];
            let answer = self.place.ask(broker, code::PULL_MESSAGE, &fields, &[]);
            match answer.code {
                code::SUCCESS => found.extend(decoded(&answer.body)),
                code::PULL_NOT_FOUND | OFFSET_MOVED | code::TOPIC_NOT_EXIST => return found,
                _ => panic!("{topic}, queue {queue}: {answer:?}"),
            }
            from = answer.fields["nextBeginOffset"].clone();
        }
    }

    /// The messages that came to a topic, once so many did.
    ///
    /// # Panics
    /// When there are not exactly that many in time.
    #[must_use]
    pub fn copies(&self, limit: Duration, topic: &str, wanted: usize) -> Vec<Stored> {
        let mut found = Vec::new();
        let came = poll(limit, Duration::from_millis(200), || {
            found = self.stored(topic);
            (found.len() >= wanted).then_some(())
        });
        assert!(came.is_some(), "{topic} has {} of {wanted}: {found:#?}", found.len());
        assert_eq!(found.len(), wanted, "{topic}: {found:#?}");
        found
    }

    /// How far a group has settled a queue, and how far the queue goes. The group has done with it where they are
    /// the same.
    fn progress(&self, broker: usize, group: &str, topic: &str, queue: u32) -> (u64, u64) {
        let queue = queue.to_string();
        let fields = [("consumerGroup", group), ("topic", topic), ("queueId", queue.as_str())];
        let number = |answer: &Answer| {
            answer.fields.get("offset").and_then(|text| text.parse().ok()).unwrap_or_default()
        };
        let settled = self.place.ask(broker, code::QUERY_CONSUMER_OFFSET, &fields, &[]);
        assert!([code::SUCCESS, NOT_FOUND].contains(&settled.code), "{topic}: {settled:?}");
        let end = self.place.ask(broker, GET_MAX_OFFSET, &fields[1..], &[]);
        (number(&settled), number(&end))
    }

    /// The queues of a topic, those of its redeliveries included, that a group has not done with.
    #[must_use]
    pub fn unsettled(&self, topic: &str, group: &str) -> Vec<String> {
        let (topic, group) = (self.name(topic), self.name(group));
        let again = format!("%RETRY%{group}_{topic}");
        let mut open = Vec::new();
        for broker in 0..self.place.brokers.len() {
            let own = (0..QUEUES).map(|queue| (topic.as_str(), queue));
            for (topic, queue) in own.chain([(again.as_str(), 0)]) {
                let (settled, end) = self.progress(broker, &group, topic, queue);
                if settled < end {
                    open.push(format!(
                        "broker {broker}, {topic}, queue {queue}: {settled} of {end}"
                    ));
                }
            }
        }
        open
    }

    /// Asserts that the group `<topic>-work` has acknowledged all of a topic. To be asked when nobody reads it. That
    /// nothing of it comes again when its lease is over is looked at when all tests have ended ([`came_again`]).
    ///
    /// # Panics
    /// When something is left.
    pub fn assert_settled(&self, topic: &str, ordered: bool) {
        let group = format!("{topic}-work");
        let mut open = Vec::new();
        // A broker writes down what was acknowledged in its own time: once it had not within half a minute.
        let settled = poll(LONG * 4, Duration::from_millis(200), || {
            open = self.unsettled(topic, &group);
            open.is_empty().then_some(())
        });
        assert!(settled.is_some(), "{} is not settled: {open:#?}", self.name(topic));
        if self.place == rocketmq() {
            let note = (self.clone(), topic.to_owned(), ordered, Instant::now());
            SETTLED.lock().expect("the list").push(note);
        }
    }

    /// What the group `<topic>-work` is given now, without waiting. It is leased, not removed.
    ///
    /// # Panics
    /// When a broker refuses.
    #[must_use]
    pub fn visible(&self, topic: &str, ordered: bool) -> Vec<Stored> {
        let mut found = Vec::new();
        for broker in 0..self.place.brokers.len() {
            loop {
                let some = self.pop(broker, topic, ordered);
                if some.is_empty() {
                    break;
                }
                found.extend(some);
            }
        }
        found
    }

    /// Waits until so many messages were given.
    ///
    /// # Panics
    /// When there are not that many in time.
    #[must_use]
    pub fn visible_within(
        &self,
        limit: Duration,
        topic: &str,
        ordered: bool,
        wanted: usize,
    ) -> Vec<Stored> {
        let mut found = Vec::new();
        until(limit, &format!("{wanted} messages of {topic}"), || {
            found.extend(self.visible(topic, ordered));
            found.len() >= wanted
        });
        found
    }

    fn pop(&self, broker: usize, topic: &str, ordered: bool) -> Vec<Stored> {
        let (group, topic) = (self.name(&format!("{topic}-work")), self.name(topic));
        let now = now();
        let fields = [
            ("consumerGroup", group.as_str()),
            ("topic", topic.as_str()),
            ("queueId", "-1"),
            ("maxMsgNums", BATCH),
            ("invisibleTime", "300000"),
            ("pollTime", "0"),
            ("bornTime", now.as_str()),
            ("initMode", "0"),
            ("expType", "TAG"),
            ("exp", "*"),
            ("order", if ordered { "true" } else { "false" }),
            ("attemptId", now.as_str()),
        ];
        let answer = self.place.ask(broker, code::POP_MESSAGE, &fields, &[]);
        match answer.code {
            code::SUCCESS => decoded(&answer.body),
            code::POLLING_TIMEOUT | code::PULL_NOT_FOUND => Vec::new(),
            _ => panic!("{topic}: {answer:?}"),
        }
    }
}

/// What is given again of topics that were found settled, once so long has passed since. Nothing should be.
///
/// # Panics
/// When a broker refuses.
#[must_use]
pub fn came_again(lease: Duration) -> Vec<(String, Stored)> {
    let settled = std::mem::take(&mut *SETTLED.lock().expect("the list"));
    let Some(last) = settled.iter().map(|(.., since)| *since).max() else { return Vec::new() };
    sleep((last + lease).saturating_duration_since(Instant::now()));
    let each = settled.iter().flat_map(|(space, topic, ordered, _)| {
        let again = space.visible(topic, *ordered).into_iter();
        again.map(|one| (space.name(topic), one))
    });
    each.collect()
}

fn now() -> String {
    jiff::Timestamp::now().as_millisecond().to_string()
}
