//! The requests that look at topics and groups and make them.

use std::collections::BTreeSet;
use std::time::Duration;

use cheetah_string::CheetahString;
use rocketmq_client_rust::ClientResult;
use rocketmq_protocol::protocol::header::create_topic_request_header::CreateTopicRequestHeader;
use rocketmq_protocol::protocol::header::get_subscription_group_config_request_header::GetSubscriptionGroupConfigRequestHeader;
use rocketmq_protocol::protocol::header::get_topic_config_request_header::GetTopicConfigRequestHeader;
use rocketmq_protocol::protocol::route::route_data_view::BrokerData;
use rocketmq_protocol::{RemotingCommand, RequestCode};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{group, topic};
use crate::calls::{Fault, Meaning, bounded, millis};
use crate::routes::MASTER;
use crate::{Kind, ProvisionError, Rocketmq, request};

/// How often a route is asked for that is not there yet.
const ROUTE_POLL: Duration = Duration::from_millis(50);

const ROUTE: &str = "GET_ROUTEINFO_BY_TOPIC";
const CLUSTERS: &str = "GET_BROKER_CLUSTER_INFO";

/// A broker that is no copy of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broker {
    pub(super) name: CheetahString,
    /// `host:port`.
    address: CheetahString,
    cluster: String,
}

/// Requests on behalf of one resource, which errors name.
pub(super) struct Admin<'a> {
    rocketmq: &'a Rocketmq,
    resource: &'a str,
    /// Of one request.
    limit: Duration,
}

impl<'a> Admin<'a> {
    pub(super) fn new(rocketmq: &'a Rocketmq, resource: &'a str) -> Self {
        Self { rocketmq, resource, limit: rocketmq.timeouts.admin }
    }

    /// The masters that have a topic, by name; none where there is no such topic.
    pub(super) async fn route(&self, topic: &str) -> Result<Option<Vec<Broker>>, ProvisionError> {
        let answer =
            self.name_server(ROUTE, async |handle, limit| handle.topic_route(topic, limit).await);
        let Some(route) = answer.await? else {
            // A name server without brokers knows no topics either.
            self.masters().await?;
            return Ok(None);
        };
        let masters = masters(route.broker_datas.iter());
        if masters.is_empty() {
            return Err(self.away(ROUTE, "the masters of its brokers are away"));
        }
        Ok(Some(masters))
    }

    /// Every master of the cluster, by name.
    pub(super) async fn masters(&self) -> Result<Vec<Broker>, ProvisionError> {
        let answer = self
            .name_server(CLUSTERS, async |handle, limit| handle.broker_cluster_info(limit).await);
        let table = answer.await?.broker_addr_table.unwrap_or_default();
        let masters = masters(table.values());
        if masters.is_empty() {
            return Err(self.away(CLUSTERS, "no broker is known to the name server"));
        }
        Ok(masters)
    }

    /// The masters that a topic is made on: all of the one cluster.
    pub(super) async fn masters_of_one(&self) -> Result<Vec<Broker>, ProvisionError> {
        let masters = self.masters().await?;
        let clusters: BTreeSet<&str> = masters.iter().map(|it| it.cluster.as_str()).collect();
        if clusters.len() > 1 {
            let clusters: Vec<&str> = clusters.into_iter().collect();
            let clusters = clusters.join(", ");
            let text =
                format!("the name server leads to clusters {clusters}: make the topic in one");
            let fault = Fault { meaning: Meaning::Refused, text, code: None };
            return Err(self.error(CLUSTERS, fault));
        }
        Ok(masters)
    }

    /// Waits until the name server leads to all of these brokers.
    pub(super) async fn wait_for_route(
        &self,
        topic: &str,
        names: &[&CheetahString],
    ) -> Result<Vec<Broker>, ProvisionError> {
        let until = Instant::now() + self.limit;
        loop {
            let found = self.route(topic).await?.unwrap_or_default();
            if names.iter().all(|name| found.iter().any(|broker| broker.name == **name)) {
                return Ok(found);
            }
            if Instant::now() >= until {
                let limit = self.limit;
                let text = format!("topic {topic} was made, and no route led to it for {limit:?}");
                return Err(self.away(ROUTE, &text));
            }
            sleep(ROUTE_POLL).await;
        }
    }

    /// The topic as a broker has it.
    pub(super) async fn topic(
        &self,
        broker: &Broker,
        topic: &str,
    ) -> Result<Option<Value>, ProvisionError> {
        let header =
            GetTopicConfigRequestHeader { topic: topic.into(), topic_request_header: None };
        let code = RequestCode::GetTopicConfig;
        let request = RemotingCommand::create_request_command(code, header);
        self.read("GET_TOPIC_CONFIG", broker, request).await
    }

    pub(super) async fn create_topic(
        &self,
        broker: &Broker,
        name: &str,
        kind: Kind,
        queues: u32,
    ) -> Result<(), ProvisionError> {
        let count = i32::try_from(queues).unwrap_or(i32::MAX);
        let header = CreateTopicRequestHeader {
            topic: name.into(),
            default_topic: name.into(),
            read_queue_nums: count,
            write_queue_nums: count,
            perm: topic::READ_WRITE,
            topic_filter_type: "SINGLE_TAG".into(),
            topic_sys_flag: Some(0),
            order: false,
            attributes: Some(topic::attributes(kind).into()),
            force: Some(false),
            topic_request_header: None,
        };
        let code = RequestCode::UpdateAndCreateTopic;
        let request = RemotingCommand::create_request_command(code, header);
        self.ask("UPDATE_AND_CREATE_TOPIC", broker, request).await?;
        tracing::info!(topic = name, broker = %broker.name, queues, "topic made");
        Ok(())
    }

    /// The group as a broker has it. A broker that makes groups by itself (`autoCreateSubscriptionGroup`) makes one
    /// that is asked for.
    pub(super) async fn group(
        &self,
        broker: &Broker,
        group: &str,
    ) -> Result<Option<Value>, ProvisionError> {
        let header = GetSubscriptionGroupConfigRequestHeader {
            group: group.into(),
            rpc_request_header: None,
        };
        let code = RequestCode::GetSubscriptionGroupConfig;
        let request = RemotingCommand::create_request_command(code, header);
        self.read("GET_SUBSCRIPTIONGROUP_CONFIG", broker, request).await
    }

    /// Whether a broker has the group, without its being made by that: among all that it has. Who may not ask for
    /// all asks for the one.
    pub(super) async fn has_group(
        &self,
        broker: &Broker,
        group: &str,
    ) -> Result<bool, ProvisionError> {
        let code = RequestCode::GetAllSubscriptionGroupConfig;
        let request = RemotingCommand::create_remoting_command(code);
        match self.read("GET_ALL_SUBSCRIPTIONGROUP_CONFIG", broker, request).await {
            Ok(all) => Ok(all.is_some_and(|all| group::is_among(&all, group))),
            Err(ProvisionError::Denied { .. }) => Ok(self.group(broker, group).await?.is_some()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn create_group(
        &self,
        broker: &Broker,
        name: &str,
        kind: Kind,
    ) -> Result<(), ProvisionError> {
        let code = RequestCode::UpdateAndCreateSubscriptionGroup;
        let request = RemotingCommand::create_remoting_command(code);
        let request = request.set_body(group::wanted(name, kind).to_string());
        self.ask("UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", broker, request).await?;
        tracing::info!(group = name, broker = %broker.name, "consumer group made");
        Ok(())
    }

    async fn name_server<T, F>(&self, call: &'static str, ask: F) -> Result<T, ProvisionError>
    where
        F: AsyncFnOnce(&rocketmq_client_rust::ClientInstanceHandle, u64) -> ClientResult<T>,
    {
        let handle = self.rocketmq.lease().map_err(|fault| self.error(call, fault))?;
        let answer = bounded(self.limit, ask(&handle, millis(self.limit))).await;
        answer.map_err(|fault| self.error(call, fault))
    }

    /// The JSON of an answer; none where what is asked for is not there.
    async fn read(
        &self,
        call: &'static str,
        broker: &Broker,
        request: RemotingCommand,
    ) -> Result<Option<Value>, ProvisionError> {
        let answer = request::ask(self.rocketmq, &broker.address, request, self.limit).await;
        let answer = match answer {
            Err(fault) if fault.meaning == Meaning::Missing => return Ok(None),
            answer => answer.map_err(|fault| self.error_at(call, broker, fault))?,
        };
        let body = answer.body().map(|body| serde_json::from_slice(body));
        body.transpose().map_err(|error| {
            let fault = Fault::unavailable(format!("its answer can't be read: {error}"));
            self.error_at(call, broker, fault)
        })
    }

    async fn ask(
        &self,
        call: &'static str,
        broker: &Broker,
        request: RemotingCommand,
    ) -> Result<(), ProvisionError> {
        let answer = request::ask(self.rocketmq, &broker.address, request, self.limit).await;
        answer.map(drop).map_err(|fault| self.error_at(call, broker, fault))
    }

    fn error_at(&self, call: &'static str, broker: &Broker, fault: Fault) -> ProvisionError {
        let text = format!("broker {}: {}", broker.name, fault.text);
        self.error(call, Fault { text, ..fault })
    }

    fn away(&self, call: &'static str, text: &str) -> ProvisionError {
        self.error(call, Fault::unavailable(text))
    }

    fn error(&self, call: &'static str, fault: Fault) -> ProvisionError {
        ProvisionError::from_fault(self.resource, call, fault)
    }
}

fn masters<'a>(brokers: impl Iterator<Item = &'a BrokerData>) -> Vec<Broker> {
    let mut masters: Vec<Broker> = brokers
        .filter_map(|it| {
            let address = it.broker_addrs().get(&MASTER)?.clone();
            let (name, cluster) = (it.broker_name().clone(), it.cluster().to_owned());
            Some(Broker { name, address, cluster })
        })
        .collect();
    masters.sort_by(|one, other| one.name.cmp(&other.name));
    masters
}
