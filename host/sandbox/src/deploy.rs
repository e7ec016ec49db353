//! From a file to a version that can be called: read, compiled, checked, linked.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use tokio::sync::Semaphore;

use crate::compiler::Work;
use crate::errors::DeployError;
use crate::file::{self, Look};
use crate::machine::Machine;
use crate::pool::Pool;
use crate::proof::Fit;
use crate::resident::Resident;
use crate::reuse::Shelf;
use crate::services::Services;
use crate::settings::HandlerSpec;
use crate::version::{Code, LoadedVersion};
use crate::worker::LOW_PRIORITY;
use crate::{digest, fit, load, needs};

/// What `\0asm` is followed by in a component, and in a core module.
const MAGIC: &[u8] = b"\0asm";
const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];
const CORE_MODULE: [u8; 4] = [1, 0, 0, 0];

/// In bytes; what is digested within a millisecond or two is not worth a thread.
const LARGE: u64 = 1 << 20;
const LOOKING: &str = "pumphouse-look";

/// What was found in a handler's file.
pub(crate) enum Found {
    /// The version that was known already.
    Same,
    /// Another one.
    New(Arc<LoadedVersion>),
}

/// What was found out of a file without compiling it.
enum Read {
    /// The version that was known already.
    Same,
    /// A component that fits, and may not be in memory yet.
    Fits(Arc<Resident>),
    /// One that has to be compiled.
    Unknown(Arc<Resident>),
}

/// Loads what is in the handler's file now. What was compiled and found to fit before is not compiled, and where as many
/// as may be are in memory already it is not loaded either: its first call does that.
///
/// # Errors
/// The file can't be read, is no component, or does not fit this host.
pub(crate) async fn load(
    machine: &Arc<Machine>,
    spec: &Arc<HandlerSpec>,
    places: &Arc<Semaphore>,
    known: Option<&str>,
) -> Result<(Found, Look), DeployError> {
    let (read, look) = read(machine, spec, known).await?;
    let resident = match read {
        Read::Same => return Ok((Found::Same, look)),
        Read::Fits(resident) => resident,
        Read::Unknown(resident) => {
            compile(machine, spec, &resident).await?;
            resident
        }
    };
    let services = Services::new(&machine.outside, &spec.name, &spec.grants)
        .map_err(|text| host(&spec.component, &text))?;
    let owner = machine.tenants.owner(&spec.name);
    let services = services.of(owner.tenant.clone());
    let version = LoadedVersion::new(Code {
        machine: machine.clone(),
        name: spec.name.as_str().into(),
        digest: resident.digest.clone(),
        shelf: Shelf::new(resident.pool.clone(), owner.clone(), spec.instances),
        owner,
        component: resident,
        limits: spec.limits,
        services: Arc::new(services),
        places: places.clone(),
    });
    Ok((Found::New(Arc::new(version)), look))
}

async fn read(
    machine: &Arc<Machine>,
    spec: &Arc<HandlerSpec>,
    known: Option<&str>,
) -> Result<(Read, Look), DeployError> {
    // A few at once: many deploys do not hold up the load of a component that a message waits for.
    let _turn = machine.deploying.acquire().await;
    let (there, its, known) = (machine.clone(), spec.clone(), known.map(str::to_owned));
    blocking(machine, &spec.component, move || look_aside(&there, &its, known.as_deref())).await
}

/// Looks into a large file at low priority: reading and digesting one takes a processor for as long as thousands of
/// calls do, and a tenant may deploy as many as it likes.
fn look_aside(
    machine: &Machine,
    spec: &Arc<HandlerSpec>,
    known: Option<&str>,
) -> Result<(Read, Look), DeployError> {
    if !Look::at(&spec.component).is_larger_than(LARGE) {
        return look_into(machine, spec, known);
    }
    thread::scope(|scope| {
        let aside = thread::Builder::new().name(LOOKING.to_owned()).spawn_scoped(scope, || {
            // At ordinary priority it does the same.
            let _ = rustix::process::setpriority_process(None, LOW_PRIORITY);
            look_into(machine, spec, known)
        });
        match aside.map(ScopedJoinHandle::join) {
            Ok(Ok(found)) => found,
            Ok(Err(panic)) => resume_unwind(panic),
            // No thread is to be had: here, then.
            Err(_) => look_into(machine, spec, known),
        }
    })
}

fn look_into(
    machine: &Machine,
    spec: &Arc<HandlerSpec>,
    known: Option<&str>,
) -> Result<(Read, Look), DeployError> {
    check_limits(machine, spec)?;
    let (bytes, look) = read_file(machine, spec)?;
    let digest = digest::of(&bytes);
    if known == Some(digest.as_str()) {
        return Ok((Read::Same, look));
    }
    recognise(&spec.component, &bytes)?;
    let pool = pool(machine, spec, &bytes)?;
    drop(bytes);
    let resident = Resident::new(machine, spec.clone(), &digest, pool);
    // As long as there is room it is loaded at once: its file may be another by the time of its first message.
    if !machine.residents.has_room()
        && let Some(fit) =
            machine.cache.as_ref().and_then(|cache| cache.fit(&digest, resident.handler()))
    {
        say_network(spec, fit.wants_network);
        return Ok((Read::Fits(resident), look));
    }
    match load::cached(machine, &resident.pool, &digest) {
        Some(found) => {
            take_in(machine, spec, &resident, found)?;
            Ok((Read::Fits(resident), look))
        }
        None => Ok((Read::Unknown(resident), look)),
    }
}

fn read_file(machine: &Machine, spec: &HandlerSpec) -> Result<(Vec<u8>, Look), DeployError> {
    let tenant = machine.tenants.of_handler(&spec.name).limits.load().component_bytes;
    let most = tenant.unwrap_or(u64::MAX).min(machine.max_component);
    file::read(&spec.component, most).map_err(|error| match error {
        DeployError::TooLarge { path, size, limit, .. } if most < machine.max_component => {
            DeployError::TooLarge { path, size, limit, key: Some("limits.component") }
        }
        error => error,
    })
}

async fn compile(
    machine: &Arc<Machine>,
    spec: &Arc<HandlerSpec>,
    resident: &Arc<Resident>,
) -> Result<(), DeployError> {
    let compiled = machine.compiler.compile(Work::of(machine, spec, &resident.digest)).await?;
    let (there, its, resident) = (machine.clone(), spec.clone(), resident.clone());
    let taken = blocking(machine, &spec.component, move || {
        let found = load::compiled(&there, &resident.pool, &its.component, &compiled)?;
        take_in(&there, &its, &resident, found)
    });
    taken.await
}

/// Checks that a component fits its handler, and links it.
fn take_in(
    machine: &Machine,
    spec: &Arc<HandlerSpec>,
    resident: &Arc<Resident>,
    found: load::Found,
) -> Result<(), DeployError> {
    let wants_network = fit::wants_network(&resident.pool.engine, &found.component);
    let kept = found.kept;
    resident.link(machine, found)?;
    say_network(spec, wants_network);
    if let (true, Some(cache)) = (kept, &machine.cache) {
        cache.add_fit(
            &resident.digest,
            Fit { handler: resident.handler().to_owned(), wants_network },
        );
    }
    Ok(())
}

fn say_network(spec: &HandlerSpec, wants_network: bool) {
    if wants_network {
        tracing::warn!(
            handler = spec.name,
            "the component imports sockets: handlers have no network, every attempt will be denied"
        );
    }
}

/// Where threads may wait.
async fn blocking<T: Send + 'static>(
    machine: &Machine,
    path: &Path,
    work: impl FnOnce() -> Result<T, DeployError> + Send + 'static,
) -> Result<T, DeployError> {
    let done = machine.guests().spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(host(path, &error.to_string())))
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

/// The pool that the handler's instances come from.
fn pool(machine: &Machine, spec: &HandlerSpec, component: &[u8]) -> Result<Arc<Pool>, DeployError> {
    let pool = machine.pool(needs::profile(spec.runtime, component));
    pool.map_err(|error| DeployError::NoPool { path: spec.component.clone(), error })
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

fn host(path: &Path, text: &str) -> DeployError {
    DeployError::Host { path: path.to_owned(), text: text.to_owned() }
}
