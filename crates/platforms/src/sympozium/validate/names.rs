//! Validates the list of configs of an Ensemble, and names that become parts of Service names.

use crate::sympozium::prelude::*;
use crate::sympozium::report::{DUPLICATE, Report};
use memgate_model::finding::Severity::{Deny, Warn};
use memgate_primitives::pointer::Path::{self, Index, Key, Known};

use super::pods;

const OWN_NAME: Path<'_> = Known("/metadata/name");

/// Reports the name of an Agent that needs a Service.
pub(super) fn agent(subject: &Subject<'_>, out: &mut Report<'_>) {
    let name = subject.name;
    if name.is_empty() || !has_memory(subject.object) {
        return;
    }
    too_long(subject, MAX_AGENT_NAME_BYTES, "-memory", out);
    if !is_dns_label(name) {
        not_service(name, OWN_NAME, out);
    }
}

/// Reports the name of an Ensemble and the names of its Agents; `before` is the stored Ensemble.
pub(super) fn ensemble(
    ensemble: &Ensemble<'_>,
    before: Option<&Ensemble<'_>>,
    subject: &Subject<'_>,
    out: &mut Report<'_>,
) {
    let own = subject.name;
    if own.is_empty() {
        return;
    }
    if ensemble.shares_memory() {
        too_long(subject, MAX_ENSEMBLE_NAME_BYTES, "-shared-memory", out);
    }
    let is_label = is_dns_label(own);
    if !is_label && (ensemble.shares_memory() || !ensemble.configs.is_empty()) {
        not_service(own, OWN_NAME, out);
    }
    let list = ensemble.configs_place();
    for config in ensemble.configs.iter() {
        let Some(name) = config.name.filter(|name| !name.is_empty()) else { continue };
        // Faults of the Ensemble's own name are reported once, at that name.
        let is_service = can_end_dns_label(name);
        let is_too_long = own.len() + 1 + name.len() > MAX_AGENT_NAME_BYTES;
        if is_service && !is_too_long || ensemble.excluded.contains(name) {
            continue;
        }
        let here = Index(&list, config.index);
        let at = Key(&here, "name");
        if is_too_long {
            // A config of the stored Ensemble only warns, since its Agent already exists.
            let is_new = before.is_none_or(|before| !before.has_config(name));
            let values = [&*agent_of(own, name), &MAX_AGENT_NAME_BYTES.to_string()];
            let text = "Too long: {} may not be more than {bare} characters";
            let severity = if is_new { Deny } else { Warn };
            out.add(severity, &AGENT_NAME_TOO_LONG, at, text, &values);
        }
        if !is_service {
            not_service(&agent_of(if is_label { own } else { "a" }, name), at, out);
        }
    }
}

/// Reports a name that is too long. A stored object only warns, since its name cannot change.
fn too_long(subject: &Subject<'_>, max_bytes: usize, suffix: &str, out: &mut Report<'_>) {
    if subject.name.len() > max_bytes {
        let severity = if subject.operation == Operation::Create { Deny } else { Warn };
        let text = "Too long: may not be more than {bare} characters, or its Service \"…{bare}\" has over 63";
        let values = [&*max_bytes.to_string(), suffix];
        out.add(severity, &NAME_TOO_LONG, OWN_NAME, text, &values);
    }
}

/// The name of the Agent that is made from a config. Of an Ensemble's name that is too long for any object, only
/// the start is used.
pub(super) fn agent_of(ensemble: &str, config: &str) -> String {
    const MAX_BYTES: usize = 8 << 10;
    let start = ensemble.get(..ensemble.floor_char_boundary(MAX_BYTES)).unwrap_or(ensemble);
    format!("{start}-{config}")
}

fn not_service(name: &str, at: Path<'_>, out: &mut Report<'_>) {
    let text = "{} is not allowed in the name of the Service that is made from it";
    out.warn(&NAME_NOT_SERVICE, at, (text, "use a-z, 0-9 and '-', and start with a letter"), &[name]);
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

pub(super) fn configs(ensemble: &Ensemble<'_>, subject: &Subject<'_>, out: &mut Report<'_>) {
    let list = ensemble.configs_place();
    let is_old_field = ensemble.configs_field == "personas" && *subject.kind == ENSEMBLE;
    for config in ensemble.configs.iter() {
        let here = Index(&list, config.index);
        match config.name.unwrap_or_default() {
            "" => out.deny(&CONFIG_NAME_REQUIRED, Key(&here, "name"), "Required value", &[]),
            name => duplicate(ensemble, config, name, out),
        }
        // Of the newer kind, whose definition does not have the old field.
        if is_old_field && config.tree.get("systemPrompt").is_none() {
            out.deny(&CRD_REQUIRED, Key(&here, "systemPrompt"), "Required value", &[]);
        }
        skills(config, Key(&here, "skills"), out);
        memory(config, Key(&here, "memory"), out);
        pods::in_env(config.tree.get("env"), Key(&here, "env"), out);
    }
}

/// Reports an entry with the name of an earlier one. Both make one Agent; if they differ, they overwrite each other
/// forever.
fn duplicate(ensemble: &Ensemble<'_>, config: &AgentConfig<'_>, name: &str, out: &mut Report<'_>) {
    let Some(first) = ensemble.configs.before(config) else { return };
    let list = ensemble.configs_place();
    let [at, related] = [config, first].map(|config| Index(&list, config.index));
    let (at, related) = (Key(&at, "name"), Key(&related, "name"));
    let label = "the first one of this name";
    if config.is_same(first) {
        return out.duplicate(&CONFIG_NAME_DUPLICATE, at, (DUPLICATE, name), (related, label));
    }
    let finding = out.finding(Deny, &CONFIG_NAME_DUPLICATE, at, DUPLICATE, &[name]);
    out.extend(finding.map(|finding| finding.related(related.pointer(), label)));
}

/// Denies skills in the form of an Agent's, which users copy.
fn skills(config: &AgentConfig<'_>, list: Path<'_>, out: &mut Report<'_>) {
    for (index, skill) in config.tree.list_at(&["skills"]).iter().enumerate() {
        let at = Index(&list, index);
        match (skill, skill.text_at(&["skillPackRef"])) {
            (Tree::Map(_) | Tree::Texts(_), Some(name)) => {
                out.deny(&SKILLS_OBJECT_FORM, at, "must be of type string; write {}", &[name]);
            }
            (Tree::Map(_) | Tree::Texts(_), None) => {
                out.deny(&SKILLS_OBJECT_FORM, at, "must be of type string", &[]);
            }
            _ => {}
        }
    }
}

fn memory(config: &AgentConfig<'_>, here: Path<'_>, out: &mut Report<'_>) {
    let Some(memory) = config.tree.get("memory") else { return };
    max_size(memory, here, out);
    let (list, seeds) = (Key(&here, "seeds"), memory.list_at(&["seeds"]));
    for (index, seed) in seeds.iter().enumerate() {
        if seed.text().is_some_and(|seed| seed.trim().is_empty()) {
            out.warn(&SEEDS_EMPTY, Index(&list, index), "the seed is blank", &[]);
        }
    }
    if config.memory_disabled() && !seeds.is_empty() {
        out.warn(&SEEDS_DISABLED, here, "seeds have no effect while enabled is false", &[]);
    }
}

/// Warns about a memory size that could not be enforced. Upstream does not enforce any size.
pub(super) fn max_size(memory: &Tree, here: Path<'_>, out: &mut Report<'_>) {
    /// KiB that a ConfigMap holds.
    /// Source: Kubernetes documentation, ConfigMaps.
    const MAX_CONFIG_MAP_KIB: i64 = 1024;
    let Some(size) = memory.get("maxSizeKB").and_then(Tree::integer) else { return };
    let (at, shown) = (Key(&here, "maxSizeKB"), size.to_string());
    if size < 0 {
        out.warn(&MAX_SIZE, at, "{bare} has no effect", &[&shown]);
    } else if size > MAX_CONFIG_MAP_KIB {
        out.warn(&MAX_SIZE, at, "{bare} has no effect: a ConfigMap holds 1024 KiB at most", &[&shown]);
    }
}
