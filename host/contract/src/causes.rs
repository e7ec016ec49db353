//! What an error says, and why.

use std::error::Error;

/// An error with its causes in one line, each once: what another part says already is left out, as libraries that
/// repeat their causes do.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let said = error.to_string();
        if !parts.iter().any(|part| part.contains(&said)) {
            parts.push(said);
        }
        next = error.source();
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Says {
        text: &'static str,
        source: Option<Box<Says>>,
    }

    fn line(texts: &[&'static str]) -> String {
        let mut source = None;
        for text in texts.iter().rev() {
            source = Some(Box::new(Says { text, source }));
        }
        with_causes(&*source.expect("one at least"))
    }

    #[test]
    fn an_error_is_told_with_each_of_its_causes_once() {
        assert_eq!(line(&["not sent"]), "not sent");
        assert_eq!(line(&["not sent", "no route", "refused"]), "not sent: no route: refused");
        assert_eq!(line(&["not sent", "not sent", "refused", "refused"]), "not sent: refused");
        assert_eq!(line(&["not sent: refused", "refused"]), "not sent: refused");
        assert_eq!(line(&["no", "not sent"]), "no: not sent");
    }
}
