//! Validates names from which Services are named.

use crate::model::family::Subject;
use crate::model::finding::{Finding, quoted};
use crate::model::pointer::Pointer;
use crate::model::request::Operation;

use super::super::api::agent::has_memory;
use super::super::api::ensemble::{AgentConfig, Ensemble};
use super::super::api::{MAX_AGENT_NAME_BYTES, MAX_ENSEMBLE_NAME_BYTES};
use super::super::codes::{AGENT_NAME_TOO_LONG, NAME_NOT_SERVICE, NAME_TOO_LONG};
use super::{deny, warn, warn_of};

const NOT_SERVICE_MESSAGE: &str = "Service names must be DNS-1035";

fn own_name() -> Pointer {
    Pointer::new("/metadata/name")
}

/// What is wrong with the name of an Agent that needs a Service.
pub(super) fn agent(subject: &Subject<'_>) -> Vec<Finding> {
    let name = subject.name;
    if name.is_empty() || !has_memory(subject.object) {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = too_long(subject, MAX_AGENT_NAME_BYTES, "-memory").into_iter().collect();
    findings.extend(not_service(name, &own_name()));
    findings
}

/// What is wrong with the name of an Ensemble and those of its Agents.
pub(super) fn ensemble(ensemble: &Ensemble<'_>, subject: &Subject<'_>) -> Vec<Finding> {
    let name = subject.name;
    if name.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if ensemble.shares_memory() {
        findings.extend(too_long(subject, MAX_ENSEMBLE_NAME_BYTES, "-shared-memory"));
    }
    if ensemble.shares_memory() || !ensemble.configs.is_empty() {
        findings.extend(not_service(name, &own_name()));
    }
    let is_included =
        |config: &&AgentConfig<'_>| config.name.is_some_and(|name| !ensemble.excluded.contains(&name));
    let before = subject.old.map(Ensemble::read);
    for config in ensemble.configs.iter().filter(is_included) {
        findings.extend(agent_name(ensemble, before.as_ref(), subject.name, config));
    }
    findings
}

/// Names never change, so a stored one only warns.
fn too_long(subject: &Subject<'_>, max_bytes: usize, suffix: &str) -> Option<Finding> {
    if subject.name.len() <= max_bytes {
        return None;
    }
    let finding = if subject.operation == Operation::Create { deny } else { warn };
    let text = format!(
        "Too long: may not be more than {max_bytes} characters, or its Service \"…{suffix}\" has over 63"
    );
    Some(finding(&NAME_TOO_LONG, &own_name(), &text).fingerprint_value(subject.name))
}

fn agent_name(
    ensemble: &Ensemble<'_>,
    before: Option<&Ensemble<'_>>,
    own: &str,
    config: &AgentConfig<'_>,
) -> Vec<Finding> {
    let Some(name) = config.name.filter(|name| !name.is_empty()) else { return Vec::new() };
    let at = ensemble.configs_pointer().index(config.index).key("name");
    let agent = format!("{own}-{name}");
    let mut findings = Vec::new();
    if agent.len() > MAX_AGENT_NAME_BYTES {
        let is_new = before.is_none_or(|before| !before.has_config(name));
        let text = |agent: &str| {
            format!("Too long: {} may not be more than {MAX_AGENT_NAME_BYTES} characters", quoted(agent))
        };
        let finding = if is_new {
            deny(&AGENT_NAME_TOO_LONG, &at, &text(&agent))
        } else {
            warn_of(&AGENT_NAME_TOO_LONG, &at, [&agent], |[agent]| text(agent))
        };
        findings.push(finding.fingerprint_value(&agent));
    }
    // What is wrong with the Ensemble's own name is said there, once.
    let checked = if is_dns_label(own) { agent } else { format!("a-{name}") };
    findings.extend(not_service(&checked, &at));
    findings
}

fn not_service(name: &str, at: &Pointer) -> Option<Finding> {
    let finding = || {
        warn_of(&NAME_NOT_SERVICE, at, [name], |[name]| format!("{}: {NOT_SERVICE_MESSAGE}", quoted(name)))
    };
    (!is_dns_label(name)).then(|| finding().help("use a-z, 0-9 and '-', and start with a letter"))
}

/// Whether a name is a DNS-1035 label but for its length.
/// Source: Kubernetes documentation, Object Names and IDs, RFC 1035 Label Names.
fn is_dns_label(name: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}
