//! What Pub/Sub itself must be allowed to do so that it can forward a message (C-16).
//!
//! Its service agent publishes to the dead-letter topic and acknowledges on the source subscription. Whoever
//! starts a host is often not allowed to look at policies, and an emulator has none: then the role is someone
//! else's to grant, and the subscription is made all the same. What is tolerated so is a status, of these calls
//! alone, or a client or credentials that can't be made ([`NoClient`]); everything else fails the creation.

use std::time::Duration;

use googleapis_tonic_google_cloud_resourcemanager_v3::google::cloud::resourcemanager::v3 as manager;
use googleapis_tonic_google_iam_v1::google::iam::v1 as wire;
use manager::projects_client::ProjectsClient;
use tonic::transport::Channel;
use tonic::{Code, Status};
use wire::iam_policy_client::IamPolicyClient;

use super::check::Policy;
use crate::calls::{Fault, Kind, bounded};
use crate::{NativeDeadLetter, ProvisionError, Pubsub, client};

const RESOURCE_MANAGER: &str = "https://cloudresourcemanager.googleapis.com";

const GET_PROJECT: &str = "GetProject";
const GET_POLICY: &str = "GetIamPolicy";
const SET_POLICY: &str = "SetIamPolicy";

/// What an operator has to know of a role that was not granted.
const CONSEQUENCE: &str = "native dead-lettering may be inactive";

/// The version that shows every binding, also one with a condition: whoever writes a policy back must have seen
/// all of it.
const WHOLE_POLICY: i32 = 3;

/// How often a policy is written that others write as well.
const MOST_WRITES: u32 = 5;

/// Before a policy is read again, doubled each time.
const PAUSE: Duration = Duration::from_millis(100);

/// There is no client to call with, or no credentials: no call was made, and there is no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no client: {0}")]
struct NoClient(String);

/// Why a helper ended before the role was granted.
#[derive(Debug)]
struct Abandoned {
    call: &'static str,
    resource: String,
    why: Why,
}

#[derive(Debug)]
enum Why {
    NoClient(NoClient),
    Failed(Fault),
}

/// One of the two helpers: a role, on a resource, for a member.
struct Helper<'a> {
    name: &'static str,
    role: &'static str,
    /// The full name.
    resource: &'a str,
    /// As configured.
    member: Option<&'a str>,
    /// The id of the subscription's project, whose service agent forwards.
    project: &'a str,
    pubsub: &'a Pubsub,
}

/// Lets Pub/Sub forward from a subscription to the dead-letter topic of its policy. A helper that is not allowed
/// to is abandoned with a warning; the other runs on its own terms.
///
/// # Errors
/// A call failed in a way that is not tolerated.
pub(super) async fn grant(
    pubsub: &Pubsub,
    subscription: &str,
    policy: &Policy,
    native: &NativeDeadLetter,
) -> Result<(), ProvisionError> {
    let project = subscription.split('/').nth(1).unwrap_or_default();
    let publisher = Helper {
        name: "dead-letter publisher",
        role: "roles/pubsub.publisher",
        resource: &policy.topic,
        member: native.publisher_member.as_deref(),
        project,
        pubsub,
    };
    let subscriber = Helper {
        name: "source subscriber",
        role: "roles/pubsub.subscriber",
        resource: subscription,
        member: native.subscriber_member.as_deref(),
        project,
        pubsub,
    };
    publisher.run().await?;
    subscriber.run().await
}

impl Helper<'_> {
    async fn run(&self) -> Result<(), ProvisionError> {
        let Err(abandoned) = self.grant().await else { return Ok(()) };
        let Some(status) = abandoned.tolerated() else { return Err(abandoned.into()) };
        tracing::warn!(
            helper = self.name,
            role = self.role,
            call = abandoned.call,
            resource = abandoned.resource,
            status,
            consequence = CONSEQUENCE,
            error = abandoned.text(),
            "a role was not granted; native dead-lettering may be inactive"
        );
        Ok(())
    }

    async fn grant(&self) -> Result<(), Abandoned> {
        let member = match self.member {
            Some(member) => member.to_owned(),
            None => self.service_agent().await?,
        };
        let mut pause = PAUSE;
        for _ in 1..MOST_WRITES {
            match self.bind(&member).await {
                // Someone else wrote the policy since it was read.
                Err(abandoned) if abandoned.code() == Some(Code::Aborted) => {}
                done => return done,
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.bind(&member).await
    }

    /// Reads the policy, and writes it back where the role is not yet the member's.
    async fn bind(&self, member: &str) -> Result<(), Abandoned> {
        let mut policy = self.policy().await?;
        if add(&mut policy, self.role, member) {
            self.set(policy).await?;
            tracing::info!(role = self.role, resource = self.resource, member, "role granted");
        }
        Ok(())
    }

    async fn policy(&self) -> Result<wire::Policy, Abandoned> {
        let message = wire::GetIamPolicyRequest {
            resource: self.resource.to_owned(),
            options: Some(wire::GetPolicyOptions { requested_policy_version: WHOLE_POLICY }),
        };
        let failed = |fault| Abandoned::failed(GET_POLICY, self.resource, fault);
        let request = self.request(message, GET_POLICY, ("resource", self.resource)).await?;
        let mut client = IamPolicyClient::new(self.pubsub.work_channel());
        bounded(self.pubsub.timeouts.admin, client.get_iam_policy(request)).await.map_err(failed)
    }

    async fn set(&self, policy: wire::Policy) -> Result<(), Abandoned> {
        let message = wire::SetIamPolicyRequest {
            resource: self.resource.to_owned(),
            policy: Some(policy),
            update_mask: None,
        };
        let failed = |fault| Abandoned::failed(SET_POLICY, self.resource, fault);
        let request = self.request(message, SET_POLICY, ("resource", self.resource)).await?;
        let mut client = IamPolicyClient::new(self.pubsub.work_channel());
        let answer = bounded(self.pubsub.timeouts.admin, client.set_iam_policy(request)).await;
        answer.map(drop).map_err(failed)
    }

    /// The account that Pub/Sub forwards with, named after the number of the subscription's project.
    async fn service_agent(&self) -> Result<String, Abandoned> {
        let name = format!("projects/{}", self.project);
        let failed = |fault| Abandoned::failed(GET_PROJECT, &name, fault);
        let channel = self.resource_manager(&name)?;
        let message = manager::GetProjectRequest { name: name.clone() };
        let request = self.request(message, GET_PROJECT, ("name", &name)).await?;
        let mut client = ProjectsClient::new(channel);
        let call = bounded(self.pubsub.timeouts.admin, client.get_project(request));
        let project = call.await.map_err(failed)?;
        let number = project.name.strip_prefix("projects/").filter(|it| is_number(it));
        let number = number.ok_or_else(|| failed(no_number(&project.name)))?;
        Ok(format!("serviceAccount:service-{number}@gcp-sa-pubsub.iam.gserviceaccount.com"))
    }

    /// An emulator has no Resource Manager, and Google's takes no call without credentials.
    fn resource_manager(&self, project: &str) -> Result<Channel, Abandoned> {
        let configured = self.pubsub.resource_manager.as_deref();
        if configured.is_none() && self.pubsub.endpoint.starts_with("http://") {
            let text = "pubsub is called without credentials, which Resource Manager does not take";
            return Err(Abandoned::failed(
                GET_PROJECT,
                project,
                Status::unauthenticated(text).into(),
            ));
        }
        let address = configured.unwrap_or(RESOURCE_MANAGER);
        client::channel(address, &self.pubsub.timeouts)
            .map_err(|error| Abandoned::no_client(GET_PROJECT, project, error.to_string()))
    }

    /// A request with what proves who we are. Where nothing does for good, there is no client.
    async fn request<T>(
        &self,
        message: T,
        call: &'static str,
        (field, resource): (&str, &str),
    ) -> Result<tonic::Request<T>, Abandoned> {
        self.pubsub.request(message, (field, resource)).await.map_err(|fault| match fault.kind {
            Kind::Denied if fault.status.is_none() => {
                Abandoned::no_client(call, resource, fault.text)
            }
            _ => Abandoned::failed(call, resource, fault),
        })
    }
}

impl Abandoned {
    fn failed(call: &'static str, resource: &str, fault: Fault) -> Self {
        Self { call, resource: resource.to_owned(), why: Why::Failed(fault) }
    }

    fn no_client(call: &'static str, resource: &str, text: String) -> Self {
        Self { call, resource: resource.to_owned(), why: Why::NoClient(NoClient(text)) }
    }

    /// What the service answered, where it did.
    fn code(&self) -> Option<Code> {
        match &self.why {
            Why::NoClient(_) => None,
            Why::Failed(fault) => fault.status.as_ref().map(|status| status.code()),
        }
    }

    /// The status that is tolerated; none where it is not.
    fn tolerated(&self) -> Option<String> {
        match (&self.why, self.code()) {
            (Why::NoClient(_), _) => Some("no client".to_owned()),
            (
                _,
                Some(code @ (Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated)),
            ) => Some(format!("{code:?}")),
            _ => None,
        }
    }

    fn text(&self) -> String {
        match &self.why {
            Why::NoClient(error) => error.to_string(),
            Why::Failed(fault) => fault.text.clone(),
        }
    }
}

impl From<Abandoned> for ProvisionError {
    fn from(abandoned: Abandoned) -> Self {
        let text = abandoned.text();
        let Abandoned { call, resource, why } = abandoned;
        match why {
            Why::NoClient(_) => Self::Denied { resource, call, text },
            Why::Failed(fault) => Self::from_fault(&resource, call, fault),
        }
    }
}

/// Adds a member to a role, and says whether that changed anything. A binding with a condition may not hold, and
/// is left alone.
fn add(policy: &mut wire::Policy, role: &str, member: &str) -> bool {
    let mut ours =
        policy.bindings.iter_mut().filter(|it| it.role == role && it.condition.is_none());
    if ours.any(|binding| binding.members.iter().any(|it| it == member)) {
        return false;
    }
    let mut ours =
        policy.bindings.iter_mut().filter(|it| it.role == role && it.condition.is_none());
    match ours.next() {
        Some(binding) => binding.members.push(member.to_owned()),
        None => policy.bindings.push(wire::Binding {
            role: role.to_owned(),
            members: vec![member.to_owned()],
            condition: None,
        }),
    }
    true
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn no_number(name: &str) -> Fault {
    let text =
        format!("the project is called {name:?}, which has no number: configure the members");
    Fault { kind: Kind::Sender, text, status: None }
}

#[cfg(test)]
#[path = "iam_tests.rs"]
mod tests;
