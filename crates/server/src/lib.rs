//! The webhook: HTTP over TLS, the state of the cluster, and a graceful shutdown.
//!
//! ```text
//! socket ─▶ listener ─▶ connection ─▶ router ─▶ review ─▶ admission, decide
//!           (connection_limiter)      (body,      ▲  (here, or on a thread for blocking work)
//!                       (tls)          limits)    ├── store ◀── watches
//!                                                 └── lookup ──▶ apiserver
//! health (own thread and port): /livez /readyz /metrics
//! ```
//!
//! [`Server::bind`] makes a server from [`options::Options`] and a [`State`], and [`Server::run`] serves.
//! [`router()`] is the same without sockets, for tests.
//!
//! Nothing here knows a single family; [`memgate_core::decide`] decides. The server reads no Secret except that of its own CA.
//! It sends requests to the apiserver, and to other replicas when that one is silent. It writes the Secret of its CA, `caBundle`
//! in its own webhook configurations, a Lease of its own, and Events.
//!
//! # Modules
//!
//! In reading order: each module uses only modules above it, which the last column lists. Certificates, the clock and
//! the errors of libraries in words are in [`memgate_certs`]. `tests/layers.rs` fails when
//! they use each other in a circle.
//!
//! | module | what it does | uses |
//! |---|---|---|
//! | [`logs`] | sets up logging; limits log lines that callers can cause | |
//! | `decision_log` | limits the log lines of decisions by namespace | `logs` |
//! | `metrics` | counts and measures; its labels | |
//! | `connection_limiter` | bounds open connections | |
//! | `watchdog` | measures how long tasks wait, and notices a stalled runtime | |
//! | `deadline` | reads `?timeout=` | |
//! | [`options`] | everything that can be set, fitted to the file descriptors | `metrics` |
//! | `concurrency_limiter` | bounds requests and bytes in flight | `metrics`, `options` |
//! | [`shutdown`] | receives the signals that end the process, and waits until callers have left | `connection_limiter` |
//! | `connection` | TLS and HTTP on one connection | `connection_limiter`, `shutdown`, `metrics`, `options` |
//! | `listener` | accepts connections | `connection`, `connection_limiter`, `logs`, `metrics` |
//! | `aggregation` | reports which platforms have their own API server | |
//! | `events` | writes Kubernetes Events | `logs`, `metrics` |
//! | `store` | watches, and the state that they make; which objects are missing | `logs`, `metrics`, `options` |
//! | `lookup` | gets single objects | `logs`, `metrics`, `store` |
//! | `rejection` | errors and their HTTP status | `metrics` |
//! | `body` | reads a request body; claims bytes for answers | `concurrency_limiter`, `options`, `rejection` |
//! | `outcomes` | the labels under which a request can be counted | `metrics`, `rejection` |
//! | `replica` | says what this replica knows and how old that is; asks the others | `metrics`, `options`, `store` |
//! | `review` | answers one AdmissionReview | `deadline`, `decision_log`, `events`, `lookup`, `metrics`, `options`, `rejection`, `store` |
//! | `router` | checks and answers HTTP requests | `body`, `concurrency_limiter`, `connection`, `connection_limiter`, `deadline`, `logs`, `metrics`, `rejection`, `review`, `watchdog` |
//! | `health` | `/livez`, `/readyz`, `/metrics`, `/silent` | `connection_limiter`, `shutdown`, `metrics`, `replica`, `router` |

mod decision_log;
pub mod logs;
mod metrics;

mod connection_limiter;
mod watchdog;

mod deadline;

pub mod options;

mod concurrency_limiter;

pub mod shutdown;

mod connection;
mod listener;

mod aggregation;
mod events;
mod store;

mod lookup;

mod rejection;

mod body;
mod outcomes;
mod replica;
mod review;
mod router;

mod health;

#[cfg(test)]
mod test_support;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use governor::{Quota, RateLimiter};
use kube::Client;
use thiserror::Error as ThisError;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::{JoinError, JoinSet};

use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::connection::{ListenerContext, Tls};
#[doc(hidden)]
pub use crate::connection::{Service, routed};
use crate::connection_limiter::ConnectionLimiter;
use crate::events::EventWriter;
use crate::health::Health;
use crate::logs::{LogRate, LogRateLimiter};
use crate::lookup::Lookups;
use crate::metrics::Metrics;
use crate::options::{Limits, Options, Timers};
use crate::replica::Replica;
use crate::review::ReviewHandler;
use crate::router::AppState;
use crate::shutdown::{Drain, Signals, wait_drained};
use crate::store::Store;
use crate::store::idle_timeout::{Pages, with_idle_timeout};
use crate::store::watch::{ApiGroups, follow, poll_groups};
use crate::watchdog::Watchdog;
use memgate_certs::manager::{CertManager, ManagerTimers};
use memgate_certs::tls::{self, ServingCert};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;

/// How many connections the health port accepts: a kubelet, a few scrapers, an operator.
const MAX_HEALTH_CONNECTIONS: usize = 64;

/// How many large reviews are decided at once, where there are so many cores. Each may hold a few times 20 MiB,
/// and all of them a few times [`Limits::body_bytes`].
const MAX_LARGE_STEPS: usize = 4;

/// After how many tasks the runtime polls sockets and timers, which costs about a microsecond.
const EVENT_INTERVAL_TASKS: u32 = 8;

/// How many rejections of each reason are logged: enough to see what is wrong.
const REJECTION_LOG_RATE: LogRate = LogRate { burst: 20, refill: Duration::from_secs(1) };

/// The state that decisions are made on.
pub enum State {
    /// Objects that are known from the start and never change.
    Fixed(Snapshot),
    /// The objects of a cluster.
    Cluster {
        /// A client of its apiserver.
        client: Client,
        /// The settings of families.
        settings: Settings,
    },
}

/// Why the server cannot serve.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The certificate cannot be used.
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
    /// A task that should run for ever has ended.
    #[error("a part of the server has stopped")]
    Stopped(#[source] Option<JoinError>),
}

/// A server that has its sockets and its certificate, but does not serve yet.
pub struct Server {
    options: Options,
    client: Option<Client>,
    event_writer: Option<EventWriter>,
    service: Service,
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

/// The runtime for a server.
///
/// # Errors
/// When the operating system gives no threads.
pub fn runtime() -> io::Result<Runtime> {
    runtime_builder().build()
}

/// The builder of the runtime. It polls sockets and timers after every few tasks. The default of 61 tasks is too many
/// when each of them decides a review.
pub fn runtime_builder() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().event_interval(EVENT_INTERVAL_TASKS);
    builder
}

impl Server {
    /// Binds both sockets and gets a certificate.
    ///
    /// # Errors
    /// When the certificate cannot be used or an address is taken.
    pub fn bind(mut options: Options, state: State) -> Result<Self, Error> {
        if let (tls::CertSource::Builtin(_), State::Fixed(_)) = (&options.tls, &state) {
            return Err(Error::Tls(tls::Error::NoCluster));
        }
        options.limits = options::fit_to_fd_limit(&options.limits);
        let client_auth = options.client_auth.as_ref();
        let unread = options.timers.write;
        let bind =
            |address| listener::bind(address, unread).map_err(|source| Error::Bind { address, source });
        let (listener, health_listener) = (bind(options.listen)?, bind(options.health)?);
        // Only after binding: a second server that gets no port must not overwrite the CA of the first one.
        let certificate = Arc::new(ServingCert::load(&options.tls, client_auth, &options.clock)?);
        let (client, state) = match state {
            State::Fixed(_) => (None, state),
            State::Cluster { client, settings } => {
                let client = options.clock.set_by(&client);
                (Some(client.clone()), State::Cluster { client, settings })
            }
        };
        let metrics = Arc::new(Metrics::new(outcomes::all()));
        let (app, event_writer) = app_state(&options, state, &metrics);
        let service = router::service(Arc::clone(&app));
        let replica = Replica {
            store: Arc::clone(&app.handler.store),
            metrics: Arc::clone(&metrics),
            clock: options.clock.clone(),
            installation: options.installation.clone(),
            port: health_listener.local_addr().map_or(0, |address| address.port()),
            known: Mutex::default(),
        };
        let health = Arc::new(Health {
            app,
            metrics,
            replica: Arc::new(replica),
            certificate,
            drain: Drain::default(),
            connections: ConnectionLimiter::new(options.limits.connections),
            listening: AtomicBool::new(false),
        });
        Ok(Self { options, client, event_writer, service, listener, health_listener, health })
    }

    /// Answers with these routes instead of the webhook's, behind the same listener, TLS and connection limit, so that a
    /// benchmark can measure their cost alone.
    #[must_use]
    pub fn with_routes(self, routes: Router) -> Self {
        Self { service: routed(routes), ..self }
    }

    /// Where it will be reached; with port 0 this shows the port that the system chose.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn addresses(&self) -> io::Result<Addresses> {
        Ok(Addresses { webhook: self.listener.local_addr()?, health: self.health_listener.local_addr()? })
    }

    /// Serves until SIGTERM or SIGINT, then as [`Server::run`]; a second signal ends it at once.
    ///
    /// # Errors
    /// When signals cannot be listened to, or a part of the server stops.
    pub async fn run_until_signalled(self) -> Result<(), Error> {
        let listen = || Signals::listen().map_err(Error::Signals);
        let (mut first, mut second) = (listen()?, listen()?);
        let signalled_twice = async {
            second.next().await;
            second.next().await;
        };
        tokio::select! {
            ended = self.run(first.next()) => ended,
            () = signalled_twice => Ok(()),
        }
    }

    /// Serves until `shutdown` is ready, then until all connections are closed or the grace time is over.
    ///
    /// # Errors
    /// When a part of the server stops.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let _health = serve_health(self.health_listener, &self.health, &self.options)?;
        let timers = Arc::new(self.options.timers.clone());
        let mut tasks = JoinSet::new();
        let app = Arc::clone(&self.health.app);
        let decision_log = Arc::clone(&app.handler.decision_log);
        tasks.spawn(async move { app.watchdog.run().await });
        tasks.spawn(Arc::clone(&decision_log).report());
        let (certificate, metrics) = (Arc::clone(&self.health.certificate), Arc::clone(&self.health.metrics));
        tasks.spawn(certificate.reload_files(timers.reload, Arc::clone(&metrics.certs)));
        if let Some(event_writer) = self.event_writer {
            tasks.spawn(event_writer.run());
        }
        if let Some(client) = &self.client {
            spawn_with_cluster(&mut tasks, &self.health, client, &self.options, &timers);
        }
        spawn_listener(&mut tasks, self.listener, self.service, &self.health, &self.options.limits, &timers)?;
        tokio::select! {
            () = shutdown => {}
            ended = tasks.join_next() => return Err(Error::Stopped(ended.and_then(Result::err))),
        }
        tracing::info!("shutting down: no longer ready, still serving");
        self.health.drain.begin();
        let drained = wait_drained(&self.health.connections, timers.drain_quiet, timers.drain_grace).await;
        decision_log.report_now();
        tracing::info!(drained, "stopped");
        Ok(())
    }
}

/// Answers with this service behind the listener and the connections of a server, but over plain HTTP, until the future
/// is dropped. It is for benchmarks that count instructions: valgrind cannot run the cryptography. The address is that of
/// the socket.
///
/// # Errors
/// When the address of the options is taken.
#[doc(hidden)]
pub fn serve_plain(
    service: Service,
    options: &Options,
) -> io::Result<(SocketAddr, impl Future<Output = ()> + use<>)> {
    let listener = listener::bind(options.listen, options.timers.write)?;
    let (address, listener) = (listener.local_addr()?, TcpListener::from_std(listener)?);
    let context = ListenerContext {
        service,
        tls: None,
        head: options.limits.head,
        timers: Arc::new(options.timers.clone()),
        drain: Drain::default(),
        metrics: Arc::new(Metrics::new(outcomes::all())),
    };
    let connections = ConnectionLimiter::new(options.limits.connections);
    Ok((address, listener::run(listener, Arc::new(context), connections)))
}

/// The service of the webhook with a state of its own.
#[doc(hidden)]
pub fn reviews(options: &Options, state: State) -> Service {
    let metrics = Arc::new(Metrics::new(outcomes::all()));
    router::service(app_state(options, state, &metrics).0)
}

/// The routes of the webhook with a state of its own, for callers without a socket. There are no watches
/// (with [`State::Cluster`] no kind is ever synced).
pub fn router(options: &Options, state: State) -> Router {
    counted_router(options, state).0
}

/// The routes of [`router()`], and a function that returns its metrics in the OpenMetrics text format.
pub fn counted_router(options: &Options, state: State) -> (Router, impl Fn() -> String + use<>) {
    let metrics = Arc::new(Metrics::new(outcomes::all()));
    let (app, _) = app_state(options, state, &metrics);
    (router::router(app), move || metrics.text().unwrap_or_default())
}

/// The state of the routes, and the writer of their Events.
fn app_state(
    options: &Options,
    state: State,
    metrics: &Arc<Metrics>,
) -> (Arc<AppState>, Option<EventWriter>) {
    let (mut event_recorder, mut event_writer) = (None, None);
    let (store, lookups) = match state {
        State::Fixed(snapshot) => (Store::fixed(snapshot), None),
        State::Cluster { client, settings } => {
            if options.events {
                let (clock, trust_pods) = (options.clock.clone(), options.client_auth.is_some());
                let (to, from) = events::recorder(client.clone(), clock, Arc::clone(metrics), trust_pods);
                (event_recorder, event_writer) = (Some(to), Some(from));
            }
            let lookups = Lookups::new(client, options.limits.lookups, Arc::clone(metrics));
            let store = Store::watching(settings, options.reference_grace, options.policies);
            (store.holding(options.limits.state), Some(lookups))
        }
    };
    let decide = options.decide;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let handler = ReviewHandler {
        store: Arc::new(store),
        lookups,
        metrics: Arc::clone(metrics),
        large_steps: Arc::new(Semaphore::new(cores.min(MAX_LARGE_STEPS))),
        decide,
        clock: options.clock.clone(),
        event_recorder,
        decision_log: Arc::default(),
    };
    let app = AppState {
        handler: Arc::new(handler),
        concurrency: Arc::new(ConcurrencyLimiter::new(&options.limits)),
        watchdog: Watchdog::new(options.timers.stall),
        metrics: Arc::clone(metrics),
        body_limit: options.limits.body,
        body_time: options.timers.body,
        request_time: options.timers.request,
        rejection_log: LogRateLimiter::new(REJECTION_LOG_RATE),
    };
    (Arc::new(app), event_writer)
}

/// Serves the health port on a thread of its own, until the sender is dropped.
fn serve_health(
    listener: std::net::TcpListener,
    health: &Arc<Health>,
    options: &Options,
) -> Result<oneshot::Sender<()>, Error> {
    let context = ListenerContext {
        service: routed(health::router(Arc::clone(health))),
        tls: None,
        head: options.limits.head,
        timers: Arc::new(options.timers.clone()),
        drain: health.drain.clone(),
        metrics: Arc::clone(&health.metrics),
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Health)?;
    let (stop, stopped) = oneshot::channel();
    let watched = Arc::clone(health);
    let serve = move || {
        runtime.block_on(async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            // Here it goes on while the main runtime is stalled.
            tokio::spawn(health::log_readiness(watched));
            let connections = ConnectionLimiter::new(MAX_HEALTH_CONNECTIONS);
            tokio::select! {
                () = listener::run(listener, Arc::new(context), connections) => {}
                _ = stopped => {}
            }
        });
    };
    std::thread::Builder::new().name("health".to_owned()).spawn(serve).map_err(Error::Health)?;
    Ok(stop)
}

/// Starts the certificate manager and the watches, as far as they are wanted.
fn spawn_with_cluster(
    tasks: &mut JoinSet<()>,
    health: &Arc<Health>,
    client: &Client,
    options: &Options,
    timers: &Arc<Timers>,
) {
    let (store, metrics) = (&health.app.handler.store, &health.metrics);
    let families = store.snapshot().settings.families.clone();
    tokio::spawn(aggregation::report(client.clone(), families));
    if let tls::CertSource::Builtin(builtin) = &options.tls {
        let certificate = Arc::clone(&health.certificate);
        let (builtin, metrics) = (builtin.clone(), Arc::clone(&metrics.certs));
        let client = with_idle_timeout(client, timers.watch_idle, &Pages::default(), || ());
        let &Timers { ca_poll: poll, propagation, .. } = &**timers;
        let every = ManagerTimers { poll, propagation };
        let manager = CertManager::new(builtin, client, options.clock.clone(), every, metrics, certificate);
        tasks.spawn(Box::pin(manager.run()));
    }
    let (replica, watched) = (Arc::clone(&health.replica), Arc::clone(health));
    tasks.spawn(replica.run(client.clone(), move || watched.not_ready_reasons()));
    let (groups, known) = watch::channel(ApiGroups::Unknown);
    tasks.spawn(poll_groups(client.clone(), groups, timers.discovery_interval));
    for kind in store.kinds() {
        let (store, client, known) = (Arc::clone(store), client.clone(), known.clone());
        tasks.spawn(follow(store, client, kind, known, Arc::clone(timers)));
    }
}

fn spawn_listener(
    tasks: &mut JoinSet<()>,
    listener: std::net::TcpListener,
    service: Service,
    health: &Health,
    limits: &Limits,
    timers: &Arc<Timers>,
) -> Result<(), Error> {
    let address = listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)));
    let listener = TcpListener::from_std(listener).map_err(|source| Error::Bind { address, source })?;
    let context = ListenerContext {
        service,
        tls: Some(Tls {
            certificate: Arc::clone(&health.certificate),
            handshakes: RateLimiter::direct(Quota::per_second(limits.handshakes)),
        }),
        head: limits.head,
        timers: Arc::clone(timers),
        drain: health.drain.clone(),
        metrics: Arc::clone(&health.metrics),
    };
    tasks.spawn(listener::run(listener, Arc::new(context), Arc::clone(&health.connections)));
    health.listening.store(true, Ordering::Release);
    Ok(())
}
