//! `memgate manifests`: the objects that install memgate in a cluster.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::choice::choice;
use crate::cli::serve;
use crate::cli::settings::{SettingsArgs, passed_on};
use crate::cli::terminal::Terminal;
use memgate_install::component::Component;
use memgate_install::install_plan::{InstallPart, InstallPlan, WebhookEndpoint};
use memgate_install::metadata::{DEFAULT_NAMESPACE, MAX_NAME_CHARS, default_name};
use memgate_install::render;
use memgate_install::workload::{HEALTH_PORT, HOST_HEALTH_PORT};
use memgate_primitives::name::{is_dns_label, is_dns_subdomain};
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
  memgate manifests --image IMAGE --component cert-files --ca ca.crt
  memgate manifests --only webhooks --family arkonis
  memgate manifests --url https://127.0.0.1:10250 --ca ca.crt    for `memgate serve` on this machine

memgate or cert-manager writes the caBundle of the configurations. With cert-files you have to: give
--ca, or the apiserver will not trust memgate."
)]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,

    /// Print only this part; repeatable
    ///
    /// crds: MemoryPolicy and MemoryPolicyExemption. rbac: the service account and its rights. policies: those that
    /// the apiserver evaluates itself. workload: Service, Deployment, disruption budget, and the additions of
    /// components. webhooks: the webhook configurations.
    #[arg(long, value_name = "PART", value_parser = choice(InstallPart::ALL))]
    only: Vec<InstallPart>,

    /// Change the installation; repeatable
    ///
    /// ha: three replicas in different zones. mtls: memgate answers the apiserver alone. network-policy: a
    /// NetworkPolicy for its traffic. host-network: the network of the machine. monitoring: metrics and alerts for the
    /// Prometheus operator, and a dashboard for Grafana. policy-strict: in namespaces with memgate.dev/policy=strict pods
    /// and resources of agents are refused while memgate does not answer. ark-brokers: policies know the workloads of
    /// ark's memory service. cert-manager: it makes and renews the
    /// certificate, and writes caBundle. csi-driver: the CSI driver of cert-manager mounts it. cert-files: it is in the
    /// Secret memgate-tls, which you write. gitops: Argo CD and Flux leave caBundle alone. audit: a CronJob judges what
    /// is stored; it is there without this, too.
    #[arg(long = "component", value_name = "NAME", value_parser = choice(Component::ALL))]
    components: Vec<Component>,

    /// Leave something out; repeatable
    ///
    /// policies: their kinds are not defined, memgate has no right to read them, and the apiserver does not send pods that
    /// opted out of injection. audit: no CronJob judges stored objects and running agent pods, and nothing writes
    /// reports and the status of policies. events: memgate writes none, and does not get the right.
    #[arg(long, value_name = "WHAT", value_parser = choice(Without::ALL))]
    without: Vec<Without>,

    /// Namespace of memgate
    #[arg(short, long, value_name = "NAME", value_parser = parse_namespace, default_value = DEFAULT_NAMESPACE)]
    namespace: String,

    /// Name of the cluster-wide objects [default: memgate, or memgate-NAMESPACE outside of memgate-system]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    name: Option<String>,

    /// Container image; needed for a Deployment unless this memgate belongs to a published release
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Where alerts (--component monitoring) find their runbooks: the beginning of the address of each page
    ///
    /// Without an address each alert names the command that prints its page: memgate explain runbook/NAME.
    #[arg(long, value_name = "URL", value_parser = parse_runbook_url)]
    runbook_url: Option<String>,

    /// CA certificates, PEM, for the apiserver to trust memgate; implies --component cert-files unless another one is
    /// named
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Address of memgate outside the cluster; prints webhook configurations only
    #[arg(long, value_name = "URL", value_parser = parse_url, conflicts_with = "only")]
    url: Option<String>,

    /// Port of the webhook in its pods [default: 10250, or 10260 with --component host-network]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..), help_heading = "Pods")]
    webhook_port: Option<u16>,
}

/// What an installation can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Policies,
    Audit,
    Events,
}

impl Without {
    const ALL: [(&'static str, Self); 3] =
        [("policies", Self::Policies), ("audit", Self::Audit), ("events", Self::Events)];
}

/// Runs the command.
///
/// # Errors
/// When the CA cannot be read or the text cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let (settings, keys) = args.settings.of_server()?;
    serve::check(&keys)?;
    let components = components(args)?;
    let parts = parts(args);
    let on_host = components.contains(&Component::HostNetwork);
    let health = if on_host { HOST_HEALTH_PORT } else { HEALTH_PORT };
    anyhow::ensure!(
        args.webhook_port != Some(health),
        "--webhook-port {health} is the port of probes and metrics; choose another one"
    );
    let plan = InstallPlan {
        name: args.name.clone().unwrap_or_else(|| default_name(&args.namespace)),
        namespace: args.namespace.clone(),
        image: image(args.image.as_deref().or(built::IMAGE), &parts)?,
        endpoint: args.url.clone().map_or(WebhookEndpoint::Service, WebhookEndpoint::Url),
        runbooks: args.runbook_url.clone().or_else(|| built::page("runbooks/")),
        ca: args.ca.as_deref().map(read_ca).transpose()?,
        settings: passed_on(&keys),
        families: settings.families,
        policies: !args.without.contains(&Without::Policies),
        events: !args.without.contains(&Without::Events),
        components,
        webhook_port: args.webhook_port,
    };
    let text = render(&plan, &parts).context("failed to write the manifests")?;
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

/// The components of `--component`, and files of a certificate with a CA that is named.
///
/// # Errors
/// When components contradict each other.
fn components(args: &Args) -> anyhow::Result<BTreeSet<Component>> {
    let mut components: BTreeSet<_> = args.components.iter().copied().collect();
    let leaves_out = |it| args.without.contains(&it);
    anyhow::ensure!(
        !leaves_out(Without::Policies) || !components.contains(&Component::PolicyStrict),
        "--without policies and --component policy-strict contradict each other"
    );
    let has_audit = !leaves_out(Without::Audit) && !leaves_out(Without::Policies);
    anyhow::ensure!(
        !components.contains(&Component::Audit) || has_audit,
        "--component audit and --without audit or policies contradict each other"
    );
    components.extend(has_audit.then_some(Component::Audit));
    let certificates =
        Component::ALL.into_iter().filter(|(_, it)| it.is_certificate() && components.contains(it));
    match certificates.map(|(name, _)| name).collect::<Vec<_>>().as_slice() {
        [one, other, ..] => {
            anyhow::bail!("the components {one} and {other} contradict each other; leave one out")
        }
        [] if args.ca.is_some() => _ = components.insert(Component::CertFiles),
        _ => {}
    }
    Ok(components)
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
