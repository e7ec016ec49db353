//! Message handlers for Pumphouse.
//!
//! A handler is one function from a [`Message`] to an [`Outcome`], or to a `Result` of it:
//!
//! ```
//! use pumphouse_sdk::{Failure, Message, Outcome};
//!
//! pumphouse_sdk::handler!(handle);
//!
//! fn handle(message: Message) -> Result<Outcome, Failure> {
//!     let text = message.body_str()?; // not UTF-8: rejected as unacceptable
//!     let amount: u64 = text.trim().parse().map_err(Failure::unacceptable)?;
//!     Ok(if amount > 0 { Outcome::ack() } else { Outcome::defer() })
//! }
//! ```
//!
//! Built as a `cdylib` for `wasm32-wasip2`, the crate is a component that the host can run. The same
//! function is tested natively with `cargo test`, on a message made by [`Message::test`]; no WebAssembly
//! is involved.
//!
//! # What an error means
//!
//! An `Err` is a [`Failure`], or anything that can be shown as text and thereby becomes one:
//!
//! - [`Failure::unacceptable`] rejects the message: it can never be handled.
//!   [`Message::body_str`] and `Message::json` fail this way.
//! - [`Failure::delivery_error`] rejects it too: the message is fine, and handling it failed for good.
//! - Every other error, converted by `?`, is taken for a passing trouble. Its text is written to the
//!   standard error stream, and the message is deferred with the subscription's backoff.
//!
//! A panic is not an answer. The host records it as a fault, together with the panic's message, and the
//! message is deferred, or rejected where the subscription says so.
//!
//! # What a handler may do
//!
//! Nothing is granted by default. A component that uses [`log`] needs `grants.logging`, one that uses
//! [`config`] needs `grants.config`, one that uses [`secrets`] needs `grants.secrets`; a component that uses
//! none of them imports none. Outgoing HTTP is `wasi:http`, with a crate of your choice, and needs
//! `grants.http`. Files, sockets, environment variables and arguments do not exist for a handler.

// The bindings name this crate as the handler's own crate does.
#[cfg(target_family = "wasm")]
extern crate self as pumphouse_sdk;

pub mod config;
pub mod log;
mod message;
mod outcome;
pub mod secrets;
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod wit;

pub use message::Message;
pub use outcome::{Failure, IntoOutcome, Outcome, Reason};

/// Makes a function the handler of this component.
///
/// The function takes a [`Message`] and returns whatever is [`IntoOutcome`]: an [`Outcome`], or a `Result`
/// of one. It is named once in a crate, whose type is `cdylib`.
///
/// On other targets than WebAssembly the macro only checks the function's type.
#[macro_export]
macro_rules! handler {
    ($handle:path) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;

            impl $crate::wit::Guest for Component {
                fn handle(message: $crate::wit::Message) -> $crate::wit::Outcome {
                    $crate::IntoOutcome::into_outcome($handle(message.into())).into()
                }
            }

    $crate::wit::export!(Component with_types_in $crate::wit::bindings);
        };

        #[cfg(not(target_family = "wasm"))]
        const _: fn($crate::Message) -> $crate::Outcome =
            |message| $crate::IntoOutcome::into_outcome($handle(message));
    };
}
