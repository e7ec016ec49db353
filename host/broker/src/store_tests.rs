use super::*;

fn message() -> Message {
    Message { id: "m".into(), published_at: Some(Timestamp(1)), ..Message::default() }
}

/// What is left, at `now`, of a lease of ten seconds that began at 1,000,000.
fn left_at(now: u64) -> Option<Duration> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::open(directory.path()).expect("a store");
    let span = Span { from: Timestamp(1_000_000), length: Duration::from_secs(10) };
    store
        .transaction(|writing| {
            let sequence = writing.insert(1, &message())?;
            writing.lease(sequence, 1, Timestamp(1_000_000), span)
        })
        .expect("written");
    let mut left = None;
    store.messages(Timestamp(now), |stored| left = stored.left).expect("read");
    left
}

#[test]
fn a_lease_goes_on_for_what_is_left_of_it() {
    assert_eq!(left_at(1_004_000), Some(Duration::from_secs(6)));
    assert_eq!(left_at(2_000_000), Some(Duration::ZERO));
}

#[test]
fn a_clock_that_stepped_back_does_not_stretch_a_lease() {
    assert_eq!(left_at(0), Some(Duration::from_secs(10)));
}

#[test]
fn part_of_a_millisecond_counts_as_a_whole_one() {
    assert_eq!(millis(Duration::from_nanos(1)), 1);
    assert_eq!(millis(Duration::from_millis(7)), 7);
    assert_eq!(millis(Duration::MAX), i64::MAX);
}

fn recall(store: &mut Store, message_id: &str, now: u64) -> Option<String> {
    let mut found = None;
    store
        .transaction(|writing| {
            found = writing.recall(1, "d", message_id, Timestamp(now))?;
            Ok(())
        })
        .expect("written");
    found
}

#[test]
fn a_deduplication_id_is_good_for_its_time_whatever_the_clock_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::open(directory.path()).expect("a store");
    let window = 300_000;
    let start = 10_000_000;
    assert_eq!(recall(&mut store, "first", start), None);
    assert_eq!(recall(&mut store, "second", start + window - 1).as_deref(), Some("first"));
    assert_eq!(recall(&mut store, "third", start + window), None);
    assert_eq!(recall(&mut store, "fourth", start + window + 1).as_deref(), Some("third"));
    assert_eq!(recall(&mut store, "fifth", start - window), None, "the clock stepped back");
}

#[test]
fn the_log_does_not_grow_for_ever() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::open(directory.path()).expect("a store");
    let body = Bytes::from(vec![7; 100_000]);
    for _ in 0..400 {
        let big = Message { body: body.clone(), ..message() };
        store
            .transaction(|writing| {
                let sequence = writing.insert(1, &big)?;
                writing.remove(sequence)
            })
            .expect("written");
        store.tidy(Timestamp(1)).expect("tidied");
    }
    let log = directory.path().join(format!("{FILE}-wal"));
    let bytes = std::fs::metadata(log).expect("a log").len();
    assert!(bytes < 10 << 20, "the log has {bytes} bytes");
    assert!(store.log_pages().expect("pages") < LONGEST_LOG_PAGES);
}
