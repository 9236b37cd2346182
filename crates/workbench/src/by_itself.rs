//! What memgate renders by itself, without being asked: only what reads nothing but files here, with programs that the user
//! has installed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::kustomization::{FILE_NAMES, is_remote};
use crate::paths::{leads_out, normal};
use crate::texts::file;
use memgate_manifest::document::values;
use memgate_primitives::credential::masked;

/// The fields of kustomizations and of what is in them that name files, directories or addresses. kustomize takes the names
/// of fields in any case.
const PATHS: [&str; 13] = [
    "resources", "bases", "components", "patchesStrategicMerge", "configurations", "crds", "path", "files",
    "envs", "env", "valuesFile", "additionalValuesFiles", "valuesFiles",
];
/// The fields with what kustomize may run.
const PLUGINS: [&str; 3] = ["generators", "transformers", "validators"];

/// A program in a directory of `PATH`. A directory that is not absolute may be one of the repository.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let directories = env::var_os("PATH")?;
    let file = |directory: PathBuf| directory.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    env::split_paths(&directories).filter(|it| it.is_absolute()).map(file).find(|it| it.is_file())
}

/// Of these directories, the kustomizations that kustomize would have to fetch something for, or run a plugin, also in what
/// they build on, each with the reason.
pub(crate) fn obstacles(
    directories: impl Iterator<Item = PathBuf>,
    max_bytes: usize,
) -> BTreeMap<PathBuf, String> {
    let (mut todo, mut seen): (Vec<PathBuf>, _) = (directories.collect(), BTreeSet::new());
    let mut users = BTreeMap::<PathBuf, Vec<PathBuf>>::new();
    let mut found = Vec::new();
    while let Some(directory) = todo.pop() {
        if !seen.insert(directory.clone()) {
            continue;
        }
        let (parts, obstacle) = parts(&directory, max_bytes);
        found.extend(obstacle.map(|why| (directory.clone(), why)));
        for part in parts {
            users.entry(part.clone()).or_default().push(directory.clone());
            todo.push(part);
        }
    }
    let mut reasons = BTreeMap::new();
    while let Some((directory, why)) = found.pop() {
        if let Entry::Vacant(reason) = reasons.entry(directory) {
            let users = users.get(reason.key()).into_iter().flatten();
            found.extend(users.map(|user| (user.clone(), why.clone())));
            reason.insert(why);
        }
    }
    reasons
}

/// The directories on which a kustomization builds, and why it is not built.
fn parts(directory: &Path, max_bytes: usize) -> (Vec<PathBuf>, Option<String>) {
    let marker = FILE_NAMES.iter().map(|name| directory.join(name)).find(|marker| marker.is_file());
    let text = marker.and_then(|marker| file(&marker, max_bytes).ok());
    let documents = text.map(|text| values(&Arc::new(text), &mut Vec::new())).unwrap_or_default();
    let (mut parts, mut obstacle) = (Vec::new(), None);
    let mut todo: Vec<(&str, &Value)> = documents.iter().map(|document| ("", document.value())).collect();
    while let Some((key, value)) = todo.pop() {
        let is_one_of = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(key));
        match value {
            Value::Object(fields) => todo.extend(fields.iter().map(|(key, value)| (key.as_str(), value))),
            Value::Array(elements) if is_one_of(&PLUGINS) && !elements.is_empty() => {
                obstacle = Some(format!("it has {key}, which only --render lets kustomize run"));
            }
            Value::Array(elements) => todo.extend(elements.iter().map(|element| (key, element))),
            // A patch may be written in the kustomization itself.
            Value::String(text)
                if is_one_of(&PATHS) && !(key.starts_with(['p', 'P']) && text.contains('\n')) =>
            {
                let part = normal(&directory.join(text));
                if may_be_fetched(text, &part) {
                    obstacle = Some(format!(
                        "it builds on {}, which only --render lets kustomize fetch",
                        masked(text)
                    ));
                } else if part.is_dir() {
                    parts.push(part);
                }
            }
            _ => {}
        }
    }
    (parts, obstacle)
}

/// Whether kustomize may take a text for an address, or the directory of that name lies elsewhere.
fn may_be_fetched(text: &str, named: &Path) -> bool {
    let is_address = |text: &str| is_remote(text) || text.contains([':', '@']);
    let behind_key = text.split_once('=').map_or(text, |(_, path)| path);
    text.contains("://")
        || !named.is_file() && (is_address(text) || is_address(behind_key))
        || leads_out(named)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_what_would_be_fetched_or_run_anywhere_in_the_tree() {
        let root = tempfile::tempdir().expect("temporary directory");
        let plain = "resources: [a.yaml, ../base]\npatches:\n- patch: |-\n    - {op: add, path: /x, value: \"a://b\"}\nimages: [{name: r.example/a/b}]\n\
                     commonAnnotations: {docs: \"https://a.example/b\"}\nsecretGenerator: [{literals: [\"URL=redis://x\"]}]\n\
                     patchesStrategicMerge:\n- |-\n  kind: A\n  at: https://a.example\n";
        for (text, is_plain) in [
            (plain, true),
            ("resources: [none.yaml]", true),
            ("resources: [a.yaml, a.yaml]\ncomponents: [../c]", true),
            ("resources: [../up]", true),
            ("resources: [\"https://h.example/r//base?ref=v1\"]", false),
            ("Resources: [github.com/o/r//base]", false),
            ("resources: [\"git::ssh://h.example/r\"]", false),
            ("resources: [\"git@h.example:o/r.git\"]", false),
            ("resources: [\"gh:o/r\"]", false),
            ("bases: [../far]", false),
            ("patches: [{Path: \"https://h.example/p.yaml\"}]", false),
            ("patchesStrategicMerge: [\"https://h.example/x: y\"]", false),
            ("configMapGenerator: [{files: [\"k=https://h.example/f\"]}]", false),
            ("openapi: {path: \"http://h.example\"}", false),
            ("transformers: [t.yaml]", false),
            ("GENERATORS: [g.yaml]", false),
        ] {
            for (name, text) in [
                ("o", text),
                ("base", "resources: [m.yaml]"),
                ("c", "kind: Component"),
                ("up", "resources: [../o]"),
                ("far", "resources: [../remote]"),
                ("remote", "components: [\"https://h.example/c\"]"),
            ] {
                fs::create_dir_all(root.path().join(name)).expect("directory");
                fs::write(root.path().join(name).join("kustomization.yaml"), text).expect("file");
            }
            let found = obstacles([root.path().join("o")].into_iter(), 1 << 20);
            assert_eq!(found.contains_key(&root.path().join("o")), !is_plain, "{text}: {found:?}");
        }
    }
}
