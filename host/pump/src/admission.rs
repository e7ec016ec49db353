//! How much a pump may receive: what its handler has room for (C-18).

use std::num::NonZeroUsize;
use std::time::Duration;

use futures_util::FutureExt;
use pumphouse_contract::ports::Condition;
use tokio::sync::OwnedMutexGuard;
use tokio::time::sleep;

use crate::pump::Inner;

/// Where room is short, what the last receive brought has begun when the next one asks for how much there is.
const BREATH: Duration = Duration::from_millis(5);

/// The handler's leave to receive.
#[derive(Debug)]
pub(crate) struct Welcome {
    /// The most messages.
    pub(crate) most: usize,
    /// Where room is short, one receive at a time asks for it.
    pub(crate) turn: Option<OwnedMutexGuard<()>>,
}

impl Inner {
    /// Waits until the handler has room. Takes nothing of it, and may be dropped.
    pub(crate) async fn welcome(&self) -> Welcome {
        if self.room().await.is_none() {
            return Welcome { most: usize::MAX, turn: None };
        }
        let turn = self.turn.clone().lock_owned().await;
        sleep(BREATH).await;
        let most = self.room().await.map_or(usize::MAX, NonZeroUsize::get);
        Welcome { most, turn: Some(turn) }
    }

    /// The calls that the handler has room for; none where it does not matter.
    async fn room(&self) -> Option<NonZeroUsize> {
        let handler = &self.subscription.handler;
        match handler.welcome().now_or_never() {
            Some(room) => room,
            // Whether a host is ready is not decided by what its tenants compute.
            None if self.health.get().0 == Condition::Starting => Some(NonZeroUsize::MIN),
            None => handler.welcome().await,
        }
    }
}
