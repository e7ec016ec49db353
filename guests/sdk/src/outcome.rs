//! What a handler answers.

use std::fmt::Display;
use std::time::Duration;

/// What becomes of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// Done: the message is removed from its source.
    Ack,

    /// Not now: the message is released and comes back after that delay, or after the subscription's backoff
    /// where it is `None`. The host takes whole milliseconds, a fraction rounded up, and shortens a delay that
    /// the broker can't give. At the subscription's budget a deferral becomes a rejection.
    Defer(Option<Duration>),

    /// Never: the message is copied to the destination of the reason, then removed from its source.
    Reject {
        /// Decides the destination.
        reason: Reason,
        /// Why, for the person who will look at the rejected message.
        description: String,
    },
}

/// Where a rejected message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The message itself can never be handled: it goes to the invalid-message destination, or to the
    /// dead-letter destination where there is none.
    Unacceptable,

    /// The message is fine and handling it failed for good: it goes to the dead-letter destination.
    DeliveryError,

    /// No reason is given: it goes to the dead-letter destination.
    None,
}

impl Outcome {
    /// Done.
    pub fn ack() -> Self {
        Self::Ack
    }

    /// Not now; again after the subscription's backoff.
    pub fn defer() -> Self {
        Self::Defer(None)
    }

    /// Not now; again after that delay.
    pub fn defer_for(delay: Duration) -> Self {
        Self::Defer(Some(delay))
    }

    /// Never, for that reason.
    pub fn reject(reason: Reason, description: impl Display) -> Self {
        Self::Reject { reason, description: description.to_string() }
    }

    /// Never, because the message itself can't be handled.
    pub fn unacceptable(description: impl Display) -> Self {
        Self::reject(Reason::Unacceptable, description)
    }

    /// Never, because handling it failed for good.
    pub fn delivery_error(description: impl Display) -> Self {
        Self::reject(Reason::DeliveryError, description)
    }
}

/// Why a handler could not answer with an [`Outcome`] of its own; for use with `?`.
///
/// Whatever can be shown as text becomes [`Failure::Defer`] by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A passing trouble, with its text: it is written to the standard error stream, and the message is
    /// deferred with the subscription's backoff.
    Defer(String),

    /// The message is rejected.
    Reject {
        /// Decides the destination.
        reason: Reason,
        /// Why, for the person who will look at the rejected message.
        description: String,
    },
}

impl Failure {
    /// The message itself can't be handled. Fits `map_err`.
    pub fn unacceptable(description: impl Display) -> Self {
        Self::Reject { reason: Reason::Unacceptable, description: description.to_string() }
    }

    /// Handling the message failed for good. Fits `map_err`.
    pub fn delivery_error(description: impl Display) -> Self {
        Self::Reject { reason: Reason::DeliveryError, description: description.to_string() }
    }
}

impl<E: Display> From<E> for Failure {
    /// The alternate form shows an error's causes where the error's type supports it.
    fn from(error: E) -> Self {
        Self::Defer(format!("{error:#}"))
    }
}

/// What a handler function may return.
pub trait IntoOutcome {
    /// The answer to the host.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl<E: Into<Failure>> IntoOutcome for Result<Outcome, E> {
    fn into_outcome(self) -> Outcome {
        match self.map_err(Into::into) {
            Ok(outcome) => outcome,
            Err(Failure::Reject { reason, description }) => Outcome::Reject { reason, description },
            Err(Failure::Defer(text)) => {
                eprintln!("deferred: {text}");
                Outcome::defer()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome_of(result: impl IntoOutcome) -> Outcome {
        result.into_outcome()
    }

    #[test]
    fn an_outcome_stays_what_it_is() {
        assert_eq!(outcome_of(Outcome::ack()), Outcome::Ack);
        assert_eq!(outcome_of(Ok::<_, Failure>(Outcome::defer())), Outcome::Defer(None));
    }

    #[test]
    fn any_error_is_a_deferral_with_the_subscriptions_backoff() {
        let parse = "x".parse::<u8>().map(|_| Outcome::ack());
        assert_eq!(outcome_of(parse), Outcome::Defer(None));
        assert_eq!(outcome_of(Err::<Outcome, _>("text")), Outcome::Defer(None));
        let boxed: Box<dyn std::error::Error> = "boxed".into();
        assert_eq!(outcome_of(Err::<Outcome, _>(boxed)), Outcome::Defer(None));
    }

    #[test]
    fn a_failure_that_rejects_is_never_a_deferral() {
        let failure = Failure::unacceptable("no number");
        assert_eq!(outcome_of(Err(failure)), Outcome::unacceptable("no number"));
        let failure = Failure::delivery_error("gone");
        assert_eq!(outcome_of(Err(failure)), Outcome::delivery_error("gone"));
    }

    #[test]
    fn the_question_mark_keeps_the_three_failures_distinct() {
        fn handle(text: &str) -> Result<Outcome, Failure> {
            let seconds: u64 = text.parse().map_err(Failure::unacceptable)?;
            let factor: u64 = if seconds == 1 { "not a number".parse()? } else { 1 };
            Ok(Outcome::defer_for(Duration::from_secs(seconds * factor)))
        }
        assert!(matches!(
            outcome_of(handle("x")),
            Outcome::Reject { reason: Reason::Unacceptable, .. }
        ));
        assert_eq!(outcome_of(handle("1")), Outcome::Defer(None));
        assert_eq!(outcome_of(handle("2")), Outcome::Defer(Some(Duration::from_secs(2))));
    }
}
