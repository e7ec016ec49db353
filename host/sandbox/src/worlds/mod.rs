//! The worlds of others: components that were built for another host run here through an adapter.

pub(crate) mod messaging;
pub(crate) mod spin_sqs;

use std::fmt;

use pumphouse_contract::Outcome;

use crate::guest::Guest;
use crate::journal::Stream;

/// A world that a component may be written for, known by what it exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum World {
    /// `pumphouse:handler`.
    Handler,
    /// `wasi:messaging`.
    Messaging,
    /// Spin's trigger for SQS.
    SpinSqs,
}

impl World {
    pub(crate) const ALL: [Self; 3] = [Self::Handler, Self::Messaging, Self::SpinSqs];

    /// What a component of this world exports, without the version.
    pub(crate) fn export(self) -> &'static str {
        match self {
            Self::Handler => "pumphouse:handler/incoming-handler",
            Self::Messaging => "wasi:messaging/incoming-handler",
            Self::SpinSqs => "handle-queue-message",
        }
    }

    /// The version of the export that this host speaks; none where the export has none.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Handler => crate::fit::SPOKEN,
            Self::Messaging => "0.2.0-draft",
            Self::SpinSqs => "",
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handler => "pumphouse:handler",
            Self::Messaging => "wasi:messaging",
            Self::SpinSqs => "fermyon:spin-sqs",
        })
    }
}

/// An error that a guest answered with. It says nothing of whether the message can be handled later, so it is
/// deferred, until the subscription's budget ends that. The text stands with what the guest printed.
fn failed(guest: &Guest, error: &dyn fmt::Display) -> Outcome {
    guest
        .journal
        .print(Stream::Err, format!("the handler answered with an error: {error}\n").as_bytes());
    Outcome::Defer(None)
}
