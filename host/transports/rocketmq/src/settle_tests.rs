use super::*;
use crate::calls::meaning;

#[test]
fn fr_34_what_a_failed_settlement_means() {
    for (code, expected) in [
        (Some(1), Failure::Retry),
        (Some(2), Failure::Retry),
        (Some(215), Failure::Retry),
        (Some(14), Failure::Retry),
        (None, Failure::Retry),
        (Some(17), Failure::Gone),
        (Some(26), Failure::Gone),
        (Some(208), Failure::Gone),
        (Some(13), Failure::Refused),
        (Some(16), Failure::Refused),
    ] {
        let meaning = code.map_or(Meaning::Unavailable, meaning);
        let fault = Fault { meaning, text: String::new(), code };
        assert_eq!(failure(&fault), expected, "{code:?}");
    }
}

/// What the broker refuses by name was not done and may be asked again; anything else may have been.
#[test]
fn a_release_that_may_have_been_done_is_in_doubt() {
    for (code, doubtful) in [
        (Some(2), false),
        (Some(14), false),
        (Some(17), false),
        (Some(208), false),
        (Some(215), false),
        (Some(1), true),
        (Some(999), true),
        (None, true),
    ] {
        let meaning = code.map_or(Meaning::Unavailable, meaning);
        let failed = Failed::from(Fault { meaning, text: String::new(), code });
        assert_eq!(failed.doubtful, doubtful, "{code:?}");
    }
}

#[test]
fn a_delay_is_rounded_up_and_bounded() {
    let days = Duration::from_secs(24 * 60 * 60);
    for (after, expected) in [
        (Duration::ZERO, 0),
        (Duration::from_nanos(1), 1),
        (Duration::from_millis(15), 15),
        (Duration::from_micros(15_001), 16),
        (4 * days, 3 * 24 * 60 * 60 * 1_000),
        (Duration::MAX, 3 * 24 * 60 * 60 * 1_000),
    ] {
        assert_eq!(delay(after), expected);
    }
}
