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
    Config, Credentials, Embedded, Host, Log, Provisioning, Pubsub, Sqs, Subscription,
};
use crate::words::{LogFormat, LogLevel, Provision, Store};

/// The configuration, as far as it can be read. It is only used where nothing was reported as an error.
pub(crate) fn assemble(root: &Section<'_>, directory: &Path) -> Config {
    let embedded = embedded(&root.below("embedded"));
    let sqs = sqs(&root.below("sqs"), directory);
    let (tenants, handlers) = tenants::read(&root.below("tenants"), directory);
    let pubsub = pubsub(&root.below("pubsub"), directory);
    let provisioning =
        Provisioning { embedded: embedded.provision, sqs: sqs.provision, pubsub: pubsub.provision };
    let subscriptions = subscription::read(&root.below("subscriptions"), provisioning);
    let uses =
        |transport| root.has(transport) || subscriptions.iter().any(|one| on(one, transport));
    let (uses_sqs, uses_pubsub) = (uses("sqs"), uses("pubsub"));
    let mut config = Config {
        host: host(&root.below("host"), directory),
        embedded,
        sqs: uses_sqs.then_some(sqs),
        pubsub: uses_pubsub.then_some(pubsub),
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
        guest_threads: section.count("guest_threads"),
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

fn credentials(section: &Section<'_>, directory: &Path) -> Option<Credentials> {
    let keys = ["access_key_id", "secret_access_key"];
    let written = ["access_key_id", "secret_access_key", "session_token"];
    if written.iter().any(|name| section.has(name)) {
        for missing in keys.iter().filter(|name| !section.has(name)) {
            let message =
                format!("`{missing}` is missing: an access key is given whole or not at all");
            section.error(missing, At::Key, Note::new(Code::Missing, message));
        }
    }
    let secret = |name| section.secret(name).map(|secret| secret.relative_to(directory));
    let (id, key, token) =
        (secret("access_key_id"), secret("secret_access_key"), secret("session_token"));
    Some(Credentials { access_key_id: id?, secret_access_key: key?, session_token: token })
}
