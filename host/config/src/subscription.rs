//! `[subscriptions]`.

use pumphouse_contract::ports::Ordering;
use pumphouse_contract::{Backoff, Budget, Jitter, OnFault, Policy};

use crate::diagnostic::Code;
use crate::native;
use crate::place::{self, Place, Role};
use crate::report::{At, Note};
use crate::section::Section;
use crate::types::{Deduplicate, DeduplicationKey, Provisioning, Subscription};
use crate::values;
use crate::words::{Dispatch, PubsubMode, TopicKind};

/// Messages in a handler at once where the configuration does not say.
const DEFAULT_CONCURRENCY: u32 = 16;

/// Every subscription whose source could be read; what is wrong with the others is reported.
pub(crate) fn read(section: &Section<'_>, provisioning: Provisioning) -> Vec<Subscription> {
    let each = section.each().into_iter();
    each.filter_map(|(name, one)| read_one(name, &one, provisioning)).collect()
}

fn read_one(
    name: String,
    section: &Section<'_>,
    provisioning: Provisioning,
) -> Option<Subscription> {
    if !section.has("source") {
        let note = place::missing("`source` is missing: where messages come from", Role::Source);
        section.error("source", At::Key, note);
    }
    let source = place::read(&section.below("source"), Role::Source);
    let provisioning = section.word("provision").map_or(provisioning, Provisioning::all);
    let kind = source.as_ref().and_then(Place::rocketmq).map(|place| place.kind);
    let role = Role::Destination(kind.unwrap_or(TopicKind::Normal));
    let destination = |key| place::read(&section.below(key), role);
    let dispatch = section.word("dispatch").unwrap_or(Dispatch::Concurrent);
    let handler = section.read("handler", values::handler).unwrap_or_default();
    // Everything is read before a missing source ends it, so that every finding is there.
    let rest = Subscription {
        name,
        tenant: handler.split('/').next().unwrap_or_default().to_owned(),
        source: Place::Embedded { queue: String::new() },
        handler,
        dispatch,
        concurrency: concurrency(section, dispatch),
        policy: policy(section, source.as_ref()),
        dead_letter: destination("dead_letter"),
        invalid_message: destination("invalid_message"),
        deduplicate: deduplicate(&section.below("deduplicate")),
        rejected: section.flag("rejected"),
        reads_copies: false,
        provision: provisioning.embedded,
        provisioning,
        native: native::read(&section.below("native"), source.as_ref()),
        semantics: section.word("semantics"),
        ordering: section.text_word("ordering").map(|word| match word {
            "key" => Ordering::Key,
            _ => Ordering::None,
        }),
    };
    let source = source?;
    Some(Subscription { provision: provisioning.at(&source), source, ..rest })
}

fn concurrency(section: &Section<'_>, dispatch: Dispatch) -> u32 {
    let written = section.count("concurrency");
    match (dispatch, written) {
        (Dispatch::Concurrent, written) => written.unwrap_or(DEFAULT_CONCURRENCY),
        (Dispatch::Sequential, None | Some(1)) => 1,
        (Dispatch::Sequential, Some(written)) => {
            let message = format!(
                "concurrency = {written} and dispatch = \"sequential\" exclude each other: sequential handles one message after another"
            );
            section.error("concurrency", At::Value, Note::new(Code::Contradiction, message));
            1
        }
    }
}

fn policy(section: &Section<'_>, source: Option<&Place>) -> Policy {
    let retry = section.below("retry");
    let jitter = match retry.text_word("jitter") {
        Some("none") => Jitter::None,
        _ => Jitter::Full,
    };
    let on_fault = match section.text_word("on_fault") {
        Some("reject") => OnFault::Reject,
        _ => OnFault::Defer,
    };
    let (base, max) = (retry.duration("backoff"), retry.duration("max_backoff"));
    Policy {
        budget: Budget::from_configured(section.integer("max_deliveries")),
        backoff: Backoff { base: base.unwrap_or_default(), max: max.unwrap_or_default(), jitter },
        window: retry.duration("window"),
        on_fault,
        guard: !source.is_some_and(is_ordered_stream),
    }
}

/// C-17 is not applied there: those behind a head that defers go back with it and lose deliveries without having
/// been handled, so a high count says nothing of a message.
fn is_ordered_stream(source: &Place) -> bool {
    source.pubsub_source().is_some_and(|one| one.ordered && one.mode == PubsubMode::Stream)
}

fn deduplicate(section: &Section<'_>) -> Option<Deduplicate> {
    section.is_present().then(|| Deduplicate {
        key: section.deduplication_key("key").unwrap_or(DeduplicationKey::Id),
        ttl: section.duration("ttl").unwrap_or_default(),
    })
}
