//! What tenants and their handlers have used, as far as it can be seen from outside.

use std::time::Duration;

use crate::{Ended, FaultKind, Outcome};

/// What the calls of a tenant or of a handler used, summed since the process began. Every figure only grows, but for
/// `instances` and `memory_peak_lately`, which are of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// Calls that ended: with an answer, or with a fault.
    pub calls: u64,
    /// Calls that were answered with "done".
    pub acks: u64,
    /// Calls that were answered with "not now".
    pub defers: u64,
    /// Calls that were answered with "never".
    pub rejects: u64,
    /// Calls that gave no answer, by kind, in the order of [`FaultKind::ALL`]. [`Account::faults_of`] reads one.
    pub faults: [u64; FaultKind::ALL.len()],
    /// Calls that were dropped before they ended, by a drain or a shutdown. They are not among `calls`.
    pub dropped: u64,
    /// Time on a processor.
    pub cpu: Duration,
    /// Time in which calls waited: for an instance, for their turn, for a processor.
    pub waited: Duration,
    /// The largest linear memory of one call, in bytes.
    pub memory_peak: u64,
    /// The same over the last one to two minutes; zero where nothing was called.
    pub memory_peak_lately: u64,
    /// Calls of guests to the host.
    pub host_calls: u64,
    /// What guests were given, in bytes; as in [`Usage::bytes_in`](crate::Usage::bytes_in).
    pub bytes_in: u64,
    /// What guests gave, in bytes; as in [`Usage::bytes_out`](crate::Usage::bytes_out).
    pub bytes_out: u64,
    /// Lines that went to the operator's log.
    pub log_lines: u64,
    /// Their bytes.
    pub log_bytes: u64,
    /// Lines that were dropped because the tenant logged more than its rate.
    pub log_dropped: u64,
    /// Instances that live now.
    pub instances: u64,
    /// The most instances that ever lived at once.
    pub instances_peak: u64,
}

impl Account {
    /// How many calls ended with a fault of this kind.
    #[must_use]
    pub fn faults_of(&self, kind: FaultKind) -> u64 {
        FaultKind::ALL.iter().zip(&self.faults).filter(|(of, _)| **of == kind).map(|(_, n)| n).sum()
    }

    /// Calls that ended with a fault, of whatever kind.
    #[must_use]
    pub fn all_faults(&self) -> u64 {
        self.faults.iter().sum()
    }

    /// The kinds of fault that there were, and how often.
    pub fn fault_kinds(&self) -> impl Iterator<Item = (FaultKind, u64)> {
        FaultKind::ALL.into_iter().zip(self.faults).filter(|(_, faults)| *faults > 0)
    }

    /// The limits that were met, by their keys below `limits`, and how often.
    pub fn limit_trips(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.fault_kinds().filter_map(|(kind, faults)| Some((kind.limit()?, faults)))
    }

    /// What was added since it was `before`; all of it where it began anew meanwhile. Peaks and `instances` are those
    /// of now.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        if self.calls < before.calls || self.cpu < before.cpu {
            return *self;
        }
        self.with(before, u64::saturating_sub)
    }

    /// Both together; of peaks the larger one, and `instances` of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            memory_peak: self.memory_peak.max(other.memory_peak),
            memory_peak_lately: self.memory_peak_lately.max(other.memory_peak_lately),
            instances: self.instances.saturating_add(other.instances),
            instances_peak: self.instances_peak.max(other.instances_peak),
            ..self.with(other, u64::saturating_add)
        }
    }

    /// Each figure that only grows, of the two; the others are of this one.
    #[must_use]
    pub fn with(&self, other: &Self, both: fn(u64, u64) -> u64) -> Self {
        let time =
            |one: Duration, other| Duration::from_nanos(both(nanoseconds(one), nanoseconds(other)));
        let mut faults = self.faults;
        faults.iter_mut().zip(&other.faults).for_each(|(one, other)| *one = both(*one, *other));
        Self {
            calls: both(self.calls, other.calls),
            acks: both(self.acks, other.acks),
            defers: both(self.defers, other.defers),
            rejects: both(self.rejects, other.rejects),
            faults,
            dropped: both(self.dropped, other.dropped),
            cpu: time(self.cpu, other.cpu),
            waited: time(self.waited, other.waited),
            host_calls: both(self.host_calls, other.host_calls),
            bytes_in: both(self.bytes_in, other.bytes_in),
            bytes_out: both(self.bytes_out, other.bytes_out),
            log_lines: both(self.log_lines, other.log_lines),
            log_bytes: both(self.log_bytes, other.log_bytes),
            log_dropped: both(self.log_dropped, other.log_dropped),
            ..*self
        }
    }

    /// Enters how a call ended and what it used.
    pub fn enter(&mut self, ended: &Ended) {
        self.calls += 1;
        match &ended.result {
            Ok(Outcome::Ack) => self.acks += 1,
            Ok(Outcome::Defer(_)) => self.defers += 1,
            Ok(Outcome::Reject(_)) => self.rejects += 1,
            Err(fault) => {
                let place = FaultKind::ALL.iter().position(|kind| *kind == fault.kind);
                if let Some(count) = place.and_then(|place| self.faults.get_mut(place)) {
                    *count += 1;
                }
            }
        }
        let usage = &ended.usage;
        self.cpu += usage.cpu;
        self.memory_peak = self.memory_peak.max(usage.memory_peak);
        self.host_calls += usage.host_calls;
        self.bytes_in += usage.bytes_in;
        self.bytes_out += usage.bytes_out;
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The account of one handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerAccount {
    /// `tenant/name`.
    pub name: String,
    /// Over all its versions.
    pub account: Account,
}

/// What can be seen of one tenant from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantStatus {
    /// Its name; empty for handlers that were named without a tenant.
    pub name: String,
    /// What all its handlers used, those that are gone included.
    pub account: Account,
    /// The handlers that are there now, by name.
    pub handlers: Vec<HandlerAccount>,
    /// Its part of the processors, in proportion to the others'.
    pub weight: u32,
    /// Calls that compute now, or could.
    pub computing: usize,
    /// Calls that wait for an instance or for their turn to compute.
    pub waiting: usize,
    /// Whether its subscriptions receive less than they could, because its calls wait too long (C-18).
    pub slowed: bool,
}

/// What the admin side sees of the tenants.
pub trait Tenants: Send + Sync {
    /// Every tenant that has limits or had handlers, by name.
    fn list(&self) -> Vec<TenantStatus>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, Reason, Rejection, Usage};

    #[test]
    fn every_end_of_a_call_is_entered_once_under_its_name() {
        let mut account = Account::default();
        let rejection = Rejection { reason: Reason::None, description: String::new() };
        let outcomes = [Outcome::Ack, Outcome::Defer(None), Outcome::Reject(rejection)];
        outcomes.into_iter().for_each(|outcome| account.enter(&Ended::outcome(outcome)));
        for kind in FaultKind::ALL {
            account.enter(&Ended::fault(Fault::new(kind, "")));
            assert_eq!(account.faults_of(kind), 1, "{kind}");
        }
        assert_eq!((account.acks, account.defers, account.rejects), (1, 1, 1));
        assert_eq!(account.calls, 3 + FaultKind::ALL.len() as u64);
    }

    #[test]
    fn what_is_used_is_summed_and_the_peak_is_the_largest() {
        let mut account = Account::default();
        for memory_peak in [7, 9, 8] {
            let cpu = Duration::from_micros(3);
            let usage = Usage {
                cpu,
                memory_peak,
                host_calls: 2,
                bytes_in: 5,
                bytes_out: 1,
                ..Usage::default()
            };
            account.enter(&Ended { result: Ok(Outcome::Ack), usage });
        }
        assert_eq!((account.cpu, account.memory_peak), (Duration::from_micros(9), 9));
        assert_eq!((account.host_calls, account.bytes_in, account.bytes_out), (6, 15, 3));
    }

    #[test]
    fn what_was_added_is_the_difference_and_a_new_beginning_is_all() {
        let account = |calls, cpu, memory_peak| Account {
            calls,
            cpu: Duration::from_millis(cpu),
            memory_peak,
            ..Account::default()
        };
        assert_eq!(account(5, 9, 7).since(&account(3, 4, 7)), account(2, 5, 7));
        assert_eq!(account(2, 1, 7).since(&account(3, 4, 7)), account(2, 1, 7));
        assert_eq!(account(5, 9, 7).plus(&account(3, 4, 8)), account(8, 13, 8));
    }
}
