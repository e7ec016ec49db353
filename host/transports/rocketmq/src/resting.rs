//! Brokers that failed a moment ago, and how it is seen that one of them is back.

use std::time::Duration;

use cheetah_string::CheetahString;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::calls::Fault;

/// How long a broker that failed is left out at most.
const REST: Duration = Duration::from_secs(5);

/// How long a connection to one that failed may take.
const CONNECT: Duration = Duration::from_secs(2);

/// Brokers that failed and did not answer since, by name, and until when each is left out.
#[derive(Debug, Default)]
pub(crate) struct Resting(Vec<(CheetahString, Instant)>);

impl Resting {
    /// Takes note that a broker failed; true where it had not before.
    pub(crate) fn add(&mut self, broker: &CheetahString) -> bool {
        let new = !self.remove(broker);
        self.0.push((broker.clone(), Instant::now() + REST));
        new
    }

    /// Takes note that a broker answered; true where it had failed.
    pub(crate) fn remove(&mut self, broker: &CheetahString) -> bool {
        let before = self.0.len();
        self.0.retain(|(name, _)| name != broker);
        self.0.len() < before
    }

    /// Whether a broker failed and did not answer since.
    pub(crate) fn has(&self, broker: &CheetahString) -> bool {
        self.0.iter().any(|(name, _)| name == broker)
    }

    /// Whether a broker failed so shortly ago that others go before it.
    pub(crate) fn rests(&self, broker: &CheetahString) -> bool {
        self.0.iter().any(|(name, until)| name == broker && *until > Instant::now())
    }

    /// Those whose broker does not rest; all of them where every one does.
    pub(crate) fn awake<'a, T>(
        &self,
        all: &'a [T],
        broker: impl Fn(&T) -> &CheetahString,
    ) -> Vec<&'a T> {
        let awake: Vec<&T> = all.iter().filter(|one| !self.rests(broker(one))).collect();
        if awake.is_empty() { all.iter().collect() } else { awake }
    }
}

/// Whether a broker that failed can be connected to again, at `host:port`. The client is not asked: after five
/// connections that failed it would try none for half a minute.
///
/// # Errors
/// It can't be connected to within 2 seconds.
pub(crate) async fn reach(address: &CheetahString) -> Result<(), Fault> {
    let why = match tokio::time::timeout(CONNECT, TcpStream::connect(address.as_str())).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {CONNECT:?}"),
    };
    Err(Fault::unavailable(format!("broker {address} can't be connected to: {why}")))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::calls::Meaning;

    static ALL: [CheetahString; 2] =
        [CheetahString::from_static_str("a"), CheetahString::from_static_str("b")];

    fn awake(resting: &Resting) -> Vec<&'static str> {
        resting.awake(&ALL, |it| it).into_iter().map(CheetahString::as_str).collect()
    }

    /// One that failed is left out for five seconds, and is known to have failed until it answers.
    #[tokio::test(start_paused = true)]
    async fn a_broker_that_failed_rests_and_is_remembered() {
        let [a, b] = &ALL;
        let mut resting = Resting::default();
        assert!(!resting.has(a) && !resting.rests(a) && !resting.remove(a));
        assert!(resting.add(a) && !resting.add(a));
        assert!(resting.has(a) && resting.rests(a) && !resting.has(b));
        assert_eq!(awake(&resting), ["b"]);
        tokio::time::advance(REST).await;
        assert!(resting.has(a) && !resting.rests(a));
        assert_eq!(awake(&resting), ["a", "b"]);
        assert!(!resting.add(a) && resting.rests(a), "it failed again");
        assert!(resting.remove(a) && !resting.has(a) && !resting.rests(a));
    }

    /// A failure anew lets it rest anew, from then on.
    #[tokio::test(start_paused = true)]
    async fn a_rest_is_counted_from_the_last_failure() {
        let [a, _] = &ALL;
        let mut resting = Resting::default();
        resting.add(a);
        tokio::time::advance(REST - Duration::from_millis(1)).await;
        resting.add(a);
        tokio::time::advance(Duration::from_millis(2)).await;
        assert!(resting.rests(a));
        tokio::time::advance(REST).await;
        assert!(!resting.rests(a));
    }

    /// Where all of them failed, all are tried: one may be back.
    #[tokio::test(start_paused = true)]
    async fn where_all_rest_none_is_left_out() {
        let mut resting = Resting::default();
        ALL.iter().for_each(|it| assert!(resting.add(it)));
        assert_eq!(awake(&resting), ["a", "b"]);
        assert_eq!(resting.awake(&[] as &[CheetahString], |it| it), Vec::<&CheetahString>::new());
    }

    #[tokio::test]
    async fn a_broker_is_reached_where_somebody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address: CheetahString = listener.local_addr().expect("bound").to_string().into();
        assert_eq!(reach(&address).await, Ok(()));
        drop(listener);
        let fault = reach(&address).await.expect_err("nobody listens");
        assert_eq!((fault.meaning, fault.code), (Meaning::Unavailable, None));
        assert!(fault.text.contains(address.as_str()), "{}", fault.text);
    }
}
