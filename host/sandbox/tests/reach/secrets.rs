//! Secrets: what a handler is given, and what nobody is shown.

use std::sync::Arc;

use pumphouse_contract::{FaultKind, Outcome};
use pumphouse_sandbox::{Grants, HandlerSpec, LoadedHandler, SecretText};

use crate::common::{self, call, description, fault, guest};

const TOKEN: &str = "s3cr3t-4711-token";

async fn load(name: &str) -> Arc<LoadedHandler> {
    let url = format!("postgres://app:{name}-hunter2@db");
    let grants = Grants {
        logging: true,
        config: Some([("url".to_owned(), url)].into()),
        config_references: ["url".to_owned()].into(),
        secrets: [("token".to_owned(), SecretText::new(TOKEN))].into(),
        ..Grants::default()
    };
    let spec = HandlerSpec { grants, ..common::spec(name, &guest("secrets")) };
    common::shared().load(spec).await.unwrap()
}

#[tokio::test]
async fn a_handler_reads_its_own_secrets_and_no_other() {
    let handler = load("secret-read").await;
    assert_eq!(description(&call(&handler, "length").await), TOKEN.len().to_string());
    assert_eq!(description(&call(&handler, "other").await), "none");
}

/// FR-24: what one tenant was given is not there for another, whose handler is the same component.
#[tokio::test]
async fn fr_24_a_tenants_secrets_are_its_own() {
    let of = async |tenant: &str, secrets: &[(&str, &str)]| {
        let secrets = secrets.iter();
        let secrets = secrets.map(|(name, value)| ((*name).to_owned(), SecretText::new(*value)));
        let config = Some(Default::default());
        let grants =
            Grants { logging: true, config, secrets: secrets.collect(), ..Grants::default() };
        let spec = HandlerSpec {
            grants,
            watch: false,
            ..HandlerSpec::new(format!("{tenant}/secrets"), guest("secrets"))
        };
        common::shared().load(spec).await.unwrap()
    };
    let acme = of("acme", &[("token", "acme-token"), ("other", "of-acme-alone")]).await;
    let evil = of("evil", &[("token", "evil-tokens")]).await;
    assert_eq!(description(&call(&acme, "other").await), "[secret other]");
    assert_eq!(description(&call(&evil, "other").await), "none");
    assert_eq!(description(&call(&acme, "length").await), "10");
    assert_eq!(description(&call(&evil, "length").await), "11");
}

/// FR-28: an import that is not granted is refused, with the line that would grant it.
#[tokio::test]
async fn fr_28_secrets_must_be_granted() {
    let grants = Grants { logging: true, config: Some(Default::default()), ..Grants::default() };
    let spec = HandlerSpec { grants, ..common::spec("secret-not", &guest("secrets")) };
    let refused = common::shared().load(spec).await.unwrap_err().to_string();
    assert!(refused.contains("pumphouse:secrets/store@1.0.0"), "{refused}");
    assert!(refused.contains("`grants.secrets.NAME = "), "{refused}");
}

/// However a handler gives a secret away, what the host writes has its name and not its value.
#[tokio::test]
async fn what_the_host_writes_has_no_secret() {
    let log = common::log();
    let handler = load("secret-told").await;
    for way in ["log", "context", "setting", "print", "long"] {
        assert_eq!(call(&handler, way).await.result, Ok(Outcome::Ack), "{way}");
    }
    let rejected = call(&handler, "reject").await;
    assert_eq!(description(&rejected), "rejected with [secret token]");
    let panicked = fault(&handler, "panic").await;
    assert_eq!(panicked.kind, FaultKind::Trap);
    assert!(panicked.detail.contains("panicked with [secret token]"), "{panicked:?}");
    let left = fault(&handler, "exit").await;
    assert_eq!(left.last_logs, ["left with [secret token]"]);
    let shown = format!("{rejected:?} {panicked:?} {left:?}");
    assert!(!shown.contains(TOKEN), "{shown}");
    let lines = log.lines_with("test/secret-told");
    assert!(lines.iter().any(|line| line.contains("the token is [secret token]!")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("the url is [secret url]!")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("printed [secret token]")), "{lines:?}");
    // Its beginning does not stand at the end of a line that was cut.
    let cut = lines.iter().find(|line| line.contains("xxxxxxxxxx")).unwrap();
    assert!(!cut.contains("s3cr3"), "{cut}");
    assert!(lines.iter().all(|line| !line.contains(TOKEN) && !line.contains("hunter2")));
}

#[tokio::test]
async fn a_secret_that_can_not_be_hidden_is_warned_of() {
    let log = common::log();
    let grants = Grants {
        logging: true,
        config: Some(Default::default()),
        secrets: [("token".to_owned(), SecretText::new("1234"))].into(),
        ..Grants::default()
    };
    let spec = HandlerSpec { grants, ..common::spec("secret-short", &guest("secrets")) };
    let handler = common::shared().load(spec).await.unwrap();
    assert_eq!(description(&call(&handler, "length").await), "4");
    let lines = log.lines_with("can't be kept out of the log");
    assert!(lines.iter().any(|line| line.contains("test/secret-short")), "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains("1234")), "{lines:?}");
}
