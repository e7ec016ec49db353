//! Which servers answer, and what becomes of a request that is not answered.
//!
//! The client gives up a connection that fell silent where a request ends by the client's own time, and otherwise after
//! two minutes. So a request goes on to that end, also where nobody waits for it any more; but for one that the server
//! alone forgot: the connection is good where others were answered on it meanwhile.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cheetah_string::CheetahString;
use rocketmq_client_rust::ClientResult;
use tokio::time::{Instant, sleep, timeout};

/// How long before the client's own end it is decided whether there will be one.
const BEFORE: Duration = Duration::from_millis(100);

/// Servers that are remembered. To forget them costs a connection that is made anew.
const MOST: usize = 1_024;

/// When which server answered last.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<HashMap<CheetahString, Instant>>);

impl Answers {
    /// Has a task of its own ask a server, and waits for at most `limit`; none where there is no answer by then. The
    /// client is to be told the same limit.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        server: &CheetahString,
        limit: Duration,
        call: impl Future<Output = ClientResult<T>> + Send + 'static,
    ) -> Option<ClientResult<T>> {
        let (answers, server) = (Arc::clone(self), server.clone());
        let asking = tokio::spawn(async move { answers.wait(&server, limit, call).await });
        timeout(limit, asking).await.ok()?.ok()?
    }

    async fn wait<T>(
        &self,
        server: &CheetahString,
        limit: Duration,
        call: impl Future<Output = ClientResult<T>>,
    ) -> Option<ClientResult<T>> {
        let (began, mut call) = (Instant::now(), pin!(call));
        let answer = tokio::select! {
            biased;
            answer = &mut call => answer,
            () = sleep(limit.saturating_sub(BEFORE)) => {
                if self.answered_since(server, began) {
                    return None;
                }
                call.await
            }
        };
        if answer.is_ok() {
            self.note(server);
        }
        Some(answer)
    }

    fn note(&self, server: &CheetahString) {
        let mut last = self.last();
        if last.len() >= MOST {
            last.clear();
        }
        last.insert(server.clone(), Instant::now());
    }

    fn answered_since(&self, server: &CheetahString, began: Instant) -> bool {
        self.last().get(server).is_some_and(|last| *last > began)
    }

    fn last(&self) -> MutexGuard<'_, HashMap<CheetahString, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    fn server() -> CheetahString {
        CheetahString::from_static_str("10.0.0.1:10911")
    }

    /// A request without an answer, as the client makes it: it ends by its own time, and then gives the connection up.
    fn unanswered(given_up: &Arc<AtomicBool>) -> impl Future<Output = ClientResult<()>> + use<> {
        let given_up = Arc::clone(given_up);
        async move {
            sleep(LIMIT).await;
            given_up.store(true, Ordering::Relaxed);
            pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_given_up_though_nobody_waits_any_more() {
        let (answers, given_up) = (Arc::new(Answers::default()), Arc::default());
        let server = server();
        let asked = answers.ask(&server, LIMIT, unanswered(&given_up));
        assert!(timeout(Duration::from_secs(1), asked).await.is_err());
        sleep(LIMIT).await;
        assert!(given_up.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_others_are_answered_on_is_kept() {
        let (answers, given_up) = (Arc::new(Answers::default()), Arc::default());
        let server = server();
        let asked = answers.ask(&server, LIMIT, unanswered(&given_up));
        let other = async {
            sleep(Duration::from_secs(2)).await;
            answers.ask(&server, LIMIT, async { Ok(()) }).await
        };
        let (asked, other) = tokio::join!(asked, other);
        assert!(asked.is_none() && other.is_some_and(|answer| answer.is_ok()));
        sleep(LIMIT).await;
        assert!(!given_up.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_before_the_request_says_nothing_of_the_connection_now() {
        let (answers, given_up) = (Arc::new(Answers::default()), Arc::default());
        let server = server();
        assert!(answers.ask(&server, LIMIT, async { Ok(()) }).await.is_some());
        sleep(Duration::from_secs(1)).await;
        assert!(answers.ask(&server, LIMIT, unanswered(&given_up)).await.is_none());
        sleep(LIMIT).await;
        assert!(given_up.load(Ordering::Relaxed));
    }
}
