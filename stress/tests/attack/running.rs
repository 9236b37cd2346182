//! The program that is attacked, as a process of its own.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::client::{Answer, Connection, plain, post, trusting};
use crate::support::process::Process;

/// Longer than anything here takes, also on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// Runs a program with so many file descriptors, of which only what it writes to standard error goes to the log.
const LIMITED: &str = r#"ulimit -n "$1"; shift; exec "$@" > /dev/null"#;

/// How to start it.
pub(crate) struct Setup {
    /// Manifests to start with.
    pub(crate) state: Value,
    pub(crate) flags: Vec<&'static str>,
    /// How many file descriptors it may have.
    pub(crate) descriptors: u32,
    /// Where its log goes; a file in its directory when there is none.
    pub(crate) log: Option<PathBuf>,
    pub(crate) env: Vec<(&'static str, &'static str)>,
    /// Its settings file.
    pub(crate) settings: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            state: scene(),
            flags: Vec::new(),
            descriptors: 4096,
            log: None,
            env: Vec::new(),
            settings: "",
        }
    }
}

/// An object of arkonis in the namespace of the scene.
pub(crate) fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "arkonis.dev/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "team"}, "spec": spec,
    })
}

/// An agent with its memory, in one namespace.
pub(crate) fn scene() -> Value {
    let items = [
        object("ArkAgent", "scout", &json!({"memoryRef": {"name": "notes"}})),
        object("ArkMemory", "notes", &json!({"backend": "in-context"})),
    ];
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// A process that serves; it ends with this.
pub(crate) struct Victim {
    process: Process,
    directory: TempDir,
    webhook: SocketAddr,
    health: SocketAddr,
}

impl Victim {
    /// Starts it with the usual scene.
    pub(crate) async fn start(flags: &[&'static str]) -> Self {
        Self::start_with(Setup { flags: flags.to_vec(), ..Setup::default() }).await
    }

    /// The same with a settings file.
    pub(crate) async fn with_settings(settings: &'static str) -> Self {
        Self::start_with(Setup { settings, ..Setup::default() }).await
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start_with(setup: Setup) -> Self {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("state.json"), setup.state.to_string()).unwrap();
        fs::write(directory.path().join("settings.yaml"), setup.settings).unwrap();
        let log = setup.log.unwrap_or_else(|| directory.path().join("log"));
        let (webhook, health) = own_addresses();
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", LIMITED, "limited", &setup.descriptors.to_string()])
            .args([env!("CARGO_BIN_EXE_memgate"), "serve", "--state", "state.json", "--tls-ca-out", "ca.pem"])
            .args(["--listen", &webhook.to_string(), "--health", &health.to_string()])
            .args(["--log-format", "json", "--settings", "settings.yaml"])
            .args(setup.flags)
            .envs(setup.env)
            .current_dir(directory.path());
        let process = Process::start("memgate", &command, &log).unwrap();
        let mut victim = Self { process, directory, webhook, health };
        victim.until("it should be ready", async |victim| victim.is_ready().await).await;
        victim
    }

    async fn is_ready(&self) -> bool {
        let connected = TcpStream::connect(self.health).await.is_ok();
        connected && plain(self.health, "/readyz").await.status == 200
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.webhook
    }

    /// Its CA certificate, PEM.
    pub(crate) fn ca(&self) -> String {
        fs::read_to_string(self.directory.path().join("ca.pem")).unwrap()
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.webhook, &self.ca(), &["http/1.1"]).await.unwrap()
    }

    /// A TCP connection from another address of loopback.
    pub(crate) async fn tcp_from(&self, host: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, host], 0).into()).unwrap();
        socket.connect(self.webhook).await.unwrap()
    }

    /// A new connection from another address of loopback.
    pub(crate) async fn connect_from(&self, host: u8) -> Connection {
        let trusted = trusting(&self.ca(), &["http/1.1"]);
        Connection::over(self.tcp_from(host).await, trusted, "localhost").await.unwrap()
    }

    /// The answer to one request on a connection of its own.
    pub(crate) async fn ask(&self, request: &[u8]) -> Answer {
        let mut connection = self.connect().await;
        // What is refused for its length may not get through.
        let _ = connection.try_send(request).await;
        connection.answer().await
    }

    /// The answer to a review sent to both calls, the mutating one first.
    pub(crate) async fn review(&self, path: &str, review: &Value) -> Answer {
        self.ask(&post(path, review.to_string().as_bytes())).await
    }

    /// The answer of the health port.
    pub(crate) async fn health(&self, path: &str) -> Answer {
        plain(self.health, path).await
    }

    /// The value of one series; 0 when there is none.
    pub(crate) async fn metric(&self, series: &str) -> u64 {
        let metrics = self.health("/metrics").await.text();
        let line = metrics.lines().find(|line| line.starts_with(series));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    /// The peak of its resident memory, in MiB.
    pub(crate) fn peak_mib(&self) -> u64 {
        self.process.peak_memory().unwrap() >> 10
    }

    /// How many file descriptors it has open.
    pub(crate) fn descriptors(&self) -> u64 {
        self.process.usage().unwrap().files
    }

    /// The files of its directory, with when each was last written.
    pub(crate) fn files(&self) -> Vec<(String, SystemTime)> {
        let entries = fs::read_dir(self.directory.path()).unwrap().map(Result::unwrap);
        let files = entries.map(|entry| {
            let written = entry.metadata().unwrap().modified().unwrap();
            (entry.file_name().into_string().unwrap(), written)
        });
        let mut files: Vec<_> = files.filter(|(name, _)| name != "log").collect();
        files.sort();
        files
    }

    /// The names of the files of its directory that it has open.
    pub(crate) fn open_files(&self) -> BTreeSet<String> {
        let open =
            fs::read_dir(format!("/proc/{}/fd", self.process.id().unwrap())).unwrap().filter_map(Result::ok);
        let paths = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        paths
            .filter_map(|path| Some(path.strip_prefix(self.directory.path()).ok()?.display().to_string()))
            .collect()
    }

    /// Everything that it logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Its log, each line as the JSON that it must be. What a terminal shows at the start is another text.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let log = self.log();
        let serving = log.find("\"serving\"").unwrap();
        let greeting = ["Serving on ", "To have a cluster ", "  memgate manifests "];
        let lines = log[serving..].lines().skip(1);
        let lines = lines.filter(|line| !greeting.iter().any(|start| line.starts_with(start)));
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// Checks that it is alive, has never panicked, and answers a good review well.
    pub(crate) async fn is_well(&self) {
        assert_eq!(self.health("/livez").await.status, 200);
        assert_eq!(self.metric("memgate_panics_total").await, 0);
        let answer = self.ask(&post("/mutate", crate::client::review("well", Some("scout")))).await;
        assert!(answer.review()["patch"].is_string(), "{}", answer.text());
    }

    /// Waits until something is so.
    pub(crate) async fn until(&mut self, what: &str, mut check: impl AsyncFnMut(&Self) -> bool) {
        let patient = async {
            while !check(self).await {
                let ended = self.process.exited().unwrap();
                assert!(ended.is_none(), "{ended:?}: {}", self.log());
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(TIMEOUT, patient).await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
    }
}

/// Two addresses of loopback of its own: their hosts are enough for every process and test.
fn own_addresses() -> (SocketAddr, SocketAddr) {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let host = [127, 64 | high >> 2, high << 6 | low >> 2, NEXT.fetch_add(1, Ordering::Relaxed)];
    ((host, 10_250 + u16::from(low & 3)).into(), (host, 8_081 + u16::from(low & 3)).into())
}
