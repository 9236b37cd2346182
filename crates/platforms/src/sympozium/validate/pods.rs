//! Validates what objects say of the pods of agents: volumes, variables and skills, with names that Sympozium reserves or
//! memory needs, and the places of writer tokens: not in clear text, not in the sidecar of a skill, and under their key.

use crate::sympozium::prelude::*;
use crate::sympozium::report::{Report, whole};
use crate::sympozium::variables::{
    ADMIN_TOKEN, MAX_STORED, OF_MEMORY, PRIVATE_TOKEN, PRIVATE_URL, SHARED_TOKEN, shared_variables,
};
use memgate_model::finding::Severity::{self, Deny, Warn};
use memgate_primitives::pointer::Path::{self, Index, Key, Known};

/// What upstream's own webhook says of a reserved name, verbatim.
const RESERVED: &str = "name is reserved by Sympozium (including workspace, ipc, skills, tmp, memory, mcp-config, and \
                        sympozium-run-api-access)";

/// Refuses the reserved names of an AgentRun. Upstream's own webhook refuses such a run.
pub(super) fn volumes_of_run(run: &Tree, out: &mut Report<'_>) {
    let (list, at) = (run.list_at(&["spec", "volumes"]), Known("/spec/volumes"));
    reserved(list, at, (Deny, "AgentRun.spec.volumes[{}]: {bare}", ""), out);
    mounts(run, out);
}

/// Warns about the reserved names of an Agent or Ensemble: each of its runs gets these volumes.
pub(super) fn volumes(object: &Tree, out: &mut Report<'_>) {
    let (list, at) = (object.list_at(&["spec", "volumes"]), Known("/spec/volumes"));
    let text = "{field}: {} is reserved by Sympozium: runs with it are refused";
    reserved(list, at, (Warn, text, ""), out);
    mounts(object, out);
}

/// Warns about the reserved names of a SkillPack: it is accepted, but the runs that use it are refused.
pub(super) fn volumes_of_pack(pack: &Tree, name: &str, out: &mut Report<'_>) {
    let (list, at) = (pack.list_at(&["spec", "sidecar", "volumes"]), Known("/spec/sidecar/volumes"));
    reserved(list, at, (Warn, "SkillPack {} sidecar volume {}: {bare}", name), out);
}

fn mounts(object: &Tree, out: &mut Report<'_>) {
    let (list, at) = (object.list_at(&["spec", "volumeMounts"]), Known("/spec/volumeMounts"));
    reserved(list, at, (Warn, "{field}: {} is reserved by Sympozium: the mount is dropped", ""), out);
}

/// Reports the reserved names in a list. The text shows the owner, if it has a name here, the reserved name and [`RESERVED`].
fn reserved(
    list: &[Tree],
    at: Path<'_>,
    (severity, text, owner): (Severity, &'static str, &str),
    out: &mut Report<'_>,
) {
    for (index, entry) in list.iter().enumerate() {
        let Some(name) = entry.text_at(&["name"]).filter(|name| RESERVED_VOLUMES.contains(name)) else {
            continue;
        };
        let (first, second) = if owner.is_empty() { (name, RESERVED) } else { (owner, name) };
        let here = Index(&at, index);
        let values = [first, second, RESERVED];
        out.add(severity, &RESERVED_VOLUME, Key(&here, "name"), whole(text), &values);
    }
}

/// The variables that hold a token.
const TOKENS: [&str; 3] = [PRIVATE_TOKEN, SHARED_TOKEN, ADMIN_TOKEN];

/// Warns about what memory cannot use in a map of variables, which has literals only. The values of tokens are not
/// shown.
pub(super) fn in_env(env: Option<&Tree>, here: Path<'_>, out: &mut Report<'_>) {
    let entries = env.map(Tree::entries).into_iter().flatten();
    for (name, value) in entries {
        let at = Key(&here, name);
        let field = || here.pointer().field();
        if TOKENS.contains(&name) && !value.is_empty() {
            let text = whole("{bare}[{key}] holds a token in clear text; it comes from a Secret");
            let help = "remove it: pods get a reference to the Secret of the token";
            out.warn(&WRITER_TOKEN_ENV, at, text.help(help), &[&field(), name]);
        } else if MAX_STORED.contains(&name) && value.parse::<i64>().is_err() {
            let text = whole("{bare}[{key}] is no whole number; the runner uses 500");
            out.warn(&ENV_NUMBER, at, text, &[&field(), name]);
        } else if let Some(meant) = meant_variable(name) {
            let text = whole("{bare}[{key}] is no name that the runner reads{bare}");
            let values = [&*field(), name, &did_you_mean(Some(meant))];
            let finding = out.finding(Warn, &ENV_NEAR_MISS, at, text, &values);
            out.extend(finding.map(Finding::at_key));
        }
    }
}

/// The variable of memory that a name nearly is, if it begins like one.
fn meant_variable(name: &str) -> Option<&'static str> {
    let known = || OF_MEMORY.into_iter().chain(MAX_STORED);
    let is_like_one = name.starts_with("MEMORY_") || is_reserved(name);
    if is_like_one && known().all(|known| known != name) { nearest(name, known()) } else { None }
}

/// Warns about the tokens of a SkillPack's sidecar, in which models run commands.
pub(super) fn in_sidecar(pack: &Tree, out: &mut Report<'_>) {
    let Some(sidecar) = pack.at(&["spec", "sidecar"]) else { return };
    let here = Known("/spec/sidecar");
    let is_secret = |name: Option<&str>| name.is_some_and(|name| name.ends_with("-memory-writer-token"));
    let holds_token = |entry: &Tree| {
        entry.text_at(&["name"]).is_some_and(|name| TOKENS.contains(&name))
            || is_secret(entry.text_at(&["valueFrom", "secretKeyRef", "name"]))
            || is_secret(entry.text_at(&["secret", "secretName"]))
    };
    let text = whole("a skill sidecar must not hold a memory token: models run commands there");
    for list in ["env", "volumes"] {
        for (index, entry) in sidecar.list_at(&[list]).iter().enumerate() {
            if holds_token(entry) {
                out.warn(&SIDECAR_WRITER_TOKEN, Index(&Key(&here, list), index), text, &[]);
            }
        }
    }
    if is_secret(sidecar.text_at(&["secretRef"])) {
        out.warn(&SIDECAR_WRITER_TOKEN, Key(&here, "secretRef"), text, &[]);
    }
}

/// Warns about a known Secret of a memory server's token that lacks the key.
pub(super) fn without_key(
    server: &str,
    namespace: &str,
    at: Path<'_>,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let name = token_secret(server);
    let secret = state.quietly(|state| state.get(&SECRET, namespace, &name)).found()?;
    let has_key = |field: &&str| secret.tree().get(field).is_some_and(|keys| keys.has_key(TOKEN_KEY));
    if ["data", "stringData"].iter().any(has_key) {
        return None;
    }
    let text = "Secret {} has no key \"token\": its memory server cannot start";
    let finding = warning(&WRITER_TOKEN_KEY, at.pointer(), text, [&name]);
    Some(finding.elsewhere(secret, Pointer::new("/data"), "has no such key"))
}

/// Whether any variable at a path has a name that an Ensemble may set.
pub(super) fn names_reserved(object: &Tree, path: &[&str]) -> bool {
    object.at(path).is_some_and(|entries| entries.keys().any(is_reserved))
}

fn is_reserved(name: &str) -> bool {
    name.starts_with("WORKFLOW_MEMORY_") || name.starts_with("WORKFLOW_MEMBRANE_")
}

/// Reports the variables at a path.
pub(super) fn environment(
    object: &Tree,
    (path, here): (&[&str], Path<'_>),
    ensemble: Option<&Object>,
    out: &mut Report<'_>,
) {
    let Some(entries @ Tree::Texts(_)) = object.at(path) else { return };
    in_env(Some(entries), here, out);
    if entries.has_key(PRIVATE_URL) {
        let text = whole("{bare}[{key}] wins over the injected value");
        let help = "the server of this URL is sent the writer token by Sympozium's runner";
        let values = [&*here.pointer().field(), PRIVATE_URL];
        out.warn(&PRIVATE_URL_OVERRIDE, Key(&here, PRIVATE_URL), text.help(help), &values);
    }
    let Some(ensemble) = ensemble.filter(|_| names_reserved(object, path)) else { return };
    let set = shared_variables(ensemble, "", None);
    for variable in set.iter().filter(|set| is_reserved(&set.name) && entries.has_key(&set.name)) {
        let text = "{bare}[{key}] has no effect: set by Ensemble {}";
        let values = [&*here.pointer().field(), &variable.name, &ensemble.name];
        let finding = warning(&RESERVED_ENV, Key(&here, &variable.name).pointer(), text, values);
        let shared = Pointer::new("/spec/sharedMemory");
        out.extend([finding.elsewhere(ensemble, shared, "sets the variable")]);
    }
}

pub(super) fn skills(object: &Tree, out: &mut Report<'_>) {
    for (index, skill) in agent::skills(object).iter().enumerate() {
        let has_text = |field: &&str| skill.get(field).is_some_and(|it| it.text() != Some(""));
        let here = Index(&Known("/spec/skills"), index);
        let name = skill.text_at(&["skillPackRef"]).unwrap_or_default();
        if skill.is_object() && !["skillPackRef", "configMapRef"].iter().any(has_text) {
            out.warn(&SKILL_EMPTY, here, "has neither skillPackRef nor configMapRef", &[]);
        } else if is_near_miss(name) {
            let text = whole("skillPackRef {} does not turn memory on; use \"memory\"");
            out.warn(&SKILL_NEAR_MISS, Key(&here, "skillPackRef"), text, &[name]);
        }
    }
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
    let text = "SkillPack \"memory\" not found in namespace {}";
    warning(&SKILLPACK_MISSING, at, text, [namespace])
}
