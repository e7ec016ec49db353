//! The delivery contract: what every transport, pump and handler of Pumphouse obeys.
//!
//! Nothing here knows a broker, WebAssembly or an async runtime. What a pump decides is decided by the pure
//! functions [`admit`] and [`decide()`]; what it talks to are the [`ports`].

pub mod account;
pub mod causes;
pub mod copy;
pub mod count;
pub mod decide;
pub mod findings;
pub mod lease;
pub mod message;
pub mod observe;
pub mod outcome;
pub mod packed;
pub mod policy;
pub mod ports;
pub mod terms;
pub mod time;
pub mod trace;

pub use account::{Account, HandlerAccount, TenantStatus};
pub use causes::with_causes;
pub use copy::{Outgoing, Provenance, Stamp, rejected_copy};
pub use count::{Attempt, Count, Counted};
pub use decide::{Admission, Decision, Facts, Roll, Why, admit, after_failed_route, decide};
pub use findings::{Address, Finding, Rule, Severity, SubscriptionFacts, review};
pub use lease::{Lease, LeaseBudget};
pub use message::{Delivery, HeaderValue, Headers, Message, Receipt};
pub use outcome::{Ended, Fault, FaultKind, Outcome, Reason, Rejection, Usage};
pub use packed::Packed;
pub use policy::{Backoff, Budget, Destination, Destinations, Jitter, OnFault, Policy};
pub use time::{Clock, Mono, Timestamp};
pub use trace::TraceContext;
