//! Commands and their exit codes, as docs/operating.md has them.

use pumphouse_e2e::{LONG, Scene, guest, run};
use serde_json::{Value, json};

use crate::common::{done, header, work};

pumphouse_e2e::tests! {
    a_wrong_command_line_ends_with_64,
    a_wrong_configuration_ends_with_78_and_a_failure_with_1,
    help_version_and_completions_end_with_0,
    invoke_tells_an_outcome_from_a_fault,
    publish_and_peek_reach_the_running_host,
}

fn scene() -> Scene {
    Scene::new(&work("dead_letter = { embedded.queue = \"dead\" }\nmax_deliveries = 1"))
}

/// 64: the command line is wrong.
fn a_wrong_command_line_ends_with_64() {
    let scene = scene();
    for arguments in [
        &["rum"][..],
        &["run"],
        &["run", "a.toml", "b.toml"],
        &["publish", "a.toml"],
        &["check", "a.toml", "--jsno"],
        &["invoke", "a.wasm", "m.json", "--deadline", "soon"],
        &[],
    ] {
        let ran = run(&mut scene.pumphouse(arguments), "");
        assert_eq!(ran.code, 64, "{arguments:?}: {ran:#?}");
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{arguments:?}: {ran:#?}");
    }
}

/// 78: the configuration is wrong, for every command that reads it. 1: the command failed.
fn a_wrong_configuration_ends_with_78_and_a_failure_with_1() {
    let scene = scene();
    for (name, rest) in
        [("publish", &["work", "--body", "x"][..]), ("peek", &["work"]), ("status", &[])]
    {
        let ran = scene.command(name, rest);
        assert_eq!(ran.code, 1, "{name}: {ran:#?}");
        assert!(ran.stderr.contains("no host answers at"), "{name}: {ran:#?}");
    }
    scene.configure("[subscriptions.work]\nsource = 1\n");
    for (name, rest) in [
        ("run", &[][..]),
        ("check", &[]),
        ("publish", &["work", "--body", "x"]),
        ("peek", &["work"]),
        ("status", &[]),
    ] {
        assert_eq!(scene.command(name, rest).code, 78, "{name}");
    }
    let ran = run(&mut scene.pumphouse(&["run", "nowhere.toml"]), "");
    assert_eq!(ran.code, 78, "{ran:#?}");
    assert!(ran.stderr.contains("nowhere.toml"), "{ran:#?}");
}

/// 0: what needs no host.
fn help_version_and_completions_end_with_0() {
    let scene = scene();
    let help = run(&mut scene.pumphouse(&["--help"]), "").ok().stdout;
    for command in ["run", "check", "invoke", "publish", "new", "version", "completions"] {
        assert!(help.contains(command), "{command} in {help}");
    }
    let version = run(&mut scene.pumphouse(&["version", "--json"]), "").ok().stdout;
    let version: Value = serde_json::from_str(&version).unwrap();
    assert_eq!(version["wit"], "pumphouse:handler@1.0.0");
    let transports = version["transports"].as_array().unwrap();
    assert_eq!(transports.contains(&json!("sqs")), cfg!(feature = "sqs"), "{version}");
    for shell in ["bash", "zsh", "fish"] {
        let text = run(&mut scene.pumphouse(&["completions", shell]), "").ok().stdout;
        assert!(text.contains("pumphouse"), "{shell}");
    }
}

/// `invoke`: 0 for an outcome, 1 for a fault, which is explained.
fn invoke_tells_an_outcome_from_a_fault() {
    let scene = scene();
    let component = guest("conformance");
    let component = component.to_str().unwrap();
    let invoke = |message: &Value, rest: &[&str]| {
        let arguments = [&["invoke", component, "-", "--json", "--logging"], rest].concat();
        run(&mut scene.pumphouse(&arguments), &message.to_string())
    };
    let rejecting = json!({ "do": "reject", "reason": "unacceptable", "text": "no" }).to_string();
    let ran = invoke(&json!({ "body": rejecting, "delivery_count": 4 }), &[]).ok();
    assert!(ran.stdout.contains("unacceptable"), "{ran:#?}");
    assert!(ran.stderr.contains("count=4"), "{ran:#?}");
    let ran = invoke(&json!({ "body": "{\"do\":\"trap\",\"text\":\"why\"}" }), &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains("trap") && ran.stdout.contains("told to trap: why"), "{ran:#?}");
    let ran = invoke(&json!({ "body": "{\"do\":\"loop\"}" }), &["--deadline", "300"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains("deadline"), "{ran:#?}");
    let ran = invoke(&json!({ "boddy": "" }), &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("boddy"), "{ran:#?}");
}

/// `publish` and `peek` by all their ways, on a host that runs.
fn publish_and_peek_reach_the_running_host() {
    let scene = scene();
    let host = scene.start();
    let ran = scene.command("publish", &["work", "--body", "hello", "--count", "3"]).ok();
    assert_eq!(ran.stdout.trim(), "published 3 to embedded work");
    host.until(LONG, "three calls", || host.log.calls().len() == 3);
    std::fs::write(scene.path("body.bin"), [0xff, 0x00, 0xfe]).unwrap();
    let _ = scene.command("publish", &["work", "--file", "body.bin"]).ok();
    let defer = json!({ "do": "reject", "text": "no" }).to_string();
    let rest = [
        "work",
        "--body",
        &defer,
        "--header",
        "kind=late",
        "--content-type",
        "application/json",
        "--key",
        "k",
    ];
    let _ = scene.command("publish", &rest).ok();
    let copy = host.until_some(LONG, "the copy", || scene.peek("dead").pop());
    assert_eq!(header(&copy, "kind"), "late");
    assert_eq!(header(&copy, "rejectionMessage"), "no");
    assert_eq!(header(&copy, "originalTopic"), "work");
    assert_eq!(header(&copy, "deliveryCount"), "1");
    assert_eq!(
        (&copy["content_type"], &copy["ordering_key"]),
        (&json!("application/json"), &json!("k"))
    );
    assert_eq!(copy["body"], defer.as_str());
    let shown = scene.command("peek", &["dead"]).ok().stdout;
    assert!(shown.contains("rejectionReason: None") && shown.ends_with("1 shown\n"), "{shown}");
    // C-7: what belongs to rejected copies is refused.
    let ran =
        scene.command("publish", &["work", "--body", "x", "--header", "rejectionReason=None"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("rejectionReason"), "{ran:#?}");
    let ran = scene.command("publish", &["wrok", "--body", "x"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("work"), "the names there are: {ran:#?}");
    assert_eq!(scene.command("peek", &["nowhere"]).code, 1);
    let id = scene.publish("work", &done());
    host.until(LONG, "the message", || scene.guest_said("done").contains(&id));
    let status = scene.command("status", &[]).ok().stdout;
    assert!(status.contains("subscription work: condition \"running\""), "{status}");
    assert!(status.contains("handler acme/work: "), "{status}");
    assert_eq!(host.stop(), 0);
}
