//! The webhook: HTTP, TLS, the state of the cluster, and a good end.
//!
//! ```text
//! socket ─▶ listener ─▶ connection ─▶ router ─▶ review ─▶ admission, decide
//!                (tls, guard, seats)   (limits,      ▲
//!                                       body)        ├── store ◀── watches
//!                                                    └── lookup ──▶ apiserver
//! health (own thread and port): /livez /readyz /metrics
//! ```
//!
//! This module knows nothing of any family; what to decide it leaves to [`crate::decide`]. It
//! reads no Secret but the one that [`certs`] keeps its own CA in, and calls nobody but the
//! apiserver, and a collector of traces if it is told to. It writes that Secret, the `caBundle` of its
//! own webhook configurations, and Events (`events`).

mod body;
pub mod certs;
pub mod clock;
mod connection;
mod deadline;
mod descriptors;
mod drain;
mod events;
mod health;
mod lag;
mod limits;
mod listener;
pub mod logs;
mod lookup;
mod metrics;
pub mod options;
pub mod quantity;
mod ration;
mod refusal;
mod review;
mod router;
mod store;
#[cfg(test)]
mod stub;
pub mod tls;
pub mod traces;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use kube::Client;
use thiserror::Error as ThisError;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::model::settings::Settings;
use crate::model::snapshot::Snapshot;
use crate::server::certs::keeper::Keeper;
use crate::server::connection::House;
use crate::server::connection::seats::Seats;
use crate::server::drain::{Drain, Signals, drained};
use crate::server::events::Delivery;
use crate::server::health::{Health, Heart};
use crate::server::lag::Lag;
use crate::server::limits::Gate;
use crate::server::lookup::Lookups;
use crate::server::metrics::Metrics;
use crate::server::options::{Limits, Options, Timers};
use crate::server::ration::{Rate, Ration};
use crate::server::review::Desk;
use crate::server::router::App;
use crate::server::store::Store;
use crate::server::store::groups::Groups;
use crate::server::tls::Certificate;
use crate::server::traces::Tracer;
use crate::server::traces::export::Export;

/// The most connections to the health port: a kubelet, a few scrapers, a person.
const HEALTH_CONNECTIONS: usize = 64;

/// After how many tasks the runtime looks at sockets and timers. A look costs about a microsecond.
const EVENT_INTERVAL: u32 = 8;

/// How many lines a second each kind of refusal may log: enough to see what is wrong.
const REFUSALS: Rate = Rate { burst: 20, per_second: 1 };

/// How many decisions a second are logged: all of a roll-out of a thousand pods, and no more than
/// 50 KB a second of a flood.
const DECISIONS: Rate = Rate { burst: 5_000, per_second: 100 };

/// What decisions are made on.
pub enum State {
    /// Objects that are known from the start and never change.
    Fixed(Snapshot),
    /// The objects of a cluster.
    Cluster {
        /// The way to its apiserver.
        client: Client,
        /// What whoever runs memgate chose.
        settings: Settings,
    },
}

/// Why the server cannot serve.
#[derive(Debug, ThisError)]
pub enum Error {
    /// There is no certificate.
    #[error("failed to get a certificate")]
    Tls(#[from] tls::Error),
    /// There are no traces.
    #[error("failed to set up traces")]
    Traces(#[from] traces::Error),
    /// An address cannot be listened on.
    #[error("failed to listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The signals to end cannot be listened to.
    #[error("failed to listen to signals")]
    Signals(#[source] io::Error),
    /// The health port cannot be served.
    #[error("failed to serve the health port")]
    Health(#[source] io::Error),
    /// A task that should never end has ended.
    #[error("a part of the server has stopped")]
    Stopped(#[source] Option<JoinError>),
}

/// A server that has its sockets and its certificate, and does not serve yet.
pub struct Server {
    options: Options,
    client: Option<Client>,
    delivery: Option<Delivery>,
    listener: std::net::TcpListener,
    health_listener: std::net::TcpListener,
    health: Arc<Health>,
    export: Option<Export>,
}

/// Where a server can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The webhook, over TLS.
    pub webhook: SocketAddr,
    /// Health and metrics, in plain HTTP.
    pub health: SocketAddr,
}

/// The runtime that a server should have.
///
/// # Errors
/// When the operating system gives no threads.
pub fn runtime() -> io::Result<Runtime> {
    runtime_builder().build()
}

/// What makes it: it looks for what has arrived, and at its timers, after every few tasks. The usual 61
/// are many when each is a decision on a large object.
#[must_use]
pub fn runtime_builder() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().event_interval(EVENT_INTERVAL);
    builder
}

impl Server {
    /// Binds both sockets and gets a certificate.
    ///
    /// # Errors
    /// When the certificate is no good or an address is taken.
    pub fn bind(mut options: Options, state: State) -> Result<Self, Error> {
        if let (tls::Source::Builtin(_), State::Fixed(_)) = (&options.tls, &state) {
            return Err(Error::Tls(tls::Error::NoCluster));
        }
        options.limits = descriptors::fitted(&options.limits);
        let callers = options.callers.as_ref();
        let bind = |address| listener::bind(address).map_err(|source| Error::Bind { address, source });
        let (listener, health_listener) = (bind(options.listen)?, bind(options.health)?);
        // Who gets no port may be one too many, and must not write over the CA of another.
        let certificate = Arc::new(Certificate::obtain(&options.tls, callers, &options.clock)?);
        let client = match &state {
            State::Fixed(_) => None,
            State::Cluster { client, .. } => Some(client.clone()),
        };
        let metrics = Arc::new(Metrics::new());
        let traces = options.traces.as_ref().map(|settings| Tracer::new(settings, Arc::clone(&metrics)));
        let (made, export) = traces.transpose()?.unzip();
        let (app, delivery) = app(&options, state, made, &metrics);
        let health = Arc::new(Health {
            app,
            metrics,
            certificate,
            drain: Drain::default(),
            heart: Heart::new(options.timers.stuck),
            seats: Seats::new(options.limits.connections),
            listening: AtomicBool::new(false),
        });
        Ok(Self { options, client, delivery, listener, health_listener, health, export })
    }

    /// Where it will be reached; tells which port it got if it asked for any.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn addresses(&self) -> io::Result<Addresses> {
        Ok(Addresses { webhook: self.listener.local_addr()?, health: self.health_listener.local_addr()? })
    }

    /// Serves until SIGTERM or SIGINT, then as [`Server::run`]; a second signal ends it at once.
    ///
    /// # Errors
    /// When signals cannot be listened to, or a part of the server stops that never should.
    pub async fn run_until_signalled(self) -> Result<(), Error> {
        let listen = || Signals::listen().map_err(Error::Signals);
        let (mut first, mut second) = (listen()?, listen()?);
        let hurry = async {
            second.next().await;
            second.next().await;
        };
        tokio::select! {
            ended = self.run(first.next()) => ended,
            () = hurry => Ok(()),
        }
    }

    /// Serves until `shutdown` is ready, then until everybody has left or the grace time is over.
    ///
    /// # Errors
    /// When a part of the server stops that never should.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let _health = serve_health(self.health_listener, &self.health, &self.options)?;
        let timers = Arc::new(self.options.timers.clone());
        let mut tasks = JoinSet::new();
        beat(&mut tasks, &self.health);
        keep_certificate(&mut tasks, &self.health, &timers);
        if let Some(delivery) = self.delivery {
            tasks.spawn(delivery.run());
        }
        keep_own(&mut tasks, &self.health, self.client.clone(), &self.options);
        watch_cluster(&mut tasks, &self.health, self.client, &timers);
        accept(&mut tasks, self.listener, &self.health, &self.options.limits, &timers)?;
        tokio::select! {
            () = shutdown => {}
            ended = tasks.join_next() => return Err(Error::Stopped(ended.and_then(Result::err))),
        }
        tracing::info!("shutting down: no longer ready, still serving");
        self.health.drain.begin();
        let all_left = drained(&self.health.seats, timers.drain_quiet, timers.drain_grace).await;
        if let Some(export) = self.export {
            export.finish().await;
        }
        tracing::info!(all_left, "stopped");
        Ok(())
    }
}

/// The routes of the webhook with a state of its own, for callers that need no socket. Nothing
/// watches a cluster for them: with [`State::Cluster`] its state stays unread; nor are there traces.
pub fn router(options: &Options, state: State) -> Router {
    counted_router(options, state).0
}

/// The same, with a way to read what it has counted, in the OpenMetrics text format.
pub fn counted_router(options: &Options, state: State) -> (Router, impl Fn() -> String + use<>) {
    let metrics = Arc::new(Metrics::new());
    let (app, _) = app(options, state, None, &metrics);
    (router::router(app), move || metrics.text().unwrap_or_default())
}

/// What answers reviews, and what delivers their notices.
fn app(
    options: &Options,
    state: State,
    tracer: Option<Tracer>,
    metrics: &Arc<Metrics>,
) -> (Arc<App>, Option<Delivery>) {
    let (mut outbox, mut delivery) = (None, None);
    let (store, lookups) = match state {
        State::Fixed(snapshot) => (Store::fixed(snapshot), None),
        State::Cluster { client, settings } => {
            if options.events {
                let (clock, trusting) = (options.clock.clone(), options.callers.is_some());
                let (to, from) = events::outbox(client.clone(), clock, Arc::clone(metrics), trusting);
                (outbox, delivery) = (Some(to), Some(from));
            }
            let lookups = Lookups::new(client, options.limits.lookups, Arc::clone(metrics));
            (Store::watching(settings), Some(lookups))
        }
    };
    let work = options.work.clone();
    let lines = Ration::new(DECISIONS);
    let desk = Desk { store: Arc::new(store), lookups, metrics: Arc::clone(metrics), work, outbox, lines };
    let app = App {
        desk,
        gate: Gate::new(&options.limits),
        lag: Lag::new(),
        metrics: Arc::clone(metrics),
        tracer,
        body_limit: options.limits.body,
        body_time: options.timers.body,
        request_time: options.timers.request,
        refusals: Ration::new(REFUSALS),
    };
    (Arc::new(app), delivery)
}

/// Serves the health port on a thread of its own, until the sender is dropped.
fn serve_health(
    listener: std::net::TcpListener,
    health: &Arc<Health>,
    options: &Options,
) -> Result<oneshot::Sender<()>, Error> {
    let house = House {
        router: health::router(Arc::clone(health)),
        tls: None,
        head: options.limits.head,
        timers: Arc::new(options.timers.clone()),
        drain: health.drain.clone(),
        metrics: Arc::clone(&health.metrics),
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Health)?;
    let (stop, stopped) = oneshot::channel();
    let serve = move || {
        runtime.block_on(async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let seats = Seats::new(HEALTH_CONNECTIONS);
            tokio::select! {
                () = listener::run(listener, Arc::new(house), seats) => {}
                _ = stopped => {}
            }
        });
    };
    std::thread::Builder::new().name("health".to_owned()).spawn(serve).map_err(Error::Health)?;
    Ok(stop)
}

fn beat(tasks: &mut JoinSet<()>, health: &Arc<Health>) {
    let health = Arc::clone(health);
    let app = Arc::clone(&health.app);
    tasks.spawn(async move { health.heart.beat().await });
    tasks.spawn(async move { app.lag.mark().await });
}

fn keep_certificate(tasks: &mut JoinSet<()>, health: &Health, timers: &Timers) {
    let (certificate, metrics) = (Arc::clone(&health.certificate), Arc::clone(&health.metrics));
    tasks.spawn(certificate.keep_current(timers.reload, metrics));
}

/// Keeps certificates of memgate's own making, if that is what is served.
fn keep_own(tasks: &mut JoinSet<()>, health: &Health, client: Option<Client>, options: &Options) {
    let (tls::Source::Builtin(builtin), Some(client)) = (&options.tls, client) else { return };
    let (certificate, metrics) = (Arc::clone(&health.certificate), Arc::clone(&health.metrics));
    let (builtin, clock) = (builtin.clone(), options.clock.clone());
    let keeper = Keeper::new(builtin, client, clock, &options.timers, metrics, certificate);
    tasks.spawn(Box::pin(keeper.keep()));
}

fn watch_cluster(tasks: &mut JoinSet<()>, health: &Health, client: Option<Client>, timers: &Arc<Timers>) {
    let store = &health.app.desk.store;
    let Some(client) = client else { return };
    let (groups, known) = watch::channel(Groups::Unknown);
    tasks.spawn(store::groups::follow_groups(client.clone(), groups, timers.absent_kind));
    for kind in store.kinds() {
        let (store, client, known) = (Arc::clone(store), client.clone(), known.clone());
        tasks.spawn(store::watch::follow(store, client, kind, known, Arc::clone(timers)));
    }
}

fn accept(
    tasks: &mut JoinSet<()>,
    listener: std::net::TcpListener,
    health: &Health,
    limits: &Limits,
    timers: &Arc<Timers>,
) -> Result<(), Error> {
    let address = listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)));
    let listener = TcpListener::from_std(listener).map_err(|source| Error::Bind { address, source })?;
    let config = Arc::clone(&health.certificate).config()?;
    let house = House {
        router: router::router(Arc::clone(&health.app)),
        tls: Some(TlsAcceptor::from(Arc::new(config))),
        head: limits.head,
        timers: Arc::clone(timers),
        drain: health.drain.clone(),
        metrics: Arc::clone(&health.metrics),
    };
    tasks.spawn(listener::run(listener, Arc::new(house), Arc::clone(&health.seats)));
    health.listening.store(true, Ordering::Release);
    Ok(())
}
