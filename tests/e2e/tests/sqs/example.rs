//! The example as it stands in the repository, fed by other programs.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use pumphouse_e2e::{
    Depth, Host, LONG, Queue, Scene, elasticmq, fauxqs, root, run_within, scene, unique, unpacked,
};
use serde_json::{Map, json};

use crate::common::{HOST, reject, work};

pumphouse_e2e::tests! {
    the_example_handles_what_other_programs_send,
    publish_reaches_queues_without_a_host,
    what_is_missing_under_validate_ends_the_start,
    a_body_is_in_no_log_at_any_level,
}

/// `examples/sqs.toml`, word for word but for the port of the admin side, in a folder like the repository. Endpoint,
/// region and credentials come from the environment, as the example says.
fn example(endpoint: &str) -> (Scene, Host) {
    let mut scene = Scene::new("");
    let folder = scene.path("examples");
    fs::create_dir(&folder).unwrap();
    symlink(root().join("guests"), scene.path("guests")).unwrap();
    let text = fs::read_to_string(root().join("examples/sqs.toml")).unwrap();
    let listen = format!("[host]\nadmin.listen = \"127.0.0.1:{}\"\n", scene.port());
    assert!(text.contains("\n[host]\n"), "{text}");
    fs::write(folder.join("sqs.toml"), text.replacen("[host]\n", &listen, 1)).unwrap();
    for (name, value) in [
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
    ] {
        scene.set(name, value);
    }
    let config = folder.join("sqs.toml");
    let mut host = scene.spawn_as(&scene.pumphouse(&["run".as_ref(), config.as_os_str()]));
    host.wait_ready();
    (scene, host)
}

/// What `aws sqs send-message` and boto3 send, with and without attributes, is handled; a poison message ends at the
/// dead-letter queue with its metadata, within the budget of three.
fn the_example_handles_what_other_programs_send() {
    for endpoint in [fauxqs(), elasticmq()] {
        let (_scene, host) = example(&endpoint);
        let source = Queue::at(&endpoint, "orders");
        let order = json!({ "id": "A-1", "quantity": 2 });
        let _ = source.send(&order);
        let attributes = json!({
            "type": { "DataType": "String", "StringValue": "order" },
            "weight": { "DataType": "Number", "StringValue": "12.5" },
            "seal": { "DataType": "Binary", "BinaryValue": "AAEC" },
        });
        let more = Map::from_iter([("MessageAttributes".to_owned(), attributes)]);
        let _ = source.send_with(&order, &more);
        let by_others = sent_by_boto3(&endpoint) + sent_by_command_line(&endpoint);
        let poison = source.send(&json!({ "id": "A-2", "quantity": 2, "available_in": 1 }));
        let unreadable = source.send(&json!("hello"));

        let copy = &Queue::at(&endpoint, "orders-dead-letter").take(1)[0];
        let (metadata, _) = unpacked(copy);
        assert_eq!(metadata["originalMessageId"], poison.as_str());
        assert_eq!(metadata["rejectionReason"], "DeliveryError");
        assert_eq!(metadata["originalTopic"], "orders");
        let count: u32 = metadata["deliveryCount"].as_str().unwrap().parse().unwrap();
        assert!(count >= 3, "{metadata}");
        assert!(metadata["rejectionMessage"].as_str().unwrap().contains("of 3"), "{metadata}");
        let copy = &Queue::at(&endpoint, "orders-invalid").take(1)[0];
        assert_eq!(unpacked(copy).0["originalMessageId"], unreadable.as_str());
        assert_eq!(copy["Body"], "hello");

        source.until(LONG, Depth::NONE);
        let metrics = host.metrics();
        let of = |outcome| metrics.sum("pumphouse_deliveries_total", &[("outcome", outcome)]);
        assert_eq!(of("ack"), f64::from(2 + by_others));
        // Called at most three times: two deferrals, and the one that was one too many.
        assert!(of("defer") <= 2.0, "{}", metrics.0);
        assert_eq!(of("reject"), 2.0);
        assert_eq!(host.stop(), 0);
    }
}

const BOTO3: &str = "
import boto3, sys
sqs = boto3.client('sqs', endpoint_url=sys.argv[1], region_name='us-east-1',
                   aws_access_key_id='x', aws_secret_access_key='x')
url = sqs.get_queue_url(QueueName='orders')['QueueUrl']
sqs.send_message(QueueUrl=url, MessageBody='{\"id\":\"B-1\",\"quantity\":1}')
sqs.send_message(QueueUrl=url, MessageBody='{\"id\":\"B-2\",\"quantity\":1}', MessageAttributes={
    'type': {'DataType': 'String', 'StringValue': 'order'}})
";

/// Where Python has boto3: how many messages it sent.
fn sent_by_boto3(endpoint: &str) -> u32 {
    if !works(Command::new("python3").args(["-c", "import boto3"])) {
        return 0;
    }
    let mut python = Command::new("python3");
    let _ = run_within(LONG, python.args(["-c", BOTO3, endpoint]), "").ok();
    2
}

/// Where the AWS command line is: how many messages it sent.
fn sent_by_command_line(endpoint: &str) -> u32 {
    let aws = |arguments: &[&str]| {
        let mut aws = Command::new("aws");
        aws.args(["--endpoint-url", endpoint, "--region", "us-east-1", "sqs"]).args(arguments);
        aws.envs([("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "x")]);
        aws
    };
    if !works(Command::new("aws").arg("--version")) {
        return 0;
    }
    let url = format!("{endpoint}/000000000000/orders");
    let body = "{\"id\":\"C-1\",\"quantity\":1}";
    let send = ["send-message", "--queue-url", &url, "--message-body", body];
    let _ = run_within(Duration::from_secs(60), &mut aws(&send), "").ok();
    1
}

fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// `pumphouse publish` reaches SQS without a host, a FIFO queue with its key.
fn publish_reaches_queues_without_a_host() {
    let server = fauxqs();
    let (name, fifo) = (unique("publish"), unique("publish") + ".fifo");
    let text = work(&name, "") + &crate::common::subscription("ordered", &fifo, "");
    let scene = scene(&server, HOST, &text);
    for queue in [&name, &fifo] {
        let attributes =
            if queue.ends_with(".fifo") { json!({ "FifoQueue": "true" }) } else { json!({}) };
        let _ = Queue::create(&server, queue, &attributes);
    }
    let ran =
        scene.command("publish", &["work", "--body", "hello", "--header", "type=greeting"]).ok();
    assert!(ran.stdout.starts_with("published 1 to sqs"), "{ran:#?}");
    let _ = scene.command("publish", &["ordered", "--body", "hello", "--key", "group-a"]).ok();
    let message = &Queue::at(&server, &name).take(1)[0];
    assert_eq!(message["Body"], "hello");
    assert_eq!(message["MessageAttributes"]["type"]["StringValue"], "greeting");
    let message = &Queue::at(&server, &fifo).take(1)[0];
    assert_eq!(message["Attributes"]["MessageGroupId"], "group-a");
}

/// `validate`, the default: queues that are not there end the start, every one of them by name.
fn what_is_missing_under_validate_ends_the_start() {
    let server = fauxqs();
    let (name, dead) = (unique("nowhere"), unique("nowhere-dead"));
    let scene = scene(&server, HOST, "");
    let text = work(
        &name,
        &format!("provision = \"validate\"\ndead_letter = {{ sqs.queue = \"{dead}\" }}"),
    );
    scene.configure(&format!("[sqs]\nregion = \"us-east-1\"\nendpoint = \"{server}\"\n{text}"));
    let ran = scene.command("run", &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains(&name), "{ran:#?}");
}

/// A body is in no line on its way through SQS either, however much is logged.
fn a_body_is_in_no_log_at_any_level() {
    const MARK: &str = "body-mark-0cc175b9c0f1b6a8";
    let server = fauxqs();
    let (name, dead) = (unique("quiet"), unique("quiet-dead"));
    let rest = format!("dead_letter = {{ sqs.queue = \"{dead}\" }}");
    let scene = scene(&server, "log.level = \"trace\"\ngrace = \"10s\"", &work(&name, &rest));
    let host = scene.start();
    let source = Queue::at(&server, &name);
    let mut rejected = reject();
    rejected["mark"] = MARK.into();
    let _ = source.send(&rejected);
    let _ = source.send(&json!(format!("plain {MARK}")));
    let copy = &Queue::at(&server, &dead).take(1)[0];
    assert!(copy["Body"].as_str().unwrap().contains(MARK));
    source.until(LONG, Depth::NONE);
    assert_eq!(host.stop(), 0);
    let text = scene.logs()[0].text();
    assert!(!text.contains(MARK), "{}", text.lines().find(|line| line.contains(MARK)).unwrap());
}
