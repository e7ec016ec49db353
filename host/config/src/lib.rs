//! Strict configuration: one TOML file to validated types, every finding at once.
//!
//! [`load`] reads a file, [`parse`] a text. Both give a [`Loaded`] configuration with its warnings, or every
//! [`Diagnostic`] there is, each with file, line, column, full key path, what is allowed and the nearest known
//! name. The keys stand in one table, [`KEYS`], which the documentation is held to by a test.

mod address;
mod assemble;
mod changes;
mod diagnostic;
mod facts;
mod keys;
mod load;
mod native;
mod place;
mod report;
mod review;
mod section;
mod semantics;
mod spelling;
mod subscription;
mod syntax;
mod table;
mod tenancy;
mod tenants;
mod terms;
pub mod timing;
mod types;
mod units;
mod values;
mod walk;
mod words;

pub use changes::{Changes, Delta};
pub use diagnostic::{Code, Diagnostic, Diagnostics};
pub use keys::{Given, KEYS, Key, Kind};
pub use load::{Build, Loaded, TransportFacts, load, parse};
pub use place::{
    Place, PubsubPlace, PubsubSource, PubsubTarget, QueueRef, Redelivery, ResourceRef,
    RocketmqPlace, RocketmqReader, SqsPlace, TopicRef,
};
pub use semantics::{Delivery, Effective, Popped, Pushed, effective};
pub use tenancy::{Grants, HandlerConfig, HttpGrant, HttpLimits, Limits, Reuse, Share, Tenant};
pub use types::{
    Access, Compile, Config, Credentials, Deduplicate, DeduplicationKey, Embedded, Host, Log,
    Native, Provisioning, Pubsub, Rocketmq, Secret, SecretError, Setting, Sqs, Subscription, Tls,
    UNCOUNTED,
};
pub use units::{Readable, ReadableSize};
pub use words::{
    Dispatch, Envelope, HttpScheme, LogFormat, LogLevel, Provision, PubsubMode, Runtime, Semantics,
    Store, TopicKind,
};
