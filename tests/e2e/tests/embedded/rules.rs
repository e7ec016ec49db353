//! Counting and ordering, seen from outside the process.

use pumphouse_e2e::{LONG, Scene};
use serde_json::json;

use crate::common::{WORK, counts, done, header, sequence, slowly_done, work};

pumphouse_e2e::tests! {
    fr_03_the_budget_is_one_exact_number,
    fr_11_a_deferred_head_holds_its_key_and_no_other,
}

/// FR-03, C-4, C-5: budgets 1, 2 and 3 are as many calls, and 0 is one call with a finding (F-1).
fn fr_03_the_budget_is_one_exact_number() {
    let budgets = [0_u32, 1, 2, 3];
    let text: String = budgets
        .iter()
        .map(|budget| {
            format!(
                "[subscriptions.b{budget}]\nsource = {{ embedded.queue = \"b{budget}\" }}\nhandler = \"acme/work\"\nmax_deliveries = {budget}\nretry = {{ backoff = \"100ms\" }}\ndead_letter = {{ embedded.queue = \"dead\" }}\n"
            )
        })
        .collect();
    let scene = Scene::new(&(WORK.to_owned() + &text));
    let host = scene.start();
    let ids = budgets.map(|budget| scene.publish(&format!("b{budget}"), &json!({ "do": "defer" })));
    let copies = host.until_some(LONG, "all at the destination", || {
        let copies = scene.peek("dead");
        (copies.len() == budgets.len()).then_some(copies)
    });
    assert_eq!(host.stop(), 0);
    let counts = counts(&scene);
    for (id, budget) in ids.iter().zip(budgets) {
        let calls: Vec<u32> = (0..budget.max(1)).collect();
        assert_eq!(counts[id], calls, "budget {budget}");
        let copy = copies.iter().find(|copy| header(copy, "originalMessageId") == id).unwrap();
        assert_eq!(header(copy, "deliveryCount"), calls.len().to_string());
        assert_eq!(header(copy, "rejectionReason"), "DeliveryError");
    }
    let findings = host_findings(&scene);
    assert!(findings.contains("b0") && findings.contains("-1"), "{findings}");
}

fn host_findings(scene: &Scene) -> String {
    let lines = scene.lines().into_iter();
    let said = lines.filter(|line| line.field("message") == "finding in the configuration");
    said.map(|line| line.field("finding").to_owned()).collect::<Vec<_>>().join("\n")
}

/// FR-11, S-6: A1 defers; A2 and A3 wait behind it without losing a delivery, B goes on.
fn fr_11_a_deferred_head_holds_its_key_and_no_other() {
    let scene = Scene::new(&work("max_deliveries = 3"));
    let host = scene.start();
    let head = sequence(&[json!({ "do": "defer", "ms": 2_000 }), done()]);
    let a = scene.publish_all("work", &["--key", "a"], &[head, done(), done()]);
    let b = scene.publish_all("work", &["--key", "b"], &[slowly_done(50), done()]);
    host.until(LONG, "all handled", || scene.guest_said("done").len() == 5);
    assert_eq!(host.stop(), 0);
    let ended = scene.guest_said("done");
    let of = |ids: &[String]| {
        ended.iter().filter(|id| ids.contains(id)).cloned().collect::<Vec<String>>()
    };
    assert_eq!((of(&a), of(&b)), (a.clone(), b.clone()), "each key in its order");
    assert_eq!(ended[..2], b[..], "the other key did not wait");
    let counts = counts(&scene);
    assert_eq!(counts[&a[0]], [0, 1]);
    assert!(a[1..].iter().chain(&b).all(|id| counts[id] == [0]), "{counts:?}");
}
