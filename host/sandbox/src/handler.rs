//! A handler: the version in use, and the file that the next one comes from.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use pumphouse_contract::ports::{BoxFuture, Handler, HandlerStatus, Version};
use tokio::sync::Semaphore;

use crate::deploy::{self, Found};
use crate::errors::DeployError;
use crate::file::Look;
use crate::machine::Machine;
use crate::roster::Entered;
use crate::settings::HandlerSpec;
use crate::tenant::Owner;
use crate::version::LoadedVersion;

/// A handler in the sandbox. Cheap to call [`Handler::begin`] on; a swap never waits for calls.
#[derive(Debug)]
pub struct LoadedHandler {
    machine: Arc<Machine>,
    spec: Arc<HandlerSpec>,
    /// Its tenant, and its account from one version to the next.
    owner: Arc<Owner>,
    places: Arc<Semaphore>,
    current: ArcSwap<LoadedVersion>,
    /// A file is being loaded.
    loading: AtomicBool,
    watched: Mutex<Watched>,
    /// It is one of its tenant's.
    _entered: Entered,
}

#[derive(Debug)]
struct Watched {
    /// The file as it was at the last scan.
    seen: Look,
    /// The file as it was when it was loaded, or refused.
    settled: Look,
    /// Why what is there now is not in use.
    problem: Option<String>,
}

impl LoadedHandler {
    /// Loads a handler.
    pub(crate) async fn load(
        machine: &Arc<Machine>,
        spec: HandlerSpec,
        entered: Entered,
    ) -> Result<Self, DeployError> {
        let spec = Arc::new(spec);
        let places = Arc::new(Semaphore::new(places(&spec)));
        let (found, look) = deploy::load(machine, &spec, &places, None).await?;
        let Found::New(version) = found else {
            return Err(DeployError::Host {
                path: spec.component.clone(),
                text: "it was taken for a version that was there before".to_owned(),
            });
        };
        tracing::info!(handler = spec.name, version = version.digest(), "handler loaded");
        Ok(Self {
            machine: machine.clone(),
            owner: machine.tenants.owner(&spec.name),
            spec,
            places,
            current: ArcSwap::new(version),
            loading: AtomicBool::new(false),
            watched: Mutex::new(Watched { seen: look, settled: look, problem: None }),
            _entered: entered,
        })
    }

    /// `tenant/name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The version in use.
    #[must_use]
    pub fn current(&self) -> Arc<LoadedVersion> {
        self.current.load_full()
    }

    /// What can be seen of it from outside.
    #[must_use]
    pub fn status(&self) -> HandlerStatus {
        HandlerStatus {
            name: self.spec.name.clone(),
            digest: self.current.load().digest().to_owned(),
            component: self.spec.component.display().to_string(),
            problem: self.watched().problem.clone(),
        }
    }

    /// Looks at the file. Where it is another than before and has rested since the last scan, it is loaded, beside
    /// whatever is called meanwhile.
    pub(crate) fn scan(self: &Arc<Self>) {
        if !self.spec.watch || self.loading.load(Ordering::Acquire) {
            return;
        }
        let look = Look::at(&self.spec.component);
        let mut watched = self.watched();
        let rests = std::mem::replace(&mut watched.seen, look) == look;
        if !rests || watched.settled == look {
            return;
        }
        drop(watched);
        self.loading.store(true, Ordering::Release);
        let handler = self.clone();
        self.machine.guests().spawn(async move {
            let _loading = Loading(&handler.loading);
            handler.reload(look).await;
        });
    }

    async fn reload(&self, look: Look) {
        let known = self.current();
        let digest = Some(known.digest());
        match deploy::load(&self.machine, &self.spec, &self.places, digest).await {
            Ok((Found::New(version), look)) => self.swap(&known, version, look),
            Ok((Found::Same, look)) => self.settle(look, None),
            // Neither settled nor refused: the next scans see it change, and rest.
            Err(DeployError::Unsettled { .. }) => {}
            Err(error) => self.settle(look, Some(error.to_string())),
        }
    }

    fn swap(&self, old: &LoadedVersion, new: Arc<LoadedVersion>, look: Look) {
        tracing::info!(
            handler = self.spec.name,
            from = old.digest(),
            to = new.digest(),
            "handler swapped"
        );
        self.current.store(new);
        self.settle(look, None);
    }

    /// Warns at the first of several problems in a row: a file that is written slowly is one event.
    fn settle(&self, look: Look, problem: Option<String>) {
        let mut watched = self.watched();
        watched.settled = look;
        let before = std::mem::replace(&mut watched.problem, problem);
        let Some(problem) = &watched.problem else { return };
        let (handler, loaded) = (&self.spec.name, self.current.load());
        let version = loaded.digest();
        match before {
            None => tracing::warn!(
                handler,
                version,
                problem,
                "new component refused, the version in use goes on"
            ),
            Some(before) if before != *problem => {
                tracing::info!(handler, version, problem, "component still refused");
            }
            Some(_) => {}
        }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handler's file is being loaded as long as this lives, a panic included.
struct Loading<'a>(&'a AtomicBool);

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn places(spec: &HandlerSpec) -> usize {
    spec.limits.concurrency.clamp(1, Semaphore::MAX_PERMITS)
}

impl Handler for LoadedHandler {
    fn begin(&self) -> Arc<dyn Version> {
        self.current()
    }

    fn slots(&self) -> Option<usize> {
        Some(places(&self.spec).min(self.current.load().pool_size()))
    }

    fn welcome(&self) -> BoxFuture<'_, Option<NonZeroUsize>> {
        Box::pin(self.owner.tenant.welcome())
    }
}
