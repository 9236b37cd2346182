//! The file by which kustomize knows what refers to what in the objects of all platforms, docs/schema/kustomize.yaml, has a row for
//! each reference of a platform. `BLESS=1 cargo test --test documents kustomize` writes it anew.
//!
//! kustomize renames objects (`namePrefix`, `nameSuffix`, hashes of generators) and what names them, but of the latter it knows
//! only the kinds of Kubernetes itself. A file below `configurations:` adds rows: a `nameReference` for each kind that is named,
//! with the fields that name it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use memgate_model::edge::{Edge, Form, Home};
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::workload;
use memgate_platforms::other_references::{GroupKind, OtherReference, other_references};
use memgate_primitives::pointer::Pointer;

/// What the file says of itself.
const HEAD: &str = "\
# Printed by `memgate schema kustomize`: the fields by which objects of agent platforms name other objects. With this file
# kustomize changes them together with the names (namePrefix, nameSuffix, hashes of generators).
#
# Write it to a file beside a kustomization.yaml, and list it there; overlays get it from their base:
#   configurations:
#   - memgate.yaml
#
# What it cannot do:
# - Names with a meaning. With a prefix the platform does not find them, or takes them for others: the Memory and the
#   ArkConfig `default` (Ark), the MemoryBackend `default` (Orka), the ModelConfig `default-model-config` (kagent), the
#   SkillPack `memory` and the namespace `sympozium-system` (Sympozium). Keep such objects in a kustomization without
#   namePrefix and nameSuffix.
# - Names that a platform makes from others, such as the claim AGENT-memory-db: they are right with namePrefix, and wrong
#   with nameSuffix. Use a prefix.
# - Values with more than a name, such as NAMESPACE/NAME or NAME:KEY (Orloj, the annotation memgate.dev/ark-memory), and
#   hosts in URLs. Use replacements.
# - References to an object of another namespace, as the files have it before `namespace:` of the kustomization.
# - Fields in maps with free keys: spec.channelVolumes of an Ensemble.
";

/// What the file says of fields with a namespace.
const NAMESPACES: &str = "
# `namespace:` of a kustomization leaves the namespace in these fields as it is. Remove the `# ` of the list to change it there,
# too. kustomize then changes all of them, also those that name a namespace outside of the kustomization.
";

/// A field of a kind.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FieldSpec {
    /// The path in the form of kustomize.
    path: String,
    kind: GroupKind,
}

/// The rows of the file.
#[derive(Debug, Default)]
struct Rows {
    /// The fields that name an object of a kind.
    names: BTreeMap<GroupKind, BTreeSet<FieldSpec>>,
    /// The fields with the namespace of a named object.
    namespaces: BTreeSet<FieldSpec>,
}

/// The file, for all platforms.
fn configurations() -> String {
    let mut rows = Rows::default();
    for family in memgate_platforms::ALL {
        for edge in family.edges {
            rows.add_edge(edge, family);
        }
        for reference in other_references(family) {
            rows.add_other(reference);
        }
    }
    rows.to_text()
}

impl Rows {
    /// Adds what an edge says, if the name is the whole value, or may be.
    fn add_edge(&mut self, edge: &Edge, family: &Family) {
        if !matches!(edge.form, Form::Whole | Form::Part) {
            return;
        }
        let to: Vec<GroupKind> = edge.to.iter().map(|kind| group_kind(kind)).collect();
        for from in edge.from.iter().filter(|kind| !family.kinds.misnamed.contains(kind)) {
            self.add(&to, edge.path, &group_kind(from));
            if let Home::Beside(field) = edge.home {
                let parent = Pointer::new(edge.path).parent().unwrap_or_default();
                self.namespaces.insert(FieldSpec::new(parent.key(field).as_str(), &group_kind(from)));
            }
        }
        if edge.from.is_empty() {
            self.add_of_pods(&to, edge.path);
        }
    }

    /// Adds a field of pods, by its path in a pod.
    fn add_of_pods(&mut self, to: &[GroupKind], path: &str) {
        self.add(to, path, &new("Pod", ""));
        for workload in workload::built_in() {
            let template = workload.template();
            self.add(to, &format!("{template}{path}"), &new(workload.kind, workload.group));
        }
        // A Deployment is refused if its labels and its selector differ.
        if let Some(label) = path.strip_prefix("/metadata/labels/") {
            for (group, kind, labels) in workload::SELECTORS {
                self.add(to, &format!("{labels}/{label}"), &new(kind, group));
            }
        }
    }

    fn add_other(&mut self, OtherReference { from, path, namespace, to, .. }: &OtherReference) {
        self.add(std::slice::from_ref(to), path, from);
        self.namespaces.extend(namespace.iter().map(|path| FieldSpec::new(path, from)));
    }

    fn add(&mut self, to: &[GroupKind], path: &str, from: &GroupKind) {
        for to in to {
            self.names.entry(to.clone()).or_default().insert(FieldSpec::new(path, from));
        }
    }

    fn to_text(&self) -> String {
        let mut text = format!("{HEAD}nameReference:\n");
        for (to, fields) in &self.names {
            let (kind, group) = (&to.kind, group(to));
            // Writing to a text does not fail.
            let _ = write!(text, "- kind: {kind}\n  {group}\n  fieldSpecs:\n");
            for field in fields {
                let _ = writeln!(text, "  - {field}");
            }
        }
        text += NAMESPACES;
        text += "# namespace:\n";
        for field in &self.namespaces {
            let _ = writeln!(text, "# - {field}");
        }
        text
    }
}

impl FieldSpec {
    /// The field at a JSON pointer with `*` for the elements of a list, of which the paths of kustomize say nothing.
    fn new(path: &str, kind: &GroupKind) -> Self {
        let path = Pointer::new(path);
        let tokens = path.tokens().filter(|token| token != "*").map(|token| token.replace('/', "\\/"));
        Self { path: tokens.collect::<Vec<_>>().join("/"), kind: kind.clone() }
    }
}

impl std::fmt::Display for FieldSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, kind } = self;
        write!(f, "{{path: {path}, kind: {}, {}}}", kind.kind, group(kind))
    }
}

/// What tells a kind from those of the same name in other groups. An empty group would be any.
fn group(kind: &GroupKind) -> String {
    match &*kind.group {
        "" => "version: v1".to_owned(),
        group => format!("group: {group}"),
    }
}

fn group_kind(kind: &Kind) -> GroupKind {
    new(kind.kind, kind.group)
}

fn new(kind: &str, group: &str) -> GroupKind {
    GroupKind { kind: kind.to_owned(), group: group.to_owned() }
}

#[test]
fn the_file_for_kustomize_has_each_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schema/kustomize.yaml");
    let wanted = configurations();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &wanted).expect("written");
    }
    let is_current = std::fs::read_to_string(path).expect("read") == wanted;
    assert!(is_current, "kustomize.yaml is out of date: BLESS=1 cargo test --test documents kustomize");
}

#[test]
fn a_path_has_no_mark_for_lists_and_a_mark_for_slashes() {
    for (pointer, path) in [
        ("/spec/headers/*/name", "spec/headers/name"),
        ("/spec/tools/*", "spec/tools"),
        ("/metadata/labels/a.b~1c", "metadata/labels/a.b\\/c"),
    ] {
        assert_eq!(FieldSpec::new(pointer, &new("A", "")).path, path);
    }
}
