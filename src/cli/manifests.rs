//! `memgate manifests`: what installs memgate in a cluster.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::families::parse as parse_family;
use crate::cli::settings::{SettingsArgs, flags};
use crate::cli::terminal::Terminal;
use crate::deploy::component::{Component, ExclusiveChoice, contradiction};
use crate::deploy::install_plan::{InstallPart, InstallPlan, WebhookEndpoint};
use crate::deploy::metadata::{DEFAULT_NAMESPACE, MAX_NAME_CHARS, default_name};
use crate::deploy::render;
use crate::model::family::Family;
use crate::model::name::{is_dns_label, is_dns_subdomain};
use crate::model::suggest::{did_you_mean, nearest};

/// The image that manifests name unless another one is given.
const DEFAULT_IMAGE: &str = concat!("ghcr.io/memgate/memgate:", env!("CARGO_PKG_VERSION"));

/// Print the Kubernetes objects that install memgate
///
/// Namespace, the definitions of MemoryPolicy and MemoryPolicyExemption, service account, RBAC, a policy
/// around memgate's own account, Service, Deployment and webhook configurations. memgate reads the kinds of
/// the families and its own; it writes Events, the Secret with its CA, and the caBundle of its
/// configurations.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate manifests | kubectl apply -f -
  memgate manifests --component ha --component network-policy
  memgate manifests --certs files --ca ca.crt
  memgate manifests --only webhooks --family arkonis
  memgate manifests -n team-a --family ark           a second installation, named memgate-team-a
  memgate manifests --url https://127.0.0.1:10250 --ca ca.crt    for `memgate serve` on this machine

memgate writes the caBundle of its configurations itself, or cert-manager does. With --certs files
nobody does: give --ca, or the apiserver will not trust memgate.")]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,

    /// Only this part; can be repeated
    #[arg(long, value_name = "PART", value_enum)]
    only: Vec<PartArg>,

    /// A change of what is installed; can be repeated
    ///
    /// How it runs: ha, single-node, kind-dev, priority-critical, host-network, network-policy.
    /// Certificates: cert-manager, csi-driver, cert-files, mtls.
    /// What it is asked: family-arkonis, family-ark, family-orloj, family-orka, family-sympozium,
    /// policies (always, unless there is --no-policies), templates, static-manifest
    /// (Kubernetes 1.36 or newer).
    /// While it is away: fail-closed, policy-strict, vap (1.31 or newer), map (1.36 or newer).
    /// Around it: service-monitor, alerts, dashboards, no-events, gitops-argocd, gitops-flux.
    #[arg(long = "component", value_name = "NAME", value_parser = parse_component)]
    components: Vec<Component>,

    /// Where the certificate comes from [default: files with --ca, else builtin]
    #[arg(long, value_name = "WAY", value_enum)]
    certs: Option<CertsArg>,

    /// Leave policies out: no definitions of their kinds, no right to read them, and pods that opted out of
    /// injection are none of memgate's business
    #[arg(long)]
    no_policies: bool,

    /// Write no Events, and ask for no right to
    #[arg(long)]
    no_events: bool,

    /// The namespace that memgate runs in
    #[arg(short, long, value_name = "NAME", value_parser = parse_namespace, default_value = DEFAULT_NAMESPACE)]
    namespace: String,

    /// The name of the cluster-wide objects, by which installations in one cluster differ [default: memgate; in
    /// another namespace than memgate-system memgate-NAMESPACE]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    name: Option<String>,

    /// A family that another installation in the cluster has: its pods that require their memory are left to that one;
    /// can be repeated
    #[arg(long, value_name = "FAMILY", value_parser = parse_family)]
    elsewhere: Vec<&'static Family>,

    /// The container image
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    image: String,

    /// The CA certificates, PEM, that the apiserver checks memgate's certificate against
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Where the apiserver reaches memgate outside the cluster; prints webhook configurations only
    #[arg(long, value_name = "URL", value_parser = parse_url, conflicts_with = "only")]
    url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PartArg {
    /// The namespace
    Namespace,
    /// The definitions of MemoryPolicy and MemoryPolicyExemption
    Crds,
    /// The service account and what it may read
    Rbac,
    /// The policies that the apiserver keeps by itself
    Policies,
    /// The Service, the Deployment, its disruption budget, and what components add to them
    Workload,
    /// The webhook configurations
    Webhooks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CertsArg {
    /// memgate makes and renews it, and has the apiserver trust it
    Builtin,
    /// cert-manager does
    CertManager,
    /// It is in the Secret memgate-tls (type kubernetes.io/tls), which somebody else writes
    Files,
    /// The CSI driver of cert-manager mounts it
    Csi,
}

impl CertsArg {
    const fn component(self) -> Option<Component> {
        match self {
            Self::Builtin => None,
            Self::CertManager => Some(Component::CertManager),
            Self::Files => Some(Component::CertFiles),
            Self::Csi => Some(Component::CsiDriver),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When the CA cannot be read or the text cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let settings = args.settings.settings()?;
    let components = components(args)?;
    let flags = flags(&settings);
    let families = families(settings.families, &components);
    if let Some(family) = args.elsewhere.iter().find(|family| families.contains(family)) {
        anyhow::bail!(
            "the family {} cannot be both here and --elsewhere; name those of this installation with --family",
            family.name
        );
    }
    let plan = InstallPlan {
        name: args.name.clone().unwrap_or_else(|| default_name(&args.namespace)),
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        endpoint: args.url.clone().map_or(WebhookEndpoint::Service, WebhookEndpoint::Url),
        ca: args.ca.as_deref().map(read_ca).transpose()?,
        flags,
        families,
        elsewhere: args.elsewhere.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
        components,
    };
    let text = render(&plan, &parts(args)).context("failed to write the manifests")?;
    terminal.raw(text.as_bytes())?;
    Ok(ExitStatus::Clean)
}

/// The components that were chosen, by name or by another flag.
///
/// # Errors
/// When one choice contradicts another or lacks what it needs.
fn components(args: &Args) -> anyhow::Result<BTreeSet<Component>> {
    let mut components: BTreeSet<_> = args.components.iter().copied().collect();
    let decided =
        components.iter().find(|component| component.decides() == Some(ExclusiveChoice::Certificate));
    let certs = match (args.certs, decided) {
        (Some(CertsArg::Builtin), Some(component)) => {
            anyhow::bail!("--certs builtin and --component {} contradict each other", component.name())
        }
        (None, None) if args.ca.is_some() => Some(CertsArg::Files),
        (certs, _) => certs,
    };
    components.extend(certs.and_then(CertsArg::component));
    components.extend(args.no_events.then_some(Component::NoEvents));
    let policies = [Component::Policies, Component::PolicyStrict];
    let needing = policies.into_iter().find(|component| args.no_policies && components.contains(component));
    if let Some(component) = needing {
        anyhow::bail!("--no-policies and --component {} contradict each other", component.name());
    }
    components.extend((!args.no_policies).then_some(Component::Policies));
    if let Some((one, other)) = contradiction(&components) {
        anyhow::bail!(
            "the components {} and {} contradict each other; leave one out",
            one.name(),
            other.name()
        );
    }
    ensure_whole(&components, args.url.is_some())?;
    Ok(components)
}

/// That no component lacks what it needs.
fn ensure_whole(components: &BTreeSet<Component>, has_url: bool) -> anyhow::Result<()> {
    let has = |component| components.contains(&component);
    anyhow::ensure!(
        !has(Component::FailClosed) || has(Component::Ha),
        "the component fail-closed has pods refused while no replica answers; add --component ha"
    );
    anyhow::ensure!(
        !has(Component::PolicyStrict) || !has(Component::SingleNode),
        "the component policy-strict has requests refused while no replica answers, and single-node has none; leave \
         one out"
    );
    anyhow::ensure!(
        !has(Component::StaticManifest) || has_url,
        "the component static-manifest is for files of the apiserver, which know no Service; add --url"
    );
    Ok(())
}

/// The families that are named as components; without one, those of the settings.
fn families(settings: Vec<&'static Family>, components: &BTreeSet<Component>) -> Vec<&'static Family> {
    let named = |&family: &&'static Family| components.contains(&Component::Family(family));
    if settings.iter().any(named) { settings.into_iter().filter(named).collect() } else { settings }
}

/// Parses memgate's namespace, which has to be its own: it gets a Pod Security level, and is deleted
/// with memgate.
///
/// # Errors
/// When no namespace can have this name, or the namespace belongs to the cluster.
fn parse_namespace(name: &str) -> Result<String, String> {
    if !is_dns_label(name) {
        return Err("a namespace has at most 63 characters: a-z, 0-9 and \"-\", and starts and ends with a letter or a \
                    digit"
            .to_owned());
    }
    if name == "default" || name.starts_with("kube-") {
        return Err("memgate needs a namespace of its own, since it is made and deleted with memgate; \
                    choose another one, such as memgate-system"
            .to_owned());
    }
    Ok(name.to_owned())
}

/// Parses the name of the cluster-wide objects, which are of several kinds; a few append to it.
///
/// # Errors
/// When no object could have it.
fn parse_name(name: &str) -> Result<String, String> {
    if name.len() > MAX_NAME_CHARS || !is_dns_subdomain(name) {
        return Err(format!(
            "the name of an installation has at most {MAX_NAME_CHARS} characters: a-z, 0-9, \"-\" and \".\", and each \
             part between dots starts and ends with a letter or a digit"
        ));
    }
    Ok(name.to_owned())
}

/// Parses the name of a component.
fn parse_component(name: &str) -> Result<Component, String> {
    let names: Vec<_> = Component::all().map(Component::name).collect();
    Component::from_name(name).ok_or_else(|| {
        let hint = did_you_mean(nearest(name, names.iter().map(AsRef::as_ref)));
        format!("components are {}{hint}", names.join(", "))
    })
}

fn parts(args: &Args) -> Vec<InstallPart> {
    if args.url.is_some() {
        return vec![InstallPart::Webhooks];
    }
    let wanted =
        |part: &InstallPart| args.only.is_empty() || args.only.iter().any(|only| only.part() == *part);
    InstallPart::ALL.into_iter().filter(wanted).collect()
}

impl PartArg {
    const fn part(self) -> InstallPart {
        match self {
            Self::Namespace => InstallPart::Namespace,
            Self::Crds => InstallPart::Crds,
            Self::Rbac => InstallPart::Rbac,
            Self::Policies => InstallPart::Policies,
            Self::Workload => InstallPart::Workload,
            Self::Webhooks => InstallPart::Webhooks,
        }
    }
}

fn read_ca(path: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let is_pem = bytes.windows(27).any(|window| window == b"-----BEGIN CERTIFICATE-----");
    anyhow::ensure!(is_pem, "{} holds no certificate in PEM form", path.display());
    Ok(bytes)
}

/// Parses the address that the apiserver calls: HTTPS only, and without a path, which memgate adds.
fn parse_url(text: &str) -> Result<String, String> {
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
