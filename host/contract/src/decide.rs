//! What becomes of a delivery: [`admit`] before the call, [`decide`] after it.
//!
//! Both are pure. The time comes in as an age, chance as a [`Roll`].

use std::fmt;
use std::time::Duration;

use crate::policy::{Budget, OnFault, Policy};
use crate::{Count, Fault, FaultKind, Outcome, Reason, Rejection};

/// The longest that a message waits after its copy could not be published (C-13).
pub const LONGEST_WAIT_AFTER_FAILED_ROUTE: Duration = Duration::from_secs(10);

/// A number in [0, 1) that a caller drew by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roll(pub(crate) f64);

impl Roll {
    /// From any number; what lies outside [0, 1] is brought to its edge.
    #[must_use]
    pub fn new(number: f64) -> Self {
        Self(if number.is_finite() { number.clamp(0.0, 1.0) } else { 1.0 })
    }
}

/// What is known of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts<'a> {
    /// How many deliveries came before.
    pub count: Count,
    /// Whether the count goes up from delivery to delivery (C-8).
    pub advances: bool,
    /// Whether this is a copy that a host put on a rejection destination, read from there (C-7).
    pub routed_copy: bool,
    /// Why the transport could not decode it.
    pub undecodable: Option<&'a str>,
    /// The time since the first delivery, or since publication where the first is not known.
    pub age: Option<Duration>,
    /// The longest that the broker can still hold the message back.
    pub longest_release: Duration,
}

/// Whether a delivery is handed to its handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Yes.
    Call,
    /// No: it is routed at once.
    Route(Reason, Why),
}

/// How a delivery is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Acknowledged.
    Ack,
    /// Given back to the source.
    Release {
        /// How long it stays away.
        after: Duration,
        /// Whether a longer delay was asked for than the broker gives.
        shortened: bool,
    },
    /// Copied to the destination of the reason, then acknowledged.
    Route(Reason, Why),
}

impl Decision {
    /// Given back at once: what a drain does with a message that no handler has answered.
    pub const GIVE_BACK: Self = Self::Release { after: Duration::ZERO, shortened: false };
}

/// Why a message is routed; its text is the copy's `rejectionMessage` (C-11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The handler said so, in these words.
    Handler(String),
    /// The budget is spent.
    Budget {
        /// The deliveries so far, this one included.
        deliveries: u32,
        /// The budget.
        budget: Budget,
        /// Whether the count is one that was stamped in a copy.
        stamped: bool,
        /// The fault that took the place of the last answer, where one did.
        fault: Option<(FaultKind, String)>,
    },
    /// The retry window is over.
    Window {
        /// The message's age.
        age: Duration,
        /// The window.
        window: Duration,
    },
    /// A fault, where the subscription rejects on one.
    Fault(FaultKind, String),
    /// The count shows that deliveries keep ending without an outcome (C-17).
    Guard {
        /// The deliveries so far, this one included.
        deliveries: u32,
        /// The budget.
        budget: Budget,
    },
    /// The transport could not decode the message.
    Undecodable(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(text) => f.write_str(text),
            Self::Budget { deliveries, budget, stamped, fault } => {
                write!(
                    f,
                    "max_deliveries reached: delivery {deliveries} of {budget} was deferred"
                )?;
                if let Some((kind, detail)) = fault {
                    write!(f, " after the fault {kind}: {detail}")?;
                }
                if *stamped {
                    f.write_str(
                        "; the count is the one stamped in this rejected copy: remove its rejection metadata to give it a new budget",
                    )?;
                }
                Ok(())
            }
            Self::Window { age, window } => write!(
                f,
                "retry.window is over: deferred at an age of {} s, the window is {} s",
                age.as_secs(),
                window.as_secs()
            ),
            Self::Fault(kind, detail) => write!(f, "handler fault {kind}: {detail}"),
            Self::Guard { deliveries, budget } => write!(
                f,
                "not handed to the handler: delivery {deliveries} with max_deliveries {budget} shows that earlier deliveries ended without an outcome (the host died, the lease lapsed or a settlement failed)"
            ),
            Self::Undecodable(text) => write!(f, "the message could not be decoded: {text}"),
        }
    }
}

/// Asked once a delivery is decoded, before the handler is called.
#[must_use]
pub fn admit(facts: &Facts<'_>, policy: &Policy) -> Admission {
    if let Some(why) = facts.undecodable {
        return Admission::Route(Reason::Unacceptable, Why::Undecodable(why.to_owned()));
    }
    match policy.budget.guard() {
        Some(guard) if policy.guard && !facts.routed_copy && facts.count >= guard => {
            Admission::Route(
                Reason::DeliveryError,
                Why::Guard { deliveries: facts.count.deliveries(), budget: policy.budget },
            )
        }
        Some(_) | None => Admission::Call,
    }
}

/// Asked once a call has ended.
#[must_use]
pub fn decide(
    ended: &Result<Outcome, Fault>,
    facts: &Facts<'_>,
    policy: &Policy,
    roll: Roll,
) -> Decision {
    match ended {
        Ok(Outcome::Ack) => Decision::Ack,
        Ok(Outcome::Defer(delay)) => defer(*delay, None, facts, policy, roll),
        Ok(Outcome::Reject(Rejection { reason, description })) => {
            Decision::Route(*reason, Why::Handler(description.clone()))
        }
        Err(fault) => match policy.on_fault {
            OnFault::Defer => defer(None, Some(fault), facts, policy, roll),
            OnFault::Reject => {
                Decision::Route(Reason::DeliveryError, Why::Fault(fault.kind, fault.detail.clone()))
            }
        },
    }
}

fn defer(
    asked: Option<Duration>,
    fault: Option<&Fault>,
    facts: &Facts<'_>,
    policy: &Policy,
    roll: Roll,
) -> Decision {
    if policy.budget.is_spent_by(facts.count) {
        return Decision::Route(Reason::DeliveryError, budget_spent(fault, facts, policy));
    }
    if let (Some(age), Some(window)) = (facts.age, policy.window)
        && age >= window
    {
        return Decision::Route(Reason::DeliveryError, Why::Window { age, window });
    }
    let asked = asked.unwrap_or_else(|| backoff(facts, policy, roll));
    let after = asked.min(facts.longest_release);
    Decision::Release { after, shortened: after < asked }
}

fn budget_spent(fault: Option<&Fault>, facts: &Facts<'_>, policy: &Policy) -> Why {
    Why::Budget {
        deliveries: facts.count.deliveries(),
        budget: policy.budget,
        stamped: facts.routed_copy,
        fault: fault.map(|fault| (fault.kind, fault.detail.clone())),
    }
}

fn backoff(facts: &Facts<'_>, policy: &Policy, roll: Roll) -> Duration {
    if facts.advances {
        policy.backoff.after(facts.count, roll)
    } else {
        policy.backoff.after_age(facts.age.unwrap_or_default(), roll)
    }
}

/// How long a message stays away after its copy could not be published (C-13).
#[must_use]
pub fn after_failed_route(facts: &Facts<'_>, policy: &Policy, roll: Roll) -> Duration {
    backoff(facts, policy, roll).min(LONGEST_WAIT_AFTER_FAILED_ROUTE).min(facts.longest_release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backoff, Jitter};

    fn facts(count: u32) -> Facts<'static> {
        Facts {
            count: Count(count),
            advances: true,
            routed_copy: false,
            undecodable: None,
            age: Some(Duration::from_secs(5)),
            longest_release: Duration::from_secs(43_200),
        }
    }

    fn policy(budget: i64) -> Policy {
        Policy {
            budget: Budget::from_configured(budget),
            backoff: Backoff { jitter: Jitter::None, ..Backoff::default() },
            ..Policy::default()
        }
    }

    fn release(seconds: u64) -> Decision {
        Decision::Release { after: Duration::from_secs(seconds), shortened: false }
    }

    fn reason_of(decision: &Decision) -> Option<Reason> {
        match decision {
            Decision::Route(reason, _) => Some(*reason),
            Decision::Ack | Decision::Release { .. } => None,
        }
    }

    const ROLL: Roll = Roll(0.5);
    const DEFER: Result<Outcome, Fault> = Ok(Outcome::Defer(None));

    fn trap() -> Result<Outcome, Fault> {
        Err(Fault::new(FaultKind::Trap, "boom"))
    }

    /// C-4, C-5: rejected when c + 1 ≥ R, and −1 never asks.
    #[test]
    fn c_4_a_deferral_is_rejected_at_the_budget() {
        let table: &[(i64, u32, Option<Reason>)] = &[
            (3, 0, None),
            (3, 1, None),
            (3, 2, Some(Reason::DeliveryError)),
            (1, 0, Some(Reason::DeliveryError)),
            (0, 0, Some(Reason::DeliveryError)),
            (-7, 0, Some(Reason::DeliveryError)),
            (-1, 1000, None),
        ];
        for (budget, count, expected) in table {
            let decision = decide(&DEFER, &facts(*count), &policy(*budget), ROLL);
            assert_eq!(reason_of(&decision), *expected, "R {budget}, c {count}");
        }
    }

    #[test]
    fn every_ending_has_its_settlement() {
        let rejection =
            |reason| Ok(Outcome::Reject(Rejection { reason, description: "no".into() }));
        let reject_on_fault = Policy { on_fault: OnFault::Reject, ..policy(-1) };
        let said = Why::Handler("no".into());
        let table: Vec<(Result<Outcome, Fault>, Policy, Decision)> = vec![
            (Ok(Outcome::Ack), policy(1), Decision::Ack),
            (DEFER, policy(-1), release(1)),
            (Ok(Outcome::Defer(Some(Duration::from_secs(9)))), policy(-1), release(9)),
            (
                rejection(Reason::Unacceptable),
                policy(5),
                Decision::Route(Reason::Unacceptable, said.clone()),
            ),
            (
                rejection(Reason::DeliveryError),
                policy(5),
                Decision::Route(Reason::DeliveryError, said.clone()),
            ),
            (rejection(Reason::None), policy(5), Decision::Route(Reason::None, said)),
            (trap(), policy(-1), release(1)),
            (
                trap(),
                reject_on_fault,
                Decision::Route(Reason::DeliveryError, Why::Fault(FaultKind::Trap, "boom".into())),
            ),
        ];
        for (ended, policy, expected) in table {
            assert_eq!(decide(&ended, &facts(0), &policy, ROLL), expected, "{ended:?}");
        }
    }

    /// C-17: never for a routed copy, never where switched off, after decoding.
    #[test]
    fn c_17_a_message_whose_deliveries_keep_ending_without_an_outcome_is_not_handed_over() {
        let guarded = |count| admit(&facts(count), &policy(3));
        assert_eq!(guarded(5), Admission::Call);
        let Admission::Route(Reason::DeliveryError, why) = guarded(6) else {
            unreachable!("not routed")
        };
        assert!(why.to_string().contains("not handed to the handler: delivery 7"), "{why}");
        let copy = Facts { routed_copy: true, ..facts(60) };
        assert_eq!(admit(&copy, &policy(3)), Admission::Call);
        assert_eq!(admit(&facts(60), &Policy { guard: false, ..policy(3) }), Admission::Call);
        assert_eq!(admit(&facts(60), &policy(-1)), Admission::Call);
        let undecodable = Facts { undecodable: Some("no JSON"), ..facts(60) };
        assert!(matches!(
            admit(&undecodable, &policy(3)),
            Admission::Route(Reason::Unacceptable, _)
        ));
    }

    /// S-2: shortened to what the broker still gives, and said so.
    #[test]
    fn s_2_a_delay_is_shortened_to_what_the_broker_gives() {
        let facts = Facts { longest_release: Duration::from_secs(100), ..facts(0) };
        let asked = Ok(Outcome::Defer(Some(Duration::from_secs(43_200))));
        assert_eq!(
            decide(&asked, &facts, &policy(-1), ROLL),
            Decision::Release { after: Duration::from_secs(100), shortened: true }
        );
    }

    /// S-2: where the count can't advance, the backoff follows the age.
    #[test]
    fn s_2_backoff_follows_the_age_where_the_count_stands_still() {
        let stuck = Facts { advances: false, age: Some(Duration::from_secs(7)), ..facts(0) };
        assert_eq!(decide(&DEFER, &stuck, &policy(-1), ROLL), release(8));
    }

    /// S-3: at a deferral alone, so that every message is handed over once.
    #[test]
    fn s_3_past_the_window_a_deferral_becomes_a_delivery_error() {
        let windowed = Policy { window: Some(Duration::from_secs(60)), ..policy(-1) };
        let at = |age| Facts { age: Some(Duration::from_secs(age)), ..facts(0) };
        assert_eq!(decide(&DEFER, &at(59), &windowed, ROLL), release(1));
        assert_eq!(
            reason_of(&decide(&DEFER, &at(60), &windowed, ROLL)),
            Some(Reason::DeliveryError)
        );
        assert_eq!(decide(&Ok(Outcome::Ack), &at(600), &windowed, ROLL), Decision::Ack);
        assert_eq!(admit(&at(600), &windowed), Admission::Call);
        assert_eq!(decide(&DEFER, &Facts { age: None, ..facts(0) }, &windowed, ROLL), release(1));
    }

    /// C-13: the backoff for the count, at most ten seconds, none where none is configured.
    #[test]
    fn c_13_a_failed_publish_waits_ten_seconds_at_most() {
        let seconds = |count| after_failed_route(&facts(count), &policy(3), ROLL).as_secs();
        assert_eq!((seconds(0), seconds(3), seconds(30)), (1, 8, 10));
        let none =
            Policy { backoff: Backoff { base: Duration::ZERO, ..Backoff::default() }, ..policy(3) };
        assert_eq!(after_failed_route(&facts(9), &none, ROLL), Duration::ZERO);
    }

    /// C-7, C-11: the texts say what fired.
    #[test]
    fn the_reasons_that_the_host_gives_name_what_fired() {
        let copy = Facts { routed_copy: true, ..facts(3) };
        let texts = [
            (decide(&DEFER, &facts(2), &policy(3), ROLL), "delivery 3 of 3"),
            (decide(&DEFER, &copy, &policy(3), ROLL), "stamped in this rejected copy"),
            (decide(&trap(), &facts(2), &policy(3), ROLL), "fault trap: boom"),
        ];
        for (decision, expected) in texts {
            let Decision::Route(Reason::DeliveryError, why) = decision else {
                unreachable!("not routed")
            };
            assert!(why.to_string().contains(expected), "{why}");
        }
    }
}
