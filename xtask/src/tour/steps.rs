//! The stops of the tour.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::host::Host;

/// Messages that are handled while the handler is swapped.
const UNDER_LOAD: usize = 400;
/// Messages that are under way when the host is killed.
const KILLED: usize = 50;

pub(crate) fn all(host: &mut Host) -> Result<()> {
    title("starting the host with its durable broker");
    host.start()?;
    println!("     ready: 5 subscriptions, 5 handlers; its log goes to {}", host.log().display());
    ack(host)?;
    deferral(host)?;
    rejection(host)?;
    faults(host)?;
    swap(host)?;
    kill(host)
}

fn title(text: &str) {
    println!("\n--   {text}");
}

fn ack(host: &Host) -> Result<()> {
    title("a message that is handled: its handler answers `ack`, and it is gone");
    host.publish("orders", r#"{"id":"A-1","quantity":2}"#)?;
    host.wait_for("the order to be handled", |host| Ok(host.peek("orders")?.is_empty()))?;
    for queue in ["orders-dead-letter", "orders-invalid"] {
        ensure!(host.peek(queue)?.is_empty(), "the order came to {queue}");
    }
    println!("     handled and removed: the queue is empty, and so are its rejection destinations");
    Ok(())
}

fn deferral(host: &Host) -> Result<()> {
    title("a message that is deferred: it comes back, counted, until its budget of 3 is spent");
    host.publish("patience", r#"{"do":"defer"}"#)?;
    host.wait_for("the message to be dead-lettered", |host| {
        Ok(host.peek("patience-dead-letter")?.len() == 1)
    })?;
    let said = host.said_by("acme/patience")?;
    let counts: Vec<&str> = said.iter().filter_map(|text| word(text, "count=")).collect();
    println!("     its handler saw the delivery counts {}", counts.join(", "));
    ensure!(counts == ["0", "1", "2"], "the counts should be 0, 1, 2");
    show_metadata(&host.peek("patience-dead-letter")?, "DeliveryError")
}

fn rejection(host: &Host) -> Result<()> {
    title(
        "a message that can never be handled: it goes to the invalid-message destination at once",
    );
    host.publish("orders", "not an order")?;
    host.wait_for(
        "the message to be rejected",
        |host| Ok(host.peek("orders-invalid")?.len() == 1),
    )?;
    show_metadata(&host.peek("orders-invalid")?, "Unacceptable")
}

fn faults(host: &Host) -> Result<()> {
    title("handlers that panic and that never end: contained, named, and their messages kept");
    host.publish("panicking", "boom")?;
    host.publish("endless", "for ever")?;
    host.wait_for("both to be dead-lettered", |host| Ok(host.peek("trouble")?.len() == 2))?;
    for message in host.peek("trouble")? {
        println!(
            "     {}: {}",
            header(&message, "originalTopic"),
            header(&message, "rejectionMessage")
        );
    }
    let faults = host.logged("handler gave no answer")?;
    let kinds: BTreeSet<&str> = faults.iter().filter_map(|line| line["fault"].as_str()).collect();
    ensure!(kinds == BTreeSet::from(["deadline", "trap"]), "the faults were {kinds:?}");
    host.publish("orders", r#"{"id":"A-2","quantity":1}"#)?;
    host.wait_for("the neighbour to go on", |host| Ok(host.peek("orders")?.is_empty()))?;
    println!("     the host and the other handlers went on");
    Ok(())
}

fn swap(host: &Host) -> Result<()> {
    title("a hot swap under load: a new component is copied over the old one");
    let lines = |from: usize, to: usize| {
        (from..to).fold(String::new(), |mut lines, n| {
            let _ = writeln!(lines, "greeting {n}");
            lines
        })
    };
    host.publish_lines("greetings", &lines(0, UNDER_LOAD / 2))?;
    let before = host.status()?;
    host.deploy("version_two.wasm", "greeter.wasm")?;
    let mut sent = UNDER_LOAD / 2;
    host.wait_for("the new version to be in use", |host| {
        // The load goes on until the swap has happened, and a little beyond.
        host.publish_lines("greetings", &lines(sent, sent + 40))?;
        sent += 40;
        Ok(sent >= UNDER_LOAD && digest(&host.status()?) != digest(&before))
    })?;
    host.publish_lines("greetings", &lines(sent, sent + 40))?;
    sent += 40;
    host.wait_for("all greetings to be handled", |host| Ok(host.peek("greetings")?.is_empty()))?;
    let said = host.said_by("acme/greeter")?;
    let ids: BTreeSet<&str> = said.iter().filter_map(|text| word(text, "id=")).collect();
    let by =
        |version: &str| said.iter().filter(|text| word(text, "version=") == Some(version)).count();
    println!("     published {sent}; version 1 handled {}, version 2 handled {}", by("1"), by("2"));
    println!(
        "     messages lost: {}, messages failed: {}",
        sent - ids.len(),
        host.peek("greetings-dead-letter")?.len()
    );
    ensure!(
        ids.len() == sent && by("1") > 0 && by("2") > 0,
        "a message was lost, or nothing was swapped"
    );
    ensure!(host.peek("greetings-dead-letter")?.is_empty(), "a message failed because of the swap");
    Ok(())
}

fn kill(host: &mut Host) -> Result<()> {
    title("the host is killed (SIGKILL) with messages under way, and started again");
    let commands = |n: usize| {
        (0..n).fold(String::new(), |mut lines, _| {
            lines.push_str("{\"do\":\"sequence\",\"steps\":[{\"do\":\"defer\",\"ms\":2000},{\"do\":\"ack\"}]}\n");
            lines
        })
    };
    let before: BTreeSet<String> = ids(host)?;
    host.publish_lines("patience", &commands(KILLED))?;
    host.kill()?;
    println!(
        "     {KILLED} messages were published, some deferred, some not yet delivered; the host was killed"
    );
    host.start()?;
    host.wait_for("all of them to be handled", |host| Ok(host.peek("patience")?.is_empty()))?;
    let after: BTreeSet<String> = ids(host)?.difference(&before).cloned().collect();
    println!(
        "     after the restart all were handled; messages lost: {}",
        KILLED.saturating_sub(after.len())
    );
    ensure!(after.len() == KILLED, "{} of {KILLED} were handled", after.len());
    ensure!(
        host.peek("patience-dead-letter")?.len() == 1,
        "a message was rejected because of the kill"
    );
    Ok(())
}

/// The ids that the patient handler has seen.
fn ids(host: &Host) -> Result<BTreeSet<String>> {
    let said = host.said_by("acme/patience")?;
    Ok(said.iter().filter_map(|text| word(text, "id=")).map(str::to_owned).collect())
}

/// The value after a name in a text of `name=value` words.
fn word<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split_whitespace().find_map(|word| word.strip_prefix(name))
}

fn digest(status: &Value) -> Option<String> {
    let handlers = status["handlers"].as_array()?;
    let greeter = handlers.iter().find(|one| one["name"] == "acme/greeter")?;
    Some(greeter["digest"].as_str()?.to_owned())
}

fn header<'a>(message: &'a Value, name: &str) -> &'a str {
    let headers = message["headers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = headers.iter().find(|pair| pair[0] == name);
    found.and_then(|pair| pair[1].as_str()).unwrap_or_default()
}

fn show_metadata(messages: &[Value], reason: &str) -> Result<()> {
    let message = messages.first().unwrap_or(&Value::Null);
    for name in [
        "rejectionReason",
        "rejectionMessage",
        "originalTopic",
        "originalMessageId",
        "rejectedBy",
        "deliveryCount",
    ] {
        println!("     {name}: {}", header(message, name));
    }
    ensure!(header(message, "rejectionReason") == reason, "the reason should be {reason}");
    Ok(())
}
