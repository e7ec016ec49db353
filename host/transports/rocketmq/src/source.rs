use pumphouse_contract::Delivery;
use pumphouse_contract::ports::{
    Ask, BoxFuture, Capabilities, ReceiveError, Settlement, Source, Unsettled,
};

use crate::{Rocketmq, SourceSpec, capabilities};

pub(crate) struct PopSource {
    capabilities: Capabilities,
}

impl PopSource {
    pub(crate) fn new(_: &Rocketmq, spec: &SourceSpec) -> Self {
        Self { capabilities: capabilities(spec.kind) }
    }
}

impl Source for PopSource {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&self, _: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn settle(&self, _: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        Box::pin(async { Vec::new() })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
