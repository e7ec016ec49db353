//! The end of waits once somebody is in a hurry.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::calls::Fault;

/// How long a request is still waited for, beyond the time that it waits for messages itself. A broker answers within
/// milliseconds of that.
const MARGIN: Duration = Duration::from_secs(1);

/// Whether somebody is in a hurry. It stays so.
///
/// The client does not tell of a connection that the other side closed: who waits for an answer on it waits until its
/// own limit, which allows for a broker that is slow. A drain can't.
#[derive(Debug, Default)]
pub(crate) struct Hurry(CancellationToken);

impl Hurry {
    /// From now on nobody waits longer than needed.
    pub(crate) fn begin(&self) {
        self.0.cancel();
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits for a request that is to be answered by `due`. In a hurry, it is given up a second after that or, where
    /// it is past already, a second from now. What an answer brings that comes still later lapses with its lease, as
    /// does that of any pop whose answer is lost: a delivery more is counted, and no message is lost.
    pub(crate) async fn bound<T>(
        &self,
        due: Instant,
        request: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let overdue = async {
            self.0.cancelled().await;
            sleep_until(due.max(Instant::now()) + MARGIN).await;
        };
        // An answer that is there goes before the limit. Whichever is dropped holds no message yet.
        tokio::select! {
            biased;
            answer = request => answer,
            () = overdue => Err(Fault::unavailable("no answer in time, and the host is about to end")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// How long a request without an answer is waited for that is due in 3 s, where the hurry begins after this.
    async fn waited(begins: Duration) -> Duration {
        let (hurry, begun) = (Hurry::default(), Instant::now());
        let request = hurry.bound(begun + 3 * SECOND, pending::<Result<(), Fault>>());
        let begin = async {
            tokio::time::sleep(begins).await;
            hurry.begin();
        };
        let (answer, ()) = tokio::join!(request, begin);
        assert!(answer.expect_err("no answer").text.contains("about to end"));
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn in_a_hurry_a_request_has_a_second_beyond_its_time() {
        for (begins, least) in [(0, 4), (1, 4), (3, 4), (5, 6)] {
            let took = waited(begins * SECOND).await;
            let most = least * SECOND + SECOND / 10;
            assert!((least * SECOND..most).contains(&took), "after {begins} s: {took:?}");
        }
    }

    /// Without one, whoever makes the request bounds it.
    #[tokio::test(start_paused = true)]
    async fn without_a_hurry_nothing_is_given_up() {
        let hurry = Hurry::default();
        let request = hurry.bound(Instant::now(), pending::<Result<(), Fault>>());
        assert!(tokio::time::timeout(3_600 * SECOND, request).await.is_err());
        assert!(!hurry.is_on());
    }

    /// What is answered is handed over, however late it is.
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_there_is_not_lost() {
        let hurry = Hurry::default();
        hurry.begin();
        let long_ago = Instant::now();
        tokio::time::advance(60 * SECOND).await;
        assert_eq!(hurry.bound(long_ago, ready(Ok("message"))).await, Ok("message"));
        assert!(hurry.is_on());
    }
}
