//! Queues of SQS and topics of SNS.

use toml_span::value::Value;

use super::Place;
use crate::diagnostic::Code;
use crate::keys::Kind;
use crate::report::{At, Note};
use crate::section::Section;
use crate::values::{Bad, text};
use crate::words::Envelope;

const FIFO: &str = ".fifo";
/// The longest name of an SQS queue, in characters.
const LONGEST_QUEUE: usize = 80;
/// The longest name of an SNS topic, in characters.
const LONGEST_TOPIC: usize = 256;

/// A queue of Amazon SQS, and what feeds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqsPlace {
    /// The queue.
    pub queue: QueueRef,
    /// The SNS topic that it is subscribed to. Only of a source.
    pub topic: Option<TopicRef>,
    /// What its bodies are. Only of a source; else raw.
    pub envelope: Envelope,
}

/// A queue by name, URL or ARN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRef {
    /// As it stands in the file.
    pub spelled: String,
    /// Its name, the `.fifo` of a FIFO queue included.
    pub name: String,
    /// The account, where the spelling says it.
    pub account: Option<String>,
    /// The region, where the spelling says it.
    pub region: Option<String>,
    /// The URL, where it is spelled so.
    pub url: Option<String>,
}

/// A topic by name or ARN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRef {
    /// As it stands in the file.
    pub spelled: String,
    /// Its name, the `.fifo` of a FIFO topic included.
    pub name: String,
    /// The ARN, where it is spelled so.
    pub arn: Option<String>,
}

impl QueueRef {
    /// Whether it is a FIFO queue.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        self.name.ends_with(FIFO)
    }
}

impl TopicRef {
    /// Whether it is a FIFO topic.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        self.name.ends_with(FIFO)
    }
}

/// The queue of a place on SQS; none where it is absent or wrong.
pub(crate) fn read(section: &Section<'_>) -> Option<Place> {
    let queue = super::required(section, "queue", sqs_queue);
    let topic = section.read("topic", sns_topic);
    let envelope = section.word("envelope").unwrap_or(Envelope::Raw);
    let queue = queue?;
    if let Some(topic) = topic.as_ref().filter(|topic| topic.is_fifo() != queue.is_fifo()) {
        let message = format!(
            "topic {} and queue {} must both be FIFO, ending in `.fifo`, or neither",
            topic.name, queue.name
        );
        section.error("topic", At::Value, Note::new(Code::Contradiction, message));
    }
    Some(Place::Sqs(SqsPlace { queue, topic, envelope }))
}

/// A queue as `sqs.queue` and the native policy spell it.
pub(crate) fn sqs_queue(value: &Value<'_>, kind: &Kind) -> Result<QueueRef, Bad> {
    let spelled = text(value, kind)?;
    let mut queue = if spelled.starts_with("arn:") {
        let (region, account, name) = arn(&spelled, "sqs")?;
        QueueRef { account, region, ..named(name) }
    } else if spelled.contains("://") {
        queue_url(&spelled)?
    } else {
        named(&spelled)
    };
    check_name(&queue.name, LONGEST_QUEUE)?;
    queue.spelled = spelled;
    Ok(queue)
}

fn named(name: &str) -> QueueRef {
    QueueRef {
        spelled: String::new(),
        name: name.to_owned(),
        account: None,
        region: None,
        url: None,
    }
}

fn sns_topic(value: &Value<'_>, kind: &Kind) -> Result<TopicRef, Bad> {
    let spelled = text(value, kind)?;
    let is_arn = spelled.starts_with("arn:");
    let name = if is_arn { arn(&spelled, "sns")?.2.to_owned() } else { spelled.clone() };
    check_name(&name, LONGEST_TOPIC)?;
    Ok(TopicRef { arn: is_arn.then(|| spelled.clone()), spelled, name })
}

/// Region, account and name of `arn:PARTITION:SERVICE:REGION:ACCOUNT:NAME`.
fn arn<'a>(
    spelled: &'a str,
    service: &str,
) -> Result<(Option<String>, Option<String>, &'a str), Bad> {
    let parts: Vec<&str> = spelled.split(':').collect();
    let known = |part: &str| (!part.is_empty()).then(|| part.to_owned());
    match parts.as_slice() {
        ["arn", _, which, region, account, name] if *which == service => {
            Ok((known(region), known(account), *name))
        }
        _ => Err(Bad::value(format!(
            "{spelled:?} is no ARN of the form `arn:aws:{service}:REGION:ACCOUNT:NAME`"
        ))),
    }
}

/// A URL of the form `https://HOST/ACCOUNT/NAME`.
fn queue_url(spelled: &str) -> Result<QueueRef, Bad> {
    let bad = || {
        Bad::value(format!("{spelled:?} is no queue URL of the form `https://HOST/ACCOUNT/NAME`"))
    };
    let rest = spelled.strip_prefix("https://").or_else(|| spelled.strip_prefix("http://"));
    let (host, path) = rest.and_then(|rest| rest.split_once('/')).ok_or_else(bad)?;
    let (before, name) = path.trim_end_matches('/').rsplit_once('/').ok_or_else(bad)?;
    if host.is_empty() || host.contains('@') {
        return Err(bad());
    }
    let account = before.rsplit('/').next().unwrap_or_default();
    let digits = !account.is_empty() && account.chars().all(|c| c.is_ascii_digit());
    Ok(QueueRef {
        account: digits.then(|| account.to_owned()),
        region: region_of(host),
        url: Some(spelled.trim_end_matches('/').to_owned()),
        ..named(name)
    })
}

/// The region that AWS puts into the host: `sqs.REGION.amazonaws.com`, `REGION.queue.amazonaws.com`.
fn region_of(host: &str) -> Option<String> {
    let labels: Vec<&str> = host.split('.').collect();
    match labels.as_slice() {
        ["sqs" | "sqs-fips", region, "amazonaws", ..] | [region, "queue", "amazonaws", ..] => {
            Some((*region).to_owned())
        }
        _ => None,
    }
}

fn check_name(name: &str, longest: usize) -> Result<(), Bad> {
    let base = name.strip_suffix(FIFO).unwrap_or(name);
    let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if base.is_empty() || name.len() > longest || base.contains(odd) {
        return Err(Bad::value(format!(
            "{name:?} is no name: letters, digits, `-` and `_`, at most {longest}, `.fifo` at the end where it is FIFO"
        )));
    }
    Ok(())
}
