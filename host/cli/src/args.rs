//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A message-handler host. Handlers are WebAssembly components; pumps, counting and routing are native.
#[derive(Debug, Parser)]
#[command(name = "pumphouse", version, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the host until it is told to stop (SIGTERM or SIGINT; a second one is quicker)
    Run(Run),
    /// Check a configuration without touching a broker, and print what it means
    Check(Check),
    /// Call a component with one message, without a broker
    Invoke(Invoke),
    /// Publish a message to the source of a subscription
    Publish(Publish),
    /// Look into a queue of the embedded broker of a running host; nothing is delivered by it
    Peek(Peek),
    /// Ask a running host how its subscriptions and handlers are
    Status(Status),
    /// Ask a running host what its tenants have used
    Tenants(Tenants),
    /// Make a handler project
    New(New),
    /// Make a component of the WebAssembly module that a compiler of C or Go made
    Wrap(Wrap),
    /// Print the version
    Version(Version),
    /// Print completions for a shell
    Completions(Completions),
    /// Compile one component; a host starts this for itself
    #[command(hide = true)]
    CompileWorker(CompileWorker),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The configuration file
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The configuration file
    pub(crate) config: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Invoke {
    /// The component
    pub(crate) component: PathBuf,
    /// A file with the message as JSON: { "body": "…" or "body_base64": "…", "id", "source", "delivery_count", "headers",
    /// "content_type", "ordering_key" }; `-` reads standard input
    pub(crate) message: PathBuf,
    /// Grant wasi:logging; the lines go to standard error
    #[arg(long)]
    pub(crate) logging: bool,
    /// Grant wasi:config with this setting; may be repeated
    #[arg(long = "config", value_name = "NAME=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Grant a secret by reference; may be repeated
    #[arg(long = "secret", value_name = "NAME=env:VARIABLE|file:PATH")]
    pub(crate) secrets: Vec<String>,
    /// Grant outgoing HTTP to a host: `api.example.com`, `*.example.com`, `http://127.0.0.1:8080`; may be repeated.
    /// Without a scheme it is https
    #[arg(long = "http", value_name = "HOST")]
    pub(crate) http: Vec<String>,
    /// The methods that may be used with --http
    #[arg(
        long = "http-methods",
        value_name = "METHODS",
        value_delimiter = ',',
        default_value = "GET,HEAD",
        requires = "http"
    )]
    pub(crate) methods: Vec<String>,
    /// Let the hosts of --http be at private and local addresses
    #[arg(long = "http-private", requires = "http")]
    pub(crate) private: bool,
    /// The deadline, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    pub(crate) deadline: u64,
    /// The memory limit, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64,
        value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) memory: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// The configuration file
    pub(crate) config: PathBuf,
    /// The subscription whose source gets the message
    pub(crate) subscription: String,
    /// The body
    #[arg(long, conflicts_with_all = ["file", "lines"])]
    pub(crate) body: Option<String>,
    /// A file with the body; `-` reads standard input
    #[arg(long, conflicts_with = "lines")]
    pub(crate) file: Option<PathBuf>,
    /// Publish each line of standard input as a message of its own
    #[arg(long)]
    pub(crate) lines: bool,
    /// A header; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub(crate) headers: Vec<String>,
    /// The ordering key
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The media type of the body
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// How often to publish it
    #[arg(long, default_value_t = 1)]
    pub(crate) count: u32,
    /// Print JSON: one object a message
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Peek {
    /// The configuration file
    pub(crate) config: PathBuf,
    /// The queue
    pub(crate) queue: String,
    /// The most messages to show
    #[arg(long, default_value_t = 10)]
    pub(crate) max: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The configuration file; it says where the host listens
    #[arg(required_unless_present = "admin")]
    pub(crate) config: Option<PathBuf>,
    /// Where the host listens, in place of the configuration
    #[arg(long, value_name = "ADDRESS", conflicts_with = "config")]
    pub(crate) admin: Option<std::net::SocketAddr>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tenants {
    /// The configuration file; it says where the host listens
    #[arg(required_unless_present = "admin")]
    pub(crate) config: Option<PathBuf>,
    /// Where the host listens, in place of the configuration
    #[arg(long, value_name = "ADDRESS", conflicts_with = "config")]
    pub(crate) admin: Option<std::net::SocketAddr>,
    /// The handlers of this tenant, in place of the tenants
    #[arg(long, value_name = "TENANT")]
    pub(crate) handlers: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// The name of the project and of its folder
    pub(crate) name: String,
    /// Where to make the folder
    #[arg(long, default_value = ".")]
    pub(crate) directory: PathBuf,
    /// The language of the handler
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    pub(crate) lang: Language,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Rust,
    /// JavaScript
    Js,
    /// TypeScript
    Ts,
    Python,
    C,
    Go,
}

#[derive(Debug, Args)]
pub(crate) struct Wrap {
    /// The module; `-` reads standard input
    pub(crate) module: PathBuf,
    /// Where the component goes
    #[arg(long, short)]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompileWorker {
    /// What the host says
    pub(crate) orders: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
