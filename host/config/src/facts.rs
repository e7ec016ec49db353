//! What the rules of the delivery contract need to know of a configuration.

use pumphouse_contract::{Address, SubscriptionFacts};

use crate::place::{Place, QueueRef};
use crate::types::{Config, Subscription};

impl Config {
    /// Every subscription as the findings' rules see it. M is `native.max_receive_count`; a caller that knows
    /// more from the broker, such as the limit or the retention that is really set, fills it in.
    #[must_use]
    pub fn facts(&self) -> Vec<SubscriptionFacts> {
        let all = self.places();
        self.subscriptions.iter().map(|one| facts_of(one, &all)).collect()
    }

    /// The canonical name of a place of this configuration: two spellings of one queue have the same.
    #[must_use]
    pub fn address(&self, place: &Place) -> Address {
        address(place, &self.places())
    }

    /// Marks the subscriptions whose source holds rejected copies (C-7).
    pub(crate) fn find_copies(&mut self) {
        let facts = self.facts();
        let is_destination = |source: &Address| {
            facts.iter().any(|one| {
                one.dead_letter.as_ref() == Some(source)
                    || one.invalid_message.as_ref() == Some(source)
            })
        };
        for (one, fact) in self.subscriptions.iter_mut().zip(&facts) {
            one.reads_copies = one.rejected || is_destination(&fact.source);
        }
    }

    fn places(&self) -> Vec<&Place> {
        self.subscriptions.iter().flat_map(places_of).collect()
    }
}

fn places_of(one: &Subscription) -> impl Iterator<Item = &Place> {
    let native = one.native.as_ref().and_then(|native| native.dead_letter.as_ref());
    [Some(&one.source), one.dead_letter.as_ref(), one.invalid_message.as_ref(), native]
        .into_iter()
        .flatten()
}

fn facts_of(one: &Subscription, all: &[&Place]) -> SubscriptionFacts {
    SubscriptionFacts {
        name: one.name.clone(),
        source: address(&one.source, all),
        rejected: one.rejected,
        budget: one.policy.budget,
        native_limit: one.native.as_ref().map(|native| native.max_receive_count),
        count_stands_still: None,
        backoff: one.policy.backoff.base,
        max_backoff: one.policy.backoff.max,
        window: one.policy.window,
        dead_letter: one.dead_letter.as_ref().map(|place| address(place, all)),
        invalid_message: one.invalid_message.as_ref().map(|place| address(place, all)),
        deduplicate_ttl: one.deduplicate.as_ref().map(|deduplicate| deduplicate.ttl),
        retention: None,
    }
}

fn address(place: &Place, all: &[&Place]) -> Address {
    let name = match place {
        Place::Embedded { queue } => queue.clone(),
        Place::Sqs(sqs) => {
            let same_name: Vec<&QueueRef> = all
                .iter()
                .filter_map(|other| queue_of(other))
                .filter(|q| q.name == sqs.queue.name)
                .collect();
            canonical(&sqs.queue, &same_name)
        }
    };
    Address { transport: place.transport(), name }
}

fn queue_of(place: &Place) -> Option<&QueueRef> {
    match place {
        Place::Sqs(sqs) => Some(&sqs.queue),
        Place::Embedded { .. } => None,
    }
}

/// The name alone where all queues of that name can be one; else with what is known of account and region.
/// A spelling that fits several different queues stays a place of its own: what can't be told apart here is
/// stopped at run time by the rejection metadata.
fn canonical(queue: &QueueRef, same_name: &[&QueueRef]) -> String {
    if all_compatible(same_name) {
        return queue.name.clone();
    }
    let fitting: Vec<&QueueRef> =
        same_name.iter().copied().filter(|other| compatible(queue, other)).collect();
    let known = if all_compatible(&fitting) { fitting } else { vec![queue] };
    let first = |part: fn(&QueueRef) -> Option<&String>| {
        known.iter().find_map(|queue| part(queue)).map_or("", String::as_str)
    };
    let region = first(|queue| queue.region.as_ref());
    let account = first(|queue| queue.account.as_ref());
    format!("{region}:{account}:{}", queue.name)
}

fn all_compatible(queues: &[&QueueRef]) -> bool {
    queues
        .iter()
        .enumerate()
        .all(|(i, one)| queues.iter().skip(i + 1).all(|two| compatible(one, two)))
}

fn compatible(one: &QueueRef, two: &QueueRef) -> bool {
    let fits = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
    fits(&one.account, &two.account) && fits(&one.region, &two.region)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(account: Option<&str>, region: Option<&str>) -> QueueRef {
        QueueRef {
            spelled: "q".into(),
            name: "q".into(),
            account: account.map(Into::into),
            region: region.map(Into::into),
            url: None,
        }
    }

    /// FR-10: by another spelling it is the same queue; of another account it is not.
    #[test]
    fn fr_10_spellings_of_one_queue_have_one_address() {
        let (plain, one, two) =
            (queue(None, None), queue(Some("1"), Some("eu")), queue(Some("2"), Some("eu")));
        let url = queue(Some("1"), None);
        for spelling in [&plain, &one, &url] {
            assert_eq!(canonical(spelling, &[&plain, &one, &url]), "q");
        }
        let all = [&plain, &one, &two, &url];
        assert_eq!(canonical(&one, &all), "eu:1:q");
        assert_eq!(canonical(&url, &all), canonical(&one, &all));
        assert_ne!(canonical(&two, &all), canonical(&one, &all));
        assert_ne!(canonical(&plain, &all), canonical(&one, &all));
    }
}
