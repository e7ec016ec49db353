use std::io;
use std::path::Path;

/// Why a server could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that the server needs is not on the search path.
    #[error("{program} is not on the search path and {server} needs it; install {package}")]
    MissingProgram {
        /// What was looked for.
        program: &'static str,
        /// The server that needs it.
        server: &'static str,
        /// What brings it.
        package: &'static str,
    },
    /// The Pub/Sub emulator is not on this machine.
    #[error(
        "no Pub/Sub emulator in {place}; install the Debian package \
         google-cloud-cli-pubsub-emulator, or run `gcloud components install pubsub-emulator`, \
         or let PUMPHOUSE_PUBSUB_EMULATOR name its script cloud-pubsub-emulator"
    )]
    MissingEmulator {
        /// Where it was looked for.
        place: String,
    },
    /// Fetching the server failed.
    #[error("installing {server} failed: {detail}")]
    Install {
        /// The server.
        server: &'static str,
        /// The end of what the installer printed.
        detail: String,
    },
    /// The server did not come up.
    #[error("{server} did not start: {detail}")]
    Start {
        /// The server.
        server: &'static str,
        /// What went wrong, with the end of the server's output.
        detail: String,
    },
    /// A call by plain HTTP got no answer.
    #[error("calling {endpoint} failed: {detail}")]
    Call {
        /// Where the call went.
        endpoint: String,
        /// What went wrong.
        detail: String,
    },
    /// The operating system refused something.
    #[error("{doing}")]
    Io {
        /// What was tried, with its operand.
        doing: String,
        /// The refusal.
        source: io::Error,
    },
}

impl Error {
    /// A converter for `map_err` that says what was tried on which path.
    pub(crate) fn path(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let doing = format!("{doing} {} failed", path.display());
        move |source| Self::Io { doing, source }
    }
}
