//! From an artefact to a component that can be instantiated.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::cache::{Cache, Kept};
use crate::compiler::{Compiled, Work};
use crate::engine::Profile;
use crate::entry::Entry;
use crate::errors::DeployError;
use crate::fit::{self, Misfit, Misfits, SPOKEN};
use crate::guest::{self, Guest};
use crate::machine::Machine;
use crate::pool::Pool;
use crate::settings::{Grants, HandlerSpec};
use crate::worlds::World;
use crate::{digest, text};

const LONGEST_TEXT: usize = 600;

/// Which interfaces a handler's grants give, whatever is behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Interfaces {
    logging: bool,
    config: bool,
    secrets: bool,
    http: bool,
}

impl Interfaces {
    fn of(grants: &Grants) -> Self {
        Self {
            logging: grants.logging,
            config: grants.config.is_some(),
            secrets: !grants.secrets.is_empty(),
            http: grants.http.is_some(),
        }
    }
}

/// What is linked to components: one for all handlers that reach the same.
#[derive(Default)]
pub(crate) struct Linkers(Mutex<HashMap<(Profile, World, Interfaces), Arc<Linker<Guest>>>>);

impl std::fmt::Debug for Linkers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Linkers")
    }
}

impl Linkers {
    fn get(
        &self,
        pool: &Pool,
        world: World,
        grants: &Grants,
    ) -> wasmtime::Result<Arc<Linker<Guest>>> {
        let mut linkers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (pool.profile, world, Interfaces::of(grants));
        if let Some(linker) = linkers.get(&key) {
            return Ok(linker.clone());
        }
        let linker = Arc::new(guest::linker(&pool.engine, grants, world)?);
        linkers.insert(key, linker.clone());
        Ok(linker)
    }
}

/// All of a handler that decides whether a component fits it, as a digest. What another build of the host found out
/// says nothing about this one.
pub(crate) fn fingerprint(build: &str, pool: &Pool, spec: &HandlerSpec) -> String {
    let (reach, limits) = (Interfaces::of(&spec.grants), &spec.limits);
    let (memory, table) = (limits.memory, limits.table_elements);
    let all = format!("{build}/{SPOKEN}/{:?}/{reach:?}/{memory}/{table}", pool.profile);
    digest::of(all.as_bytes())
}

/// What tells this build of the host from others.
pub(crate) fn build() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match fs::metadata("/proc/self/exe") {
        Ok(found) => {
            let (size, time, nanos) = (found.size(), found.mtime(), found.mtime_nsec());
            format!("{version}/{size}/{time}.{nanos}")
        }
        // Better found out anew at every start than taken from another build.
        Err(_) => format!("{version}/{}", std::process::id()),
    }
}

/// A component, and whether its artefact is kept where it can be loaded from again.
pub(crate) struct Found {
    pub(crate) component: Component,
    pub(crate) kept: bool,
}

/// The component from the cache. Blocks for a fraction of a millisecond, or a few where it is large.
pub(crate) fn cached(machine: &Machine, pool: &Pool, component: &str) -> Option<Found> {
    let kept = machine.cache.as_ref()?.get(component)?;
    match machine.mapping.load(&pool.engine, &kept) {
        Ok(component) => Some(Found { component, kept: true }),
        Err(error) => {
            tracing::warn!(%error, "compiled component can't be loaded; it is compiled again");
            None
        }
    }
}

/// The component as it was compiled just now. Blocks.
///
/// # Errors
/// The pool has no room for it, or what was kept is gone already.
pub(crate) fn compiled(
    machine: &Machine,
    pool: &Pool,
    path: &Path,
    compiled: &Compiled,
) -> Result<Found, DeployError> {
    if compiled.kept
        && let Some(found) = cached(machine, pool, &compiled.digest)
    {
        return Ok(found);
    }
    let Some(artifact) = &compiled.artifact else {
        let text = "what was compiled of it was removed while it was loaded; try again".to_owned();
        return Err(DeployError::Host { path: path.to_owned(), text });
    };
    // The compiler has just made it: what the engine still refuses is what its pool has no room for.
    let component = deserialize(&pool.engine, artifact).map_err(|error| {
        let text = text::escaped(&format!("{error:#}"), LONGEST_TEXT);
        misfit(path, Misfit::NoInstance { text })
    })?;
    Ok(Found { component, kept: false })
}

/// Checks that a component fits its handler, and links it with what that reaches.
///
/// # Errors
/// It does not fit, or an interface has another shape than the host's.
pub(crate) fn link(
    machine: &Machine,
    pool: &Pool,
    spec: &HandlerSpec,
    component: &Component,
) -> Result<Entry, DeployError> {
    let path = &spec.component;
    let world = fit::check(&pool.engine, component, &spec.limits, &spec.grants)
        .map_err(|misfits| DeployError::Misfit { path: path.clone(), misfits })?;
    let linker = machine
        .linkers
        .get(pool, world, &spec.grants)
        .map_err(|error| DeployError::Host { path: path.clone(), text: format!("{error:#}") })?;
    linker.instantiate_pre(component).and_then(|pre| Entry::new(pre, world)).map_err(|error| {
        let text = text::escaped(&format!("{error:#}"), LONGEST_TEXT);
        misfit(path, Misfit::Shape { text })
    })
}

fn misfit(path: &Path, misfit: Misfit) -> DeployError {
    DeployError::Misfit { path: path.to_owned(), misfits: Misfits(vec![misfit]) }
}

/// Whether artefacts can be mapped: not where their folder's file system allows no code.
#[derive(Debug)]
pub(crate) struct Mapping(AtomicBool);

impl Default for Mapping {
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

impl Mapping {
    /// Maps the copy that was compared. Its pages are the page cache's: they cost no memory of this process's own.
    fn load(&self, engine: &Engine, kept: &Kept) -> wasmtime::Result<Component> {
        if self.0.load(Ordering::Relaxed) {
            match map(engine, &kept.path()) {
                Ok(component) => return Ok(component),
                Err(error) => self.is_of_no_use(&error),
            }
        }
        deserialize(engine, &kept.bytes()?)
    }

    /// Where the copy in memory can be loaded, it was the mapping that failed.
    fn is_of_no_use(&self, error: &wasmtime::Error) {
        let forbidden = error.chain().any(|cause| {
            let denied = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            denied == Some(std::io::ErrorKind::PermissionDenied)
        });
        if forbidden && self.0.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                "code can't be mapped from the cache's file system (is it mounted noexec?): each resident handler \
                 costs as much memory as its compiled component is large"
            );
        }
    }
}

#[expect(unsafe_code, reason = "loading machine code is what a compiler's cache is for")]
fn map(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the path is that of a descriptor of this process's own. The file behind it has no name: nobody else can
    // open it, and this host writes to it no more. Its digest was compared, while it was made, with the one that was
    // sealed when this host stored the artefact.
    unsafe { Component::deserialize_file(engine, path) }
}

#[expect(unsafe_code, reason = "loading machine code is what a compiler's cache is for")]
fn deserialize(engine: &Engine, artifact: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes come from this host's compiler, or from the cache, and then their digest was compared with the
    // one that was sealed when this host stored them. They are in memory, so what was compared is what is loaded.
    unsafe { Component::deserialize(engine, artifact) }
}

impl Work {
    /// The component of a handler, as it was read. It was not to be had from the cache: what is there all the same was
    /// touched, or does not load.
    pub(crate) fn of(machine: &Machine, spec: &HandlerSpec, digest: &str) -> Self {
        let tenant = machine.tenants.of_handler(&spec.name);
        Self {
            tenant: tenant.name.clone(),
            path: spec.component.clone(),
            digest: digest.to_owned(),
            most: machine.max_component,
            anew: machine.cache.as_ref().is_some_and(|cache| cache.has(digest)),
        }
    }
}

/// The cache's part for one component that a handler uses.
pub(crate) fn hold(cache: Option<&Arc<Cache>>, component: &str) -> Option<crate::cache::Held> {
    cache.map(|cache| cache.hold(component))
}
