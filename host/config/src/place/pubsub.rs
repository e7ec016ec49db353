//! Subscriptions and topics of Google Pub/Sub.

use std::fmt;
use std::time::Duration;

use toml_span::value::Value;

use super::{Place, Role, required};
use crate::diagnostic::Code;
use crate::keys::Kind;
use crate::report::{At, Note};
use crate::section::Section;
use crate::units::Readable;
use crate::values::{Bad, text};
use crate::words::PubsubMode;

/// The shortest id of a topic or subscription, in characters.
const SHORTEST_ID: usize = 3;
/// The longest, in characters.
const LONGEST_ID: usize = 255;

/// A place on Google Pub/Sub: messages come from a subscription and go to a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PubsubPlace {
    /// A subscription that is read.
    Source(PubsubSource),
    /// A topic that is published to.
    Target(PubsubTarget),
}

/// A subscription that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PubsubSource {
    /// `subscription`.
    pub subscription: ResourceRef,
    /// `topic`, where it is said.
    pub topic: Option<ResourceRef>,
    /// `mode`.
    pub mode: PubsubMode,
    /// `ordered`.
    pub ordered: bool,
    /// `held`: the most messages that a stream holds beyond those in the handlers.
    pub held: u32,
    /// `retry`, the subscription's own retry policy; none where nothing is asked of it.
    pub retry: Option<Redelivery>,
}

/// A topic that is published to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PubsubTarget {
    /// `topic`.
    pub topic: ResourceRef,
    /// `subscription`: the one that keeps its messages; else that of the topic's id.
    pub subscription: Option<ResourceRef>,
}

/// How long Pub/Sub itself waits before it delivers a message again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redelivery {
    /// `min`.
    pub min: Duration,
    /// `max`.
    pub max: Duration,
}

/// A topic or subscription by id or by full name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRef {
    /// As it stands in the file.
    pub spelled: String,
    /// Its id.
    pub id: String,
    /// The project, where the spelling says it.
    pub project: Option<String>,
}

impl PubsubSource {
    /// What stands after the name where the place is shown.
    pub(super) fn fmt_rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(topic) = &self.topic {
            write!(f, " on topic {}", topic.spelled)?;
        }
        write!(f, " ({}{})", self.mode, if self.ordered { ", ordered" } else { "" })
    }
}

/// The subscription or the topic of a place; none where it is absent or wrong.
pub(super) fn read(section: &Section<'_>, role: Role) -> Option<Place> {
    let place = match role {
        Role::Source => PubsubPlace::Source(read_source(section)?),
        Role::Destination(_) => PubsubPlace::Target(read_target(section)?),
    };
    Some(Place::Pubsub(place))
}

fn read_source(section: &Section<'_>) -> Option<PubsubSource> {
    let name = required(section, "subscription", subscription);
    let mode = section.word("mode").unwrap_or(PubsubMode::Stream);
    if mode == PubsubMode::Pull && section.has("held") {
        let message = "`held` and `mode = \"pull\"` exclude each other: only a stream brings more than was asked for";
        section.error("held", At::Key, Note::new(Code::Contradiction, message));
    }
    let rest = PubsubSource {
        subscription: ResourceRef { spelled: String::new(), id: String::new(), project: None },
        topic: section.read("topic", topic),
        mode,
        ordered: section.flag("ordered"),
        held: section.count("held").unwrap_or_default(),
        retry: redelivery(&section.below("retry")),
    };
    Some(PubsubSource { subscription: name?, ..rest })
}

fn redelivery(section: &Section<'_>) -> Option<Redelivery> {
    let (min, max) = (section.duration("min"), section.duration("max"));
    if !section.is_present() {
        return None;
    }
    let (min, max) = (min?, max?);
    if min > max {
        let message = format!("min = {} is longer than max = {}", Readable(min), Readable(max));
        section.error("min", At::Value, Note::new(Code::Contradiction, message));
    }
    Some(Redelivery { min, max })
}

fn read_target(section: &Section<'_>) -> Option<PubsubTarget> {
    let name = required(section, "topic", topic);
    let beside = section.read("subscription", subscription);
    Some(PubsubTarget { topic: name?, subscription: beside })
}

/// A topic by id or full name.
pub(crate) fn topic(value: &Value<'_>, kind: &Kind) -> Result<ResourceRef, Bad> {
    resource(text(value, kind)?, "topics")
}

/// A subscription by id or full name.
fn subscription(value: &Value<'_>, kind: &Kind) -> Result<ResourceRef, Bad> {
    resource(text(value, kind)?, "subscriptions")
}

fn resource(spelled: String, collection: &str) -> Result<ResourceRef, Bad> {
    let parts: Vec<&str> = spelled.split('/').collect();
    let (project, id) = match parts.as_slice() {
        [id] => (None, *id),
        ["projects", project, which, id] if *which == collection && is_project(project) => {
            (Some((*project).to_owned()), *id)
        }
        _ => {
            return Err(Bad::value(format!(
                "{spelled:?} is neither an id nor a name of the form `projects/PROJECT/{collection}/ID`"
            )));
        }
    };
    let id = checked_id(id)?;
    Ok(ResourceRef { project, id, spelled })
}

fn checked_id(id: &str) -> Result<String, Bad> {
    let plain = id
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~' | '+' | '%'));
    let letter = id.starts_with(|c: char| c.is_ascii_alphabetic());
    if !(SHORTEST_ID..=LONGEST_ID).contains(&id.len()) || !plain || !letter {
        return Err(Bad::value(format!(
            "{id:?} is no id: {SHORTEST_ID} to {LONGEST_ID} letters, digits, `-`, `.`, `_`, `~`, `+` and `%`, a letter first"
        )));
    }
    if id.starts_with("goog") {
        return Err(Bad::value(format!(
            "{id:?} is no id: Google keeps those that begin with `goog`"
        )));
    }
    Ok(id.to_owned())
}

/// A project by its id.
pub(crate) fn project(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    let text = text(value, kind)?;
    if is_project(&text) {
        return Ok(text);
    }
    Err(Bad::value(format!("{text:?} is no project id")))
}

/// Lenient: emulators take more than Google does, and there are old ids with a domain before them.
fn is_project(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
    !text.is_empty() && text.len() <= LONGEST_ID && text.chars().all(plain)
}

/// A member of an IAM policy. An empty one is an error (C-16): it would be looked up in its place.
pub(crate) fn member(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    let text = text(value, kind)?;
    if text.chars().any(char::is_whitespace) {
        return Err(Bad::value(format!("{text:?} is no member: it holds a space")));
    }
    Ok(text)
}
