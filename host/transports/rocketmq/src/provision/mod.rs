//! Topics and groups, before they are used.

mod admin;
mod check;
mod group;
mod topic;

use cheetah_string::CheetahString;

use crate::{GroupFacts, Kind, Provision, ProvisionError, Rocketmq, SinkSpec, SourceSpec};
use admin::{Admin, Broker};
use topic::Use;

/// Provisions a topic and a group to read it as.
pub(crate) async fn source(rocketmq: &Rocketmq, spec: &SourceSpec) -> Result<(), ProvisionError> {
    let (topic, group) = (rocketmq.name(&spec.topic), rocketmq.name(&spec.group));
    let problems = check::source(&topic, &group, spec);
    if !problems.is_empty() {
        return Err(ProvisionError::Invalid { resource: spec.topic.clone(), problems });
    }
    if spec.provision == Provision::Assume {
        return Ok(());
    }
    let admin = Admin::new(rocketmq, &topic);
    let create = spec.provision == Provision::Create;
    let wanted = Wanted { topic: &topic, kind: spec.kind, queues: spec.queues, usage: Use::Read };
    let found = wanted.ensure(&admin, create).await?;
    let mut differences = found.differences;
    // Nothing is made for a topic that has to be put right first.
    let create = create && differences.is_empty();
    for broker in &found.brokers {
        differences.extend(ensure_group(&admin, broker, &group, spec.kind, create).await?);
    }
    differing(topic, differences)
}

/// Provisions a topic to publish to.
pub(crate) async fn sink(rocketmq: &Rocketmq, spec: &SinkSpec) -> Result<(), ProvisionError> {
    let topic = rocketmq.name(&spec.topic);
    let problems = check::sink(&topic, spec);
    if !problems.is_empty() {
        return Err(ProvisionError::Invalid { resource: spec.topic.clone(), problems });
    }
    if spec.provision == Provision::Assume {
        return Ok(());
    }
    let admin = Admin::new(rocketmq, &topic);
    let create = spec.provision == Provision::Create;
    let wanted = Wanted { topic: &topic, kind: spec.kind, queues: spec.queues, usage: Use::Write };
    let found = wanted.ensure(&admin, create).await?;
    differing(topic, found.differences)
}

/// What the brokers say of a topic and a group.
pub(crate) async fn facts(
    rocketmq: &Rocketmq,
    spec: &SourceSpec,
) -> Result<GroupFacts, ProvisionError> {
    let (topic, group) = (rocketmq.name(&spec.topic), rocketmq.name(&spec.group));
    let admin = Admin::new(rocketmq, &topic);
    let Some(brokers) = admin.route(&topic).await? else {
        return differing(topic.clone(), vec![missing("topic", &topic)])
            .map(|()| GroupFacts::default());
    };
    let mut facts = GroupFacts::default();
    for broker in &brokers {
        if let Some(found) = admin.topic(broker, &topic).await? {
            facts.kind = facts.kind.or(topic::kind(&found));
        }
        if let Some(found) = admin.group(broker, &group).await? {
            let limits = [facts.retry_limit, group::retry_limit(&found)];
            facts.retry_limit = limits.into_iter().flatten().min();
        }
    }
    Ok(facts)
}

/// A topic as the configuration wants it.
struct Wanted<'a> {
    /// On the wire.
    topic: &'a str,
    kind: Kind,
    queues: u32,
    usage: Use,
}

/// What there is of a topic.
struct Found {
    /// The masters that have it.
    brokers: Vec<Broker>,
    differences: Vec<String>,
}

impl Wanted<'_> {
    async fn ensure(&self, admin: &Admin<'_>, create: bool) -> Result<Found, ProvisionError> {
        let brokers = match admin.route(self.topic).await? {
            Some(brokers) => brokers,
            None if create => self.make(admin).await?,
            None => {
                let differences = vec![missing("topic", self.topic)];
                return Ok(Found { brokers: Vec::new(), differences });
            }
        };
        let mut differences = Vec::new();
        for broker in &brokers {
            let found = admin.topic(broker, self.topic).await?;
            differences.extend(match found {
                Some(found) => topic::differences(&found, self.kind, self.usage, &broker.name),
                None => vec![format!("broker {}: {}", broker.name, missing("topic", self.topic))],
            });
        }
        Ok(Found { brokers, differences })
    }

    /// Makes the topic on every master, and waits until the name server leads to all of them.
    async fn make(&self, admin: &Admin<'_>) -> Result<Vec<Broker>, ProvisionError> {
        let brokers = admin.masters_of_one().await?;
        for broker in &brokers {
            // Another host may be making it: it is the same topic, unless it is another, and then it differs.
            if admin.topic(broker, self.topic).await?.is_none() {
                admin.create_topic(broker, self.topic, self.kind, self.queues).await?;
            }
        }
        let names: Vec<&CheetahString> = brokers.iter().map(|broker| &broker.name).collect();
        admin.wait_for_route(self.topic, &names).await
    }
}

/// Sees to it that a broker has the group, and says how it does not.
async fn ensure_group(
    admin: &Admin<'_>,
    broker: &Broker,
    group: &str,
    kind: Kind,
    create: bool,
) -> Result<Vec<String>, ProvisionError> {
    if create && !admin.has_group(broker, group).await? {
        admin.create_group(broker, group, kind).await?;
    }
    let found = admin.group(broker, group).await?;
    Ok(match found {
        Some(found) => group::differences(&found, group, kind, &broker.name),
        None => vec![format!("broker {}: {}", broker.name, missing("group", group))],
    })
}

fn missing(what: &str, name: &str) -> String {
    format!("{what} {name} does not exist: make it, or let it be made with provision = \"create\"")
}

fn differing(resource: String, differences: Vec<String>) -> Result<(), ProvisionError> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(ProvisionError::Differs { resource, differences })
}
