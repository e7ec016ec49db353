use super::*;

#[test]
fn what_is_asked_for_is_shared() {
    for (messages, parts, expected) in
        [(32, 1, vec![32]), (32, 3, vec![11, 11, 10]), (1, 1, vec![1]), (3, 2, vec![2, 1])]
    {
        assert_eq!(shares(messages, parts).collect::<Vec<_>>(), expected);
    }
    assert_eq!(shares(3, 0).count(), 0);
}

/// A failure is told where nobody answered, and never instead of messages.
#[test]
fn one_of_several_that_fails_does_not_hide_the_others() {
    let failed = || Err(Fault::unavailable("away"));
    let mut caught = Caught::default();
    caught.add(failed());
    assert!(caught.into_result().is_err());
    let mut caught = Caught::default();
    caught.add(Ok(Vec::new()));
    caught.add(failed());
    assert_eq!(caught.into_result().map(|it| it.len()), Ok(0));
}

#[test]
fn what_a_failed_receive_means() {
    for (meaning, label) in [
        (Meaning::Unavailable, "unavailable"),
        (Meaning::Busy, "unavailable"),
        (Meaning::Missing, "missing"),
        (Meaning::Denied, "denied"),
        (Meaning::Refused, "other"),
    ] {
        let error = receive_error("orders", Fault { meaning, text: "why".into(), code: None });
        assert_eq!(error.label(), label);
        assert!(error.to_string().contains("orders") && error.to_string().contains("why"));
    }
}
