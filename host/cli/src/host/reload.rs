//! A changed configuration: taken whole, or not at all (FR-31).

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::future::join_all;
use pumphouse_config::{Changes, Config, Delta};

use crate::host::handlers;
use crate::host::running::{Common, InForce};
use crate::host::start::{Opened, open_all, say_findings};
use crate::host::transports::build;
use crate::host::view::View;

/// Between two looks at the file.
pub(crate) const SCAN_EVERY: Duration = Duration::from_secs(1);

/// What tells one state of a file from another without reading it. Links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Mark {
    fn of(path: &Path) -> Option<Self> {
        let data = std::fs::metadata(path).ok()?;
        Some(Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
        })
    }
}

/// Sees when a file has changed, and has stood still since.
pub(crate) struct Watch {
    path: PathBuf,
    taken: Option<Mark>,
    before: Option<Mark>,
}

impl Watch {
    pub(crate) fn new(path: PathBuf) -> Self {
        let taken = Mark::of(&path);
        Self { path, taken, before: taken }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is another one than was taken, and the same as at the last look.
    pub(crate) fn changed(&mut self) -> bool {
        let now = Mark::of(&self.path);
        let still = now == self.before;
        self.before = now;
        if !still || now == self.taken || now.is_none() {
            return false;
        }
        self.taken = now;
        true
    }
}

/// Takes the file's configuration where it is sound and everything in it can be had; says why where not.
pub(crate) async fn reload(
    path: &Path,
    common: &Common,
    in_force: InForce,
    view: &Arc<View>,
) -> InForce {
    match take(path, common, &in_force, view).await {
        Ok(taken) => {
            view.reject(None);
            taken
        }
        Err(error) => {
            let why = format!("{error:#}");
            tracing::error!(
                problem = why,
                "configuration on disk rejected; the one in force stays"
            );
            view.reject(Some(why));
            in_force
        }
    }
}

async fn take(path: &Path, common: &Common, old: &InForce, view: &Arc<View>) -> Result<InForce> {
    let file = path.to_owned();
    let loaded =
        tokio::task::spawn_blocking(move || pumphouse_config::load(&file, &build())).await?;
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(found) => bail!("{}", found.render(false).trim()),
    };
    // A file that was emptied, or is still being written, must not end everything.
    if loaded.config.subscriptions.is_empty() && !old.config.subscriptions.is_empty() {
        bail!("it has no subscription: stop the host where that is meant");
    }
    let changes = Config::changes(&old.config, &loaded.config);
    if changes.is_empty() {
        tracing::info!("configuration on disk means the same as the one in force");
        return Ok(old.clone());
    }
    let (new, opened) = prepare(loaded.config, &changes, common, old).await?;
    apply(&changes, common, &new, opened, view).await;
    Ok(new)
}

/// Everything that can fail happens here, before anything of the old configuration is touched: the places first,
/// and the handlers, whose old versions a load replaces, last.
async fn prepare(
    config: Config,
    changes: &Changes,
    common: &Common,
    old: &InForce,
) -> Result<(InForce, Vec<Opened>)> {
    let transports = old.transports.reopen(&config, &common.clock).await?;
    let opened = open_all(&fresh(&changes.subscriptions), &config, &transports).await?;
    // A share decides what may be loaded: it holds from here on, or again the one before where nothing comes of it.
    handlers::set_tenants(&common.sandbox, &config, &changes.tenants);
    let loaded = handlers::load(&common.sandbox, &config, &fresh(&changes.handlers)).await;
    let loaded = loaded.inspect_err(|_| {
        handlers::set_tenants(&common.sandbox, &old.config, &changes.tenants);
    })?;
    say_findings(&config, &opened);
    let mut handlers = old.handlers.clone();
    handlers.retain(|name, _| config.handlers.contains_key(name));
    handlers.extend(loaded);
    Ok((InForce::new(Arc::new(config), transports, handlers, Some(old)), opened))
}

/// What is begun anew.
fn fresh(delta: &Delta) -> Vec<String> {
    delta.started.iter().chain(&delta.restarted).cloned().collect()
}

async fn apply(
    changes: &Changes,
    common: &Common,
    new: &InForce,
    opened: Vec<Opened>,
    view: &Arc<View>,
) {
    let subscriptions = &changes.subscriptions;
    let names = || subscriptions.stopped.iter().chain(&subscriptions.restarted);
    let leaving: Vec<_> = names().filter_map(|name| view.get(name)).collect();
    join_all(leaving.iter().map(|slot| slot.stop(common.grace))).await;
    names().for_each(|name| view.remove(name));
    view.show(new);
    view.open(opened, common, new);
    for name in &changes.handlers.stopped {
        common.sandbox.unload(name);
    }
    say(changes);
}

fn say(changes: &Changes) {
    let subscriptions = &changes.subscriptions;
    tracing::info!(
        started = subscriptions.started.join(", "),
        stopped = subscriptions.stopped.join(", "),
        restarted = subscriptions.restarted.join(", "),
        tenants = changes.tenants.join(", "),
        "configuration reloaded"
    );
    if !changes.at_restart.is_empty() {
        tracing::warn!(
            keys = changes.at_restart.join(", "),
            "changed keys take hold when the host is started again"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_when_it_has_changed_and_stands_still() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.toml");
        std::fs::write(&path, "a").expect("written");
        let mut watch = Watch::new(path.clone());
        assert!(!watch.changed());
        std::fs::write(&path, "ab").expect("written");
        assert!(!watch.changed(), "it may still be written");
        assert!(watch.changed());
        assert!(!watch.changed(), "taken once");
        std::fs::remove_file(&path).expect("removed");
        assert!(!watch.changed() && !watch.changed(), "a file that is gone changes nothing");
        std::fs::write(&path, "abc").expect("written");
        assert!(!watch.changed());
        assert!(watch.changed());
    }
}
