//! What no broker of the tests can be brought to.

use std::sync::Arc;
use std::time::Instant;

use pumphouse_contract::{Clock, Mono, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::{PubsubSettings, Timeouts};

struct TestClock(Instant);

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }

    fn mono(&self) -> Mono {
        Mono(self.0.elapsed())
    }
}

/// Answers each request for a token with a status.
async fn tokens(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}/token", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

/// A connection whose credentials ask there for a token. Nobody listens at its own address.
async fn connected(token_uri: &str) -> Pubsub {
    let credentials = serde_json::json!({
        "type": "authorized_user",
        "client_id": "nobody",
        "client_secret": "none",
        "refresh_token": "none",
        "token_uri": token_uri,
    });
    let admin = Duration::from_secs(2);
    let settings = PubsubSettings {
        project: Some("works".into()),
        endpoint: Some("https://127.0.0.1:9".into()),
        credentials: Some(credentials.to_string()),
        timeouts: Timeouts { admin, ..Timeouts::default() },
        ..PubsubSettings::new(Arc::new(TestClock(Instant::now())))
    };
    Pubsub::connect(settings).await.expect("a connection")
}

fn native(members: bool) -> NativeDeadLetter {
    let member = members.then(|| "serviceAccount:one@example.com".to_owned());
    NativeDeadLetter {
        max_delivery_attempts: 5,
        dead_letter: "dead".into(),
        publisher_member: member.clone(),
        subscriber_member: member,
    }
}

async fn granted(pubsub: &Pubsub, members: bool) -> Result<(), ProvisionError> {
    let policy = Policy {
        topic: "projects/works/topics/dead".into(),
        attempts: 5,
        kept_by: "projects/works/subscriptions/dead".into(),
    };
    grant(pubsub, "projects/works/subscriptions/orders", &policy, &native(members)).await
}

/// C-16: credentials that never give a token are no client, whichever call would have been the first.
#[tokio::test]
async fn c_16_credentials_that_cannot_be_had_abandon_each_helper() {
    let pubsub = connected(&tokens("400 Bad Request").await).await;
    for members in [false, true] {
        assert_eq!(granted(&pubsub, members).await, Ok(()), "members: {members}");
    }
    let helper = Helper {
        name: "one",
        role: "roles/pubsub.publisher",
        resource: "projects/works/topics/dead",
        member: None,
        project: "works",
        pubsub: &pubsub,
    };
    let abandoned = helper.grant().await.expect_err("there is no token");
    assert!(matches!(abandoned.why, Why::NoClient(_)), "{abandoned:?}");
    assert_eq!((abandoned.call, abandoned.resource.as_str()), (GET_PROJECT, "projects/works"));
}

#[test]
fn c_16_the_tolerance_is_by_status_and_by_what_was_never_called() {
    for code in (0..17).map(Code::from_i32) {
        let abandoned = Abandoned::failed(GET_POLICY, "r", Status::new(code, "").into());
        let expected =
            matches!(code, Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated);
        assert_eq!(abandoned.tolerated().is_some(), expected, "{code:?}");
    }
    assert!(Abandoned::no_client(GET_PROJECT, "r", "no token".into()).tolerated().is_some());
    let silent = Abandoned::failed(GET_PROJECT, "r", Fault::unavailable("no answer"));
    assert_eq!(silent.tolerated(), None, "no answer is no status");
    let denied = Fault { kind: Kind::Denied, text: String::new(), status: None };
    assert_eq!(Abandoned::failed(GET_PROJECT, "r", denied).tolerated(), None);
}
