use std::time::Duration;

use pumphouse_contract::Outgoing;
use pumphouse_rocketmq::{Kind, Provision, ProvisionError, Rocketmq, Tls};
use pumphouse_test_brokers::{Certificate, RocketMq, Setup};

use crate::common::*;

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
    let made = |name| Certificate::make(folder.path(), name).expect("a certificate");
    let (theirs, other) = (made("theirs"), made("other"));
    let server = own(Setup::default().mutual_tls(&theirs)).await;
    let known = Tls {
        trust: Some(theirs.certificate.clone()),
        certificate: Some(theirs.certificate),
        key: Some(theirs.key),
    };
    speak(&server, known.clone()).await.expect("trusted both ways");
    let distrusting = Tls { trust: Some(other.certificate.clone()), ..known.clone() };
    let system = Tls { trust: None, ..known.clone() };
    for tls in [distrusting, system] {
        let error = speak(&server, tls).await.expect_err("not trusted");
        assert!(error.to_string().contains("invalid peer certificate"), "{error}");
        assert!(error.is_retryable(), "{error}");
    }
    let stranger =
        Tls { certificate: Some(other.certificate), key: Some(other.key), ..known.clone() };
    let nobody = Tls { certificate: None, key: None, ..known };
    for tls in [stranger, nobody] {
        let error = speak(&server, tls).await.expect_err("not let in");
        assert!(matches!(error, ProvisionError::Unavailable { .. }), "{error}");
    }
}
