//! Region, endpoint and credentials from where every AWS tool takes them.
//!
//! A process can't change its own environment safely, so each test runs itself again as a child that has another.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;

use std::path::Path;
use std::process::Command;

use common::{LEASE, ack, one, outgoing, settings, unique};
use pumphouse_sqs::{Provision, StaticCredentials};
use pumphouse_sqs::{SinkSpec, SourceSpec, Sqs, SqsError, SqsSettings};

/// Names the queue in a child.
const CHILD: &str = "PUMPHOUSE_TEST_QUEUE";

/// Runs a test of this binary again as a child with exactly these variables beside its queue.
fn again(test: &str, variables: &[(&str, &str)]) {
    let own = std::env::current_exe().expect("this binary");
    let mut child = Command::new(own);
    child.args(["--exact", test, "--nocapture"]).env_clear();
    child.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    // No instance is asked for a region or credentials, whatever machine this is.
    child.env("AWS_EC2_METADATA_DISABLED", "true").env(CHILD, unique("environment"));
    let output = child.envs(variables.iter().copied()).output().expect("the child ran");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}

/// Everything from the environment but the clock.
fn from_environment() -> SqsSettings {
    SqsSettings { region: None, endpoint: None, credentials: None, ..settings("http://unused") }
}

async fn round_trip(sqs: &Sqs, queue: &str) {
    let sink = sqs.sink(SinkSpec::new(queue, Provision::Create)).await.expect("a sink");
    let source = sqs.source(SourceSpec::new(queue, Provision::Create)).await.expect("a source");
    sink.publish(outgoing("hello")).await.expect("published");
    ack(source.as_ref(), &one(source.as_ref(), LEASE).await).await;
}

#[tokio::test]
async fn the_usual_variables_are_enough() {
    if let Ok(queue) = std::env::var(CHILD) {
        let sqs = Sqs::connect(from_environment()).await.expect("a connection");
        return round_trip(&sqs, &queue).await;
    }
    let endpoint = common::fauxqs().await;
    for variable in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS"] {
        let variables = [
            (variable, endpoint.as_str()),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ];
        again("the_usual_variables_are_enough", &variables);
    }
}

#[tokio::test]
async fn the_configuration_comes_before_the_environment() {
    if let Ok(queue) = std::env::var(CHILD) {
        let endpoint = std::env::var("PUMPHOUSE_TEST_ENDPOINT").expect("an endpoint");
        let sqs = Sqs::connect(settings(&endpoint)).await.expect("a connection");
        return round_trip(&sqs, &queue).await;
    }
    let endpoint = common::fauxqs().await;
    let variables = [
        ("PUMPHOUSE_TEST_ENDPOINT", endpoint.as_str()),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:9"),
    ];
    again("the_configuration_comes_before_the_environment", &variables);
}

#[tokio::test]
async fn a_missing_region_is_told_at_once() {
    if std::env::var_os(CHILD).is_some() {
        let error = Sqs::connect(from_environment()).await.expect_err("no region");
        assert_eq!(error, SqsError::NoRegion);
        return;
    }
    again("a_missing_region_is_told_at_once", &[]);
}

/// Credentials that end are fetched again, here from a program that a profile names.
#[tokio::test]
async fn credentials_of_the_default_chain_are_renewed() {
    if let Ok(queue) = std::env::var(CHILD) {
        let sqs = Sqs::connect(from_environment()).await.expect("a connection");
        return round_trip(&sqs, &queue).await;
    }
    let endpoint = common::fauxqs().await;
    let folder = std::env::temp_dir().join(format!("pumphouse-sqs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let calls = folder.join("calls");
    let profile = profile(&folder, &calls);
    let variables = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_CONFIG_FILE", profile.as_str()),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ];
    again("credentials_of_the_default_chain_are_renewed", &variables);
    let fetched = std::fs::read_to_string(&calls).expect("the program was called").lines().count();
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    // Once for the connection of polls and once for the other would be without renewing.
    assert!(fetched > 2, "{fetched}");
}

/// A profile whose credentials end within the time in which they are renewed beforehand.
fn profile(folder: &Path, calls: &Path) -> String {
    let program = folder.join("program.sh");
    let script = format!(
        r#"echo called >> {calls}
ends=$(date -u -d '+5 seconds' +%Y-%m-%dT%H:%M:%SZ)
echo "{{\"Version\": 1, \"AccessKeyId\": \"a\", \"SecretAccessKey\": \"s\", \"SessionToken\": \"t\", \"Expiration\": \"$ends\"}}"
"#,
        calls = calls.display()
    );
    std::fs::write(&program, script).expect("a program");
    let path = folder.join("config");
    let text =
        format!("[default]\nregion = eu-west-1\ncredential_process = sh {}\n", program.display());
    std::fs::write(&path, text).expect("a profile");
    path.display().to_string()
}

/// No log line shows a secret.
#[test]
fn a_secret_is_never_shown() {
    let credentials = StaticCredentials {
        access_key_id: "AKID".into(),
        secret_access_key: "very secret".into(),
        session_token: Some("also secret".into()),
    };
    let settings = SqsSettings { credentials: Some(credentials), ..settings("http://unused") };
    let shown = format!("{settings:?}");
    assert!(
        shown.contains("AKID") && !shown.contains("very") && !shown.contains("also"),
        "{shown}"
    );
}
