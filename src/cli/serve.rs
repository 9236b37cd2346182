//! `memgate serve`: the webhook.

mod certs;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::input::load_whole;
use crate::cli::limits::{LimitArgs, set_limits};
use crate::cli::policies::ClusterPolicyArgs;
use crate::cli::serve::certs::CertArgs;
use crate::cli::server_keys::ServerKeys;
use crate::cli::settings::SettingsArgs;
use crate::cli::terminal::Terminal;
use memgate_certs::tls;
use memgate_cluster::client::KubeContext;
use memgate_cluster::installation::apiserver_version;
use memgate_model::snapshot::Snapshot;
use memgate_server::options::{HEALTH_PORT, Options, OwnInstallation, OwnPod, PORT};
use memgate_server::{Server, State, logs, runtime};
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::inputs::Inputs;

/// How long a server on a state from files goes on serving after a signal. It is short, because no apiserver calls such a
/// server through a Service.
const FIXED_STATE_DRAIN_GRACE: Duration = Duration::from_secs(1);

/// Run the webhook
///
/// Answers /mutate and /validate over TLS, and /livez, /readyz and /metrics in plain HTTP on a port
/// of its own. The state comes from the cluster that the kubeconfig or the service account leads
/// to, or from files with --state.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate serve                                     in a cluster, with a CA of its own
  memgate serve --tls-cert tls.crt --tls-key tls.key
  memgate serve --certs self-signed --kubeconfig ~/.kube/config
  memgate serve --state manifests/                  without a cluster, with a certificate of its own
  memgate serve --state manifests/ --listen 127.0.0.1:9443

SIGTERM and SIGINT end it gently: it is no longer ready, but serves until all callers have left. A
second signal ends it at once.")]
pub struct Args {
    /// Take the state from these files or directories instead of a cluster; can be repeated
    #[arg(long = "state", value_name = "PATH", help_heading = "State")]
    state: Vec<String>,

    /// The kubeconfig; without it KUBECONFIG, ~/.kube/config, or the service account
    #[arg(long, value_name = "FILE", conflicts_with = "state", help_heading = "State")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", conflicts_with = "state", help_heading = "State")]
    context: Option<String>,

    #[command(flatten)]
    settings: SettingsArgs,

    #[command(flatten)]
    policies: ClusterPolicyArgs,

    /// Where to answer reviews
    #[arg(long, value_name = "ADDRESS", default_value_t = any_address(PORT), help_heading = "Network")]
    listen: SocketAddr,

    /// Where to answer /livez, /readyz and /metrics
    #[arg(long, value_name = "ADDRESS", default_value_t = any_address(HEALTH_PORT), help_heading = "Network")]
    health: SocketAddr,

    #[command(flatten)]
    certs: CertArgs,

    /// Do not watch policies, and do not judge objects by them
    #[arg(long, help_heading = "State")]
    no_policies: bool,

    /// Watch the workloads of ark's memory service, by which policies judge whether memory is durable
    #[arg(long, conflicts_with = "state", help_heading = "State")]
    ark_brokers: bool,

    /// Do not write Events on agents whose pods start without their memory
    #[arg(long, conflicts_with = "state", help_heading = "State")]
    no_events: bool,

    #[command(flatten)]
    limits: LimitArgs,

    /// What to log: error, warn, info, debug, trace, or directives such as memgate=debug
    #[arg(long, value_name = "FILTER", default_value = "info", help_heading = "Log")]
    log: String,

    /// The form of the log on standard error
    #[arg(long, value_name = "FORM", value_enum, default_value = "text", help_heading = "Log")]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// Text for people
    Text,
    /// One JSON object a line
    Json,
}

fn any_address(port: u16) -> SocketAddr {
    SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, port))
}

/// Runs the command until a signal ends it.
///
/// # Errors
/// When the state cannot be read, there is no certificate, or an address is taken.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let format = match args.log_format {
        LogFormat::Text => logs::LineFormat::Text,
        LogFormat::Json => logs::LineFormat::Json,
    };
    logs::init(format, &args.log).context("failed to start the log")?;
    let runtime = runtime().context("failed to start the runtime")?;
    let (mut settings, keys) = args.settings.of_server()?;
    args.policies.apply(&mut settings.policies);
    let mut options = options(args, &keys)?;
    settings.policies.own_namespace = args.certs.namespace();
    options.installation = args.state.is_empty().then(|| installation(args));
    settings.platforms.watches_workloads = args.ark_brokers;
    let state = if args.state.is_empty() {
        let context = KubeContext { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
        let client = runtime.block_on(context.client())?;
        settings.platforms.apiserver = runtime.block_on(apiserver_version(&client));
        State::Cluster { client, settings }
    } else {
        // A server keeps its state. Places of 100,000 objects would leave gaps in it when they are freed.
        let (state, ignores_policies) = (args.state.clone(), args.no_policies);
        let plan = Plan { state, ignores_policies, keeps_places: false, settings, ..Plan::default() };
        match load_whole(&plan, terminal)? {
            Some(Inputs { snapshot, .. }) => {
                read_definitions(&snapshot).context("failed to start a thread")?;
                State::Fixed(snapshot)
            }
            None => return Ok(ExitStatus::Failed),
        }
    };
    let ended = runtime.block_on(serve(options, state, terminal));
    runtime.shutdown_background();
    ended?;
    Ok(ExitStatus::Clean)
}

/// Reads the bundled definitions on another thread, because they take nine tenths of the time of the start. A review of a
/// resource in the first moments waits for the definition of its kind.
fn read_definitions(snapshot: &Snapshot) -> io::Result<()> {
    let Some(crds) = snapshot.crds.clone() else { return Ok(()) };
    let families = snapshot.settings.families.clone();
    let read = move || crds.read_bundled(&families);
    thread::Builder::new().name("definitions".to_owned()).spawn(read).map(drop)
}

/// The installation that this server is a part of. The Deployment names its pod.
fn installation(args: &Args) -> OwnInstallation {
    let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let pod = || {
        let address = text("POD_IP")?.parse().ok()?;
        Some(OwnPod { name: text("POD_NAME")?, uid: text("POD_UID")?, address })
    };
    OwnInstallation {
        namespace: args.certs.namespace(),
        configuration: args.certs.configuration().to_owned(),
        arguments: std::env::args().collect(),
        pod: pod(),
    }
}

fn options(args: &Args, keys: &ServerKeys) -> anyhow::Result<Options> {
    let source = args.certs.source(keys, !args.state.is_empty())?;
    let (listen, health) = (args.listen, args.health);
    let (events, policies) = (!args.no_events, !args.no_policies);
    let mut options = Options { listen, health, events, policies, ..Options::new(source) };
    options.client_auth = args.certs.client_auth();
    if !args.state.is_empty() {
        options.timers.drain_grace = FIXED_STATE_DRAIN_GRACE;
        options.timers.drain_quiet = Duration::ZERO;
    }
    args.limits.apply(keys, &mut options)?;
    Ok(options)
}

/// Checks the keys of a settings file that only a server reads.
///
/// # Errors
/// When a value cannot be used, or two of them contradict each other.
pub fn check(keys: &ServerKeys) -> anyhow::Result<()> {
    let source = tls::CertSource::SelfSigned { names: Vec::new(), ca: PathBuf::new() };
    certs::policy(keys)?;
    set_limits(keys, &mut Options::new(source))
}

async fn serve(options: Options, state: State, terminal: Terminal) -> anyhow::Result<()> {
    let self_signed = match &options.tls {
        tls::CertSource::SelfSigned { ca, .. } => Some(ca.clone()),
        tls::CertSource::Files { .. } | tls::CertSource::Builtin(_) => None,
    };
    let server = Server::bind(options, state)?;
    let addresses = server.addresses().context("failed to learn the addresses")?;
    tracing::info!(webhook = %addresses.webhook, health = %addresses.health, "serving");
    if let Some(ca) = self_signed {
        let (port, ca) = (addresses.webhook.port(), ca.display());
        terminal.note(&format!(
            "Serving on https://127.0.0.1:{port} with a certificate of its own; its CA is in {ca}.\n\
             To have a cluster on this machine call it:\n  \
             memgate manifests --url https://127.0.0.1:{port} --ca {ca} | kubectl apply -f -"
        ));
    }
    server.run_until_signalled().await.context("failed to serve")
}
