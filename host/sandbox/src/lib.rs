//! Handlers as sandboxed WebAssembly components.
//!
//! A [`Sandbox`] loads components and implements the contract's ports over them: [`LoadedHandler`] is a
//! [`Handler`](pumphouse_contract::ports::Handler), [`LoadedVersion`] a
//! [`Version`](pumphouse_contract::ports::Version), the sandbox itself
//! [`Handlers`](pumphouse_contract::ports::Handlers).
//!
//! Every call gets a fresh instance, limited in time, memory and output, with nothing granted but what its
//! [`Grants`] say. Whatever a guest does, the call ends within its deadline, with an answer or with a fault that
//! says what happened. Guests run on threads of their own.
//!
//! A message's way leads through `version` (to the guests' threads), `call` (a place, an instance, the answer)
//! and, where there is no answer, `faults`. A file's way leads through `watch`, `handler` and `deploy`.

mod bindings;
mod cache;
mod call;
mod clocks;
mod compiler;
mod demand;
mod deploy;
mod digest;
mod engine;
mod entry;
mod errors;
mod faults;
mod file;
mod fit;
mod frame;
mod graves;
mod guest;
mod handler;
mod http;
mod journal;
mod ledger;
mod limits;
mod load;
mod machine;
mod meter;
mod needs;
mod pace;
mod pool;
mod process;
mod proof;
mod rate;
mod resident;
mod reuse;
mod room;
mod roster;
mod sandbox;
mod sched;
mod seal;
mod secrets;
mod services;
mod settings;
mod shares;
mod stock;
mod tenant;
mod text;
mod ticker;
mod turns;
mod version;
mod watch;
mod window;
mod worker;
mod worlds;

pub use crate::http::{HttpGrant, HttpHost, HttpHostError, HttpRule, HttpScheme};
pub use errors::{CompilerEnd, DeployError, SandboxError};
pub use fit::{Misfit, Misfits, SPOKEN};
pub use handler::LoadedHandler;
pub use room::{Shortage, raise_open_files, shortages};
pub use sandbox::Sandbox;
pub use secrets::SecretText;
pub use settings::{
    CompileWorker, Compiling, Grants, HandlerSpec, Instances, Limits, Runtime, SandboxSettings,
    TenantLimits,
};
pub use version::LoadedVersion;
pub use worker::compile_worker;
