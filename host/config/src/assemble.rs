//! From the file's tables to a [`Config`].

use std::path::Path;

use crate::changes::places;
use crate::diagnostic::Code;
use crate::place;
use crate::report::{At, Note};
use crate::section::Section;
use crate::subscription;
use crate::tenants;
use crate::types::{
    Access, Compile, Config, Credentials, Embedded, Host, Log, Provisioning, Pubsub, Rocketmq, Sqs,
    Subscription, Tls,
};
use crate::values;
use crate::words::{LogFormat, LogLevel, Provision, Store};

/// The configuration, as far as it can be read. It is only used where nothing was reported as an error.
pub(crate) fn assemble(root: &Section<'_>, directory: &Path) -> Config {
    let embedded = embedded(&root.below("embedded"));
    let sqs = sqs(&root.below("sqs"), directory);
    let (tenants, handlers) = tenants::read(&root.below("tenants"), directory);
    let pubsub = pubsub(&root.below("pubsub"), directory);
    let section = root.below("rocketmq");
    let provisioning = Provisioning {
        embedded: embedded.provision,
        sqs: sqs.provision,
        pubsub: pubsub.provision,
        rocketmq: section.word("provision").unwrap_or(Provision::Validate),
    };
    let subscriptions = subscription::read(&root.below("subscriptions"), provisioning);
    let uses =
        |transport| root.has(transport) || subscriptions.iter().any(|one| on(one, transport));
    let (uses_sqs, uses_pubsub) = (uses("sqs"), uses("pubsub"));
    // Only looked at where it is used, since it has a key that must be there.
    let rocketmq = uses("rocketmq").then(|| rocketmq(&section, directory, provisioning.rocketmq));
    let mut config = Config {
        host: host(&root.below("host"), directory),
        embedded,
        sqs: uses_sqs.then_some(sqs),
        pubsub: uses_pubsub.then_some(pubsub),
        rocketmq,
        tenants,
        handlers,
        subscriptions,
    };
    config.find_copies();
    config
}

fn on(one: &Subscription, transport: &str) -> bool {
    places(one).any(|place| place.transport() == transport)
}

fn host(section: &Section<'_>, directory: &Path) -> Host {
    let log = section.below("log");
    Host {
        state: directory.join(section.path_value("state").unwrap_or_default()),
        admin_listen: section.below("admin").listen("listen"),
        grace: section.duration("grace").unwrap_or_default(),
        log: Log {
            format: log.word("format").unwrap_or(LogFormat::Auto),
            level: log.word("level").unwrap_or(LogLevel::Info),
        },
        pool_slots: section.count("pool_slots").unwrap_or_default(),
        heavy_slots: section.count("heavy_slots").unwrap_or_default(),
        guest_threads: section.count("guest_threads"),
        resident_handlers: section.count("resident_handlers").unwrap_or_default(),
        compile: compile(&section.below("compile")),
        clock_resolution: section.duration("clock_resolution").unwrap_or_default(),
        http_trust: section.below("http").path_value("trust").map(|path| directory.join(path)),
        account_interval: section.duration("account_interval").filter(|every| !every.is_zero()),
        metrics_handlers: section.below("metrics").count("handlers").unwrap_or_default(),
    }
}

fn compile(section: &Section<'_>) -> Compile {
    Compile {
        memory_bytes: section.size("memory").unwrap_or_default(),
        time: section.duration("time").unwrap_or_default(),
    }
}

fn embedded(section: &Section<'_>) -> Embedded {
    Embedded {
        store: section.word("store").unwrap_or(Store::Durable),
        provision: section.word("provision").unwrap_or(Provision::Create),
    }
}

fn sqs(section: &Section<'_>, directory: &Path) -> Sqs {
    Sqs {
        region: section.text("region"),
        endpoint: section.url("endpoint"),
        provision: section.word("provision").unwrap_or(Provision::Validate),
        credentials: credentials(section, directory),
    }
}

fn pubsub(section: &Section<'_>, directory: &Path) -> Pubsub {
    Pubsub {
        project: section.read("project", place::project),
        endpoint: section.url("endpoint"),
        credentials: section.secret("credentials").map(|secret| secret.relative_to(directory)),
        provision: section.word("provision").unwrap_or(Provision::Validate),
    }
}

fn rocketmq(section: &Section<'_>, directory: &Path, provision: Provision) -> Rocketmq {
    Rocketmq {
        name_servers: section.read("name_servers", place::name_servers).unwrap_or_default(),
        namespace: section.read("namespace", place::namespace),
        access: access(&section.below("access"), directory),
        tls: tls(&section.below("tls"), directory),
        provision,
    }
}

fn access(section: &Section<'_>, directory: &Path) -> Option<Access> {
    if section.is_present() {
        whole(section, ["key", "secret"], "an access key is given whole or not at all");
    }
    let key = section.read("key", values::setting);
    let secret = section.secret("secret").map(|secret| secret.relative_to(directory));
    Some(Access { key: key?.relative_to(directory), secret: secret? })
}

fn tls(section: &Section<'_>, directory: &Path) -> Option<Tls> {
    if !section.is_present() {
        return None;
    }
    if section.has("certificate") || section.has("key") {
        whole(section, ["certificate", "key"], "a certificate of our own goes with its key");
    }
    let path = |name| section.path_value(name).map(|path| directory.join(path));
    Some(Tls { trust: path("trust"), certificate: path("certificate"), key: path("key") })
}

/// Reports which of two keys that go together is missing.
fn whole(section: &Section<'_>, names: [&str; 2], why: &str) {
    for missing in names.iter().filter(|name| !section.has(name)) {
        let note = Note::new(Code::Missing, format!("`{missing}` is missing: {why}"));
        section.error(missing, At::Key, note);
    }
}

fn credentials(section: &Section<'_>, directory: &Path) -> Option<Credentials> {
    let keys = ["access_key_id", "secret_access_key"];
    let written = ["access_key_id", "secret_access_key", "session_token"];
    if written.iter().any(|name| section.has(name)) {
        whole(section, keys, "an access key is given whole or not at all");
    }
    let secret = |name| section.secret(name).map(|secret| secret.relative_to(directory));
    let (id, key, token) =
        (secret("access_key_id"), secret("secret_access_key"), secret("session_token"));
    Some(Credentials { access_key_id: id?, secret_access_key: key?, session_token: token })
}
