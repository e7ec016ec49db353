//! A version's component: in memory while it is used, in the cache otherwise.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use pumphouse_contract::{Fault, FaultKind};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout_at;

use crate::cache::Held;
use crate::compiler::Work;
use crate::entry::Entry;
use crate::errors::DeployError;
use crate::graves::Graves;
use crate::load::{self, Found};
use crate::machine::Machine;
use crate::pool::Pool;
use crate::settings::HandlerSpec;

/// How long a load that failed is not tried again: those who waited for it fail with it.
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// This part of them makes room at once, beyond the one that is needed: to find the oldest is to look at all. A larger
/// part would be unmapped while those that took its place wait for their own mapping.
const SPARE: usize = 256;

/// A component that can be instantiated.
pub(crate) struct Loaded {
    pub(crate) entry: Entry,
    found: Found,
    graves: Graves,
}

impl Loaded {
    fn new(entry: Entry, found: Found, graves: Graves) -> Self {
        Self { entry, found, graves }
    }
}

impl Drop for Loaded {
    /// To unmap it takes longer than most calls: that is done elsewhere.
    fn drop(&mut self) {
        self.graves.bury(self.found.component.clone());
    }
}

/// What a version's component is loaded from, and the component while it is.
pub(crate) struct Resident {
    spec: Arc<HandlerSpec>,
    pub(crate) digest: Arc<str>,
    pub(crate) pool: Arc<Pool>,
    /// All of the handler that decides whether the component fits it, as a digest.
    handler: Box<str>,
    loaded: ArcSwapOption<Loaded>,
    /// When it was asked for last, in nanoseconds of [`Residents`].
    used: AtomicU64,
    loading: Arc<tokio::sync::Mutex<()>>,
    failed: Mutex<Option<(Instant, String)>>,
    /// Its artefact stays in the cache.
    _held: Option<Held>,
}

impl Resident {
    /// Of a component that is not in memory; it was found out before that it fits.
    pub(crate) fn new(
        machine: &Machine,
        spec: Arc<HandlerSpec>,
        digest: &str,
        pool: Arc<Pool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            handler: load::fingerprint(&machine.build, &pool, &spec).into(),
            spec,
            pool,
            loaded: ArcSwapOption::empty(),
            used: AtomicU64::new(0),
            loading: Arc::default(),
            failed: Mutex::new(None),
            _held: load::hold(machine.cache.as_ref(), digest),
            digest: digest.into(),
        })
    }

    pub(crate) fn handler(&self) -> &str {
        &self.handler
    }

    /// Takes a component in that was just loaded.
    fn set(self: &Arc<Self>, machine: &Machine, loaded: Loaded) -> Arc<Loaded> {
        let loaded = Arc::new(loaded);
        self.used.store(machine.residents.now(), Ordering::Relaxed);
        self.loaded.store(Some(loaded.clone()));
        machine.residents.admit(self);
        loaded
    }

    /// The component, which is loaded first where it is not in memory. Who asks while it is loaded waits for the
    /// same load. Dropping the future does not end it.
    ///
    /// # Errors
    /// It can't be loaded, or not before the deadline.
    pub(crate) async fn get(
        self: &Arc<Self>,
        machine: &Arc<Machine>,
        deadline: Instant,
    ) -> Result<Arc<Loaded>, Fault> {
        if let Some(loaded) = self.loaded.load_full() {
            self.used.store(machine.residents.now(), Ordering::Relaxed);
            return Ok(loaded);
        }
        Box::pin(self.load(machine, deadline)).await
    }

    async fn load(
        self: &Arc<Self>,
        machine: &Arc<Machine>,
        deadline: Instant,
    ) -> Result<Arc<Loaded>, Fault> {
        let turn = timeout_at(deadline.into(), self.loading.clone().lock_owned());
        let turn = turn.await.map_err(|_| late())?;
        if let Some(loaded) = self.loaded.load_full() {
            return Ok(loaded);
        }
        if let Some(text) = self.failed_just_now() {
            return Err(failed(&text));
        }
        let (resident, there) = (self.clone(), machine.clone());
        let loading = machine.guests().spawn(async move { resident.fetch(&there, turn).await });
        match timeout_at(deadline.into(), loading).await {
            Ok(Ok(loaded)) => loaded.map_err(|text| failed(&text)),
            Ok(Err(error)) => Err(failed(&error.to_string())),
            Err(_) => Err(late()),
        }
    }

    /// Loads it as the only one that does.
    async fn fetch(
        self: &Arc<Self>,
        machine: &Arc<Machine>,
        _turn: OwnedMutexGuard<()>,
    ) -> Result<Arc<Loaded>, String> {
        let fetched = self.bring(machine).await.map_err(|error| error.to_string());
        let mut problem = self.failed();
        *problem = fetched.as_ref().err().map(|text| (Instant::now(), text.clone()));
        let handler = &self.spec.name;
        match &*problem {
            Some((_, problem)) => {
                tracing::error!(handler, version = %self.digest, problem, "component can't be loaded");
            }
            None => tracing::debug!(handler, version = %self.digest, "component loaded again"),
        }
        fetched
    }

    async fn bring(self: &Arc<Self>, machine: &Arc<Machine>) -> Result<Arc<Loaded>, DeployError> {
        let (resident, there) = (self.clone(), machine.clone());
        let cached = self.blocking(machine, move || {
            let found = load::cached(&there, &resident.pool, &resident.digest);
            found.map(|found| resident.link(&there, found)).transpose()
        });
        if let Some(loaded) = cached.await? {
            return Ok(loaded);
        }
        let work = Work::of(machine, &self.spec, &self.digest);
        let compiled = machine.compiler.compile(work).await?;
        let (resident, there) = (self.clone(), machine.clone());
        let linked = self.blocking(machine, move || {
            let path = &resident.spec.component;
            let found = load::compiled(&there, &resident.pool, path, &compiled)?;
            resident.link(&there, found)
        });
        linked.await
    }

    /// Checks and links a component that was just loaded, and keeps it in memory.
    ///
    /// # Errors
    /// It does not fit.
    pub(crate) fn link(
        self: &Arc<Self>,
        machine: &Machine,
        found: Found,
    ) -> Result<Arc<Loaded>, DeployError> {
        let entry = load::link(machine, &self.pool, &self.spec, &found.component)?;
        Ok(self.set(machine, Loaded::new(entry, found, machine.graves.clone())))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        machine: &Machine,
        work: impl FnOnce() -> Result<T, DeployError> + Send + 'static,
    ) -> Result<T, DeployError> {
        let path = || self.spec.component.clone();
        let done = machine.guests().spawn_blocking(work).await;
        done.map_err(|error| DeployError::Host { path: path(), text: error.to_string() })?
    }

    fn failed_just_now(&self) -> Option<String> {
        let failed = self.failed();
        let (at, text) = failed.as_ref()?;
        (at.elapsed() < AFTER_A_FAILURE).then(|| text.clone())
    }

    fn failed(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it could be loaded again.
    fn can_leave(&self) -> bool {
        self.loaded.load().as_ref().is_some_and(|loaded| loaded.found.kept)
    }

    fn leave(&self) {
        self.loaded.store(None);
    }
}

fn late() -> Fault {
    let detail = "the deadline passed while the handler's component was loaded: it had not been called for so long \
                  that others had its place in memory. The host is overloaded; see `host.resident_handlers`";
    Fault::new(FaultKind::Starved, detail)
}

fn failed(text: &str) -> Fault {
    Fault::new(
        FaultKind::Host,
        format!("the handler's component could not be loaded again: {text}"),
    )
}

/// The components that are in memory.
#[derive(Debug)]
pub(crate) struct Residents {
    most: usize,
    began: Instant,
    held: Mutex<Vec<Weak<Resident>>>,
}

impl Residents {
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), began: Instant::now(), held: Mutex::new(Vec::new()) }
    }

    /// Whether one more can be in memory without another's leaving.
    pub(crate) fn has_room(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).len() < self.most
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let here = held.iter().filter_map(Weak::upgrade);
        here.filter(|resident| resident.loaded.load().is_some()).count()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// One more is in memory. Where that is one too many, those that were used longest ago leave; calls that are in
    /// them go on.
    fn admit(&self, resident: &Arc<Resident>) {
        let leaving = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.push(Arc::downgrade(resident));
            if held.len() <= self.most { Vec::new() } else { self.make_room(&mut held) }
        };
        leaving.iter().for_each(|resident| resident.leave());
    }

    fn make_room(&self, held: &mut Vec<Weak<Resident>>) -> Vec<Arc<Resident>> {
        let mut here: Vec<_> = held.drain(..).filter_map(|weak| weak.upgrade()).collect();
        here.sort_unstable_by_key(|resident| {
            std::cmp::Reverse(resident.used.load(Ordering::Relaxed))
        });
        here.dedup_by(|a, b| Arc::ptr_eq(a, b));
        here.retain(|resident| resident.loaded.load().is_some());
        let over = here.len().saturating_sub(self.most);
        let most = if over == 0 { self.most } else { self.most - self.most / SPARE };
        let mut place = 0;
        let (stay, leave): (Vec<_>, Vec<_>) = here.into_iter().partition(|resident| {
            place += 1;
            place <= most || !resident.can_leave()
        });
        *held = stay.iter().map(Arc::downgrade).collect();
        leave
    }
}
