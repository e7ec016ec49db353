//! What only the whole of a configuration tells of RocketMQ.

use std::collections::BTreeMap;
use std::path::Path;

use super::Review;
use crate::diagnostic::Code;
use crate::place::{LONGEST_GROUP, LONGEST_TOPIC, Place, RocketmqPlace};
use crate::report::{At, Note};
use crate::types::Subscription;

/// A place with the key that it stands at.
type Placed<'a> = (String, &'a RocketmqPlace);

pub(super) fn review(review: &Review<'_>) {
    let placed: Vec<Placed<'_>> =
        review.config.subscriptions.iter().flat_map(|one| places(review, one)).collect();
    two_kinds(review, &placed);
    placed.iter().for_each(|placed| too_long(review, placed));
}

fn places<'a>(review: &Review<'_>, one: &'a Subscription) -> Vec<Placed<'a>> {
    let all = [
        ("source", Some(&one.source)),
        ("dead_letter", one.dead_letter.as_ref()),
        ("invalid_message", one.invalid_message.as_ref()),
    ];
    let placed = all.into_iter().filter_map(|(name, place)| {
        Some((review.key(one, &format!("{name}.rocketmq")), place.and_then(Place::rocketmq)?))
    });
    placed.collect()
}

/// A topic is of one kind, wherever it is named.
fn two_kinds(review: &Review<'_>, placed: &[Placed<'_>]) {
    let mut known: BTreeMap<&str, &Placed<'_>> = BTreeMap::new();
    for one in placed {
        let (key, place) = one;
        let first = *known.entry(&place.topic).or_insert(one);
        if first.1.kind == place.kind {
            continue;
        }
        let message = format!(
            "topic {} is `{}` here and `{}` at `{}`: a topic has one kind, so say the same in both",
            place.topic, place.kind, first.1.kind, first.0
        );
        let note = Note::new(Code::Contradiction, message);
        review.report.error(&format!("{key}.kind"), At::Value, note);
    }
}

/// The namespace is part of a name at the broker.
fn too_long(review: &Review<'_>, (key, place): &Placed<'_>) {
    let namespace = review.config.rocketmq.as_ref().and_then(|one| one.namespace.as_deref());
    let Some(namespace) = namespace else { return };
    let group = place.reader.as_ref().map(|reader| ("group", reader.group.as_str(), LONGEST_GROUP));
    let named = [Some(("topic", place.topic.as_str(), LONGEST_TOPIC)), group];
    for (name, value, longest) in named.into_iter().flatten() {
        let length = namespace.len() + 1 + value.len();
        if length > longest {
            let message = format!(
                "`{namespace}%{value}` has {length} characters, and the broker takes {longest}"
            );
            let note = Note::new(Code::WrongValue, message);
            review.report.error(&format!("{key}.{name}"), At::Value, note);
        }
    }
}

/// The files of `tls`.
pub(super) fn files(review: &Review<'_>) {
    let Some(tls) = review.config.rocketmq.as_ref().and_then(|one| one.tls.as_ref()) else {
        return;
    };
    let files = [("trust", &tls.trust), ("certificate", &tls.certificate), ("key", &tls.key)];
    for (name, path) in files {
        let Some(path) = path.as_deref().filter(|path| !Path::is_file(path)) else { continue };
        let message = format!(
            "there is no file {}; a relative path begins at the configuration's directory",
            path.display()
        );
        let note = Note::new(Code::MissingFile, message);
        review.report.error(&format!("rocketmq.tls.{name}"), At::Value, note);
    }
}
