use std::path::Path;
use std::time::Duration;

use pumphouse_contract::Outgoing;
use pumphouse_rocketmq::{Kind, Provision, ProvisionError, Rocketmq, Tls};
use pumphouse_test_brokers::{RocketMq, Setup};

use crate::common::*;

/// A certificate for the address of the servers, which trusts itself, and its key.
fn certificate(folder: &Path, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let path = |end: &str| folder.join(format!("{name}.{end}"));
    std::fs::write(path("pem"), made.cert.pem()).expect("written");
    std::fs::write(path("key"), made.signing_key.serialize_pem()).expect("written");
    (path("pem").display().to_string(), path("key").display().to_string())
}

/// Servers that ask whoever speaks TLS for a certificate of theirs.
async fn server((certificate, key): &(String, String)) -> RocketMq {
    let setup = Setup::default()
        .property("tls.server.mode", "permissive")
        .property("tls.test.mode.enable", "false")
        .property("tls.server.certPath", certificate)
        .property("tls.server.keyPath", key)
        .property("tls.server.need.client.auth", "require")
        .property("tls.server.authClient", "true")
        .property("tls.server.trustCertPath", certificate);
    own(setup).await
}

/// Makes a topic over TLS and publishes to it.
async fn speak(server: &RocketMq, tls: Tls) -> Result<String, ProvisionError> {
    let mut settings = settings(&server.namesrv());
    settings.timeouts.admin = Duration::from_secs(10);
    settings.tls = Some(tls);
    let rocketmq = Rocketmq::connect(settings).await.expect("a connection");
    let sink = rocketmq.sink(destination("secret", Kind::Normal, Provision::Create)).await;
    let message = Outgoing { body: "body".into(), ..Outgoing::default() };
    let told = match sink {
        Ok(sink) => Ok(sink.publish(message).await.expect("published")),
        Err(error) => Err(error),
    };
    rocketmq.close().await;
    told
}

/// Name server and brokers are spoken to by TLS, with a certificate of ours, and believed as far as they are trusted.
#[tokio::test]
async fn tls_is_spoken_both_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let theirs = certificate(folder.path(), "theirs");
    let other = certificate(folder.path(), "other");
    let server = server(&theirs).await;
    let (trust, key) = theirs;
    let known =
        Tls { trust: Some(trust.clone()), certificate: Some(trust.clone()), key: Some(key) };
    speak(&server, known.clone()).await.expect("trusted both ways");
    let distrusting = Tls { trust: Some(other.0.clone()), ..known.clone() };
    let system = Tls { trust: None, ..known.clone() };
    for tls in [distrusting, system] {
        let error = speak(&server, tls).await.expect_err("not trusted");
        assert!(error.to_string().contains("invalid peer certificate"), "{error}");
        assert!(error.is_retryable(), "{error}");
    }
    let stranger = Tls { certificate: Some(other.0), key: Some(other.1), ..known.clone() };
    let nobody = Tls { certificate: None, key: None, ..known };
    for tls in [stranger, nobody] {
        let error = speak(&server, tls).await.expect_err("not let in");
        assert!(matches!(error, ProvisionError::Unavailable { .. }), "{error}");
    }
}
