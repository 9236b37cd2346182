//! Whether files hold anything of ours, by a look at their texts: what does not is not built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::build::layout::is_marker;
use crate::build::plan::Plan;
use crate::paths::leads_out;
use memgate_model::kind::POLICY_KINDS;
use memgate_model::settings::Settings;
use memgate_platforms::state_kinds;

/// The groups of objects that install others.
const INSTALLERS: [&str; 3] = ["argoproj.io", "helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io"];
/// In the labels and annotations of memgate itself.
const OWN: &str = "memgate.dev";

/// The groups and kinds that are ours, and what is known of files.
pub(crate) struct Ours {
    groups: BTreeSet<&'static str>,
    kinds: BTreeSet<&'static str>,
    /// Of each file whether it has something of ours, whether it has what installs others, and the namespaces that it names.
    known: BTreeMap<PathBuf, ([bool; 2], BTreeSet<String>)>,
}

impl Ours {
    pub(crate) fn new(settings: &Settings) -> Self {
        let validated = settings.families.iter().flat_map(|family| family.kinds.validated.iter().copied());
        let kinds = validated.chain(state_kinds(&settings.families)).chain(POLICY_KINDS);
        let kinds: Vec<_> = kinds.filter(|kind| kind.group.contains('.')).collect();
        let groups = kinds.iter().map(|kind| kind.group).chain([OWN]).collect();
        Self { groups, kinds: kinds.iter().map(|kind| kind.kind).collect(), known: BTreeMap::new() }
    }

    /// Whether one of the files has something of ours, and whether one has what installs others.
    pub(crate) fn in_files(&mut self, files: &BTreeSet<PathBuf>, plan: &Plan) -> [bool; 2] {
        let mut found = [false; 2];
        for file in files {
            let ([is_ours, installs], _) = self.of(file, plan);
            found = [found[0] | is_ours, found[1] | installs];
        }
        found
    }

    /// Whether a text has something of ours.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        look(text, &self.groups, &self.kinds).0[0]
    }

    /// The namespaces that the files name.
    pub(crate) fn namespaces_in(&mut self, files: &BTreeSet<PathBuf>, plan: &Plan) -> BTreeSet<String> {
        files.iter().flat_map(|file| self.of(file, plan).1.clone()).collect()
    }

    fn of(&mut self, file: &Path, plan: &Plan) -> &([bool; 2], BTreeSet<String>) {
        let Self { groups, kinds, known } = self;
        // Others than ordinary files may have no end.
        let read = || Some(file).filter(|file| file.is_file()).and_then(|file| plan.source(file).ok());
        let is_packed = file.extension().is_some_and(|extension| extension == "tgz");
        known.entry(file.to_owned()).or_insert_with(|| match read() {
            // What a packed chart has is seen when it is built.
            _ if is_packed => ([false, true], BTreeSet::new()),
            Some(source) => look(source.text(), groups, kinds),
            // What a kustomization behind a link out of the repository lists is not known.
            None => ([is_marker(file) && leads_out(file), false], BTreeSet::new()),
        })
    }
}

/// What a text has. A kind counts where a template says the group, or nothing does.
fn look(text: &str, groups: &BTreeSet<&str>, kinds: &BTreeSet<&str>) -> ([bool; 2], BTreeSet<String>) {
    let mut is_ours = groups.iter().any(|group| text.contains(group));
    let (mut namespaces, mut is_open, mut has_kind) = (BTreeSet::new(), true, false);
    for line in text.lines().chain(["---"]) {
        let field = line.trim_start_matches([' ', '-']);
        let value = |name: &str| Some(field.strip_prefix(name)?.trim().trim_matches(['"', '\'']));
        if line.trim_end() == "---" {
            is_ours |= is_open && has_kind;
            (is_open, has_kind) = (true, false);
        } else if let Some(version) = value("apiVersion:") {
            is_open &= version.contains("{{");
        } else if let Some(kind) = value("kind:") {
            has_kind |= kinds.contains(kind);
        }
        // Also in braces.
        for part in line.split("namespace:").skip(1) {
            let value = part.trim_start().split([',', '}', ' ', '#']).next().unwrap_or_default();
            let value = value.trim_matches(['"', '\'']);
            if !value.is_empty() && !value.contains(['{', '$']) {
                namespaces.insert(value.to_owned());
            }
        }
    }
    ([is_ours, INSTALLERS.iter().any(|group| text.contains(group))], namespaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_what_is_ours() {
        let (groups, kinds) = (BTreeSet::from(["orloj.dev"]), BTreeSet::from(["Memory"]));
        for (text, expected) in [
            ("apiVersion: orloj.dev/v1\nkind: Memory\n", true),
            ("apiVersion: {{ .Values.api }}\nkind: Memory\n", true),
            ("kind: Memory\nmetadata: {name: a}\n", true),
            ("apiVersion: other.example/v1\nkind: Memory\n", false),
            ("apiVersion: v1\nkind: Secret\n---\nkind: 'Memory'\n", true),
            ("image: redis\n", false),
        ] {
            assert_eq!(look(text, &groups, &kinds).0[0], expected, "{text}");
        }
        let (found, namespaces) = look("apiVersion: argoproj.io/v1\n  namespace: a\n", &groups, &kinds);
        assert_eq!((found, namespaces.len()), ([false, true], 1));
    }
}
