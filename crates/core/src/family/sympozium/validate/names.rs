//! Names that leave no room for those of the Services behind them.

use crate::model::family::Subject;
use crate::model::finding::{Finding, quoted};
use crate::model::pointer::Pointer;
use crate::model::request::Operation;

use super::super::api::agent::has_memory;
use super::super::api::ensemble::{Config, Ensemble};
use super::super::api::{LONGEST_AGENT, LONGEST_ENSEMBLE};
use super::super::codes::{AGENT_NAME_TOO_LONG, NAME_NOT_SERVICE, NAME_TOO_LONG};
use super::{deny, said, warn};

const NOT_SERVICE: &str = "Service names must be DNS-1035";

fn own_name() -> Pointer {
    Pointer::new("/metadata/name")
}

/// What is wrong with the name of an Agent that needs a Service.
pub(super) fn agent(subject: &Subject<'_>) -> Vec<Finding> {
    let name = subject.name;
    if name.is_empty() || !has_memory(subject.object) {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = too_long(subject, LONGEST_AGENT, "-memory").into_iter().collect();
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
    if ensemble.shares() {
        findings.extend(too_long(subject, LONGEST_ENSEMBLE, "-shared-memory"));
    }
    if ensemble.shares() || !ensemble.configs.is_empty() {
        findings.extend(not_service(name, &own_name()));
    }
    let stays = |config: &&Config<'_>| config.name.is_some_and(|name| !ensemble.excluded.contains(&name));
    for config in ensemble.configs.iter().filter(stays) {
        findings.extend(agent_of(ensemble, subject, config));
    }
    findings
}

/// Names never change, so a stored one is only spoken of.
fn too_long(subject: &Subject<'_>, longest: usize, suffix: &str) -> Option<Finding> {
    if subject.name.len() <= longest {
        return None;
    }
    let finding = if subject.operation == Operation::Create { deny } else { warn };
    let text = format!(
        "Too long: may not be more than {longest} characters, or its Service \"…{suffix}\" has over 63"
    );
    Some(finding(&NAME_TOO_LONG, &own_name(), &text).fingerprint_value(subject.name))
}

fn agent_of(ensemble: &Ensemble<'_>, subject: &Subject<'_>, config: &Config<'_>) -> Vec<Finding> {
    let Some(name) = config.name.filter(|name| !name.is_empty()) else { return Vec::new() };
    let at = ensemble.configs_pointer().index(config.index).key("name");
    let agent = format!("{}-{name}", subject.name);
    let mut findings = Vec::new();
    if agent.len() > LONGEST_AGENT {
        let is_new = subject.old.is_none_or(|old| !Ensemble::read(old).knows(name));
        let finding = if is_new { Finding::deny } else { Finding::warn };
        let text = format!("Too long: {} may not be more than {LONGEST_AGENT} characters", quoted(&agent));
        findings.push(said(finding, &AGENT_NAME_TOO_LONG, &at, &text).fingerprint_value(&agent));
    }
    // What is wrong with the Ensemble's own name is said there, once.
    let judged = if is_dns_label(subject.name) { agent } else { format!("a-{name}") };
    findings.extend(not_service(&judged, &at));
    findings
}

fn not_service(name: &str, at: &Pointer) -> Option<Finding> {
    let finding = || warn(&NAME_NOT_SERVICE, at, &format!("{}: {NOT_SERVICE}", quoted(name)));
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
