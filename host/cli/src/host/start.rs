//! From a configuration to a running host, and from a signal to its end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::future::join_all;
use pumphouse_admin::AdminPorts;
use pumphouse_config::{Code, Config, Loaded, Store};
use pumphouse_contract::ports::{Handlers, State, Subscriptions, Tenants};
use pumphouse_contract::{Clock, Rule, review};
use pumphouse_pump::SystemClock;
use pumphouse_sandbox::Sandbox;
use pumphouse_state::{MemoryState, SqliteState};
use pumphouse_telemetry::Metrics;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::host::account;
use crate::host::handlers;
use crate::host::lock::StateLock;
use crate::host::reload::{SCAN_EVERY, Watch, reload};
use crate::host::running::{Common, InForce, attempt, with_broker_facts};
use crate::host::transports::{Transports, WireError, Wired};
use crate::host::view::View;

/// A subscription with what came of opening it.
pub(crate) type Opened = (String, Result<Wired, WireError>);

/// Runs until a signal ends it.
pub(crate) async fn run(watch: Watch, loaded: Loaded) -> Result<Exit> {
    // The first thing, so that a signal during a slow start is not the end of the process in mid-air.
    let mut signals = Signals::new()?;
    // F-3 is said when a subscription is opened: its broker may know better than the file.
    let said_later = Code::Rule(Rule::F3);
    for warning in loaded.warnings.iter().filter(|one| one.code != said_later) {
        tracing::warn!(finding = %warning, "finding in the configuration");
    }
    let config = Arc::new(loaded.config);
    if config.subscriptions.is_empty() {
        tracing::warn!(
            "the configuration has no subscription: there is nothing to do until it gets one"
        );
    }
    let lock = StateLock::take(&config.host.state)?;
    let listener = admin_listener(&config).await?;
    let stop = CancellationToken::new();
    let started = tokio::select! {
        started = start(config.clone()) => started?,
        () = signals.stop() => return Ok(Exit::Done),
    };
    let Started { common, in_force, view } = started;
    let admin = listener.map(|listener| serve_admin(listener, &common, &view, stop.clone()));
    let accountant = in_force
        .config
        .host
        .account_interval
        .map(|every| tokio::spawn(account::keep(common.sandbox.clone(), every, stop.clone())));
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        subscriptions = view.list().len(),
        handlers = in_force.handlers.len(),
        "pumphouse is running"
    );
    let in_force = watch_until_stopped(watch, &lock, &common, in_force, &view, &mut signals).await;
    let clean = drain(&view, common.grace, &mut signals).await;
    stop.cancel();
    for task in admin.into_iter().chain(accountant) {
        let _ = tokio::time::timeout(Duration::from_secs(2), task).await;
    }
    in_force.transports.close().await;
    tracing::info!(clean, "pumphouse has stopped");
    Ok(if clean && lock.holds() { Exit::Done } else { Exit::Failed })
}

struct Started {
    common: Common,
    in_force: InForce,
    view: Arc<View>,
}

async fn start(config: Arc<Config>) -> Result<Started> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let transports = Transports::open(&config, &clock).await?;
    let state = state(&config)?;
    let sandbox = sandbox(&config)?;
    handlers::set_tenants(&sandbox, &config, config.tenants.keys());
    let names: Vec<String> = config.handlers.keys().cloned().collect();
    let loaded = handlers::load(&sandbox, &config, &names).await?;
    let subscriptions: Vec<String> =
        config.subscriptions.iter().map(|one| one.name.clone()).collect();
    let opened = open_all(&subscriptions, &config, &transports).await?;
    say_findings(&config, &opened);
    let metrics = Metrics::with_handlers(config.host.metrics_handlers as usize);
    let common = Common::new(clock, sandbox, state, metrics, config.host.grace);
    let in_force = InForce::new(config, transports, loaded, None);
    let view = Arc::new(View::new(&in_force));
    view.open(opened, &common, &in_force);
    Ok(Started { common, in_force, view })
}

/// The sandbox, and what the machine does not have for as many handlers as the configuration has.
fn sandbox(config: &Config) -> Result<Sandbox> {
    pumphouse_sandbox::raise_open_files();
    let sandbox = Sandbox::new(handlers::settings(config)).context("the sandbox can't start")?;
    let resident = config.handlers.len().min(config.host.resident_handlers as usize);
    for shortage in pumphouse_sandbox::shortages(resident) {
        tracing::warn!(finding = %shortage, "finding in the machine");
    }
    Ok(sandbox)
}

/// Where handled messages are remembered. Also without deduplication, which a reload may bring.
fn state(config: &Config) -> Result<Arc<dyn State>> {
    // A host whose messages live in memory has no use for marks that outlive them.
    let clouds = config.sqs.is_some() || config.pubsub.is_some() || config.rocketmq.is_some();
    if config.embedded.store == Store::Memory && !clouds {
        return Ok(Arc::new(MemoryState::new()));
    }
    Ok(Arc::new(SqliteState::open(&config.host.state)?))
}

/// Opens the places of these subscriptions once. A broker that is away is waited for; what is wrong for good ends
/// the start, and every such thing is named.
pub(crate) async fn open_all(
    names: &[String],
    config: &Config,
    transports: &Transports,
) -> Result<Vec<Opened>> {
    let subscriptions = config.subscriptions.iter().filter(|one| names.contains(&one.name));
    let attempts = subscriptions
        .map(|one| async move { (one.name.clone(), attempt(config, one, transports).await) });
    let opened = join_all(attempts).await;
    let wrong = |(name, wired): &Opened| match wired {
        Err(error) if !error.away => Some(format!("subscription {name}: {}", error.text)),
        Ok(_) | Err(_) => None,
    };
    let wrong: Vec<String> = opened.iter().filter_map(wrong).collect();
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(opened)
}

/// The findings that only speak once the brokers were asked. F-3 is said when a subscription is opened.
pub(crate) fn say_findings(config: &Config, opened: &[Opened]) {
    let offline = config.facts();
    let known = review(&offline);
    let facts: Vec<_> = offline
        .iter()
        .map(|facts| {
            let wired = opened.iter().find(|(name, _)| *name == facts.name);
            match wired {
                Some((_, Ok(wired))) => with_broker_facts(facts, wired),
                Some((_, Err(_))) | None => facts.clone(),
            }
        })
        .collect();
    for finding in review(&facts) {
        if finding.rule != Rule::F3 && !known.contains(&finding) {
            tracing::warn!(
                subscription = finding.subscription,
                rule = %finding.rule,
                finding = finding.text,
                "finding"
            );
        }
    }
}

/// Bound before anything is consumed, so that a port in use costs no message a delivery.
async fn admin_listener(config: &Config) -> Result<Option<TcpListener>> {
    let Some(listen) = config.host.admin_listen else { return Ok(None) };
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!(
            "admin.listen {listen} can't be bound: is another host running, or another port wanted?"
        )
    })?;
    Ok(Some(listener))
}

fn serve_admin(
    listener: TcpListener,
    common: &Common,
    view: &Arc<View>,
    stop: CancellationToken,
) -> tokio::task::JoinHandle<()> {
    let ports = AdminPorts {
        subscriptions: view.clone(),
        handlers: Arc::new(common.sandbox.clone()),
        tenants: Arc::new(common.sandbox.clone()),
        terms: view.clone(),
        metrics: metrics(common, view),
        queues: Some(view.clone()),
        version: env!("CARGO_PKG_VERSION"),
    };
    tokio::spawn(async move {
        if let Err(error) = pumphouse_admin::serve(listener, ports, stop.cancelled_owned()).await {
            tracing::error!(%error, "admin listener ended");
        }
    })
}

fn metrics(common: &Common, view: &Arc<View>) -> Arc<dyn Fn() -> String + Send + Sync> {
    let (metrics, view, sandbox) = (common.metrics.clone(), view.clone(), common.sandbox.clone());
    Arc::new(move || {
        let rejected = view.rejected_configuration().is_some();
        metrics.accounts(&Tenants::list(&sandbox));
        metrics.refresh(&view.list(), &Handlers::list(&sandbox), rejected);
        for slot in view.all() {
            if let Some(source) = slot.source() {
                metrics.held(slot.name(), source.held());
                metrics.delivered_again(slot.name(), source.duplicates());
            }
        }
        metrics.encode()
    })
}

/// Takes changed configurations until a signal says to stop.
async fn watch_until_stopped(
    mut watch: Watch,
    lock: &StateLock,
    common: &Common,
    mut in_force: InForce,
    view: &Arc<View>,
    signals: &mut Signals,
) -> InForce {
    let mut scan = tokio::time::interval(SCAN_EVERY);
    scan.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let wanted = tokio::select! {
            _ = signals.terminate.recv() => return in_force,
            _ = signals.interrupt.recv() => return in_force,
            _ = signals.hang_up.recv() => true,
            _ = scan.tick() => {
                if !lock.holds() {
                    tracing::error!(
                        "host.state was removed or replaced; stopping, since what is stored now would be lost"
                    );
                    return in_force;
                }
                watch.changed()
            }
        };
        if wanted {
            let reloading = reload(watch.path(), common, in_force, view);
            let (taken, stopping) = unless_stopped(reloading, view, common.grace, signals).await;
            in_force = taken;
            if stopping {
                return in_force;
            }
        }
    }
}

/// Finishes a reload. A signal meanwhile begins the drain beside it, and lets it open nothing more.
async fn unless_stopped(
    reloading: impl Future<Output = InForce>,
    view: &Arc<View>,
    grace: Duration,
    signals: &mut Signals,
) -> (InForce, bool) {
    tokio::pin!(reloading);
    tokio::select! {
        in_force = &mut reloading => return (in_force, false),
        () = signals.stop() => view.closing.cancel(),
    }
    let (in_force, _) = tokio::join!(reloading, drain(view, grace, signals));
    (in_force, true)
}

/// Stops every subscription within the grace. A second signal drops the calls in progress at once.
async fn drain(view: &Arc<View>, grace: Duration, signals: &mut Signals) -> bool {
    let slots = view.all();
    slots.iter().for_each(|slot| slot.drain());
    tracing::info!(grace_s = grace.as_secs(), "draining; a second signal is quicker");
    let stopping = join_all(slots.iter().map(|slot| slot.stop(grace)));
    tokio::pin!(stopping);
    loop {
        tokio::select! {
            stopped = &mut stopping => return stopped.iter().all(|one| one.clean),
            () = signals.stop() => slots.iter().for_each(|slot| slot.cut()),
        }
    }
}

/// SIGTERM and SIGINT end the host, SIGHUP reads the configuration again. Also as process 1, where no signal has
/// an effect by default.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("signals can't be listened to");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
