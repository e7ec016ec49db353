//! A subscription as Pub/Sub keeps it.

use std::time::{Duration, Instant};

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{PubsubMessage, ReceivedMessage};

/// A delivery: what, and the count that it said.
pub(crate) type Sent = (String, i32);

/// A call that was done, by the data of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Stream(String, i32, i64),
    Acknowledge(Vec<String>),
    Modify(Vec<String>, i32),
}

#[derive(Debug, Clone)]
enum State {
    /// May be sent from then on.
    Waits(Instant),
    Leased {
        ack_id: String,
        until: Instant,
    },
    Acknowledged,
}

#[derive(Debug)]
struct Entry {
    message: PubsubMessage,
    deliveries: i32,
    state: State,
}

impl Entry {
    fn data(&self) -> String {
        String::from_utf8_lossy(&self.message.data).into_owned()
    }

    fn is_done(&self) -> bool {
        matches!(self.state, State::Acknowledged)
    }
}

#[derive(Default)]
pub(crate) struct Model {
    entries: Vec<Entry>,
    next: u64,
    pub(crate) sent: Vec<Sent>,
    pub(crate) calls: Vec<Call>,
    /// Whether a new message of a key is sent although one before it is on its way back, as the emulator does.
    pub(crate) eager: bool,
}

impl Model {
    pub(crate) fn publish(&mut self, key: &str, data: &str) {
        self.next += 1;
        let message = PubsubMessage {
            data: data.as_bytes().to_vec().into(),
            message_id: format!("m{}", self.next),
            ordering_key: key.to_owned(),
            ..PubsubMessage::default()
        };
        let state = State::Waits(Instant::now());
        self.entries.push(Entry { message, deliveries: 0, state });
    }

    pub(crate) fn count(&self, data: &str) -> i32 {
        self.entries.iter().find(|entry| entry.data() == data).unwrap().deliveries
    }

    pub(crate) fn left(&self) -> Vec<String> {
        self.entries.iter().filter(|entry| !entry.is_done()).map(Entry::data).collect()
    }

    pub(crate) fn send_again(&mut self, data: &str) {
        let entry = self.entries.iter_mut().find(|entry| entry.data() == data).unwrap();
        entry.state = State::Waits(Instant::now());
    }

    fn data_of(&self, ack_ids: &[String]) -> Vec<String> {
        let data = |id: &String| {
            let number: usize = id.split('-').nth(1).unwrap().parse().unwrap();
            self.entries[number].data()
        };
        ack_ids.iter().map(data).collect()
    }

    fn leased(&self, id: &str) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| matches!(&entry.state, State::Leased { ack_id, .. } if ack_id == id))
    }

    pub(crate) fn acknowledge(&mut self, ack_ids: &[String]) {
        self.calls.push(Call::Acknowledge(self.data_of(ack_ids)));
        for id in ack_ids {
            // An id that is not current does nothing, as with the service.
            if let Some(at) = self.leased(id) {
                self.entries[at].state = State::Acknowledged;
            }
        }
    }

    pub(crate) fn modify(&mut self, ack_ids: &[String], seconds: i32, longer: bool) {
        self.calls.push(Call::Modify(self.data_of(ack_ids), seconds));
        let until = Instant::now() + Duration::from_secs(seconds.try_into().unwrap());
        for id in ack_ids {
            let Some(at) = self.leased(id) else { continue };
            match &mut self.entries[at].state {
                State::Leased { until: held, .. } if longer => *held = until,
                state => *state = State::Waits(until),
            }
        }
    }

    /// What can be sent now. What was sent behind one of its key that went back is sent again behind it.
    pub(crate) fn due(&mut self, lease: Duration) -> Vec<ReceivedMessage> {
        let now = Instant::now();
        for entry in &mut self.entries {
            if matches!(entry.state, State::Leased { until, .. } if until <= now) {
                entry.state = State::Waits(now);
            }
        }
        let mut due = Vec::new();
        for at in 0..self.entries.len() {
            let State::Waits(from) = self.entries[at].state else { continue };
            if from > now || self.is_behind(at, now) {
                continue;
            }
            due.push(self.send(at, now + lease));
            self.follow(at, now);
        }
        due
    }

    /// Whether one of its key before it is on its way back.
    fn is_behind(&self, at: usize, now: Instant) -> bool {
        let key = &self.entries[at].message.ordering_key;
        let before = self.entries[..at].iter();
        let eager = self.eager && self.entries[at].deliveries == 0;
        !key.is_empty()
            && !eager
            && before.filter(|entry| entry.message.ordering_key == *key).any(|entry| {
                entry.deliveries > 0 && matches!(entry.state, State::Waits(from) if from > now)
            })
    }

    fn follow(&mut self, at: usize, now: Instant) {
        let key = self.entries[at].message.ordering_key.clone();
        if key.is_empty() || self.entries[at].deliveries < 2 {
            return;
        }
        let after = self.entries[at + 1..].iter_mut();
        for entry in after.filter(|entry| entry.message.ordering_key == key && !entry.is_done()) {
            entry.state = State::Waits(now);
        }
    }

    fn send(&mut self, at: usize, until: Instant) -> ReceivedMessage {
        let entry = &mut self.entries[at];
        entry.deliveries += 1;
        let ack_id = format!("ack-{at}-{}", entry.deliveries);
        entry.state = State::Leased { ack_id: ack_id.clone(), until };
        self.sent.push((entry.data(), entry.deliveries));
        ReceivedMessage {
            ack_id,
            message: Some(entry.message.clone()),
            delivery_attempt: entry.deliveries,
        }
    }
}
