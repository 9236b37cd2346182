//! Reviews without a pause while certificates are replaced: callers that trust what the live
//! configurations say, as an apiserver does, and the apiserver itself.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{Api, Client, Config};
use memgate_certs::tls::CertSource;
use memgate_certs::{Builtin, CertPolicy};
use memgate_primitives::review_path::service_names;
use memgate_server::options::Options;
use memgate_server::{Server, State};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, watch};

use crate::{
    certs::installation::{Installation, SECRET},
    support::{
        control_plane::ControlPlane,
        https::{Answer, Connection, REFUSED, post, trusting},
        load::{Failure, Load, Pace, Tally},
        review::review,
        wait,
        webhook::Endpoint,
    },
};

/// How many reviews a caller sends on one connection: as many handshakes as there can be are what
/// is to be seen, but an apiserver keeps its connections too.
const REVIEWS_PER_CONNECTION: u32 = 5;

/// A caller that gets no answer for so long has lost it.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// What a 429 asks a caller to wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Between two calls by the apiserver itself.
const APISERVER_CALL_INTERVAL: Duration = Duration::from_millis(50);

/// What is to happen.
pub(crate) struct Plan {
    pub(crate) policy: CertPolicy,
    pub(crate) replicas: usize,
    /// Reviews a second, all replicas together.
    pub(crate) per_second: u32,
    /// It ends when so many CAs and leaves were made after the first ones.
    pub(crate) cas: u64,
    pub(crate) leaves: u64,
    /// How long a CA must have been trusted before it signs.
    pub(crate) propagation: Duration,
    /// It fails when that takes longer.
    pub(crate) time_limit: Duration,
}

/// What happened.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) cas: u64,
    pub(crate) leaves: u64,
    calls: Tally,
    handshakes: u64,
    by_apiserver: u64,
    took: Duration,
}

/// Replicas in this process, under reviews of callers and of the real apiserver.
pub(crate) struct Loaded<'w> {
    pub(crate) installation: Installation<'w>,
    pub(crate) report: Report,
    replicas: Vec<memgate_server::Addresses>,
    load: Load,
    handshakes: Arc<AtomicU64>,
    /// How many CAs and leaves there were before.
    before: (u64, u64),
    started: Instant,
    time_limit: Duration,
    runtime: Runtime,
}

/// Runs replicas under load until enough certificates were made or a call failed.
pub(crate) fn run(cluster: &ControlPlane, plan: &Plan) -> Result<Report> {
    let mut loaded = Loaded::start(cluster, plan)?;
    while loaded.report.calls.failed() == 0
        && (loaded.report.cas < plan.cas || loaded.report.leaves < plan.leaves)
    {
        loaded.look()?;
        thread::sleep(APISERVER_CALL_INTERVAL);
    }
    Ok(loaded.end())
}

impl<'w> Loaded<'w> {
    /// Starts replicas against the real apiserver, and then the load.
    pub(crate) fn start(cluster: &'w ControlPlane, plan: &Plan) -> Result<Self> {
        let installation = Installation::new(cluster, "rotated")?;
        let config = cluster.config(&installation.kubeconfig)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let started = Instant::now();
        let replicas: Result<Vec<_>> =
            (0..plan.replicas).map(|_| start(&runtime, &config, &installation.home, plan)).collect();
        let replicas = replicas?;
        let first = replicas.first().context("there is a replica")?;
        installation.register(&Endpoint::new(first.webhook, ""))?;
        for replica in &replicas {
            wait::until("a replica to be ready", || {
                let answer = wait::http_get(replica.health, "/readyz");
                Ok(answer.filter(|(status, _)| *status == 200).map(|_| ()))
            })?;
        }
        installation.wait_until_asked()?;

        let (bundles, trusted) = watch::channel((Instant::now(), String::new()));
        runtime.spawn(follow(cluster.client(), installation.home.clone(), bundles));
        wait::until("callers to know whom to trust", || Ok((!trusted.borrow().1.is_empty()).then_some(())))?;
        let before = (made(&replicas, "ca")?, made(&replicas, "leaf")?);
        let handshakes = Arc::<AtomicU64>::default();
        let caller = |number: usize| Caller {
            address: replicas[number % replicas.len()].webhook,
            trusted: trusted.clone(),
            handshakes: Arc::clone(&handshakes),
            connection: Mutex::default(),
        };
        let callers: Arc<Vec<Caller>> = Arc::new((0..plan.replicas * 4).map(caller).collect());
        let pace = Pace { per_second: plan.per_second, at_once: callers.len() };
        let load = Load::start(runtime.handle(), pace, move |number| {
            let (callers, number) = (Arc::clone(&callers), usize::try_from(number).unwrap_or_default());
            async move { callers[number % callers.len()].call().await }
        });
        let (report, time_limit) = (Report::default(), plan.time_limit);
        Ok(Self { installation, report, replicas, load, handshakes, before, started, time_limit, runtime })
    }

    /// Has the apiserver call once, and brings the report up to date.
    pub(crate) fn look(&mut self) -> Result<()> {
        let report = &mut self.report;
        ensure!(self.started.elapsed() < self.time_limit, "only {report}");
        ensure!(self.installation.is_asked()?, "the apiserver got no answer: {report}");
        report.by_apiserver += 1;
        report.cas = made(&self.replicas, "ca")? - self.before.0;
        report.leaves = made(&self.replicas, "leaf")? - self.before.1;
        report.calls.add(self.load.take());
        report.handshakes = self.handshakes.load(Relaxed);
        report.took = self.started.elapsed();
        Ok(())
    }

    /// Ends the replicas.
    pub(crate) fn end(self) -> Report {
        self.runtime.shutdown_background();
        self.report
    }
}

impl Report {
    /// # Errors
    /// When a call or a handshake failed.
    pub(crate) fn nothing_lost(&self) -> Result<()> {
        self.calls.all_good()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cas, leaves, calls, handshakes, by_apiserver, took } = self;
        write!(
            f,
            "{cas} CAs and {leaves} leaves replaced in {took:.0?}, {by_apiserver} calls by the apiserver, \
             {handshakes} connections of others with {calls}",
        )
    }
}

fn start(runtime: &Runtime, config: &Config, home: &str, plan: &Plan) -> Result<memgate_server::Addresses> {
    let _within = runtime.enter();
    let mut names = service_names("memgate", home);
    names.push("127.0.0.1".to_owned());
    let mut options = Options::new(CertSource::Builtin(Builtin {
        namespace: home.to_owned(),
        secret: SECRET.to_owned(),
        configuration: home.to_owned(),
        names,
        policy: plan.policy.clone(),
    }));
    (options.listen, options.health) = (([127, 0, 0, 1], 0).into(), ([127, 0, 0, 1], 0).into());
    options.timers.ca_poll = Duration::from_millis(300);
    options.timers.propagation = plan.propagation;
    let client = Client::try_from(config.clone()).context("failed to make a client")?;
    let server =
        Server::bind(options, State::Cluster { client, settings: memgate_platforms::default_settings() })?;
    let addresses = server.addresses()?;
    runtime.spawn(server.run(std::future::pending()));
    Ok(addresses)
}

/// How many certificates of a kind the replicas have made.
fn made(replicas: &[memgate_server::Addresses], kind: &str) -> Result<u64> {
    let series = format!("memgate_cert_rotations_total{{kind=\"{kind}\",result=\"ok\"}} ");
    let mut sum = 0;
    for replica in replicas {
        let (_, metrics) = wait::http_get(replica.health, "/metrics").context("there are metrics")?;
        let line = metrics.lines().find_map(|line| line.strip_prefix(&series));
        sum += line.map_or(Ok(0), str::parse::<u64>)?;
    }
    Ok(sum)
}

/// Keeps telling what an apiserver trusts: the shortest of all the bundles. An apiserver learns of a
/// change in a moment; these callers ask for it all the time.
async fn follow(client: Client, name: String, bundles: watch::Sender<(Instant, String)>) {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client);
    loop {
        let asked = Instant::now();
        if let (Ok(mutating), Ok(validating)) = (mutating.get(&name).await, validating.get(&name).await) {
            let mutating = mutating.webhooks.into_iter().flatten().map(|webhook| webhook.client_config);
            let validating = validating.webhooks.into_iter().flatten().map(|webhook| webhook.client_config);
            let texts = mutating.chain(validating).map(|config| config.ca_bundle.unwrap_or_default().0);
            let shortest = texts.min_by_key(Vec::len).unwrap_or_default();
            bundles.send_replace((asked, String::from_utf8_lossy(&shortest).into_owned()));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

struct Caller {
    address: SocketAddr,
    /// What to trust, and when that was asked for.
    trusted: watch::Receiver<(Instant, String)>,
    handshakes: Arc<AtomicU64>,
    /// One call at a time, and how many the connection has had.
    connection: Mutex<(Option<Connection>, u32)>,
}

impl Caller {
    async fn call(&self) -> Result<(), Failure> {
        let mut connection = self.connection.lock().await;
        let (open, used) = &mut *connection;
        let answered = tokio::time::timeout(CALL_TIMEOUT, self.once(open)).await;
        let answered = answered.map_err(anyhow::Error::from).and_then(|answered| answered);
        *used += 1;
        if answered.is_err() || *used % REVIEWS_PER_CONNECTION == 0 {
            *open = None;
        }
        answered.map_err(|error| {
            let age = self.trusted.borrow().0.elapsed();
            Failure::new("failed", format!("{error:#} (trust asked for {age:.1?} before)"))
        })
    }

    async fn once(&self, connection: &mut Option<Connection>) -> Result<()> {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}});
        let request = post("/mutate", review("team", &pod).to_string());
        let mut answer = self.send(connection, &request).await?;
        // A server that the machine holds up asks to be asked again, and an apiserver does.
        while answer.status == REFUSED {
            tokio::time::sleep(RETRY_AFTER).await;
            *connection = None;
            answer = self.send(connection, &request).await?;
        }
        let text = String::from_utf8_lossy(&answer.body);
        ensure!(answer.status == 200 && text.contains("\"allowed\":true"), "{}: {text}", answer.status);
        Ok(())
    }

    async fn send(&self, connection: &mut Option<Connection>, request: &[u8]) -> Result<Answer> {
        let connection = match connection {
            Some(open) => open,
            None => connection.insert(self.connect().await.context("a handshake failed")?),
        };
        connection.try_send(request).await.context("a call failed")?;
        connection.read_next().await
    }

    async fn connect(&self) -> Result<Connection> {
        let config = trusting(&self.trusted.borrow().1)?.with_no_client_auth();
        let stream = TcpStream::connect(self.address).await?;
        let connection = Connection::over(stream, config, "127.0.0.1").await?;
        self.handshakes.fetch_add(1, Relaxed);
        Ok(connection)
    }
}
