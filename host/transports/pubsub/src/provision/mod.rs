//! Topics, subscriptions and their policies, before they are used.

mod admin;
mod check;
mod iam;
mod subscription;

use std::time::Duration;

use google_cloud_pubsub::model::Subscription;

use crate::{Provision, ProvisionError, Pubsub, SinkSpec, SourceSpec, SubscriptionFacts};
use admin::{Admin, Made};
use check::Plan;

/// How long a subscription keeps what nobody acknowledges, at most. Rejected messages are kept so long.
const LONGEST_RETENTION: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// What a source needs to know of its subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Channelled {
    /// Whether deliveries are counted: there is a dead-letter policy (C-8).
    pub(crate) counts: bool,
    /// The lease of a pull.
    pub(crate) ack_deadline: Duration,
    /// Whether a settlement is answered for each message.
    pub(crate) exactly_once: bool,
}

/// Provisions a subscription.
pub(crate) async fn source(
    pubsub: &Pubsub,
    spec: &SourceSpec,
) -> Result<Channelled, ProvisionError> {
    let plan = check::source(pubsub, spec).map_err(|it| invalid(&spec.subscription, it))?;
    if spec.provision == Provision::Assume {
        return Ok(Channelled::assumed(spec));
    }
    let admin = Admin::new(pubsub, &plan.subscription).await?;
    let found = admin.subscription(&plan.subscription).await?;
    let differs = |it: &Subscription| subscription::differences(it, &plan, spec);
    let mut differences = found.as_ref().map(differs).unwrap_or_default();
    // Nothing is made for a subscription that has to be put right first.
    let create = spec.provision == Provision::Create && differences.is_empty();
    differences.extend(topics(&admin, &plan, found.as_ref(), create).await?);
    let found = match (found, plan.topic.as_deref().filter(|_| create)) {
        (None, Some(topic)) => {
            let made = make(&admin, subscription::wanted(&plan, topic, spec)).await?;
            differences.extend(made.as_ref().map(differs).unwrap_or_default());
            made
        }
        (found, _) => found,
    };
    if found.is_none() {
        differences.push(missing("subscription", &plan.subscription));
    }
    let found = found.filter(|_| differences.is_empty());
    let found = found.ok_or_else(|| differing(&plan.subscription, differences))?;
    if let Some((native, policy)) =
        spec.native.as_ref().zip(plan.policy.as_ref()).filter(|_| create)
    {
        iam::grant(pubsub, &plan.subscription, policy, native).await?;
    }
    Ok(Channelled::of(&found))
}

/// Sees to it that the topic that feeds a source, and the one that its policy forwards to, are there.
async fn topics(
    admin: &Admin,
    plan: &Plan,
    found: Option<&Subscription>,
    create: bool,
) -> Result<Vec<String>, ProvisionError> {
    let mut differences = Vec::new();
    // A subscription that says its topic's name has its topic: it would say so were it deleted.
    let unfed = |topic: &&String| found.is_none_or(|found| found.topic != **topic);
    if let Some(topic) = plan.topic.as_ref().filter(unfed) {
        differences.extend(ensure_topic(admin, topic, create).await?);
    }
    if let Some(policy) = &plan.policy {
        let kept = Kept { what: "dead-letter topic", topic: &policy.topic, by: &policy.kept_by };
        differences.extend(kept.ensure(admin, create).await?);
    }
    Ok(differences)
}

/// Makes a subscription, and gives what is there then: another host may have made it meanwhile, in its own way.
async fn make(admin: &Admin, wanted: Subscription) -> Result<Option<Subscription>, ProvisionError> {
    let name = wanted.name.clone();
    match admin.create_subscription(wanted).await? {
        Made::New(made) => Ok(Some(made)),
        Made::Already => admin.subscription(&name).await,
    }
}

/// Provisions a topic to publish to.
pub(crate) async fn sink(pubsub: &Pubsub, spec: &SinkSpec) -> Result<(), ProvisionError> {
    let target = check::sink(pubsub, spec).map_err(|it| invalid(&spec.topic, it))?;
    if spec.provision == Provision::Assume {
        return Ok(());
    }
    let admin = Admin::new(pubsub, &target.topic).await?;
    let kept = Kept { what: "topic", topic: &target.topic, by: &target.kept_by };
    match kept.ensure(&admin, spec.provision == Provision::Create).await? {
        None => Ok(()),
        Some(difference) => Err(differing(&target.topic, vec![difference])),
    }
}

/// Whether some subscription keeps what is published to a topic. One that is missing is an error.
pub(crate) async fn is_kept(pubsub: &Pubsub, topic: &str) -> Result<bool, ProvisionError> {
    let admin = Admin::new(pubsub, topic).await?;
    admin.has_subscription(topic).await
}

/// What the subscription itself says.
pub(crate) async fn facts(
    pubsub: &Pubsub,
    subscription: &str,
) -> Result<SubscriptionFacts, ProvisionError> {
    let admin = Admin::new(pubsub, subscription).await?;
    let found = admin.subscription(subscription).await?;
    let found = found
        .ok_or_else(|| differing(subscription, vec![missing("subscription", subscription)]))?;
    Ok(subscription::facts(&found))
}

/// Sees to it that there is a topic, and says so where there is none.
async fn ensure_topic(
    admin: &Admin,
    topic: &str,
    create: bool,
) -> Result<Option<String>, ProvisionError> {
    if admin.topic(topic).await?.is_some() {
        return Ok(None);
    }
    if create {
        // It is the same topic, whoever was quicker.
        admin.create_topic(topic).await?;
        return Ok(None);
    }
    Ok(Some(missing("topic", topic)))
}

/// A topic whose messages must be kept: without a subscription, what is published there is lost.
struct Kept<'a> {
    /// What the topic is to whoever configured it.
    what: &'static str,
    topic: &'a str,
    /// The name of the subscription that is made where there is none.
    by: &'a str,
}

impl Kept<'_> {
    /// Sees to it that the topic is there and keeps what is published, and says how it does not.
    async fn ensure(&self, admin: &Admin, create: bool) -> Result<Option<String>, ProvisionError> {
        if create {
            ensure_topic(admin, self.topic, true).await?;
            return self.subscribe(admin).await;
        }
        let Some(found) = admin.topic(self.topic).await? else {
            return Ok(Some(missing(self.what, self.topic)));
        };
        let retains = admin::read(found.message_retention_duration).is_some_and(|it| !it.is_zero());
        if retains || admin.has_subscription(self.topic).await? {
            return Ok(None);
        }
        Ok(Some(format!(
            "{} {} has neither a subscription nor a retention of its own, so that a copy published there would be \
             lost: give it one",
            self.what, self.topic
        )))
    }

    async fn subscribe(&self, admin: &Admin) -> Result<Option<String>, ProvisionError> {
        if admin.has_subscription(self.topic).await? {
            return Ok(None);
        }
        let wanted = subscription::keeping(self.by, self.topic);
        if let Made::New(_) = admin.create_keeping(wanted, LONGEST_RETENTION).await? {
            return Ok(None);
        }
        // Another host made it meanwhile, or the name belongs to a subscription of another topic.
        let found = admin.subscription(self.by).await?;
        let other = found.filter(|found| found.topic != self.topic);
        Ok(other.map(|other| {
            format!(
                "{} {} has no subscription, and {} belongs to topic {}: name another subscription",
                self.what, self.topic, self.by, other.topic
            )
        }))
    }
}

impl Channelled {
    fn of(found: &Subscription) -> Self {
        let facts = subscription::facts(found);
        Self {
            counts: facts.native_limit.is_some(),
            ack_deadline: facts.ack_deadline,
            exactly_once: facts.exactly_once,
        }
    }
}

fn missing(what: &str, name: &str) -> String {
    format!("{what} {name} does not exist: make it, or let it be made with provision = \"create\"")
}

fn differing(resource: &str, differences: Vec<String>) -> ProvisionError {
    ProvisionError::Differs { resource: resource.to_owned(), differences }
}

fn invalid(resource: &str, problems: Vec<String>) -> ProvisionError {
    ProvisionError::Invalid { resource: resource.to_owned(), problems }
}
