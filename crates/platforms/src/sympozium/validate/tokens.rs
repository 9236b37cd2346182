//! Validates where writer tokens are: not in clear text, not in the sidecar of a skill, and under their key.

use memgate_model::finding::Finding;
use memgate_model::kind::SECRET;
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::{TOKEN_KEY, token_secret};
use super::super::codes::{SIDECAR_WRITER_TOKEN, WRITER_TOKEN_ENV, WRITER_TOKEN_KEY};
use super::super::variables::{ADMIN_TOKEN, PRIVATE_TOKEN, SHARED_TOKEN};
use super::Report;
use crate::message::fit_names;

/// The variables that hold a token.
const TOKENS: [&str; 3] = [PRIVATE_TOKEN, SHARED_TOKEN, ADMIN_TOKEN];

/// Warns about tokens in a map of variables, which has literals only. The values are not shown.
pub(super) fn in_env(env: Option<&Tree>, here: impl Fn() -> Pointer, report: Report<'_>) -> Vec<Finding> {
    let Some(env) = env else { return Vec::new() };
    let is_token = |(name, value): &(&str, &str)| TOKENS.contains(name) && !value.is_empty();
    let finding = |(name, _): (&str, &str)| {
        let field = here().field();
        let variable = quoted(name);
        let message = move |_: &Pointer| {
            format!("{field}[{variable}] holds a token in clear text; it comes from a Secret")
        };
        let finding = report.warn_whole(&WRITER_TOKEN_ENV, || here().key(name), message)?;
        Some(finding.help("remove it: pods get a reference to the Secret of the token"))
    };
    env.entries().filter(is_token).filter_map(finding).collect()
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
