//! `memgate manifests`: what installs memgate in a cluster.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::settings::{SettingsArgs, flags};
use crate::cli::terminal::Terminal;
use crate::deploy::{Endpoint, Part, Plan, Rules, render};
use crate::family;
use crate::model::settings::Family;

/// The image of this version.
const IMAGE: &str = concat!("ghcr.io/memgate/memgate:", env!("CARGO_PKG_VERSION"));

/// Print the Kubernetes objects that install memgate
///
/// Namespace, service account, RBAC, Service, Deployment and webhook configurations. memgate reads
/// the kinds of the families and nothing else, and writes nothing. The Deployment takes its
/// certificate from the Secret memgate-tls (type kubernetes.io/tls) in its namespace.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate manifests --ca ca.crt | kubectl apply -f -
  memgate manifests --only webhooks --family arkonis
  memgate manifests --url https://127.0.0.1:10250 --ca ca.crt    for `memgate serve` on this machine

Without --ca the webhook configurations have no caBundle: let another tool, such as the CA injector
of cert-manager, write it, or the apiserver will not trust memgate.")]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,

    /// Only this part; can be repeated
    #[arg(long, value_name = "PART", value_enum)]
    only: Vec<Only>,

    /// The namespace that memgate runs in
    #[arg(short, long, value_name = "NAME", default_value = "memgate-system")]
    namespace: String,

    /// The container image
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,

    /// The CA certificates, PEM, that the apiserver checks memgate's certificate against
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Where the apiserver reaches memgate outside the cluster; prints webhook configurations only
    #[arg(long, value_name = "URL", value_parser = url, conflicts_with = "only")]
    url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    /// The namespace
    Namespace,
    /// The service account and what it may read
    Rbac,
    /// The Service, the Deployment and its disruption budget
    Workload,
    /// The webhook configurations
    Webhooks,
}

/// Runs the command.
///
/// # Errors
/// When the CA cannot be read or the text cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let settings = args.settings.settings()?;
    let plan = Plan {
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        endpoint: args.url.clone().map_or(Endpoint::Service, Endpoint::Url),
        ca: args.ca.as_deref().map(read_ca).transpose()?,
        flags: flags(&settings),
        families: settings.families.into_iter().map(rules).collect(),
    };
    let text = render(&plan, &parts(args)).context("failed to write the manifests")?;
    terminal.raw(text.as_bytes())?;
    Ok(ExitStatus::Clean)
}

fn parts(args: &Args) -> Vec<Part> {
    if args.url.is_some() {
        return vec![Part::Webhooks];
    }
    let wanted = |part: &Part| args.only.is_empty() || args.only.iter().any(|only| only.part() == *part);
    Part::ALL.into_iter().filter(wanted).collect()
}

impl Only {
    const fn part(self) -> Part {
        match self {
            Self::Namespace => Part::Namespace,
            Self::Rbac => Part::Rbac,
            Self::Workload => Part::Workload,
            Self::Webhooks => Part::Webhooks,
        }
    }
}

/// What an installation has to know of a family.
#[must_use]
pub fn rules(family: Family) -> Rules {
    Rules {
        name: family.name(),
        pods: family::pod_selectors(family),
        honours_required: family::honours_required(family),
        fail_open: family::resources_fail_open(family),
        defaulted: family::defaulted(family),
        judged: family::judged(family).to_vec(),
        marked: family::marked(family),
        memories: family::memories(family),
        watched: family::watched(family),
        asked: family::asked(family),
    }
}

fn read_ca(path: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let is_pem = bytes.windows(27).any(|window| window == b"-----BEGIN CERTIFICATE-----");
    anyhow::ensure!(is_pem, "{} holds no certificate in PEM form", path.display());
    Ok(bytes)
}

/// The apiserver calls HTTPS only, and the path is memgate's own.
fn url(text: &str) -> Result<String, String> {
    let Some(rest) = text.strip_prefix("https://") else {
        return Err("the apiserver calls https:// only".to_owned());
    };
    match rest.trim_end_matches('/') {
        "" => Err("the host is missing".to_owned()),
        host if host.contains(['/', '?', '#', '@']) => {
            Err("leave out the path; /mutate and /validate are added".to_owned())
        }
        host => Ok(format!("https://{host}")),
    }
}
