//! `memgate manifests`: the objects that install memgate in a cluster.

mod pods;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::choice::choice;
use crate::cli::families::parse as parse_family;
use crate::cli::manifests::pods::PodArgs;
use crate::cli::settings::{ServerSettingsArgs, flags};
use crate::cli::terminal::Terminal;
use memgate_install::component::{CERTIFICATES, Component, contradiction};
use memgate_install::install_plan::{InstallPart, InstallPlan, WebhookEndpoint};
use memgate_install::metadata::{DEFAULT_NAMESPACE, MAX_LABEL_CHARS, MAX_NAME_CHARS, default_name};
use memgate_install::{prune_list, render};
use memgate_model::family::Family;
use memgate_primitives::name::{is_dns_label, is_dns_subdomain};
use memgate_primitives::suggest::{did_you_mean, nearest};
use memgate_workbench::built;

/// Print the Kubernetes objects that install memgate
///
/// Namespace, definitions of MemoryPolicy and MemoryPolicyExemption, service account, RBAC, a policy
/// that guards memgate's account, Service, Deployment and webhook configurations. memgate reads the kinds of
/// the platforms and its own. It writes Events, the Secret with its CA, and the caBundle of its
/// configurations.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 printed, 2 wrong usage or a contradiction.",
    after_long_help = "\
Examples:
  memgate manifests --image registry.example.com/memgate:0.1.0 | kubectl apply -f -
  memgate manifests --image IMAGE --component ha --component network-policy
  memgate manifests --image IMAGE --certs files --ca ca.crt
  memgate manifests --only webhooks --family arkonis
  memgate manifests --image IMAGE -n team-a --family ark     a second installation
  memgate manifests --url https://127.0.0.1:10250 --ca ca.crt    for `memgate serve` on this machine
  memgate manifests FLAGS | kubectl apply $(memgate manifests FLAGS --prune-list) -f -

memgate or cert-manager writes the caBundle of the configurations. With --certs files you have to:
give --ca, or the apiserver will not trust memgate."
)]
pub struct Args {
    #[command(flatten)]
    settings: ServerSettingsArgs,

    /// Print only this part; repeatable
    ///
    /// crds: MemoryPolicy and MemoryPolicyExemption. rbac: the service account and its rights. policies: those that
    /// the apiserver evaluates itself. workload: Service, Deployment, disruption budget, and the additions of
    /// components. webhooks: the webhook configurations.
    #[arg(long, value_name = "PART", value_parser = choice(InstallPart::ALL))]
    only: Vec<InstallPart>,

    /// Change the installation; repeatable
    ///
    /// Deployment: ha, single-node, kind-dev, host-network, network-policy, settings.
    /// Until a replica is ready: after-ready.
    /// Certificates: cert-manager, csi-driver, cert-files, mtls.
    /// Reviews: family-arkonis, family-ark, family-orloj, family-orka, family-sympozium, family-kagent,
    /// policies (always, unless there is --no-policies), policy-readers, ark-brokers, scan, templates.
    /// Without a replica: fail-closed, policy-strict.
    /// Additions: service-monitor, alerts, dashboards, no-events, gitops-argocd, gitops-flux.
    #[arg(long = "component", value_name = "NAME", value_parser = parse_component)]
    components: Vec<Component>,

    /// Origin of the certificate [default: files with --ca, else builtin]
    #[arg(long, value_name = "WAY", value_enum)]
    certs: Option<CertsArg>,

    /// Leave policies out
    ///
    /// Their kinds are not defined, memgate has no right to read them, and the apiserver does not send pods that
    /// opted out of injection.
    #[arg(long)]
    no_policies: bool,

    /// Do not write Events
    ///
    /// memgate does not get the right to write them either.
    #[arg(long)]
    no_events: bool,

    /// Namespace of memgate
    #[arg(short, long, value_name = "NAME", value_parser = parse_namespace, default_value = DEFAULT_NAMESPACE)]
    namespace: String,

    /// Name of the cluster-wide objects, one for each installation [default: memgate, or memgate-NAMESPACE outside of
    /// memgate-system]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    name: Option<String>,

    /// Platform of another installation in the cluster; repeatable
    ///
    /// Pods of this platform that require their memory are left to that installation, unless they are of a platform of this
    /// one too.
    #[arg(long, value_name = "PLATFORM", value_parser = parse_family)]
    elsewhere: Vec<&'static Family>,

    /// Container image; needed for a Deployment unless this memgate belongs to a published release
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Where alerts (--component alerts) find their runbooks: the beginning of the address of each page
    ///
    /// Without an address each alert names the command that prints its page: memgate explain runbook/NAME.
    #[arg(long, value_name = "URL", value_parser = parse_runbook_url)]
    runbook_url: Option<String>,

    /// Print arguments for kubectl apply instead, by which it takes back what this installation no longer has
    ///
    /// They name the installation and the kinds that components add. The Secret with the CA, policies, exemptions and
    /// their definitions stay. kubectl fails on kinds that the cluster does not serve, so those of cert-manager and of
    /// the Prometheus operator are listed only if this installation has them, or RESOURCES names
    /// them: --prune-list="$(kubectl api-resources -o name)".
    #[arg(
        long,
        value_name = "RESOURCES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["only", "url"]
    )]
    prune_list: Option<String>,

    /// CA certificates, PEM, for the apiserver to trust memgate
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Address of memgate outside the cluster; prints webhook configurations only
    #[arg(long, value_name = "URL", value_parser = parse_url, conflicts_with = "only")]
    url: Option<String>,

    #[command(flatten)]
    pods: PodArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CertsArg {
    /// memgate makes and renews it, and writes caBundle
    Builtin,
    /// cert-manager makes and renews it, and writes caBundle
    CertManager,
    /// The Secret memgate-tls (type kubernetes.io/tls), which you write
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
    let (settings, server_keys) = args.settings.settings()?;
    let components = components(args)?;
    if !server_keys.is_empty() && !components.contains(&Component::Settings) {
        terminal.note(
            "note: the file of --config also has keys for serve alone, which are not passed on: write it into the ConfigMap \
             memgate-settings, and add --component settings",
        );
    }
    let flags = flags(&settings);
    let families = families(settings.families, &components);
    if let Some(family) = args.elsewhere.iter().find(|family| families.contains(family)) {
        anyhow::bail!(
            "the platform {} cannot be both here and --elsewhere; name those of this installation with --family",
            family.name
        );
    }
    let parts = parts(args);
    let pods = args.pods.settings(components.contains(&Component::HostNetwork))?;
    let plan = InstallPlan {
        name: args.name.clone().unwrap_or_else(|| default_name(&args.namespace)),
        namespace: args.namespace.clone(),
        image: image(args.image.as_deref().or(built::IMAGE), &parts)?,
        endpoint: args.url.clone().map_or(WebhookEndpoint::Service, WebhookEndpoint::Url),
        runbooks: args.runbook_url.clone().or_else(|| built::page("runbooks/")),
        ca: args.ca.as_deref().map(read_ca).transpose()?,
        flags,
        families,
        elsewhere: args.elsewhere.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
        components,
        pods,
    };
    let text = match &args.prune_list {
        Some(served) => {
            anyhow::ensure!(
                plan.name.len() <= MAX_LABEL_CHARS,
                "the name of the installation is longer than a label, by which kubectl would find its objects; \
                 --name gives it one of at most {MAX_LABEL_CHARS} characters"
            );
            format!("{}\n", prune_list(&plan, served))
        }
        None => render(&plan, &parts).context("failed to write the manifests")?,
    };
    terminal.raw(text.as_bytes())?;
    Ok(ExitStatus::Clean)
}

/// The image of the Deployment; empty when no Deployment is printed.
///
/// # Errors
/// When there is none. The pods could not start, and the entries that fail closed would refuse requests all the same.
fn image(named: Option<&str>, parts: &[InstallPart]) -> anyhow::Result<String> {
    anyhow::ensure!(
        named.is_some() || !parts.contains(&InstallPart::Workload),
        "the Deployment needs an image, and none is published for this memgate: build one (docs/image.md), push it, and \
         name it with --image; to delete an installation, any name will do"
    );
    Ok(named.unwrap_or_default().to_owned())
}

/// The components of `--component` and of the flags that stand for one.
///
/// # Errors
/// When components contradict each other, or one needs another.
fn components(args: &Args) -> anyhow::Result<BTreeSet<Component>> {
    let mut components: BTreeSet<_> = args.components.iter().copied().collect();
    let decided = CERTIFICATES.into_iter().find(|component| components.contains(component));
    let certs = match (args.certs, decided) {
        (Some(CertsArg::Builtin), Some(component)) => {
            anyhow::bail!("--certs builtin and --component {} contradict each other", component.name())
        }
        (None, None) if args.ca.is_some() => Some(CertsArg::Files),
        (certs, _) => certs,
    };
    components.extend(certs.and_then(CertsArg::component));
    components.extend(args.no_events.then_some(Component::NoEvents));
    let policies = [Component::Policies, Component::PolicyStrict, Component::PolicyReaders];
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

/// Checks that the components and flags that a component needs are chosen.
fn ensure_whole(components: &BTreeSet<Component>, has_url: bool) -> anyhow::Result<()> {
    let has = |component| components.contains(&component);
    anyhow::ensure!(
        !has(Component::FailClosed) || has(Component::Ha),
        "the component fail-closed makes the apiserver refuse pods while no replica answers; add --component ha"
    );
    anyhow::ensure!(
        !has(Component::PolicyStrict) || !has(Component::SingleNode),
        "the component policy-strict makes the apiserver refuse requests while no replica answers, and single-node has \
         no second replica; leave one out"
    );
    anyhow::ensure!(
        !has(Component::AfterReady) || !has_url,
        "the component after-ready waits for a replica in the cluster, and --url leads to another memgate; leave one out"
    );
    Ok(())
}

/// The families that are named as components; without one, those of the settings.
fn families(settings: Vec<&'static Family>, components: &BTreeSet<Component>) -> Vec<&'static Family> {
    let named = |&family: &&'static Family| components.contains(&Component::Family(family));
    if settings.iter().any(named) { settings.into_iter().filter(named).collect() } else { settings }
}

/// Parses memgate's namespace. Nothing else may be in it: it gets a Pod Security level, and is deleted
/// with memgate.
///
/// # Errors
/// When the name is invalid, or the namespace belongs to the cluster.
fn parse_namespace(name: &str) -> Result<String, String> {
    if !is_dns_label(name) {
        return Err("a namespace has at most 63 characters: a-z, 0-9 and \"-\", and starts and ends with a letter or a \
                    digit"
            .to_owned());
    }
    if name == "default" || name.starts_with("kube-") {
        return Err("memgate needs a namespace of its own, which is made and deleted with it; \
                    choose another one, such as memgate-system"
            .to_owned());
    }
    Ok(name.to_owned())
}

/// Parses the name of the cluster-wide objects. Some of them append to it.
///
/// # Errors
/// When an object cannot have this name.
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
    Component::all().find(|component| component.name() == name).ok_or_else(|| {
        let hint = did_you_mean(nearest(name, names.iter().map(AsRef::as_ref)));
        format!("components are {}{hint}", names.join(", "))
    })
}

fn parts(args: &Args) -> Vec<InstallPart> {
    if args.url.is_some() {
        return vec![InstallPart::Webhooks];
    }
    let all = InstallPart::ALL.into_iter().map(|(_, part)| part);
    all.filter(|part| args.only.is_empty() || args.only.contains(part)).collect()
}

fn read_ca(path: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let is_pem = bytes.windows(27).any(|window| window == b"-----BEGIN CERTIFICATE-----");
    anyhow::ensure!(is_pem, "{} holds no certificate in PEM form", path.display());
    Ok(bytes)
}

/// Parses the beginning of the addresses of runbooks. It has no character with a meaning in YAML.
fn parse_runbook_url(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:?=&%+".contains(c);
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    if !is_web || !text.ends_with('/') || !text.chars().all(is_plain) {
        return Err("give an address such as https://wiki.example.com/memgate/, with / at its end".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses the address that the apiserver calls: HTTPS, without the path that memgate adds.
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
