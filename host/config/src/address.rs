//! When two spellings are one place.

use pumphouse_contract::Address;

use crate::place::{Place, PubsubPlace, PubsubSource, QueueRef, ResourceRef};
use crate::types::Config;

/// A name with what else its spelling says of it. What is not said may be anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spelling<'a> {
    name: &'a str,
    /// Region and account, or the project.
    within: [Option<&'a str>; 2],
}

/// Every place of a configuration, to tell from how one is spelled elsewhere what it is.
pub(crate) struct Places<'a> {
    all: Vec<&'a Place>,
    /// `pubsub.project`.
    project: Option<&'a str>,
    /// `rocketmq.namespace`.
    namespace: Option<&'a str>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(all: Vec<&'a Place>, config: &'a Config) -> Self {
        Self {
            all,
            project: config.pubsub.as_ref().and_then(|pubsub| pubsub.project.as_deref()),
            namespace: config.rocketmq.as_ref().and_then(|rocketmq| rocketmq.namespace.as_deref()),
        }
    }

    /// The canonical name of a place: two spellings of one have the same. A subscription of Pub/Sub goes by its
    /// topic where that is known, since that is what others publish to. A topic of RocketMQ is in the namespace,
    /// and the same for every group that reads it.
    pub(crate) fn address(&self, place: &'a Place) -> Address {
        let name = match place {
            Place::Embedded { queue } => queue.clone(),
            Place::Sqs(sqs) => {
                let queues = self.all.iter().filter_map(|other| queue_of(other));
                canonical(of_queue(&sqs.queue), queues.map(of_queue))
            }
            Place::Pubsub(PubsubPlace::Target(target)) => self.topic(&target.topic),
            Place::Pubsub(PubsubPlace::Source(source)) => self.source(source),
            Place::Rocketmq(place) => match self.namespace {
                Some(namespace) => format!("{namespace}%{}", place.topic),
                None => place.topic.clone(),
            },
        };
        Address { transport: place.transport(), name }
    }

    fn source(&self, source: &'a PubsubSource) -> String {
        if let Some(topic) = source.topic.as_ref().or_else(|| self.topic_of(&source.subscription)) {
            return self.topic(topic);
        }
        let all = self.pubsub().filter_map(|place| match place {
            PubsubPlace::Source(other) => Some(self.of(&other.subscription)),
            PubsubPlace::Target(_) => None,
        });
        format!("subscriptions/{}", canonical(self.of(&source.subscription), all))
    }

    fn topic(&self, topic: &'a ResourceRef) -> String {
        let all = self.pubsub().filter_map(|place| match place {
            PubsubPlace::Source(other) => other.topic.as_ref(),
            PubsubPlace::Target(other) => Some(&other.topic),
        });
        format!("topics/{}", canonical(self.of(topic), all.map(|one| self.of(one))))
    }

    /// The topic of a subscription, as another place says it.
    fn topic_of(&self, subscription: &ResourceRef) -> Option<&'a ResourceRef> {
        let wanted = self.of(subscription);
        self.pubsub().find_map(|place| {
            let (topic, beside) = match place {
                PubsubPlace::Source(other) => (other.topic.as_ref()?, self.of(&other.subscription)),
                PubsubPlace::Target(to) => match &to.subscription {
                    Some(beside) => (&to.topic, self.of(beside)),
                    // Without a name of its own it has its topic's, in the project of the host.
                    None => {
                        (&to.topic, Spelling { name: &to.topic.id, within: [self.project, None] })
                    }
                },
            };
            (beside.name == wanted.name && compatible(&beside, &wanted)).then_some(topic)
        })
    }

    fn pubsub(&self) -> impl Iterator<Item = &'a PubsubPlace> + '_ {
        self.all.iter().filter_map(|place| match place {
            Place::Pubsub(place) => Some(place),
            Place::Embedded { .. } | Place::Sqs(_) | Place::Rocketmq(_) => None,
        })
    }

    fn of<'b>(&'b self, one: &'b ResourceRef) -> Spelling<'b> {
        Spelling { name: &one.id, within: [one.project.as_deref().or(self.project), None] }
    }
}

fn queue_of(place: &Place) -> Option<&QueueRef> {
    match place {
        Place::Sqs(sqs) => Some(&sqs.queue),
        Place::Embedded { .. } | Place::Pubsub(_) | Place::Rocketmq(_) => None,
    }
}

fn of_queue(queue: &QueueRef) -> Spelling<'_> {
    Spelling { name: &queue.name, within: [queue.region.as_deref(), queue.account.as_deref()] }
}

/// The name alone where all places of that name can be one; else with what is known of where it is. A spelling
/// that fits several different places stays a place of its own: what can't be told apart here is stopped at run
/// time by the rejection metadata.
fn canonical<'a>(one: Spelling<'a>, all: impl Iterator<Item = Spelling<'a>>) -> String {
    let same_name: Vec<Spelling<'_>> = all.filter(|other| other.name == one.name).collect();
    if all_compatible(&same_name) {
        return one.name.to_owned();
    }
    let fitting: Vec<Spelling<'_>> =
        same_name.iter().copied().filter(|other| compatible(&one, other)).collect();
    let known = if all_compatible(&fitting) { fitting } else { vec![one] };
    let first = |part: usize| {
        known.iter().find_map(|one| one.within.get(part).copied().flatten()).unwrap_or_default()
    };
    format!("{}:{}:{}", first(0), first(1), one.name)
}

fn all_compatible(places: &[Spelling<'_>]) -> bool {
    places
        .iter()
        .enumerate()
        .all(|(i, one)| places.iter().skip(i + 1).all(|two| compatible(one, two)))
}

fn compatible(one: &Spelling<'_>, two: &Spelling<'_>) -> bool {
    let fits = |(a, b): (&Option<&str>, &Option<&str>)| a.is_none() || b.is_none() || a == b;
    one.within.iter().zip(&two.within).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(account: Option<&'static str>, region: Option<&'static str>) -> Spelling<'static> {
        Spelling { name: "q", within: [region, account] }
    }

    /// FR-10: by another spelling it is the same queue; of another account it is not.
    #[test]
    fn fr_10_spellings_of_one_queue_have_one_address() {
        let (plain, one, two) =
            (queue(None, None), queue(Some("1"), Some("eu")), queue(Some("2"), Some("eu")));
        let url = queue(Some("1"), None);
        for spelling in [plain, one, url] {
            assert_eq!(canonical(spelling, [plain, one, url].into_iter()), "q");
        }
        let named = |spelling| canonical(spelling, [plain, one, two, url].into_iter());
        assert_eq!(named(one), "eu:1:q");
        assert_eq!(named(url), named(one));
        assert_ne!(named(two), named(one));
        assert_ne!(named(plain), named(one));
    }
}
