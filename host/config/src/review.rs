//! The rules over a whole configuration: references, contradictions, what the transports can't give, and the
//! findings of the delivery contract, each with its place in the file.

mod rocketmq;
mod tenants;

use std::time::Duration;

use pumphouse_contract::ports::Ordering;
use pumphouse_contract::{Finding, Rule, Severity, review as contract_review};

use crate::diagnostic::Code;
use crate::load::{Build, TransportFacts};
use crate::place::Place;
use crate::report::{At, Note, Report, join};
use crate::semantics::effective;
use crate::spelling::nearest;
use crate::tenancy::HandlerConfig;
use crate::types::{Config, Subscription};
use crate::units::Readable;
use crate::words::{Provision, Semantics};

/// Why a source on RocketMQ has no native policy.
const NO_POLICY: &str = "`rocketmq` has no dead-letter policy of its own: the broker does not act on a group's retry maximum where messages are received by POP; `max_deliveries` and `dead_letter` bound the deliveries";

/// A configuration under review.
pub(crate) struct Review<'a> {
    pub(crate) config: &'a Config,
    pub(crate) report: &'a Report<'a>,
    pub(crate) build: &'a Build,
}

/// A finding of one subscription that may be there: the key below it, and what to say.
type Found = Option<(&'static str, Note)>;

impl Review<'_> {
    pub(crate) fn all(&self) {
        self.exposed();
        rocketmq::review(self);
        tenants::review(self);
        for one in &self.config.subscriptions {
            let found = [
                self.unknown_handler(one),
                undeclared(one),
                unordered(one),
                short_cap(one),
                mixed("dead_letter", one.dead_letter.as_ref(), one),
                mixed("invalid_message", one.invalid_message.as_ref(), one),
                self.native(one).or_else(|| native_target(one)),
                no_topic(one),
                self.native_circle(one),
                self.long_delay(one),
            ];
            for (name, note) in found.into_iter().flatten() {
                self.report.error(&self.key(one, name), At::Value, note);
            }
            self.long_lease(one);
        }
        self.findings();
    }

    pub(crate) fn key(&self, one: &Subscription, name: &str) -> String {
        let whole = join("subscriptions", &one.name);
        if name.is_empty() { whole } else { format!("{whole}.{name}") }
    }

    fn exposed(&self) {
        let Some(listen) = self.config.host.admin_listen else { return };
        if listen.ip().is_loopback() {
            return;
        }
        let message = format!(
            "{listen} is not on loopback, and the admin listener asks nobody who they are: keep others out by other means"
        );
        self.report.warn("host.admin.listen", At::Value, Note::new(Code::Exposed, message));
    }

    fn unknown_handler(&self, one: &Subscription) -> Found {
        let handlers = &self.config.handlers;
        if one.handler.is_empty() || handlers.contains_key(&one.handler) {
            return None;
        }
        let known = || handlers.keys().map(String::as_str);
        let message = format!("there is no handler {:?}", one.handler);
        let note = Note::new(Code::UnknownName, message).nearest(nearest(&one.handler, known()));
        let names: Vec<String> = known().take(10).map(|name| format!("`{name}`")).collect();
        let allowed = if names.is_empty() {
            "a handler of a `[tenants.TENANT.handlers.HANDLER]`".to_owned()
        } else {
            names.join(", ")
        };
        Some(("handler", note.allowed(allowed)))
    }

    fn transport(&self, one: &Subscription) -> Option<&TransportFacts> {
        self.build.transport(one.source.transport())
    }

    fn handler(&self, one: &Subscription) -> Option<&HandlerConfig> {
        self.config.handlers.get(&one.handler)
    }

    /// C-15: what the transport must be able to do for `native`.
    fn native(&self, one: &Subscription) -> Found {
        one.native.as_ref()?;
        let transport = self.transport(one).filter(|transport| !transport.native_policy)?;
        let message = match one.source {
            Place::Rocketmq(_) => NO_POLICY.to_owned(),
            Place::Embedded { .. } | Place::Sqs(_) | Place::Pubsub(_) => {
                format!("`{}` has no dead-letter policy of its own", transport.key)
            }
        };
        Some(("native", Note::new(Code::Unsupported, message)))
    }

    fn native_circle(&self, one: &Subscription) -> Found {
        let target = one.native.as_ref()?.dead_letter.as_ref()?;
        let same = self.config.address(target) == self.config.address(&one.source);
        let message = "the native policy would move messages back to their own source";
        let key = match target {
            Place::Pubsub(_) => "native.dead_letter.topic",
            Place::Sqs(_) | Place::Embedded { .. } | Place::Rocketmq(_) => {
                "native.dead_letter.queue"
            }
        };
        same.then(|| (key, Note::new(Code::Rule(Rule::F5), message)))
    }

    /// S-2: a configured delay that the broker can't give.
    fn long_delay(&self, one: &Subscription) -> Found {
        let (transport, handler) = (self.transport(one)?, self.handler(one)?);
        let taken = if transport.delay_counts_from_receive {
            handler.limits.deadline
        } else {
            Duration::ZERO
        };
        let longest = transport.longest_delay.saturating_sub(taken);
        let max = one.policy.backoff.max;
        if max <= longest {
            return None;
        }
        let why = if taken.is_zero() {
            String::new()
        } else {
            format!(
                ", which counts from the receive, less the handler's deadline of {}",
                Readable(taken)
            )
        };
        let message = format!(
            "{} can't hold a message back for {}: at most {}{why}",
            transport.key,
            Readable(max),
            Readable(longest)
        );
        let key =
            if one.policy.backoff.base > longest { "retry.backoff" } else { "retry.max_backoff" };
        Some((key, Note::new(Code::S2, message)))
    }

    fn long_lease(&self, one: &Subscription) {
        let (Some(transport), Some(handler)) = (self.transport(one), self.handler(one)) else {
            return;
        };
        let lease = effective(one, handler, transport).lease;
        if lease.length() <= transport.longest_lease {
            return;
        }
        let beside = lease.length().saturating_sub(lease.deadline);
        let longest = transport.longest_lease.saturating_sub(beside);
        let message = format!(
            "a deadline of {} needs a lease of {} for subscription `{}`, and {} gives at most {}: the deadline can be at most {}",
            Readable(lease.deadline),
            Readable(lease.length()),
            one.name,
            transport.key,
            Readable(transport.longest_lease),
            Readable(longest)
        );
        self.report.error(&self.deadline_key(handler), At::Value, Note::new(Code::Lease, message));
    }

    /// Where a handler's deadline is written: at the handler, else at the tenant.
    fn deadline_key(&self, handler: &HandlerConfig) -> String {
        let short = handler.name.split('/').next_back().unwrap_or_default();
        let tenant = join("tenants", &handler.tenant);
        let own = format!("{}.limits.deadline", join(&format!("{tenant}.handlers"), short));
        if self.report.has(&own) { own } else { format!("{tenant}.limits.deadline") }
    }

    /// F-1 to F-7. One that only follows from a key with an error is not said beside it.
    fn findings(&self) {
        for finding in contract_review(&self.config.facts()) {
            let subscription = join("subscriptions", &finding.subscription);
            let names = concerns(&finding).iter();
            let keys: Vec<String> = names.map(|name| format!("{subscription}.{name}")).collect();
            if keys.iter().any(|key| self.report.is_spoilt(key)) {
                continue;
            }
            let key = self.place_of(&finding, &keys, &subscription);
            let note = Note::new(Code::Rule(finding.rule), finding.text);
            match finding.severity {
                Severity::Error => self.report.error(&key, At::Value, note),
                Severity::Warning => self.report.warn(&key, At::Value, note),
            }
        }
    }

    /// The key that a finding is shown at: the first that is there of those that it is about.
    fn place_of(&self, finding: &Finding, keys: &[String], subscription: &str) -> String {
        if finding.severity == Severity::Error {
            return self.circling_key(&finding.subscription, subscription);
        }
        let there = keys.iter().find(|key| self.report.has(key));
        match finding.rule {
            Rule::F4 | Rule::F5 => subscription.to_owned(),
            Rule::F1 | Rule::F2 | Rule::F3 | Rule::F6 | Rule::F7 => {
                there.cloned().unwrap_or_else(|| subscription.to_owned())
            }
        }
    }

    /// The destination of a loop's first member that some subscription reads.
    fn circling_key(&self, name: &str, key: &str) -> String {
        let facts = self.config.facts();
        let member = facts.iter().find(|one| one.name == name);
        let is_read = member
            .and_then(|one| one.dead_letter.as_ref())
            .is_some_and(|to| facts.iter().any(|other| other.source == *to));
        format!("{key}.{}", if is_read { "dead_letter" } else { "invalid_message" })
    }
}

/// The keys of a subscription that a finding follows from, the one that it is shown at first.
fn concerns(finding: &Finding) -> &'static [&'static str] {
    match finding.rule {
        Rule::F1 => &["max_deliveries"],
        Rule::F2 => &["max_deliveries", "native"],
        Rule::F3 => &["max_deliveries", "rejected", "native"],
        Rule::F4 => &["max_deliveries", "retry", "native"],
        Rule::F5 => &["dead_letter", "invalid_message"],
        Rule::F6 => &["retry.backoff", "max_deliveries", "retry"],
        Rule::F7 => &["deduplicate.ttl", "deduplicate", "retry"],
    }
}

/// S-1.
fn undeclared(one: &Subscription) -> Found {
    let wanted = one.semantics == Some(Semantics::Deduplicated) && one.deduplicate.is_none();
    let message =
        "`semantics = \"deduplicated\"` needs `deduplicate`: nothing remembers what was handled";
    wanted.then(|| ("semantics", Note::new(Code::S1, message)))
}

/// S-1.
fn unordered(one: &Subscription) -> Found {
    let wanted = one.ordering == Some(Ordering::Key) && one.source.ordering() == Ordering::None;
    let instead = match one.source {
        Place::Pubsub(_) => "say `source.pubsub.ordered = true`",
        Place::Rocketmq(_) => "say `source.rocketmq.kind = \"fifo\"`",
        Place::Sqs(_) | Place::Embedded { .. } => "use a FIFO queue, whose name ends in `.fifo`",
    };
    let message =
        format!("{} keeps no order, so `ordering = \"key\"` can't be given: {instead}", one.source);
    wanted.then(|| ("ordering", Note::new(Code::S1, message)))
}

fn short_cap(one: &Subscription) -> Found {
    let backoff = one.policy.backoff;
    let message = format!(
        "retry.backoff = {} is longer than retry.max_backoff = {}",
        Readable(backoff.base),
        Readable(backoff.max)
    );
    let note = || Note::new(Code::Contradiction, message);
    (backoff.base > backoff.max).then(|| ("retry.backoff", note()))
}

/// FR-09: a FIFO source has FIFO destinations, another has others.
fn mixed(key: &'static str, to: Option<&Place>, one: &Subscription) -> Found {
    let (Place::Sqs(from), Place::Sqs(to)) = (&one.source, to?) else { return None };
    if from.queue.is_fifo() == to.queue.is_fifo() {
        return None;
    }
    let message = format!(
        "source {} and {key} {} must both be FIFO queues, ending in `.fifo`, or neither",
        from.queue.name, to.queue.name
    );
    Some((key, Note::new(Code::Contradiction, message)))
}

/// A native policy that is to be made needs somewhere to move messages to, of the source's own kind.
fn native_target(one: &Subscription) -> Found {
    let native = one.native.as_ref()?;
    if let Some(target) = &native.dead_letter {
        return mixed("native.dead_letter", Some(target), one);
    }
    let message = match one.source {
        Place::Pubsub(_) => {
            "`native.dead_letter.topic` is missing: a policy of Pub/Sub always has a topic"
        }
        Place::Rocketmq(_) => return None,
        Place::Sqs(_) | Place::Embedded { .. } if one.provision != Provision::Create => {
            return None;
        }
        Place::Sqs(_) | Place::Embedded { .. } => {
            "`native.dead_letter.queue` is missing: `provision = \"create\"` makes the policy, and it needs a queue to move messages to"
        }
    };
    Some(("native", Note::new(Code::Missing, message)))
}

/// A subscription of Pub/Sub that is to be made needs its topic.
fn no_topic(one: &Subscription) -> Found {
    let source = one.source.pubsub_source()?;
    let missing = source.topic.is_none() && one.provision == Provision::Create;
    let message = "`topic` is missing: `provision = \"create\"` makes the subscription, and it must know of which topic";
    missing.then(|| ("source.pubsub.topic", Note::new(Code::Missing, message)))
}

/// The files that must be there before anything starts.
pub(crate) fn files(review: &Review<'_>) {
    for handler in review.config.handlers.values() {
        let short = handler.name.split('/').next_back().unwrap_or_default();
        let handlers = format!("{}.handlers", join("tenants", &handler.tenant));
        let key = format!("{}.component", join(&handlers, short));
        if review.report.is_spoilt(&key) || handler.component.is_file() {
            continue;
        }
        let message = format!(
            "there is no file {}; a relative path begins at the configuration's directory",
            handler.component.display()
        );
        review.report.error(&key, At::Value, Note::new(Code::MissingFile, message));
    }
    rocketmq::files(review);
    tenants::files(review);
}
