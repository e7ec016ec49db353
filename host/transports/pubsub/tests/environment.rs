//! Endpoint, project and credentials from where every Google tool takes them.
//!
//! A process can't change its own environment safely, so each test runs itself again as a child that has another.
//! What is called with credentials is called with TLS, for which there is no server here: that they are found is
//! shown, not that they are accepted.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

#[path = "delivering/common.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{ack, emulator, one, open, outgoing, settings, sink, spec, unique};
use pumphouse_pubsub::{Provision, ProvisionError, Pubsub, PubsubError, PubsubSettings, SinkSpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Tells a child what it is to find.
const CHILD: &str = "PUMPHOUSE_TEST_EXPECTED";

/// What stands there where no project is to be found.
const NONE: &str = "none";

const USER: &str = r#"{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r","quota_project_id":"payer"}"#;

/// Runs a test of this binary again as a child with exactly these variables.
async fn again(test: &str, expected: &str, variables: &[(&str, &str)]) {
    let own = std::env::current_exe().expect("this binary");
    let mut child = Command::new(own);
    child.args(["--exact", test, "--nocapture"]).env_clear();
    child.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env(CHILD, expected);
    // No machine is asked unless a test says which.
    child.env("GCE_METADATA_HOST", "127.0.0.1:9").envs(variables.iter().copied());
    let ran = tokio::task::spawn_blocking(move || child.output());
    let output = ran.await.expect("a thread").expect("the child ran");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{variables:?}: {text}{errors}");
}

fn expected() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// Everything from the environment but the clock.
fn from_environment() -> PubsubSettings {
    PubsubSettings { project: None, endpoint: None, credentials: None, ..settings("http://unused") }
}

/// Whether names without a project belong to the expected one. Nothing is called.
async fn has_project(settings: PubsubSettings, expected: &str) {
    let pubsub = Pubsub::connect(settings).await.expect("a connection");
    let sink = pubsub.sink(SinkSpec::new("orders", Provision::Assume)).await;
    if expected == NONE {
        let error = sink.err().expect("no project");
        let ProvisionError::Invalid { problems, .. } = error else { panic!("{error}") };
        assert_eq!(problems, [PubsubError::NoProject.to_string()]);
        let full = SinkSpec::new("projects/p/topics/orders", Provision::Assume);
        assert!(pubsub.sink(full).await.is_ok(), "a full name needs none");
    } else {
        assert!(sink.is_ok());
        let shown = format!("{pubsub:?}");
        assert!(shown.contains(&format!("Some({expected:?})")), "{shown}");
    }
}

fn folder(stem: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pumphouse-{stem}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// As Google's own clients.
#[tokio::test]
async fn the_usual_variables_are_enough_for_the_emulator() {
    if expected().is_some() {
        let pubsub = Pubsub::connect(from_environment()).await.expect("a connection");
        let name = unique("usual");
        let (source, sink) = (open(&pubsub, spec(&name)).await, sink(&pubsub, &name).await);
        sink.publish(outgoing("hello")).await.expect("published");
        return ack(source.as_ref(), &one(source.as_ref()).await).await;
    }
    let endpoint = emulator().await;
    let host = endpoint.trim_start_matches("http://").to_owned();
    for host in [host.as_str(), endpoint.as_str()] {
        let variables = [("PUBSUB_EMULATOR_HOST", host), ("PUBSUB_PROJECT_ID", "usual")];
        again("the_usual_variables_are_enough_for_the_emulator", "usual", &variables).await;
    }
}

/// What is configured, then the variables in their order.
#[tokio::test]
async fn a_project_is_configured_or_in_a_variable() {
    if let Some(expected) = expected() {
        let mut settings = from_environment();
        settings.project = (expected == "configured").then(|| expected.clone());
        return has_project(settings, &expected).await;
    }
    let test = "a_project_is_configured_or_in_a_variable";
    let emulator = ("PUBSUB_EMULATOR_HOST", "127.0.0.1:9");
    let all = [
        emulator,
        ("PUBSUB_PROJECT_ID", "first"),
        ("GOOGLE_CLOUD_PROJECT", "second"),
        ("GCLOUD_PROJECT", "third"),
    ];
    again(test, "configured", &all).await;
    again(test, "first", &all).await;
    again(test, "second", &[emulator, ("PUBSUB_PROJECT_ID", ""), all[2], all[3]]).await;
    again(test, "third", &[emulator, all[3]]).await;
    again(test, NONE, &[emulator]).await;
}

#[tokio::test]
async fn a_project_is_in_the_credentials() {
    if let Some(expected) = expected() {
        let mut settings = from_environment();
        settings.credentials = (expected == "given").then(|| USER.replace("payer", "given"));
        return has_project(settings, &expected).await;
    }
    let (test, folder) = ("a_project_is_in_the_credentials", folder("credentials"));
    let home = folder.display().to_string();
    file(&folder, ".config/gcloud/application_default_credentials.json", USER);
    let named = file(&folder, "named.json", &USER.replace("payer", "named"));
    again(test, "payer", &[("HOME", home.as_str())]).await;
    let both = [("HOME", home.as_str()), ("GOOGLE_APPLICATION_CREDENTIALS", named.as_str())];
    again(test, "named", &both).await;
    again(test, "given", &both).await;
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

const UNKNOWN: &str = "HTTP/1.1 404 Not Found\r\nmetadata-flavor: Google\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Answers every question for the project so, and hands those questions over. Google's library has others.
async fn metadata_server(answer: &'static str) -> (String, tokio::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    let (asked, questions) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let asked = asked.clone();
            tokio::spawn(async move {
                let mut question = vec![0; 4_096];
                let size = stream.read(&mut question).await.unwrap_or(0);
                let question = String::from_utf8_lossy(&question[..size]).to_ascii_lowercase();
                let for_project = question.contains("/project/project-id ");
                let answer = if for_project { answer } else { UNKNOWN };
                let _ = stream.write_all(answer.as_bytes()).await;
                if for_project {
                    let _ = asked.try_send(question);
                }
            });
        }
    });
    (host, questions)
}

#[tokio::test]
async fn a_project_is_told_by_the_metadata_server() {
    if let Some(expected) = expected() {
        let begun = Instant::now();
        has_project(from_environment(), &expected).await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        return;
    }
    let test = "a_project_is_told_by_the_metadata_server";
    let good = "HTTP/1.1 200 OK\r\nmetadata-flavor: Google\r\ncontent-length: 5\r\nconnection: close\r\n\r\nthere";
    let (host, mut questions) = metadata_server(good).await;
    again(test, "there", &[("GCE_METADATA_HOST", host.as_str())]).await;
    let question = questions.recv().await.expect("a question");
    assert!(question.starts_with("get /computemetadata/v1/project/project-id "), "{question}");
    assert!(question.contains("metadata-flavor: google"), "{question}");
    // Someone else's server, one that knows no project, one that never answers, and nobody.
    for answer in
        ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nwrong", UNKNOWN]
    {
        let (host, _questions) = metadata_server(answer).await;
        again(test, NONE, &[("GCE_METADATA_HOST", host.as_str())]).await;
    }
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let host = silent.local_addr().expect("an address").to_string();
    again(test, NONE, &[("GCE_METADATA_HOST", host.as_str())]).await;
    again(test, NONE, &[]).await;
}

/// Refused before anything is called.
#[tokio::test]
async fn wrong_settings_are_told_by_name() {
    let connect =
        |settings: PubsubSettings| async { Pubsub::connect(settings).await.expect_err("refused") };
    for endpoint in ["pubsub.googleapis.com", "ftp://pubsub", "http://"] {
        let error = connect(settings(endpoint)).await;
        assert_eq!(error, PubsubError::Endpoint(endpoint.trim_end_matches('/').to_owned()));
    }
    for json in ["", "not json", "{}", r#"{"type":"unheard-of"}"#, r#"{"type":"service_account"}"#]
    {
        let mut settings = settings("https://pubsub.googleapis.com");
        settings.credentials = Some(json.to_owned());
        let error = connect(settings).await;
        assert!(matches!(error, PubsubError::Credentials(_)), "{json}: {error}");
    }
}

/// No log line shows a secret.
#[tokio::test]
async fn a_secret_is_never_shown() {
    let mut settings = settings("http://unused");
    settings.credentials = Some(r#"{"private_key":"very secret"}"#.to_owned());
    let shown = format!("{settings:?}");
    assert!(shown.contains("http://unused") && !shown.contains("secret"), "{shown}");
    let pubsub = Pubsub::connect(settings).await.expect("a connection");
    assert!(!format!("{pubsub:?}").contains("secret"));
}
