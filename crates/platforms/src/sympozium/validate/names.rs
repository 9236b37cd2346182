//! Validates names that become parts of Service names.

use std::sync::Arc;

use crate::message::fit_names;
use memgate_model::family::Subject;
use memgate_model::finding::{Finding, excerpt};
use memgate_model::request::Operation;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::agent::has_memory;
use super::super::api::ensemble::Ensemble;
use super::super::api::{MAX_AGENT_NAME_BYTES, MAX_ENSEMBLE_NAME_BYTES};
use super::super::codes::{AGENT_NAME_TOO_LONG, NAME_NOT_SERVICE, NAME_TOO_LONG};
use super::Report;

const NOT_SERVICE_MESSAGE: &str = "is not allowed in the name of the Service that is made from it";

fn own_name() -> Pointer {
    Pointer::new("/metadata/name")
}

/// Findings about the name of an Agent that needs a Service.
pub(super) fn agent(subject: &Subject<'_>, report: Report<'_>) -> Vec<Finding> {
    let name = subject.name;
    if name.is_empty() || !has_memory(subject.object) {
        return Vec::new();
    }
    let too_long = too_long(subject, MAX_AGENT_NAME_BYTES, "-memory", report);
    let shown = excerpt(name);
    let not_service = not_service(move || shown.to_string(), is_dns_label(name), own_name, report);
    too_long.into_iter().chain(not_service).collect()
}

/// Findings about the name of an Ensemble and the names of its Agents; `before` is the stored Ensemble.
pub(super) fn ensemble(
    ensemble: &Ensemble<'_>,
    before: Option<&Ensemble<'_>>,
    subject: &Subject<'_>,
    report: Report<'_>,
    findings: &mut Vec<Finding>,
) {
    let own = subject.name;
    if own.is_empty() {
        return;
    }
    if ensemble.shares_memory() {
        findings.extend(too_long(subject, MAX_ENSEMBLE_NAME_BYTES, "-shared-memory", report));
    }
    let is_label = is_dns_label(own);
    let shown_own: Arc<str> = excerpt(own).into();
    if ensemble.shares_memory() || !ensemble.configs.is_empty() {
        let name = Arc::clone(&shown_own);
        findings.extend(not_service(move || name.to_string(), is_label, own_name, report));
    }
    for config in &ensemble.configs {
        let Some(name) = config.name.filter(|name| !name.is_empty()) else { continue };
        // Faults of the Ensemble's own name are reported once, at that name.
        let is_service = can_end_dns_label(name);
        let is_too_long = own.len() + 1 + name.len() > MAX_AGENT_NAME_BYTES;
        if is_service && !is_too_long || ensemble.excluded.contains(name) {
            continue;
        }
        let at = || ensemble.configs_pointer().index(config.index).key("name");
        if is_too_long {
            let is_new = before.is_none_or(|before| !before.has_config(name));
            findings.extend(agent_name_too_long(&shown_own, name, is_new, at, report));
        }
        let (ensemble_name, name) =
            (if is_label { Arc::clone(&shown_own) } else { "a".into() }, excerpt(name));
        findings.extend(not_service(move || agent_of(&ensemble_name, &name), is_service, at, report));
    }
}

/// Reports a name that is too long. A stored object only warns, since its name cannot change.
fn too_long(subject: &Subject<'_>, max_bytes: usize, suffix: &str, report: Report<'_>) -> Option<Finding> {
    if subject.name.len() <= max_bytes {
        return None;
    }
    let suffix: Box<str> = suffix.into();
    let text = move || {
        format!(
            "Too long: may not be more than {max_bytes} characters, or its Service \"…{suffix}\" has over 63"
        )
    };
    let finding = if subject.operation == Operation::Create {
        report.deny(&NAME_TOO_LONG, own_name, text)
    } else {
        report.warn(&NAME_TOO_LONG, own_name, text)
    };
    Some(finding?.fingerprint_value(subject.name))
}

/// The name of the Agent that is made from a config. Of an Ensemble's name that is too long for any object, only
/// the start is used.
pub(super) fn agent_of(ensemble: &str, config: &str) -> String {
    const MAX_BYTES: usize = 8 << 10;
    let start = ensemble.get(..ensemble.floor_char_boundary(MAX_BYTES)).unwrap_or(ensemble);
    format!("{start}-{config}")
}

/// Reports an Agent name that is too long. A config of the stored Ensemble only warns, since its Agent already
/// exists.
fn agent_name_too_long(
    own: &Arc<str>,
    name: &str,
    is_new: bool,
    at: impl FnOnce() -> Pointer,
    report: Report<'_>,
) -> Option<Finding> {
    let text = |agent: &str| {
        format!("Too long: {} may not be more than {MAX_AGENT_NAME_BYTES} characters", quoted(agent))
    };
    let (own, config) = (Arc::clone(own), excerpt(name));
    let finding = if is_new {
        report.deny(&AGENT_NAME_TOO_LONG, at, move || text(&agent_of(&own, &config)))
    } else {
        report.warn_whole(&AGENT_NAME_TOO_LONG, at, move |at| {
            let field = at.field();
            fit_names([&agent_of(&own, &config)], |[agent]| format!("{field}: {}", text(agent)))
        })
    };
    Some(finding?.fingerprint_value(name))
}

fn not_service(
    name: impl Fn() -> String + Send + Sync + 'static,
    is_service: bool,
    at: impl FnOnce() -> Pointer,
    report: Report<'_>,
) -> Option<Finding> {
    if is_service {
        return None;
    }
    let finding = report.warn_whole(&NAME_NOT_SERVICE, at, move |at| {
        let field = at.field();
        fit_names([&name()], |[name]| format!("{field}: {} {NOT_SERVICE_MESSAGE}", quoted(name)))
    })?;
    Some(finding.help("use a-z, 0-9 and '-', and start with a letter"))
}

/// Whether a name is a DNS-1035 label, except for its length.
/// Source: Kubernetes documentation, Object Names and IDs, RFC 1035 Label Names.
fn is_dns_label(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_lowercase) && can_end_dns_label(name)
}

/// Whether a DNS-1035 label, a dash and this name make a DNS-1035 label, except for its length.
fn can_end_dns_label(name: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.last().is_some_and(alphanumeric) && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}
