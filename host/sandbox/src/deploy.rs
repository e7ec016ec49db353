//! From a file to a version that can be called: read, compiled, checked, linked.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::component::Component;

use crate::compiler::CompileError;
use crate::entry::Entry;
use crate::errors::DeployError;
use crate::file::{self, Look};
use crate::fit::{self, Misfit, Misfits};
use crate::machine::Machine;
use crate::settings::HandlerSpec;
use crate::version::{Code, LoadedVersion};
use crate::{digest, guest};

/// What `\0asm` is followed by in a component, and in a core module.
const MAGIC: &[u8] = b"\0asm";
const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];
const CORE_MODULE: [u8; 4] = [1, 0, 0, 0];

const LONGEST_TEXT: usize = 600;

/// What was found in a handler's file.
pub(crate) enum Found {
    /// The version that was known already.
    Same,
    /// Another one.
    New(Arc<LoadedVersion>),
}

/// Loads what is in the handler's file now. Blocks: compiling takes seconds for a large component.
///
/// # Errors
/// The file can't be read, is no component, or does not fit this host.
pub(crate) fn load(
    machine: &Arc<Machine>,
    spec: &HandlerSpec,
    places: &Arc<Semaphore>,
    known: Option<&str>,
) -> Result<(Found, Look), DeployError> {
    check_limits(machine, spec)?;
    let (bytes, look) = file::read(&spec.component, machine.max_component)?;
    let digest = digest::of(&bytes);
    if known == Some(digest.as_str()) {
        return Ok((Found::Same, look));
    }
    recognise(&spec.component, &bytes)?;
    let component = compiled(machine, &spec.component, &digest, bytes)?;
    if fit::wants_network(&machine.engine, &component) {
        tracing::warn!(
            handler = spec.name,
            "the component imports sockets: handlers have no network, every attempt will be denied"
        );
    }
    let entry = link(machine, spec, &component)?;
    let version = LoadedVersion::new(Code {
        machine: machine.clone(),
        name: spec.name.as_str().into(),
        digest: digest.into(),
        tenant: machine.tenants.of_handler(&spec.name),
        entry,
        limits: spec.limits,
        logging: spec.grants.logging,
        config: spec.grants.config.clone().map(Arc::new),
        places: places.clone(),
    });
    Ok((Found::New(Arc::new(version)), look))
}

/// A limit that the pool can't give would be a limit in name only.
fn check_limits(machine: &Machine, spec: &HandlerSpec) -> Result<(), DeployError> {
    let limits = [
        ("limits.memory", spec.limits.memory, machine.max_memory),
        ("limits.table", spec.limits.table_elements, machine.max_table_elements),
    ];
    match limits.into_iter().find(|(_, asked, most)| asked > most) {
        Some((key, asked, most)) => {
            Err(DeployError::Limit { handler: spec.name.clone(), key, asked, most })
        }
        None => Ok(()),
    }
}

fn recognise(path: &Path, bytes: &[u8]) -> Result<(), DeployError> {
    let not = |text: &str| {
        Err(DeployError::NotAComponent { path: path.to_owned(), text: text.to_owned() })
    };
    match (bytes.get(..4), bytes.get(4..8)) {
        (Some(MAGIC), Some(version)) if *version == COMPONENT => Ok(()),
        (Some(MAGIC), Some(version)) if *version == CORE_MODULE => not(
            "it is a core module; build it for the target wasm32-wasip2, or wrap it with `wasm-tools component new`",
        ),
        (Some(MAGIC), Some(_)) => {
            not("it is in a version of the format that this host does not know")
        }
        _ if bytes.is_empty() => not("the file is empty"),
        _ => not("the file does not begin as WebAssembly does"),
    }
}

fn compiled(
    machine: &Machine,
    path: &Path,
    digest: &str,
    bytes: Vec<u8>,
) -> Result<Component, DeployError> {
    if let Some(component) = from_cache(machine, digest) {
        return Ok(component);
    }
    let artifact = machine.compiler.compile(bytes).map_err(|error| match error {
        CompileError::Invalid(text) => DeployError::Compile { path: path.to_owned(), text },
        CompileError::Stopped => host(path, "the sandbox was shut down"),
    })?;
    if let Some(cache) = &machine.cache {
        cache.put(digest, &artifact);
    }
    // The compiler has just made it: what the engine still refuses is what its pool has no room for.
    deserialize(machine, &artifact).map_err(|error| {
        let text = crate::text::escaped(&format!("{error:#}"), LONGEST_TEXT);
        let misfits = Misfits(vec![Misfit::NoInstance { text }]);
        DeployError::Misfit { path: path.to_owned(), misfits }
    })
}

fn from_cache(machine: &Machine, digest: &str) -> Option<Component> {
    let artifact = machine.cache.as_ref()?.get(digest)?;
    match deserialize(machine, &artifact) {
        Ok(component) => Some(component),
        Err(error) => {
            tracing::warn!(%error, "compiled component can't be loaded; it is compiled again");
            None
        }
    }
}

#[expect(unsafe_code, reason = "loading machine code is what a compiler's cache is for")]
fn deserialize(machine: &Machine, artifact: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes come from this process's compiler, or from a folder that only this user can write, and
    // then their digest was compared with the one that was stored with them. They are in memory, so what was
    // compared is what is loaded.
    unsafe { Component::deserialize(&machine.engine, artifact) }
}

fn link(
    machine: &Machine,
    spec: &HandlerSpec,
    component: &Component,
) -> Result<Entry, DeployError> {
    let path = &spec.component;
    let misfit = |misfits| DeployError::Misfit { path: path.clone(), misfits };
    fit::check(&machine.engine, component, &spec.limits, &spec.grants).map_err(misfit)?;
    let linker = guest::linker(&machine.engine, &spec.grants)
        .map_err(|error| host(path, &format!("{error:#}")))?;
    let shape = |error: wasmtime::Error| {
        let text = crate::text::escaped(&format!("{error:#}"), LONGEST_TEXT);
        misfit(Misfits(vec![Misfit::Shape { text }]))
    };
    linker.instantiate_pre(component).and_then(Entry::new).map_err(shape)
}

fn host(path: &Path, text: &str) -> DeployError {
    DeployError::Host { path: path.to_owned(), text: text.to_owned() }
}
