//! The name of every metric, as Prometheus shows it.
//!
//! `messaging_…` are OpenTelemetry's messaging conventions (still in development there: read them again before
//! changing one), `pumphouse_…` are ours. No label ever holds a message's id, key or text: only what the
//! configuration names, and words from lists in the code.

use prometheus_client::registry::Unit;

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// As it is shown and queried, unit and `_total` included.
    pub full: &'static str,
    /// What it says, for people.
    pub help: &'static str,
}

impl Name {
    const fn new(full: &'static str, help: &'static str) -> Self {
        Self { full, help }
    }

    /// The name without what its type and its unit append.
    pub(crate) fn base(&self) -> &'static str {
        ["_total", "_seconds", "_bytes", "_info"]
            .iter()
            .fold(self.full, |name, suffix| name.strip_suffix(suffix).unwrap_or(name))
    }

    /// The unit, where the name ends in one.
    pub(crate) fn unit(&self) -> Option<Unit> {
        let name = self.full.strip_suffix("_total").unwrap_or(self.full);
        if name.ends_with("_seconds") {
            Some(Unit::Seconds)
        } else if name.ends_with("_bytes") {
            Some(Unit::Bytes)
        } else {
            None
        }
    }
}

/// The labels.
pub mod labels {
    /// The subscription, as configured.
    pub const SUBSCRIPTION: &str = "subscription";
    /// The tenant, as configured.
    pub const TENANT: &str = "tenant";
    /// The handler: `tenant/name`.
    pub const HANDLER: &str = "handler";
    /// The version of a handler: the SHA-256 of its component.
    pub const VERSION: &str = "version";
    /// `dead_letter` or `invalid_message`.
    pub const DESTINATION: &str = "destination";
    /// What became of a delivery.
    pub const OUTCOME: &str = "outcome";
    /// Why a message was rejected.
    pub const REASON: &str = "reason";
    /// `true` where the message was delivered before; absent where no call was made.
    pub const REDELIVERED: &str = "redelivered";
    /// Which of the ways to fail.
    pub const KIND: &str = "kind";
    /// How a delivery was to be settled: `ack` or `release`.
    pub const ACTION: &str = "action";
    /// OpenTelemetry's name of the broker.
    pub const SYSTEM: &str = "messaging_system";
    /// The source, as configured.
    pub const SOURCE: &str = "messaging_destination_name";
    /// `receive`, `process`, `settle` or `send`.
    pub const OPERATION: &str = "messaging_operation_name";
    /// How an operation failed; absent where it did not.
    pub const ERROR: &str = "error_type";
    /// The key below `limits` of a limit.
    pub const LIMIT: &str = "limit";
}

/// Seconds of calls.
pub const PROCESS_DURATION: Name =
    Name::new("messaging_process_duration_seconds", "How long calls of the handler took");
/// Seconds of requests to the broker.
pub const OPERATION_DURATION: Name = Name::new(
    "messaging_client_operation_duration_seconds",
    "How long requests to the broker took, waiting for messages and for a batch included",
);
/// Messages received.
pub const CONSUMED_MESSAGES: Name = Name::new(
    "messaging_client_consumed_messages_total",
    "Messages received, redeliveries included",
);
/// Messages published.
pub const SENT_MESSAGES: Name =
    Name::new("messaging_client_sent_messages_total", "Messages published and confirmed");

/// Deliveries by what became of them.
pub const DELIVERIES: Name =
    Name::new("pumphouse_deliveries_total", "Deliveries by what became of them");
/// Earlier deliveries.
pub const DELIVERY_COUNT: Name = Name::new(
    "pumphouse_delivery_count",
    "How many deliveries came before the one that was handled, 0 for the first",
);
/// Faults.
pub const FAULTS: Name =
    Name::new("pumphouse_faults_total", "Calls that ended without an answer, by kind of fault");
/// Deliveries in progress.
pub const INFLIGHT: Name = Name::new("pumphouse_inflight", "Deliveries in progress");
/// The age of the oldest delivery in progress.
pub const OLDEST_IN_PROGRESS: Name = Name::new(
    "pumphouse_oldest_in_progress_age_seconds",
    "How long the oldest delivery in progress has been so, 0 where there is none",
);
/// Messages pushed ahead of the handlers.
pub const HELD: Name = Name::new(
    "pumphouse_held",
    "Messages that the broker has pushed and no handler has been asked to take yet",
);
/// Messages that came again while they were handled.
pub const DELIVERED_AGAIN: Name = Name::new(
    "pumphouse_delivered_again_total",
    "Messages that the broker pushed again while their delivery before was still handled",
);
/// Leases lost.
pub const LEASE_LOST: Name = Name::new(
    "pumphouse_lease_lost_total",
    "Deliveries whose lease was lost before they were settled, so that they may be handled twice",
);
/// Duplicates.
pub const DEDUP_HITS: Name =
    Name::new("pumphouse_dedup_hits_total", "Duplicates acknowledged without a call");
/// Deliveries given back.
pub const GIVEN_BACK: Name = Name::new(
    "pumphouse_given_back_total",
    "Deliveries given back without a call, each of which the broker counts",
);
/// Delays shortened.
pub const DELAYS_SHORTENED: Name = Name::new(
    "pumphouse_delays_shortened_total",
    "Deferrals for longer than the broker could hold the message back",
);
/// Messages discarded.
pub const DISCARDED: Name = Name::new(
    "pumphouse_discarded_messages_total",
    "Rejected messages removed without a copy because no destination is configured",
);
/// Receives that failed.
pub const RECEIVE_ERRORS: Name =
    Name::new("pumphouse_receive_errors_total", "Receives that failed, by kind");
/// Receives that never came back.
pub const RECEIVE_STALLS: Name = Name::new(
    "pumphouse_receive_stalls_total",
    "Receives that did not come back within their bound and were given up",
);
/// Settlements that failed.
pub const SETTLE_FAILURES: Name = Name::new(
    "pumphouse_settle_failures_total",
    "Acknowledgements and releases that failed, by kind",
);
/// Whether a subscription receives.
pub const READY: Name = Name::new(
    "pumphouse_subscription_ready",
    "1 where the last receive of the subscription was answered, else 0",
);

/// Rejected copies.
pub const DEAD_LETTER_MESSAGES: Name = Name::new(
    "pumphouse_dead_letter_messages_total",
    "Rejected copies published to a rejection destination and confirmed",
);
/// Rejected copies that could not be published.
pub const DEAD_LETTER_PUBLISH_FAILURES: Name = Name::new(
    "pumphouse_dead_letter_publish_failures_total",
    "Rejected copies that could not be published; their messages were given back",
);
/// Messages in a rejection destination.
pub const DEAD_LETTER_DEPTH: Name = Name::new(
    "pumphouse_dead_letter_depth",
    "Messages in a rejection destination; absent where the broker can't tell",
);
/// The age of the oldest message in a rejection destination.
pub const DEAD_LETTER_OLDEST_AGE: Name = Name::new(
    "pumphouse_dead_letter_oldest_age_seconds",
    "The age of the oldest message in a rejection destination; absent where the broker can't tell",
);

/// Processor time of calls.
pub const GUEST_CPU_TIME: Name =
    Name::new("pumphouse_guest_cpu_time_seconds", "Processor time of calls of the handler");
/// Memory of calls.
pub const GUEST_MEMORY_PEAK: Name = Name::new(
    "pumphouse_guest_memory_peak_bytes",
    "The largest linear memory of calls of the handler",
);
/// Time to make instances.
pub const GUEST_INSTANTIATION: Name = Name::new(
    "pumphouse_guest_instantiation_duration_seconds",
    "How long making the handler's instance took",
);
/// Calls, by tenant and handler.
pub const GUEST_CALLS: Name = Name::new(
    "pumphouse_guest_calls_total",
    "Calls by how they ended, by tenant and handler; those without series of their own as _other",
);
/// Faults, by tenant and handler.
pub const GUEST_FAULTS: Name = Name::new(
    "pumphouse_guest_faults_total",
    "Calls that ended without an answer, by kind of fault, tenant and handler",
);
/// Faults that are limits.
pub const GUEST_LIMIT_TRIPS: Name = Name::new(
    "pumphouse_guest_limit_trips_total",
    "Calls that ended at a limit, by its key below limits, tenant and handler",
);
/// Processor time, by tenant and handler.
pub const GUEST_CPU: Name = Name::new(
    "pumphouse_guest_cpu_seconds_total",
    "Processor time of calls, by tenant and handler",
);
/// Waiting, by tenant and handler.
pub const GUEST_WAITED: Name = Name::new(
    "pumphouse_guest_waited_seconds_total",
    "How long calls waited for an instance, for their turn and for a processor, by tenant and handler",
);
/// The latest peak of memory, by tenant and handler.
pub const GUEST_MEMORY_LATELY: Name = Name::new(
    "pumphouse_guest_memory_lately_bytes",
    "The largest linear memory of one call in the last minute or two, by tenant and handler",
);
/// Host calls, by tenant and handler.
pub const GUEST_HOST_CALLS: Name = Name::new(
    "pumphouse_guest_host_calls_total",
    "Calls of handlers to the host, by tenant and handler",
);
/// Bytes given to guests, by tenant and handler.
pub const GUEST_RECEIVED: Name = Name::new(
    "pumphouse_guest_received_bytes_total",
    "What handlers were given, messages and answers of the host's services, by tenant and handler",
);
/// Bytes given by guests, by tenant and handler.
pub const GUEST_SENT: Name = Name::new(
    "pumphouse_guest_sent_bytes_total",
    "What handlers gave, answers, log and what they sent through the host, by tenant and handler",
);
/// Lines dropped, by tenant and handler.
pub const GUEST_LOG_DROPPED: Name = Name::new(
    "pumphouse_guest_log_dropped_total",
    "Lines of handlers that were dropped because their tenant logged more than its rate",
);
/// Live instances of a tenant.
pub const TENANT_INSTANCES: Name =
    Name::new("pumphouse_tenant_instances", "Instances of the tenant's handlers that live now");
/// Calls of a tenant that compute.
pub const TENANT_COMPUTING: Name =
    Name::new("pumphouse_tenant_computing", "Calls of the tenant that compute now, or could");
/// Calls of a tenant that wait.
pub const TENANT_WAITING: Name = Name::new(
    "pumphouse_tenant_waiting",
    "Calls of the tenant that wait for an instance or for their turn to compute",
);
/// Whether a tenant receives less.
pub const TENANT_SLOWED: Name = Name::new(
    "pumphouse_tenant_slowed",
    "1 where the tenant's subscriptions receive less because its calls wait too long, else 0",
);
/// Versions in use.
pub const HANDLER_VERSION: Name = Name::new(
    "pumphouse_handler_version_info",
    "1 for the version of each handler that is in use, its digest as a label",
);
/// Handlers whose new file is not in use.
pub const HANDLER_UPDATE_REJECTED: Name = Name::new(
    "pumphouse_handler_update_rejected",
    "1 where the handler's file on disk is not the version in use, else 0",
);
/// Whether the configuration on disk is refused.
pub const CONFIG_REJECTED: Name = Name::new(
    "pumphouse_config_rejected",
    "1 where the configuration on disk was rejected and an earlier one is in force, else 0",
);

/// Every metric.
pub const ALL: [Name; 44] = [
    PROCESS_DURATION,
    OPERATION_DURATION,
    CONSUMED_MESSAGES,
    SENT_MESSAGES,
    DELIVERIES,
    DELIVERY_COUNT,
    FAULTS,
    INFLIGHT,
    OLDEST_IN_PROGRESS,
    HELD,
    DELIVERED_AGAIN,
    LEASE_LOST,
    DEDUP_HITS,
    GIVEN_BACK,
    DELAYS_SHORTENED,
    DISCARDED,
    RECEIVE_ERRORS,
    RECEIVE_STALLS,
    SETTLE_FAILURES,
    READY,
    DEAD_LETTER_MESSAGES,
    DEAD_LETTER_PUBLISH_FAILURES,
    DEAD_LETTER_DEPTH,
    DEAD_LETTER_OLDEST_AGE,
    GUEST_CPU_TIME,
    GUEST_MEMORY_PEAK,
    GUEST_INSTANTIATION,
    GUEST_CALLS,
    GUEST_FAULTS,
    GUEST_LIMIT_TRIPS,
    GUEST_CPU,
    GUEST_WAITED,
    GUEST_MEMORY_LATELY,
    GUEST_HOST_CALLS,
    GUEST_RECEIVED,
    GUEST_SENT,
    GUEST_LOG_DROPPED,
    TENANT_INSTANCES,
    TENANT_COMPUTING,
    TENANT_WAITING,
    TENANT_SLOWED,
    HANDLER_VERSION,
    HANDLER_UPDATE_REJECTED,
    CONFIG_REJECTED,
];
