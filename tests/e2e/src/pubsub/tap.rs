//! Which messages were delivered through a proxy, and under which ids of acknowledgement.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse_test_brokers::grpc::GrpcProxy;

use super::requests::delivered;
use crate::wait::until_some;

/// One delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Delivered {
    ack_id: String,
    message_id: String,
}

/// Takes note of every delivery that passes a proxy. A rule for `Pull` or `StreamingPull` that is to hold must be made
/// before it.
#[derive(Debug, Clone, Default)]
pub struct Tap(Arc<Mutex<Vec<Delivered>>>);

impl Tap {
    /// Listens to what passes from now on.
    #[must_use]
    pub fn on(proxy: &GrpcProxy) -> Self {
        let tap = Self::default();
        for method in ["Pull", "StreamingPull"] {
            let notes = tap.clone();
            proxy.on(method).rewrite(move |_, answer| {
                notes.note(&answer);
                answer
            });
        }
        tap
    }

    fn note(&self, answer: &[u8]) {
        let new = delivered(answer).into_iter();
        let new = new.map(|(ack_id, message_id)| Delivered { ack_id, message_id });
        self.0.lock().expect("the notes").extend(new);
    }

    /// The ids of acknowledgement of a message's deliveries, in their order.
    #[must_use]
    pub fn ack_ids(&self, message_id: &str) -> Vec<String> {
        let notes = self.0.lock().expect("the notes");
        let ours = notes.iter().filter(|one| one.message_id == message_id);
        ours.map(|one| one.ack_id.clone()).collect()
    }

    /// The message that was delivered under this id of acknowledgement.
    #[must_use]
    pub fn message_id(&self, ack_id: &str) -> Option<String> {
        let notes = self.0.lock().expect("the notes");
        notes.iter().find(|one| one.ack_id == ack_id).map(|one| one.message_id.clone())
    }

    /// The newest id of acknowledgement of a message, once there is one.
    ///
    /// # Panics
    /// When it is not delivered in time.
    #[must_use]
    pub fn wait_for(&self, limit: Duration, message_id: &str) -> String {
        until_some(limit, "a delivery", || self.ack_ids(message_id).pop())
    }
}
