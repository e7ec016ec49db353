//! The nearest known name.

/// The name in `known` that was most likely meant by `written`; none where nothing is near.
pub(crate) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let most = (written.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&plain(written), &plain(name)), name))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, name)| name)
}

/// Spellings that differ only in case or in the kind of dash are the same mistake.
fn plain(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_found_and_a_far_one_is_not() {
        let known = ["backoff", "max_backoff", "jitter", "window"];
        for (written, meant) in [
            ("backof", Some("backoff")),
            ("max-backoff", Some("max_backoff")),
            ("Jitter", Some("jitter")),
            ("widnow", Some("window")),
            ("timeout", None),
            ("w", None),
        ] {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
    }
}
