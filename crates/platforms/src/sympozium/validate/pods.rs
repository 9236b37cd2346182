//! Validates what objects say of the pods of agents: volumes, variables and skills, with names that Sympozium reserves or
//! memory needs, and the places of writer tokens: not in clear text, not in the sidecar of a skill, and under their key.

use std::sync::Arc;

use crate::message::fit_names;
use crate::prelude::*;
use crate::references::not_found_message;
use crate::sympozium::api::agent::skills;
use crate::sympozium::api::{MEMORY_SKILL, RESERVED_VOLUMES, SKILL_PACK, TOKEN_KEY, token_secret};
use crate::sympozium::codes::{
    ENV_NEAR_MISS, ENV_NUMBER, PRIVATE_URL_OVERRIDE, RESERVED_ENV, RESERVED_VOLUME, SIDECAR_WRITER_TOKEN,
    SKILL_EMPTY, SKILL_NEAR_MISS, SKILLPACK_MISSING, WRITER_TOKEN_ENV, WRITER_TOKEN_KEY,
};
use crate::sympozium::variables::{
    ADMIN_TOKEN, MAX_STORED, OF_MEMORY, PRIVATE_TOKEN, PRIVATE_URL, SHARED_TOKEN, shared_variables,
};
use memgate_model::finding::excerpt;
use memgate_model::kind::SECRET;
use memgate_primitives::suggest::{did_you_mean, nearest};

use super::Report;

/// The message of upstream's own webhook about a reserved name, verbatim.
const RESERVED_MESSAGE: &str = "name is reserved by Sympozium (including workspace, ipc, skills, tmp, memory, \
     mcp-config, and sympozium-run-api-access)";

/// Refuses the reserved names of an AgentRun. Upstream's own webhook refuses such a run.
pub(super) fn volumes_of_run(run: &Tree, report: Report<'_>) -> impl Iterator<Item = Finding> {
    let volumes = reserved(run, &["spec", "volumes"]).filter_map(move |(at, name)| {
        let shown = excerpt(name);
        let message =
            move |_: &Pointer| format!("AgentRun.spec.volumes[{}]: {RESERVED_MESSAGE}", quoted(&shown));
        Some(report.deny_whole(&RESERVED_VOLUME, at, message)?.fingerprint_value(name))
    });
    volumes.chain(mounts(run, report))
}

/// Warns about the reserved names of an Agent or Ensemble: each of its runs gets these volumes.
pub(super) fn volume_warnings(object: &Tree, report: Report<'_>) -> impl Iterator<Item = Finding> {
    let volumes = reserved(object, &["spec", "volumes"]).filter_map(move |(at, name)| {
        let name = excerpt(name);
        let text = move || format!("{} is reserved by Sympozium: runs with it are refused", quoted(&name));
        report.warn(&RESERVED_VOLUME, at, text)
    });
    volumes.chain(mounts(object, report))
}

/// Warns about the reserved names of a SkillPack: it is accepted, but the runs that use it are refused.
pub(super) fn volumes_of_pack(pack: &Tree, name: &str, report: Report<'_>) -> Vec<Finding> {
    let name: Arc<str> = excerpt(name).into();
    let reserved = reserved(pack, &["spec", "sidecar", "volumes"]).filter_map(|(at, volume)| {
        let (name, volume) = (Arc::clone(&name), excerpt(volume));
        let message = move |_: &Pointer| {
            format!("SkillPack {} sidecar volume {}: {RESERVED_MESSAGE}", quoted(&name), quoted(&volume))
        };
        report.warn_whole(&RESERVED_VOLUME, at, message)
    });
    reserved.collect()
}

fn mounts(object: &Tree, report: Report<'_>) -> impl Iterator<Item = Finding> {
    reserved(object, &["spec", "volumeMounts"]).filter_map(move |(at, name)| {
        let name = excerpt(name);
        let text = move || format!("{} is reserved by Sympozium: the mount is dropped", quoted(&name));
        report.warn(&RESERVED_VOLUME, at, text)
    })
}

/// The reserved names in a list, with their pointers.
fn reserved<'t>(
    object: &'t Tree,
    path: &'static [&'static str],
) -> impl Iterator<Item = (impl FnOnce() -> Pointer, &'t str)> {
    let entries = object.list_at(path);
    entries.iter().enumerate().filter_map(move |(index, entry)| {
        let name = entry.text_at(&["name"]).filter(|name| RESERVED_VOLUMES.contains(name))?;
        let list = move || path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key));
        Some((move || list().index(index).key("name"), name))
    })
}

/// The variables that hold a token.
const TOKENS: [&str; 3] = [PRIVATE_TOKEN, SHARED_TOKEN, ADMIN_TOKEN];

/// Warns about what memory cannot use in a map of variables, which has literals only.
pub(super) fn in_env(env: Option<&Tree>, here: impl Fn() -> Pointer, report: Report<'_>) -> Vec<Finding> {
    let Some(env) = env else { return Vec::new() };
    let mut findings = tokens(env, &here, report);
    for (name, value) in env.entries() {
        findings.extend(near_miss(name, &here, report));
        findings.extend(no_number((name, value), &here, report));
    }
    findings
}

/// Warns about tokens. The values are not shown.
fn tokens(env: &Tree, here: &impl Fn() -> Pointer, report: Report<'_>) -> Vec<Finding> {
    let is_token = |(name, value): &(&str, &str)| TOKENS.contains(name) && !value.is_empty();
    let finding = |(name, _): (&str, &str)| {
        let field = here().field();
        let variable = quoted_key(name);
        let message = move |_: &Pointer| {
            format!("{field}[{variable}] holds a token in clear text; it comes from a Secret")
        };
        let finding = report.warn_whole(&WRITER_TOKEN_ENV, || here().key(name), message)?;
        Some(finding.help("remove it: pods get a reference to the Secret of the token"))
    };
    env.entries().filter(is_token).filter_map(finding).collect()
}

/// Warns about a name that begins like those of memory and is nearly one that the runner reads.
fn near_miss(name: &str, here: &impl Fn() -> Pointer, report: Report<'_>) -> Option<Finding> {
    let known = || OF_MEMORY.into_iter().chain(MAX_STORED);
    let is_like_one = name.starts_with("MEMORY_") || is_reserved(name);
    if !is_like_one || known().any(|known| known == name) {
        return None;
    }
    let meant = nearest(name, known())?;
    let variable = format!("{}[{}]", here().field(), quoted_key(name));
    let message = move |_: &Pointer| {
        format!("{variable} is no name that the runner reads{}", did_you_mean(Some(meant)))
    };
    report.warn_whole(&ENV_NEAR_MISS, || here().key(name), message).map(Finding::at_key)
}

/// Warns about a number of bytes that the runner cannot read.
fn no_number(
    (name, value): (&str, &str),
    here: &impl Fn() -> Pointer,
    report: Report<'_>,
) -> Option<Finding> {
    if !MAX_STORED.contains(&name) || value.parse::<i64>().is_ok() {
        return None;
    }
    let variable = format!("{}[{}]", here().field(), quoted_key(name));
    let message = move |_: &Pointer| format!("{variable} is no whole number; the runner uses 500");
    report.warn_whole(&ENV_NUMBER, || here().key(name), message)
}

/// Warns about the tokens of a SkillPack's sidecar, in which models run commands.
pub(super) fn in_sidecar(pack: &Tree, report: Report<'_>) -> Vec<Finding> {
    let Some(sidecar) = pack.at(&["spec", "sidecar"]) else { return Vec::new() };
    let here = Pointer::new("/spec/sidecar");
    let is_secret = |name: Option<&str>| name.is_some_and(|name| name.ends_with("-memory-writer-token"));
    let is_token = |entry: &Tree| {
        let is_named = entry.text_at(&["name"]).is_some_and(|name| TOKENS.contains(&name));
        is_named || is_secret(entry.text_at(&["valueFrom", "secretKeyRef", "name"]))
    };
    let holds = |volume: &Tree| is_secret(volume.text_at(&["secret", "secretName"]));
    let mut places: Vec<Pointer> = Vec::new();
    for (list, is_wrong) in [("env", &is_token as &dyn Fn(&Tree) -> bool), ("volumes", &holds)] {
        let entries = sidecar.get(list).map(Tree::elements).unwrap_or_default().iter().enumerate();
        let wrong = entries.filter(|(_, entry)| is_wrong(entry));
        places.extend(wrong.map(|(index, _)| here.key(list).index(index)));
    }
    places.extend(is_secret(sidecar.text_at(&["secretRef"])).then(|| here.key("secretRef")));
    let message =
        |_: &Pointer| "a skill sidecar must not hold a memory token: models run commands there".to_owned();
    places.into_iter().filter_map(|at| report.warn_whole(&SIDECAR_WRITER_TOKEN, || at, message)).collect()
}

/// Warns about a known Secret of a memory server's token that lacks the key.
pub(super) fn without_key(
    server: &str,
    namespace: &str,
    at: Pointer,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let name = token_secret(server);
    let Lookup::Found(secret) = state.quietly(|state| state.get(&SECRET, namespace, &name)) else {
        return None;
    };
    let has_key = |field| secret.tree().get(field).is_some_and(|keys| keys.has_key(TOKEN_KEY));
    let message = fit_names([&name], |[name]| {
        format!("Secret {} has no key \"{TOKEN_KEY}\": its memory server cannot start", quoted(name))
    });
    let is_missing = !has_key("data") && !has_key("stringData");
    let finding = || Finding::warn(&WRITER_TOKEN_KEY, at, message);
    is_missing.then(|| finding().elsewhere(secret, Pointer::new("/data"), "has no such key"))
}

/// Whether any variable at a path has a name that an Ensemble may set.
pub(super) fn names_reserved(object: &Tree, path: &[&str]) -> bool {
    object.at(path).is_some_and(|entries| entries.keys().any(is_reserved))
}

fn is_reserved(name: &str) -> bool {
    name.starts_with("WORKFLOW_MEMORY_") || name.starts_with("WORKFLOW_MEMBRANE_")
}

/// Findings about the variables at a path.
pub(super) fn environment_findings(
    object: &Tree,
    path: &[&str],
    ensemble: Option<&Object>,
    report: Report<'_>,
) -> Vec<Finding> {
    let Some(entries @ Tree::Texts(_)) = object.at(path) else { return Vec::new() };
    let at = path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key));
    let field = at.field();
    let ensemble = ensemble.filter(|_| names_reserved(object, path));
    let set = ensemble.map(|ensemble| shared_variables(ensemble, "", None)).unwrap_or_default();
    let mut findings = in_env(Some(entries), || at.clone(), report);
    for name in entries.keys() {
        if name == PRIVATE_URL {
            let message = format!("{field}[{}] wins over the injected value", quoted_key(name));
            let help = "the server of this URL is sent the writer token by Sympozium's runner";
            findings.push(Finding::warn(&PRIVATE_URL_OVERRIDE, at.key(name), message).help(help));
        }
        let setter = ensemble.filter(|_| is_reserved(name) && set.iter().any(|set| set.name == name));
        findings.extend(setter.map(|ensemble| {
            let message = fit_names([&ensemble.name], |[ensemble]| {
                let (name, ensemble) = (quoted_key(name), quoted(ensemble));
                format!("{field}[{name}] has no effect: set by Ensemble {ensemble}")
            });
            let shared = Pointer::new("/spec/sharedMemory");
            Finding::warn(&RESERVED_ENV, at.key(name), message)
                .elsewhere(ensemble, shared, "sets the variable")
        }));
    }
    findings
}

pub(super) fn skill_findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let report = Report::new(state.budget());
    if !report.wants_warnings() {
        return Vec::new();
    }
    let list = Pointer::new("/spec/skills");
    let skills = skills(subject.object);
    let objects = skills.iter().enumerate().filter(|(_, skill)| skill.is_object());
    let finding = |(index, skill)| check_skill(skill, || list.index(index), report);
    objects.filter_map(finding).collect()
}

fn check_skill(skill: &Tree, here: impl FnOnce() -> Pointer, report: Report<'_>) -> Option<Finding> {
    let name = skill.text_at(&["skillPackRef"]).unwrap_or_default();
    let has_text = skill.text_at(&["configMapRef"]).is_some_and(|name| !name.is_empty());
    let wrong_type = ["skillPackRef", "configMapRef"]
        .iter()
        .any(|field| skill.get(field).is_some_and(|value| value.text().is_none()));
    if name.is_empty() && !has_text && !wrong_type {
        return report.warn(&SKILL_EMPTY, here, || "has neither skillPackRef nor configMapRef");
    }
    if !is_near_miss(name) {
        return None;
    }
    let name = excerpt(name);
    let at = || here().key("skillPackRef");
    report.warn_whole(&SKILL_NEAR_MISS, at, move |_| {
        fit_names([&name], |[name]| {
            format!("skillPackRef {} does not turn memory on; use \"memory\"", quoted(name))
        })
    })
}

fn is_near_miss(name: &str) -> bool {
    /// More bytes than the longest near miss has, in any alphabet.
    const MAX_BYTES: usize = 64;
    let trimmed = name.trim();
    if name == MEMORY_SKILL || trimmed.len() > MAX_BYTES {
        return false;
    }
    let plain = trimmed.to_lowercase();
    plain.strip_prefix("skillpack-").unwrap_or(&plain) == MEMORY_SKILL
}

/// The warning that the SkillPack `memory` is missing.
pub(crate) fn skill_pack_missing(namespace: &str, at: Pointer) -> Finding {
    let message =
        fit_names([namespace], |[namespace]| not_found_message(SKILL_PACK.kind, MEMORY_SKILL, namespace));
    Finding::warn(&SKILLPACK_MISSING, at, message)
}
