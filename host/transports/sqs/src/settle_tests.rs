use super::*;

fn failed(id: &str, code: &str, message: &str, senders: bool) -> BatchResultErrorEntry {
    let entry = BatchResultErrorEntry::builder().id(id).code(code).message(message);
    entry.sender_fault(senders).build().expect("an entry")
}

/// FR-34: every entry of an answer is looked at.
#[test]
fn fr_34_every_entry_of_an_answer_is_told_apart() {
    let entries = [
        failed("1", "InternalError", "", false),
        failed("2", "ReceiptHandleIsInvalid", "", true),
        failed("3", "InvalidParameterValue", "The receipt handle has expired", true),
        failed("4", "InvalidParameterValue", "no good", true),
        failed("5", "RequestThrottled", "", true),
        failed("6", "Odd", "", false),
        failed("99", "Odd", "", false),
        failed("odd", "Odd", "", false),
    ];
    let asked: Vec<usize> = (0..8).collect();
    let found = refusals(&asked, ["0"].into_iter(), &entries);
    let kinds: Vec<_> = asked.iter().map(|at| found.get(at).map(|(kind, _)| *kind)).collect();
    let expected = [
        None,
        Some(Failure::Retry),
        Some(Failure::Gone),
        Some(Failure::Gone),
        Some(Failure::Refused),
        Some(Failure::Retry),
        Some(Failure::Retry),
        Some(Failure::Retry),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(
        found.get(&4).map(|(_, text)| text.as_str()),
        Some("InvalidParameterValue: no good")
    );
}

/// FR-32: twelve hours from the receive, whatever is asked.
#[test]
fn fr_32_a_delay_stays_within_what_is_left_of_twelve_hours() {
    let at = |seconds| Mono(Duration::from_secs(seconds));
    let hours = Duration::from_secs(43_200);
    assert_eq!(visible_in(Duration::ZERO, at(0), at(5)), 0);
    assert_eq!(visible_in(Duration::from_millis(1), at(0), at(5)), 1);
    assert_eq!(visible_in(Duration::from_secs(900), at(0), at(5)), 900);
    assert_eq!(visible_in(hours, at(100), at(105)), 43_194);
    assert_eq!(visible_in(Duration::MAX, at(0), at(50_000)), 0);
}
