//! How the configuration names a queue or a topic.

/// The bare name of a queue that is given by name, URL or ARN, so that its spellings can be compared.
#[must_use]
pub fn queue_name(spelling: &str) -> &str {
    if spelling.starts_with("arn:") {
        return spelling.rsplit(':').next().unwrap_or(spelling);
    }
    spelling.trim_end_matches('/').rsplit('/').next().unwrap_or(spelling)
}

/// A queue as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueueName {
    Name(String),
    Url(String),
    Arn { region: String, account: String, name: String },
}

impl QueueName {
    /// # Errors
    /// Says why the text names no queue.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let name = queue_name(text).to_owned();
        check_name("queue", &name, 80)?;
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self::Url(text.to_owned()));
        }
        if !text.starts_with("arn:") {
            return if text == name {
                Ok(Self::Name(name))
            } else {
                Err(format!("{text} is no queue name, URL or ARN"))
            };
        }
        let (region, account) = arn_parts(text, "sqs")?;
        Ok(Self::Arn { region, account, name })
    }

    pub(crate) fn bare(&self) -> &str {
        match self {
            Self::Name(name) | Self::Arn { name, .. } => name,
            Self::Url(url) => queue_name(url),
        }
    }

    pub(crate) fn is_fifo(&self) -> bool {
        is_fifo(self.bare())
    }
}

/// A topic as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TopicName {
    Name(String),
    Arn(String),
}

impl TopicName {
    /// # Errors
    /// Says why the text names no topic.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        check_name("topic", queue_name(text), 256)?;
        if text.starts_with("arn:") {
            return arn_parts(text, "sns").map(|_| Self::Arn(text.to_owned()));
        }
        if text.contains('/') {
            return Err(format!("{text} is no topic name or ARN"));
        }
        Ok(Self::Name(text.to_owned()))
    }

    pub(crate) fn is_fifo(&self) -> bool {
        let (Self::Name(text) | Self::Arn(text)) = self;
        is_fifo(text)
    }
}

fn is_fifo(name: &str) -> bool {
    name.ends_with(".fifo")
}

fn check_name(what: &str, name: &str, longest: usize) -> Result<(), String> {
    let stem = name.strip_suffix(".fifo").unwrap_or(name);
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !stem.is_empty() && name.len() <= longest && stem.chars().all(allowed) {
        return Ok(());
    }
    Err(format!(
        "{what} name {name:?} is not allowed: use 1 to {longest} letters, digits, - and _, and .fifo at the end"
    ))
}

/// Region and account of `arn:PARTITION:SERVICE:REGION:ACCOUNT:NAME`.
fn arn_parts(arn: &str, service: &str) -> Result<(String, String), String> {
    let parts: Vec<&str> = arn.split(':').collect();
    match parts.as_slice() {
        [_, _, found, region, account, _] if *found == service => {
            Ok(((*region).to_owned(), (*account).to_owned()))
        }
        _ => Err(format!("{arn} is no ARN of {service}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_queue_has_one_bare_name() {
        for spelling in [
            "orders.fifo",
            "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo",
            "http://127.0.0.1:9324/000000000000/orders.fifo/",
            "arn:aws:sqs:eu-west-1:123456789012:orders.fifo",
        ] {
            assert_eq!(queue_name(spelling), "orders.fifo");
            let name = QueueName::parse(spelling).expect(spelling);
            assert_eq!(name.bare(), "orders.fifo");
            assert!(name.is_fifo());
        }
    }

    #[test]
    fn what_is_no_queue_is_refused_by_name() {
        for wrong in ["", "a b", "über", "folder/orders", "arn:aws:sns:r:1:orders", "arn:orders"] {
            assert!(QueueName::parse(wrong).is_err(), "{wrong}");
        }
        assert!(QueueName::parse(&"q".repeat(81)).is_err());
    }

    #[test]
    fn a_topic_has_a_name_or_an_arn() {
        let arn = "arn:aws:sns:eu-west-1:123456789012:orders.fifo";
        assert_eq!(TopicName::parse(arn), Ok(TopicName::Arn(arn.to_owned())));
        assert!(TopicName::parse(arn).is_ok_and(|topic| topic.is_fifo()));
        assert_eq!(TopicName::parse("orders"), Ok(TopicName::Name("orders".into())));
        for wrong in ["", "arn:aws:sqs:r:1:orders", "https://x/orders"] {
            assert!(TopicName::parse(wrong).is_err(), "{wrong}");
        }
    }
}
