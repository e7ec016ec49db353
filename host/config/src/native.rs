//! `native`: the broker's own dead-letter policy, in the words of the source's transport (C-15).

use crate::diagnostic::Code;
use crate::place::{self, Place, PubsubPlace, PubsubTarget, SqsPlace};
use crate::report::{At, Note};
use crate::section::Section;
use crate::types::Native;
use crate::words::Envelope;

/// The keys of one transport.
struct Keys {
    transport: &'static str,
    limit: &'static str,
    dead_letter: &'static str,
}

const SQS: Keys = Keys { transport: "sqs", limit: "max_receive_count", dead_letter: "queue" };
const PUBSUB: Keys =
    Keys { transport: "pubsub", limit: "max_delivery_attempts", dead_letter: "topic" };
/// Keys that SQS has nothing for.
const PUBSUB_ALONE: [&str; 2] = ["publisher_member", "subscriber_member"];

/// The policy of a source; none where it is absent or wrong.
pub(crate) fn read(section: &Section<'_>, source: Option<&Place>) -> Option<Native> {
    if !section.is_present() {
        return None;
    }
    let read = Both::read(section);
    match source {
        Some(Place::Sqs(_)) => {
            foreign(section, &PUBSUB, &SQS);
            let limit = limit(section, (&SQS, &PUBSUB), read.sqs.limit)?;
            Some(Native { limit, ..read.sqs.native() })
        }
        Some(Place::Pubsub(_)) => {
            foreign(section, &SQS, &PUBSUB);
            let limit = limit(section, (&PUBSUB, &SQS), read.pubsub.limit)?;
            let (publisher_member, subscriber_member) = read.members;
            Some(Native { limit, publisher_member, subscriber_member, ..read.pubsub.native() })
        }
        // Refused as a whole: these brokers have no such policy.
        Some(Place::Embedded { .. } | Place::Rocketmq(_)) => Some(read.sqs.native()),
        None => None,
    }
}

/// What is written in the words of one transport.
struct One {
    limit: Option<u32>,
    dead_letter: Option<Place>,
}

impl One {
    fn native(self) -> Native {
        Native {
            limit: self.limit.unwrap_or_default(),
            dead_letter: self.dead_letter,
            publisher_member: None,
            subscriber_member: None,
        }
    }
}

/// Everything that is written, so that every finding is there, whatever the source is.
struct Both {
    sqs: One,
    pubsub: One,
    members: (Option<String>, Option<String>),
}

impl Both {
    fn read(section: &Section<'_>) -> Self {
        let to = section.below("dead_letter");
        let queue = to.read(SQS.dead_letter, place::sqs_queue);
        let topic = to.read(PUBSUB.dead_letter, place::topic);
        let member = |name| section.read(name, place::member);
        Self {
            sqs: One {
                limit: section.count(SQS.limit),
                dead_letter: queue.map(|queue| {
                    Place::Sqs(SqsPlace { queue, topic: None, envelope: Envelope::Raw })
                }),
            },
            pubsub: One {
                limit: section.count(PUBSUB.limit),
                dead_letter: topic.map(|topic| {
                    Place::Pubsub(PubsubPlace::Target(PubsubTarget { topic, subscription: None }))
                }),
            },
            members: (member("publisher_member"), member("subscriber_member")),
        }
    }
}

/// The limit must be there. Written in the words of the other transport it is a mistake of its own.
fn limit(section: &Section<'_>, (ours, theirs): (&Keys, &Keys), limit: Option<u32>) -> Option<u32> {
    if !section.has(ours.limit) && !section.has(theirs.limit) {
        let message = format!(
            "`{}` is missing: a native policy moves a message after so many deliveries",
            ours.limit
        );
        section.error(ours.limit, At::Key, Note::new(Code::Missing, message));
    }
    limit
}

/// Reports what another transport calls so.
fn foreign(section: &Section<'_>, theirs: &Keys, ours: &Keys) {
    let to = section.below("dead_letter");
    let swapped = |section: &Section<'_>, key: &str, right: &str| {
        if section.has(key) {
            let message = format!(
                "`{key}` is a key of `{}` alone; a source on `{}` has `{right}` in its place",
                theirs.transport, ours.transport
            );
            section.error(key, At::Key, Note::new(Code::UnknownKey, message).nearest(Some(right)));
        }
    };
    swapped(section, theirs.limit, ours.limit);
    swapped(&to, theirs.dead_letter, ours.dead_letter);
    if theirs.transport != PUBSUB.transport {
        return;
    }
    for key in PUBSUB_ALONE.into_iter().filter(|key| section.has(key)) {
        let message =
            format!("`{key}` is a key of `pubsub` alone; `{}` has no such key", ours.transport);
        section.error(key, At::Key, Note::new(Code::UnknownKey, message));
    }
}
