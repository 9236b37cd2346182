//! A server on loopback for one test.

use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use memgate_certs::tls;
use memgate_model::snapshot::Snapshot;
use memgate_server::options::Options;
use memgate_server::{Addresses, Error, Server, State};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{Answer, Connection, plain};

/// Longer than anything here takes, also on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// A server that serves.
pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    /// Its CA certificate.
    pub(crate) ca: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), Error>>,
    _directory: TempDir,
}

/// Options for a server on free ports of loopback, and where it will write its CA.
pub(crate) fn options(directory: &TempDir) -> (Options, PathBuf) {
    let ca = directory.path().join("ca.pem");
    let mut options = Options::new(tls::CertSource::SelfSigned { names: Vec::new(), ca: ca.clone() });
    options.listen = ([127, 0, 0, 1], 0).into();
    options.health = ([127, 0, 0, 1], 0).into();
    options.timers.drain_quiet = Duration::from_millis(100);
    (options, ca)
}

impl Running {
    /// Starts a server without any state, with options changed as the test wants.
    pub(crate) fn start(change: impl FnOnce(&mut Options)) -> Self {
        Self::start_with(State::Fixed(Snapshot::new(memgate_platforms::default_settings())), change)
    }

    /// Starts a server with a state.
    pub(crate) fn start_with(state: State, change: impl FnOnce(&mut Options)) -> Self {
        Self::start_changed(state, change, |server| server)
    }

    /// Starts a server that answers with other routes than the webhook's.
    pub(crate) fn start_routes(routes: Router) -> Self {
        Self::start_routes_with(routes, |_| {})
    }

    /// The same with options changed.
    pub(crate) fn start_routes_with(routes: Router, change: impl FnOnce(&mut Options)) -> Self {
        Self::start_changed(
            State::Fixed(Snapshot::new(memgate_platforms::default_settings())),
            change,
            |server| server.with_routes(routes),
        )
    }

    fn start_changed(
        state: State,
        change: impl FnOnce(&mut Options),
        finish: impl FnOnce(Server) -> Server,
    ) -> Self {
        let directory = TempDir::new().unwrap();
        let (mut options, ca) = options(&directory);
        change(&mut options);
        let server = finish(Server::bind(options, state).unwrap());
        let addresses = server.addresses().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            let _either_way = stopped.await;
        }));
        Self { addresses, ca, stop: Some(stop), task, _directory: directory }
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Connection {
        let ca = std::fs::read_to_string(&self.ca).unwrap();
        Connection::open(self.addresses.webhook, &ca, &["http/1.1"]).await.unwrap()
    }

    /// The answer to one request on a connection of its own.
    pub(crate) async fn ask(&self, request: &[u8]) -> Answer {
        let mut connection = self.connect().await;
        connection.send(request).await;
        connection.answer().await
    }

    /// The answer of the health port.
    pub(crate) async fn health(&self, path: &str) -> Answer {
        plain(self.addresses.health, path).await
    }

    /// One series of the metrics, as text.
    pub(crate) async fn metric(&self, series: &str) -> Option<String> {
        let metrics = self.health("/metrics").await.text();
        let line = metrics.lines().find(|line| line.starts_with(series))?;
        line.rsplit(' ').next().map(str::to_owned)
    }

    /// Shuts the server down.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Whether the server has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(self) {
        timeout(TIMEOUT, self.task).await.expect("the server should end").unwrap().unwrap();
    }
}

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    let polling = async {
        while !check().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, polling).await.unwrap_or_else(|_| panic!("timed out: {what}"));
}
