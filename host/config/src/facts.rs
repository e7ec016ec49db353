//! What the rules of the delivery contract need to know of a configuration.

use pumphouse_contract::{Address, SubscriptionFacts};

use crate::address::Places;
use crate::place::Place;
use crate::types::{Config, Subscription};

impl Config {
    /// Every subscription as the findings' rules see it. M is what `native` says; a caller that knows
    /// more from the broker, such as the limit or the retention that is really set, or whether deliveries are counted, fills it in.
    #[must_use]
    pub fn facts(&self) -> Vec<SubscriptionFacts> {
        let all = self.places(None);
        self.subscriptions.iter().map(|one| facts_of(one, &all)).collect()
    }

    /// The canonical name of a place of this configuration: two spellings of one queue have the same.
    #[must_use]
    pub fn address(&self, place: &Place) -> Address {
        self.places(Some(place)).address(place)
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

    fn places<'a>(&'a self, more: Option<&'a Place>) -> Places<'a> {
        let all = self.subscriptions.iter().flat_map(places_of).chain(more).collect();
        Places::new(all, self)
    }
}

fn places_of(one: &Subscription) -> impl Iterator<Item = &Place> {
    let native = one.native.as_ref().and_then(|native| native.dead_letter.as_ref());
    [Some(&one.source), one.dead_letter.as_ref(), one.invalid_message.as_ref(), native]
        .into_iter()
        .flatten()
}

fn facts_of<'a>(one: &'a Subscription, all: &Places<'a>) -> SubscriptionFacts {
    SubscriptionFacts {
        name: one.name.clone(),
        source: all.address(&one.source),
        rejected: one.rejected,
        budget: one.policy.budget,
        native_limit: one.native.as_ref().map(|native| native.limit),
        advisory_limit: None,
        count_stands_still: one.count_stands_still().map(str::to_owned),
        backoff: one.policy.backoff.base,
        max_backoff: one.policy.backoff.max,
        window: one.policy.window,
        dead_letter: one.dead_letter.as_ref().map(|place| all.address(place)),
        invalid_message: one.invalid_message.as_ref().map(|place| all.address(place)),
        deduplicate_ttl: one.deduplicate.as_ref().map(|deduplicate| deduplicate.ttl),
        retention: None,
    }
}
