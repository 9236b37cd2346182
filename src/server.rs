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
//! apiserver.

mod body;
pub mod certs;
pub mod clock;
mod connection;
mod deadline;
mod drain;
mod health;
mod limits;
mod listener;
pub mod logs;
mod lookup;
mod metrics;
pub mod options;
mod refusal;
mod review;
mod router;
mod store;
#[cfg(test)]
mod stub;
pub mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use kube::Client;
use thiserror::Error as ThisError;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::model::settings::Settings;
use crate::model::snapshot::Snapshot;
use crate::server::certs::keeper::Keeper;
use crate::server::connection::House;
use crate::server::connection::seats::Seats;
use crate::server::drain::{Drain, Signals, drained};
use crate::server::health::{Health, Heart};
use crate::server::limits::Gate;
use crate::server::lookup::Lookups;
use crate::server::metrics::Metrics;
use crate::server::options::{Limits, Options, Timers};
use crate::server::review::Desk;
use crate::server::router::App;
use crate::server::store::Store;
use crate::server::store::groups::Groups;
use crate::server::tls::Certificate;

/// The most connections to the health port: a kubelet, a few scrapers, a person.
const HEALTH_CONNECTIONS: usize = 64;

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
    listener: std::net::TcpListener,
    health_listener: std::net::TcpListener,
    health: Arc<Health>,
}

/// Where a server can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The webhook, over TLS.
    pub webhook: SocketAddr,
    /// Health and metrics, in plain HTTP.
    pub health: SocketAddr,
}

impl Server {
    /// Gets a certificate and binds both sockets.
    ///
    /// # Errors
    /// When the certificate is no good or an address is taken.
    pub fn bind(options: Options, state: State) -> Result<Self, Error> {
        if let (tls::Source::Builtin(_), State::Fixed(_)) = (&options.tls, &state) {
            return Err(Error::Tls(tls::Error::NoCluster));
        }
        let callers = options.callers.as_ref();
        let certificate = Arc::new(Certificate::obtain(&options.tls, callers, &options.clock)?);
        let bind = |address| listener::bind(address).map_err(|source| Error::Bind { address, source });
        let (listener, health_listener) = (bind(options.listen)?, bind(options.health)?);
        let client = match &state {
            State::Fixed(_) => None,
            State::Cluster { client, .. } => Some(client.clone()),
        };
        let (app, metrics) = app(&options, state);
        let health = Arc::new(Health {
            app,
            metrics,
            certificate,
            drain: Drain::default(),
            heart: Heart::new(),
            seats: Seats::new(options.limits.connections),
            listening: AtomicBool::new(false),
        });
        Ok(Self { options, client, listener, health_listener, health })
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
        tracing::info!(all_left, "stopped");
        Ok(())
    }
}

/// The routes of the webhook with a state of its own, for callers that need no socket. Nothing
/// watches a cluster for them: with [`State::Cluster`] its state stays unread.
pub fn router(options: &Options, state: State) -> Router {
    router::router(app(options, state).0)
}

fn app(options: &Options, state: State) -> (Arc<App>, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::new());
    let (store, lookups) = match state {
        State::Fixed(snapshot) => (Store::fixed(snapshot), None),
        State::Cluster { client, settings } => {
            let lookups = Lookups::new(client, options.limits.lookups, Arc::clone(&metrics));
            (Store::watching(settings), Some(lookups))
        }
    };
    let work = options.work.clone();
    let desk = Desk { store: Arc::new(store), lookups, metrics: Arc::clone(&metrics), work };
    let app = App {
        desk,
        gate: Gate::new(&options.limits),
        metrics: Arc::clone(&metrics),
        body_limit: options.limits.body,
        body_time: options.timers.body,
        request_time: options.timers.request,
    };
    (Arc::new(app), metrics)
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
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Health)?;
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
    tasks.spawn(async move { health.heart.beat().await });
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

fn watch_cluster(tasks: &mut JoinSet<()>, health: &Health, client: Option<Client>, timers: &Timers) {
    let store = &health.app.desk.store;
    let Some(client) = client else { return };
    let (groups, known) = watch::channel(Groups::Unknown);
    tasks.spawn(store::groups::follow_groups(client.clone(), groups, timers.absent_kind));
    for kind in store.kinds() {
        let (store, client, known) = (Arc::clone(store), client.clone(), known.clone());
        tasks.spawn(store::watch::follow(store, client, kind, known, timers.absent_kind));
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
