//! What a cluster wants of memgate's pods.

use std::collections::BTreeSet;

use memgate_install::install_plan::{PodSettings, Toleration};
use memgate_install::workload::{HEALTH_PORT, HOST_HEALTH_PORT};
use memgate_primitives::name::{is_dns_subdomain, is_key};

/// The effects of a taint.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Flags for memgate's pods.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Pods")]
pub(super) struct PodArgs {
    /// Port of the webhook in its pods [default: 10250, or 10260 with --component host-network]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..))]
    webhook_port: Option<u16>,

    /// Secret with which the image is pulled; repeatable
    #[arg(long = "image-pull-secret", value_name = "NAME", value_parser = parse_secret)]
    pull_secrets: Vec<String>,

    /// Taint of nodes on which memgate may run; repeatable
    #[arg(long = "toleration", value_name = "KEY[=VALUE][:EFFECT]", value_parser = parse_toleration)]
    tolerations: Vec<Toleration>,

    /// Variable of memgate's container; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    env: Vec<(String, String)>,
}

impl PodArgs {
    /// The settings, for pods with a network of their own or of the machine.
    ///
    /// # Errors
    /// When the port is that of the probes, or a variable comes twice.
    pub(super) fn settings(&self, on_host: bool) -> anyhow::Result<PodSettings> {
        let health = if on_host { HOST_HEALTH_PORT } else { HEALTH_PORT };
        anyhow::ensure!(
            self.webhook_port != Some(health),
            "--webhook-port {health} is the port of probes and metrics; choose another one"
        );
        let mut names = BTreeSet::new();
        if let Some((name, _)) = self.env.iter().find(|(name, _)| !names.insert(name)) {
            anyhow::bail!("--env gives {name} twice");
        }
        Ok(PodSettings {
            webhook_port: self.webhook_port,
            pull_secrets: self.pull_secrets.clone(),
            tolerations: self.tolerations.clone(),
            env: self.env.clone(),
        })
    }
}

fn parse_secret(name: &str) -> Result<String, String> {
    if !is_dns_subdomain(name) {
        return Err("give the name of a Secret of type kubernetes.io/dockerconfigjson".to_owned());
    }
    Ok(name.to_owned())
}

/// Parses a taint as `kubectl taint` takes it.
fn parse_toleration(text: &str) -> Result<Toleration, String> {
    let (taint, effect) = match text.rsplit_once(':') {
        Some((taint, effect)) => (taint, Some(effect)),
        None => (text, None),
    };
    if effect.is_some_and(|effect| !EFFECTS.contains(&effect)) {
        return Err(format!("the effect of a taint is one of {}", EFFECTS.join(", ")));
    }
    let (key, value) = match taint.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (taint, None),
    };
    let name = key.rsplit('/').next().unwrap_or_default();
    let is_short = |text: &str| text.len() <= 63;
    let is_value = |value: &str| is_short(value) && !value.contains('/') && is_key(value);
    if name.is_empty() || !is_short(name) || !is_key(key) || !value.is_none_or(is_value) {
        return Err(
            "give a taint such as dedicated=agents:NoSchedule; its key and value are those of a label"
                .to_owned(),
        );
    }
    Ok(Toleration { key: key.to_owned(), value: value.map(str::to_owned), effect: effect.map(str::to_owned) })
}

/// Parses a variable of a container. Kubernetes allows more names, which no program reads.
fn parse_variable(text: &str) -> Result<(String, String), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = |name: &str| {
        name.chars().all(is_plain) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    match text.split_once('=') {
        Some((name, value)) if is_name(name) => Ok((name.to_owned(), value.to_owned())),
        _ => Err("give NAME=VALUE; a name has letters, digits and \"_\", and does not start with a digit"
            .to_owned()),
    }
}
