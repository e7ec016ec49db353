//! The ledger beside a naive model of it: a list of messages that is searched from the start each time.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::limits::{Limits, Quota};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Free { from: Mono },
    Leased { until: Mono },
}

#[derive(Debug, Clone)]
struct Modelled {
    sequence: Sequence,
    key: Option<u8>,
    count: u32,
    phase: Phase,
}

impl Modelled {
    fn can_be_taken(&self, now: Mono) -> bool {
        match self.phase {
            Phase::Free { from } => from <= now,
            Phase::Leased { until } => until <= now,
        }
    }
}

/// What is done to both.
#[derive(Debug, Clone)]
enum Step {
    Publish {
        key: Option<u8>,
    },
    Take {
        max: usize,
        lease_ms: u64,
    },
    /// Takes, and the lease can't be booked.
    TakeInVain {
        max: usize,
    },
    Ack {
        which: usize,
    },
    Release {
        which: usize,
        delay_ms: u64,
    },
    /// Holds, and the settlement can't be booked.
    HoldInVain {
        which: usize,
    },
    Pass {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::option::of(0_u8..3).prop_map(|key| Step::Publish { key }),
        4 => (1_usize..6, 1_u64..50).prop_map(|(max, lease_ms)| Step::Take { max, lease_ms }),
        1 => (1_usize..6).prop_map(|max| Step::TakeInVain { max }),
        3 => any::<usize>().prop_map(|which| Step::Ack { which }),
        3 => (any::<usize>(), 0_u64..50)
            .prop_map(|(which, delay_ms)| Step::Release { which, delay_ms }),
        1 => any::<usize>().prop_map(|which| Step::HoldInVain { which }),
        2 => (1_u64..60).prop_map(|ms| Step::Pass { ms }),
    ]
}

struct Rig {
    ledger: Ledger,
    quota: Arc<Quota>,
    model: Vec<Modelled>,
    /// Every delivery there ever was, the lapsed and settled ones too.
    claims: Vec<(Sequence, u32)>,
    now: Mono,
    next: Sequence,
}

impl Rig {
    fn new() -> Self {
        Self {
            ledger: Ledger::default(),
            quota: Quota::new(Limits::MEMORY),
            model: Vec::new(),
            claims: Vec::new(),
            now: Mono::default(),
            next: 1,
        }
    }

    fn later(&self, ms: u64) -> Mono {
        self.now.plus(Duration::from_millis(ms))
    }

    fn publish(&mut self, key: Option<u8>) {
        let message =
            Message { ordering_key: key.map(|key| key.to_string()), ..Message::default() };
        let charge = self.quota.slot().expect("room");
        let entry = Entry::new(Arc::new(message), Timestamp(self.next), charge);
        self.ledger.push(self.next, entry);
        let phase = Phase::Free { from: self.now };
        self.model.push(Modelled { sequence: self.next, key, count: 0, phase });
        self.next += 1;
    }

    /// The model's messages that can be taken: no earlier one of the same key is there.
    fn takeable(&self) -> Vec<Sequence> {
        let first = |one: &Modelled| {
            let earlier = self.model.iter().take_while(|other| other.sequence != one.sequence);
            one.key.is_none() || !earlier.into_iter().any(|other| other.key == one.key)
        };
        self.model
            .iter()
            .filter(|one| one.can_be_taken(self.now) && first(one))
            .map(|one| one.sequence)
            .collect()
    }

    /// Takes, and says what was taken, once it is what the model allows.
    fn take(&mut self, max: usize) -> Result<Vec<Grant>, TestCaseError> {
        let takeable = self.takeable();
        let grants = self.ledger.take(self.now, Timestamp(0), max);
        prop_assert_eq!(grants.len(), max.min(takeable.len()));
        for grant in &grants {
            prop_assert!(takeable.contains(&grant.sequence), "{grant:?} of {takeable:?}");
            let modelled = self.find(grant.sequence).expect("it is there");
            prop_assert_eq!(grant.count, modelled.count + 1);
        }
        Ok(grants)
    }

    fn find(&mut self, sequence: Sequence) -> Option<&mut Modelled> {
        self.model.iter_mut().find(|one| one.sequence == sequence)
    }

    fn take_and_grant(&mut self, max: usize, lease_ms: u64) -> Result<(), TestCaseError> {
        let until = self.later(lease_ms);
        for grant in self.take(max)? {
            self.ledger.grant(grant.sequence, until);
            self.claims.push((grant.sequence, grant.count));
            let modelled = self.find(grant.sequence).expect("it is there");
            modelled.count = grant.count;
            modelled.phase = Phase::Leased { until };
        }
        Ok(())
    }

    /// Holds a delivery of any time; both must agree on whether it can be settled. Says which it was, where it can.
    fn hold(&mut self, which: usize) -> Result<Option<Sequence>, TestCaseError> {
        if self.claims.is_empty() {
            return Ok(None);
        }
        let (sequence, count) = self.claims[which % self.claims.len()];
        let now = self.now;
        let ours = self.find(sequence).is_some_and(|one| {
            one.count == count && matches!(one.phase, Phase::Leased { until } if until > now)
        });
        let held = self.ledger.hold(sequence, count, now);
        prop_assert_eq!(held, if ours { Ok(()) } else { Err(Stale::Gone) });
        Ok(ours.then_some(sequence))
    }

    fn run(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Publish { key } => self.publish(key),
            Step::Pass { ms } => self.now = self.later(ms),
            Step::Take { max, lease_ms } => self.take_and_grant(max, lease_ms)?,
            Step::TakeInVain { max } => {
                let grants = self.take(max)?;
                grants.iter().rev().for_each(|grant| self.ledger.ungrant(grant.sequence));
            }
            Step::Ack { which } => {
                if let Some(sequence) = self.hold(which)? {
                    self.ledger.remove(sequence);
                    self.model.retain(|one| one.sequence != sequence);
                }
            }
            Step::Release { which, delay_ms } => {
                if let Some(sequence) = self.hold(which)? {
                    let from = self.later(delay_ms);
                    self.ledger.release(sequence, (delay_ms > 0).then_some(from));
                    self.find(sequence).expect("it is there").phase = Phase::Free { from };
                }
            }
            Step::HoldInVain { which } => {
                if let Some(sequence) = self.hold(which)? {
                    let count = self.find(sequence).expect("it is there").count;
                    let again = self.ledger.hold(sequence, count, self.now);
                    prop_assert_eq!(again, Err(Stale::Pending));
                    self.ledger.unhold(sequence);
                }
            }
        }
        self.check()
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.ledger.depth().0, self.model.len());
        let oldest = self.model.first().map(|one| Timestamp(one.sequence));
        prop_assert_eq!(self.ledger.depth().1, oldest);
        let keys: std::collections::BTreeSet<_> =
            self.model.iter().filter_map(|one| one.key).collect();
        prop_assert_eq!(self.ledger.lanes.len(), keys.len());
        let takeable = !self.takeable().is_empty();
        prop_assert_eq!(self.ledger.any_ready(self.now), takeable);
        // The bell rings when the first of what can't be taken yet can be.
        let due = self.model.iter().map(|one| match one.phase {
            Phase::Free { from } => from,
            Phase::Leased { until } => until,
        });
        prop_assert_eq!(self.ledger.next_due(), due.filter(|due| *due > self.now).min());
        Ok(())
    }
}

proptest! {
    /// C-1, C-3, S-6.
    #[test]
    fn c_3_s_6_the_ledger_agrees_with_a_naive_model(steps in prop::collection::vec(step(), 1..200)) {
        let mut rig = Rig::new();
        for step in steps {
            rig.run(step)?;
        }
    }
}
