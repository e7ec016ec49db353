//! `StreamingPull`: the service pushes, and what nobody has asked for yet is held.

use pumphouse_contract::Delivery;
use pumphouse_contract::ports::{
    Ask, BoxFuture, Capabilities, ReceiveError, Settlement, Source, Unsettled,
};

use crate::provision::Channelled;
use crate::settle::Settler;
use crate::{Pubsub, SourceSpec, capabilities};

/// A subscription that pushes.
pub(crate) struct StreamSource {
    settler: Settler,
    capabilities: Capabilities,
}

impl StreamSource {
    pub(crate) fn new(pubsub: &Pubsub, spec: &SourceSpec, found: Channelled) -> Self {
        let capabilities = capabilities(spec.mode, spec.ordered);
        Self {
            settler: Settler {
                subscription: pubsub.subscription(&spec.subscription),
                pubsub: pubsub.clone(),
            },
            capabilities: Capabilities { count_advances: found.counts, ..capabilities },
        }
    }
}

impl Source for StreamSource {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&self, _: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        Box::pin(self.settler.settle(batch))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
