//! FR-36 where the broker is another process.

use std::time::{Duration, Instant};

use pumphouse_e2e::{Depth, LONG, Queue, Signal, block_on, elasticmq, fauxqs, scene, unique};
use pumphouse_test_brokers::proxy::Proxy;
use serde_json::json;

use crate::common::{done, slowly_done};

pumphouse_e2e::tests! {
    fr_36_what_an_open_poll_brings_is_given_back,
}

/// FR-36: what an open long poll brings after the signal is visible again at once; the handler that needs 3 s
/// finishes and its removal is sent; the endless one is cut and its message visible.
fn fr_36_what_an_open_poll_brings_is_given_back() {
    for server in [fauxqs(), elasticmq()] {
        let proxy = block_on(Proxy::start(&server)).unwrap();
        let name = unique("fr36");
        let text = crate::common::work(&name, "concurrency = 12")
            .replace("deadline = \"2s\"", "deadline = \"60s\"");
        let scene = scene(&proxy.endpoint(), "grace = \"12s\"", &text);
        let mut host = scene.start();
        let source = Queue::at(&server, &name);
        let slow = source.send(&slowly_done(3_000));
        let endless = source.send(&json!({ "do": "loop" }));
        host.until(LONG, "two calls", || host.log.calls().len() == 2);
        host.until(LONG, "an open poll", || proxy.in_flight("ReceiveMessage") >= 1);
        let asked = Instant::now();
        host.signal(Signal::TERM);
        host.until(LONG, "the drain", || {
            !host.log.saying("draining; a second signal is quicker").is_empty()
        });
        let polls = proxy.count("ReceiveMessage");
        let _ = source.send_all(&done(), 5);
        assert_eq!(host.wait_exit(LONG), 0);
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(13), "{took:?}");
        // At once, not after a lease of 78 s: five that nobody handled, and the endless one.
        assert_eq!(source.depth(), Depth { visible: 6, hidden: 0 });
        assert_eq!(scene.guest_said("done"), [slow]);
        assert_eq!(proxy.count("ReceiveMessage"), polls, "no new receive");
        let ids: Vec<String> =
            source.take(6).iter().map(|m| m["MessageId"].as_str().unwrap().to_owned()).collect();
        assert!(ids.contains(&endless), "{ids:?}");
    }
}
