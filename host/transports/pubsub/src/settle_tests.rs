use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::*;

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn sizes(parts: &[Vec<&Receipt>]) -> Vec<usize> {
    parts.iter().map(Vec::len).collect()
}

/// What an exactly-once subscription answers.
fn told(pairs: &[(&str, &str)]) -> Fault {
    let metadata: HashMap<String, String> =
        pairs.iter().map(|(id, why)| ((*id).to_owned(), (*why).to_owned())).collect();
    let details = ErrorDetails::with_error_info("EXACTLY_ONCE_ACKID_FAILURE", "pubsub", metadata);
    Status::with_error_details(Code::FailedPrecondition, "some failed", details).into()
}

/// Exactly-once subscriptions: each id has a result of its own, and the others were done.
#[test]
fn fr_34_the_results_of_an_exactly_once_subscription_are_read_one_by_one() {
    let fault = told(&[
        ("lost", "PERMANENT_FAILURE_INVALID_ACK_ID"),
        ("later", "TRANSIENT_FAILURE_SERVICE_UNAVAILABLE"),
        ("never", "PERMANENT_FAILURE_OTHER"),
        ("unasked", "PERMANENT_FAILURE_INVALID_ACK_ID"),
    ]);
    let refusals = refusals(&texts(&["done", "lost", "later", "never"]), fault);
    let failures: HashMap<_, _> =
        refusals.iter().map(|(id, (failure, _))| (id.as_str(), *failure)).collect();
    assert_eq!(
        failures,
        [("lost", Failure::Gone), ("later", Failure::Retry), ("never", Failure::Refused)].into()
    );
    assert!(refusals.get("lost").is_some_and(|(_, text)| text.contains("INVALID_ACK_ID")));
}

/// FR-34: a request that fails as a whole fails for each.
#[test]
fn fr_34_a_request_that_fails_as_a_whole_fails_for_each() {
    for (code, failure) in [
        (Code::Unavailable, Failure::Retry),
        (Code::DeadlineExceeded, Failure::Retry),
        (Code::ResourceExhausted, Failure::Retry),
        (Code::NotFound, Failure::Gone),
        (Code::PermissionDenied, Failure::Refused),
        (Code::InvalidArgument, Failure::Refused),
    ] {
        let refusals = refusals(&texts(&["a", "b"]), Status::new(code, "why").into());
        let found: Vec<_> = ["a", "b"].map(|id| refusals.get(id).map(|(it, _)| *it)).into();
        assert_eq!(found, [Some(failure); 2], "{code:?}");
    }
    let foreign = told(&[("another", "PERMANENT_FAILURE_INVALID_ACK_ID")]);
    assert_eq!(refusals(&texts(&["a"]), foreign).len(), 1);
}

#[test]
fn requests_hold_no_more_than_the_service_takes_and_keep_the_order() {
    assert!(parts(Vec::new()).is_empty());
    let short: Vec<Receipt> = (0..2_500).map(|at| Receipt::from(format!("id-{at}"))).collect();
    let by_count = parts(short.iter().collect());
    assert_eq!(sizes(&by_count), [1_000, 1_000, 500]);
    assert!(by_count.concat().into_iter().eq(&short));
    let long: Vec<Receipt> = (0..1_000).map(|at| Receipt::from(format!("{at:0>2000}"))).collect();
    let by_size = parts(long.iter().collect());
    let size = |part: &Vec<&Receipt>| part.iter().map(|one| one.0.len() + ID_FRAME).sum::<usize>();
    assert!(by_size.len() > 1 && by_size.iter().all(|part| size(part) <= BATCH_BYTES));
    assert!(by_size.concat().into_iter().eq(&long));
    let huge = ["x".repeat(BATCH_BYTES + 1), "y".to_owned()].map(Receipt::from);
    assert_eq!(sizes(&parts(huge.iter().collect())), [1, 1]);
}

/// FR-32: never shorter than asked, never longer than Pub/Sub takes.
#[test]
fn fr_32_a_delay_is_rounded_up_to_seconds() {
    let cases = [(0, 0), (1, 1), (999, 1), (1_000, 1), (1_001, 2), (600_000, 600), (900_000, 600)];
    for (millis, expected) in cases {
        assert_eq!(seconds(Duration::from_millis(millis)), expected, "{millis}");
    }
}
