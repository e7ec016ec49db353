use crate::{GroupFacts, ProvisionError, Rocketmq, SinkSpec, SourceSpec};

pub(crate) async fn source(_: &Rocketmq, _: &SourceSpec) -> Result<(), ProvisionError> {
    Ok(())
}

pub(crate) async fn sink(_: &Rocketmq, _: &SinkSpec) -> Result<(), ProvisionError> {
    Ok(())
}

pub(crate) async fn facts(_: &Rocketmq, _: &SourceSpec) -> Result<GroupFacts, ProvisionError> {
    Ok(GroupFacts::default())
}
