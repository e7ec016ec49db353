//! Secrets: values that a handler may read and nobody else.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use pumphouse_contract::{Fault, Outcome, Rejection};

pub(crate) use bindings::pumphouse::secrets::store;

#[allow(missing_docs, unreachable_pub, reason = "generated")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "pumphouse:secrets/client",
        imports: { default: trappable },
    });
}

/// A text that is not shown: neither `Debug` nor `Display` has it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Arc<str>);

impl SecretText {
    /// Takes a value.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value, for whoever has a right to it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A value shorter than this, in bytes, is not looked for: half of all lines would have it by chance.
const SHORTEST: usize = 8;

/// Takes secrets out of what the host writes on a guest's behalf.
///
/// A secret is found where it stands as it is. Of one with several lines each line is looked for, since text is
/// written line by line.
#[derive(Default)]
pub(crate) struct Redactor {
    /// What is looked for, the longest first, and what takes its place.
    hidden: Vec<(SecretText, String)>,
    /// The names of those that can't be looked for.
    too_short: Vec<String>,
}

impl Redactor {
    /// Of values by name.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut redactor = Self::default();
        for (name, value) in values {
            let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
            let (long, short): (Vec<_>, Vec<_>) = lines.partition(|line| line.len() >= SHORTEST);
            if !short.is_empty() && long.is_empty() {
                redactor.too_short.push(name.to_owned());
            }
            let mark = format!("[secret {name}]");
            redactor
                .hidden
                .extend(long.into_iter().map(|line| (SecretText::new(line), mark.clone())));
        }
        redactor.hidden.sort_by_key(|(value, _)| std::cmp::Reverse(value.expose().len()));
        redactor
    }

    /// The names of the secrets that are too short to be found.
    pub(crate) fn too_short(&self) -> &[String] {
        &self.too_short
    }

    /// The length of the longest value, in bytes; 0 where there is none.
    pub(crate) fn longest(&self) -> usize {
        self.hidden.first().map_or(0, |(value, _)| value.expose().len())
    }

    /// The text without secrets.
    pub(crate) fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for (value, mark) in &self.hidden {
            if text.contains(value.expose()) {
                text = Cow::Owned(text.replace(value.expose(), mark));
            }
        }
        text
    }

    /// A fault without secrets. Its last lines are written without them from the start.
    pub(crate) fn clean(&self, fault: Fault) -> Fault {
        Fault { detail: self.apply(&fault.detail).into_owned(), ..fault }
    }

    /// An answer without secrets: the description of a rejection travels with the message.
    pub(crate) fn clean_outcome(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Reject(Rejection { reason, description }) => {
                let description = self.apply(&description).into_owned();
                Outcome::Reject(Rejection { reason, description })
            }
            other => other,
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("hidden", &self.hidden.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumphouse_contract::Reason;

    #[test]
    fn a_secret_is_replaced_by_its_name_wherever_it_stands() {
        let redactor = Redactor::new([("token", "abcdefgh-1234"), ("key", "abcdefgh")]);
        for (text, clean) in [
            ("nothing here", "nothing here"),
            ("Bearer abcdefgh-1234!", "Bearer [secret token]!"),
            ("abcdefgh-1234abcdefgh", "[secret token][secret key]"),
            ("abcdefg", "abcdefg"),
        ] {
            assert_eq!(redactor.apply(text), clean);
        }
        assert_eq!(redactor.longest(), 13);
        assert!(!format!("{redactor:?}").contains("abcdefgh"));
    }

    #[test]
    fn each_line_of_a_secret_is_one() {
        let redactor = Redactor::new([("pem", "-----BEGIN KEY-----\r\nMIIEvQIBADAN\r\nx\r\n")]);
        assert_eq!(redactor.apply("read MIIEvQIBADAN and x"), "read [secret pem] and x");
        assert!(redactor.too_short().is_empty());
    }

    #[test]
    fn what_is_too_short_is_not_looked_for_and_told() {
        let redactor = Redactor::new([("pin", "1234\n"), ("none", ""), ("long", "12345678")]);
        assert_eq!(redactor.apply("1234 12345678"), "1234 [secret long]");
        assert_eq!(redactor.too_short(), ["pin"]);
    }

    #[test]
    fn a_rejections_description_has_no_secret() {
        let redactor = Redactor::new([("token", "abcdefgh-1234")]);
        let rejection = |description: &str| {
            let description = description.to_owned();
            Outcome::Reject(Rejection { reason: Reason::None, description })
        };
        assert_eq!(
            redactor.clean_outcome(rejection("no: abcdefgh-1234")),
            rejection("no: [secret token]")
        );
        assert_eq!(redactor.clean_outcome(Outcome::Ack), Outcome::Ack);
    }
}
