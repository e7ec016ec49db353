//! C-16: what is tolerated of the two helpers, and nothing else.

use std::collections::HashMap;

use googleapis_tonic_google_iam_v1::google::iam::v1::{Binding, Policy};
use googleapis_tonic_google_iam_v1::google::r#type::Expr;
use pumphouse_pubsub::{
    Mode, NativeDeadLetter, Provision, ProvisionError, Pubsub, PubsubSettings, SourceSpec,
};
use tonic::Code;

use crate::common::{
    Foreign, NOWHERE, connect, emulator, native, settings, spec, subscription, topic, unique,
};
use crate::logs::{self, Warning};
use crate::scripted::{By, Call, NUMBER, Scripted};

const TOLERATED: [Code; 3] = [Code::Unimplemented, Code::PermissionDenied, Code::Unauthenticated];
const HELPERS: [By; 2] = [By::Publisher, By::Subscriber];

/// A subscription with a policy, and what is not yet made for it.
struct Channel {
    name: String,
    dead: String,
}

impl Channel {
    fn new() -> Self {
        Self { name: unique("granted"), dead: unique("granted-dead") }
    }

    fn spec(&self, members: bool) -> SourceSpec {
        let mut native = native(5, &self.dead);
        if let Some(native) = native.as_mut().filter(|_| !members) {
            (native.publisher_member, native.subscriber_member) = (None, None);
        }
        SourceSpec { mode: Mode::Pull, native, ..spec(&self.name, Provision::Create) }
    }

    fn resource(&self, call: Call, by: By) -> String {
        match (call, by) {
            (Call::Project, _) => "projects/works".to_owned(),
            (_, By::Publisher) => topic(&self.dead),
            (_, By::Subscriber) => subscription(&self.name),
        }
    }
}

fn called(call: Call) -> &'static str {
    match call {
        Call::Project => "GetProject",
        Call::Get => "GetIamPolicy",
        Call::Set => "SetIamPolicy",
    }
}

fn helper(by: By) -> &'static str {
    match by {
        By::Publisher => "dead-letter publisher",
        By::Subscriber => "source subscriber",
    }
}

/// A connection to a scripted server, whose Resource Manager it is as well.
async fn scripted(server: &Scripted) -> Pubsub {
    let resource_manager = Some(server.endpoint.clone());
    let settings = PubsubSettings { resource_manager, ..settings(&server.endpoint) };
    Pubsub::connect(settings).await.expect("a connection")
}

/// The five parts.
fn assert_parts(warning: &Warning, by: By, call: Call, resource: &str, status: &str) {
    let part = |name| warning.get(name).map(String::as_str);
    assert_eq!(part("helper"), Some(helper(by)));
    assert_eq!(part("call"), Some(called(call)));
    assert_eq!(part("resource"), Some(resource));
    assert_eq!(part("status"), Some(status));
    assert_eq!(part("consequence"), Some("native dead-lettering may be inactive"));
    let message = part("message").expect("a message");
    assert!(message.contains("native dead-lettering may be inactive"), "{message}");
}

fn members(policy: Option<&Policy>, role: &str) -> Vec<String> {
    let bindings = policy.map(|policy| policy.bindings.clone()).unwrap_or_default();
    let ours = bindings.into_iter().filter(|it| it.role == role && it.condition.is_none());
    ours.flat_map(|binding| binding.members).collect()
}

fn grants(server: &Scripted, channel: &Channel) -> (Vec<String>, Vec<String>) {
    let script = server.script();
    (
        members(script.policies.get(&topic(&channel.dead)), "roles/pubsub.publisher"),
        members(script.policies.get(&subscription(&channel.name)), "roles/pubsub.subscriber"),
    )
}

#[tokio::test]
async fn c_16_of_all_17_statuses_to_get_project_three_are_tolerated() {
    every_status_to(Call::Project).await;
}

#[tokio::test]
async fn c_16_of_all_17_statuses_to_get_iam_policy_three_are_tolerated() {
    every_status_to(Call::Get).await;
}

#[tokio::test]
async fn c_16_of_all_17_statuses_to_set_iam_policy_three_are_tolerated() {
    every_status_to(Call::Set).await;
}

/// Every status to a call of each helper, for a host that goes for the project's own members.
async fn every_status_to(call: Call) {
    let emulator = emulator().await;
    let foreign = Foreign::connect(&emulator).await;
    let codes = (0..17).map(Code::from_i32);
    for (code, by) in codes.flat_map(|code| HELPERS.map(|by| (code, by))) {
        let server = Scripted::start(&emulator).await;
        server.script().codes = HashMap::from([((call, by), code)]);
        let (pubsub, channel) = (scripted(&server).await, Channel::new());
        let answer = pubsub.source(channel.spec(false)).await.map(drop);
        let case = format!("{code:?} to {call:?} of {by:?}");
        let seen = logs::take();
        let (published, subscribed) = grants(&server, &channel);
        let granted = (published.len(), subscribed.len());
        if code == Code::Ok {
            assert_eq!((answer, seen, granted), (Ok(()), vec![], (1, 1)), "{case}");
        } else if TOLERATED.contains(&code) {
            assert_eq!(answer, Ok(()), "{case}");
            assert_eq!(seen.len(), 1, "{case}: {seen:?}");
            assert_parts(&seen[0], by, call, &channel.resource(call, by), &format!("{code:?}"));
            let others = if by == By::Publisher { (0, 1) } else { (1, 0) };
            assert_eq!(granted, others, "{case}: the other helper still runs");
            assert!(foreign.read(&channel.name).await.is_some(), "{case}");
        } else {
            let error = answer.err().unwrap_or_else(|| panic!("{case} is swallowed"));
            let text = error.to_string();
            assert!(text.contains(called(call)) && text.contains(&format!("{code:?}")), "{text}");
            assert!(!matches!(error, ProvisionError::Denied { .. }), "{text}");
            assert_eq!(seen, vec![], "{case}");
        }
    }
}

/// A helper ends with the call that is refused: nothing is asked after it.
#[tokio::test]
async fn c_16_an_abandoned_helper_makes_no_further_call() {
    let emulator = emulator().await;
    for (call, expected) in
        [(Call::Project, (2, 0, 0)), (Call::Get, (2, 2, 0)), (Call::Set, (2, 2, 2))]
    {
        let server = Scripted::start(&emulator).await;
        server.script().codes = HELPERS.map(|by| ((call, by), Code::PermissionDenied)).into();
        scripted(&server).await.source(Channel::new().spec(false)).await.expect("a source");
        let script = server.script();
        let made = (script.count(Call::Project), script.count(Call::Get), script.count(Call::Set));
        assert_eq!(made, expected, "{call:?}");
        let seen: Vec<_> = logs::take().iter().map(|it| it["helper"].clone()).collect();
        assert_eq!(seen, HELPERS.map(helper), "one warning each");
    }
}

#[tokio::test]
async fn c_16_configured_members_skip_the_resource_manager() {
    let server = Scripted::start(&emulator().await).await;
    let (pubsub, channel) = (scripted(&server).await, Channel::new());
    pubsub.source(channel.spec(true)).await.expect("a source");
    assert_eq!(server.script().count(Call::Project), 0);
    let (published, subscribed) = grants(&server, &channel);
    assert_eq!(published, ["serviceAccount:one@example.com"]);
    assert_eq!(subscribed, ["serviceAccount:two@example.com"]);
    // Each member stands for itself.
    let mut spec = Channel::new().spec(true);
    spec.native.as_mut().expect("a policy").subscriber_member = None;
    pubsub.source(spec).await.expect("a source");
    assert_eq!(server.script().count(Call::Project), 1);
}

#[tokio::test]
async fn c_16_without_members_the_service_agent_of_the_project_is_granted_both_roles() {
    let server = Scripted::start(&emulator().await).await;
    let (pubsub, channel) = (scripted(&server).await, Channel::new());
    pubsub.source(channel.spec(false)).await.expect("a source");
    let agent = format!("serviceAccount:service-{NUMBER}@gcp-sa-pubsub.iam.gserviceaccount.com");
    assert_eq!(grants(&server, &channel), (vec![agent.clone()], vec![agent]));
    assert_eq!(logs::take(), vec![]);
    // What is granted is not written again.
    pubsub.source(channel.spec(false)).await.expect("a source");
    assert_eq!(server.script().count(Call::Set), 2);
    // A project whose answer names no number can't be turned into a member.
    server.script().project = Some("projects/works".into());
    let error = pubsub.source(Channel::new().spec(false)).await.err().expect("no number");
    assert!(matches!(error, ProvisionError::Refused { call: "GetProject", .. }), "{error}");
}

/// A policy keeps what others put in it, and a binding with a condition is none of ours.
#[tokio::test]
async fn c_16_the_bindings_of_others_stay() {
    let server = Scripted::start(&emulator().await).await;
    let (pubsub, channel) = (scripted(&server).await, Channel::new());
    let role = "roles/pubsub.publisher";
    let binding = |role: &str, member: &str, condition: Option<&str>| Binding {
        role: role.to_owned(),
        members: vec![member.to_owned()],
        condition: condition.map(|it| Expr { expression: it.to_owned(), ..Expr::default() }),
    };
    let theirs = vec![
        binding("roles/viewer", "user:anna@example.com", None),
        binding(role, "serviceAccount:one@example.com", Some("false")),
        binding(role, "user:anna@example.com", None),
    ];
    let policy = Policy { version: 3, bindings: theirs.clone(), ..Policy::default() };
    server.script().policies.insert(topic(&channel.dead), policy);
    pubsub.source(channel.spec(true)).await.expect("a source");
    let mut expected = theirs;
    expected[2].members.push("serviceAccount:one@example.com".to_owned());
    let policy = server.script().policies[&topic(&channel.dead)].clone();
    assert_eq!((policy.bindings, policy.version), (expected, 3));
}

/// Someone else writes the policy between our reading and our writing it.
#[tokio::test]
async fn c_16_a_lost_etag_race_is_run_again_within_a_bound() {
    let server = Scripted::start(&emulator().await).await;
    let (pubsub, channel) = (scripted(&server).await, Channel::new());
    server.script().races = 2;
    pubsub.source(channel.spec(true)).await.expect("a source");
    {
        let script = server.script();
        assert_eq!((script.count(Call::Get), script.count(Call::Set)), (4, 4));
    }
    assert_eq!(grants(&server, &channel).0, ["serviceAccount:one@example.com"]);
    {
        let mut script = server.script();
        script.races = u32::MAX;
        script.calls.clear();
    }
    let error = pubsub.source(Channel::new().spec(true)).await.err().expect("it never ends");
    assert!(error.is_retryable() && error.to_string().contains("SetIamPolicy"), "{error}");
    assert_eq!(server.script().count(Call::Set), 5);
}

/// The emulator has no policies, and no Resource Manager is asked on its behalf.
#[tokio::test]
async fn c_16_a_channel_with_a_policy_is_made_on_the_emulator() {
    let pubsub = connect(&emulator().await).await;
    for (members, call, status) in
        [(false, Call::Project, "Unauthenticated"), (true, Call::Get, "Unimplemented")]
    {
        let channel = Channel::new();
        let source = pubsub.source(channel.spec(members)).await.expect("a source");
        assert!(source.capabilities().count_advances);
        let seen = logs::take();
        assert_eq!(seen.len(), 2, "{seen:?}");
        for (warning, by) in seen.iter().zip(HELPERS) {
            assert_parts(warning, by, call, &channel.resource(call, by), status);
        }
    }
}

#[tokio::test]
async fn c_16_a_client_that_cannot_be_built_is_tolerated_and_one_that_is_unreachable_is_not() {
    let endpoint = emulator().await;
    let with = |address: &str| {
        let resource_manager = Some(address.to_owned());
        Pubsub::connect(PubsubSettings { resource_manager, ..settings(&endpoint) })
    };
    let pubsub = with("no address").await.expect("a connection");
    pubsub.source(Channel::new().spec(false)).await.expect("a source");
    let seen = logs::take();
    assert_eq!(seen.len(), 2, "{seen:?}");
    for (warning, by) in seen.iter().zip(HELPERS) {
        assert_parts(warning, by, Call::Project, "projects/works", "no client");
    }
    let pubsub = with(NOWHERE).await.expect("a connection");
    let error = pubsub.source(Channel::new().spec(false)).await.err().expect("away");
    assert!(error.is_retryable(), "{error}");
    assert_eq!(logs::take(), vec![]);
}

/// Roles are made with the channel: no other mode asks, and no channel without a policy of its own.
#[tokio::test]
async fn c_16_roles_are_looked_at_under_create_and_with_a_policy_alone() {
    let server = Scripted::start(&emulator().await).await;
    let (pubsub, channel) = (scripted(&server).await, Channel::new());
    pubsub.source(channel.spec(true)).await.expect("a source");
    let made = server.script().calls.len();
    for provision in [Provision::Validate, Provision::Assume] {
        let again = SourceSpec { provision, ..channel.spec(true) };
        pubsub.source(again).await.expect("a source");
    }
    let found = SourceSpec { native: None::<NativeDeadLetter>, ..channel.spec(true) };
    pubsub.source(found).await.expect("a source");
    assert_eq!(server.script().calls.len(), made);
}
