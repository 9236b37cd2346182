//! The views of memory resources, of what refers to them and of agent pods: the data in `tests/views`, a file for each
//! family.
//!
//! ```yaml
//! - name: what it is about
//!   object: { … }              # of a kind that the family views, or a Pod
//!   namespace: team            # of the request, where the object has none; `default` without it
//!   clusterDomain: corp        # the setting, optional
//!   sourceNamespaces: ["*"]    # the setting of orloj, optional
//!   state: [ … ]               # optional
//!   view: { … }                # without family, kind, name, namespace, labels and annotations, unless they matter; null for none
//!   at: { backend: /spec/x }   # paths of the view with the pointers in the object, optional
//!   hosts: [a, b]              # every host of the endpoint, optional
//!   why: the endpoint is in …  # why the endpoint, or its port, is unknown; optional
//!   sources: [/spec/ref]       # where each source is referred to, optional
//!   unknown: [Kind ns/name]    # what is to be looked up, optional
//! ```
//!
//! Where a case has a credential, it is `hunter2`, which no view may hold.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where something is wrong"
)]

mod long;

use memgate_core::state;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::family::{Family, Subject};
use memgate_model::memory_view::{MemoryView, SourceView};
use memgate_model::object::{Object, Reference};
use memgate_model::pod::Pod;
use memgate_model::request::Operation;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::budget::Budget;
use serde_json::Value;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use super::fields::{fields_of, set, wrong_values};

/// What a case may have.
const KEYS: [&str; 12] = [
    "name", "object", "namespace", "clusterDomain", "sourceNamespaces", "state", "view", "at", "hosts",
    "why", "sources", "unknown",
];

/// What says which object a view is of: compared only where a case has it.
const IDENTITY: [&str; 6] = ["family", "kind", "name", "namespace", "labels", "annotations"];

/// The families that have views, with their cases.
pub(super) fn cases() -> Vec<(&'static Family, Vec<Value>)> {
    let of_family = |family: &&'static Family| {
        let file = format!("views/{}.yaml", family.name);
        let documents = documents(&file)?.into_iter();
        let cases: Vec<Value> =
            documents.filter_map(|document| document.as_array().cloned()).flatten().collect();
        assert!(!cases.is_empty(), "{file} has no cases");
        Some((*family, cases))
    };
    memgate_platforms::ALL.iter().filter_map(of_family).collect()
}

/// The documents of a file below `tests`, if it is there.
pub(super) fn documents(file: &str) -> Option<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    let text = fs::read_to_string(&path).ok()?;
    let mut errors = Vec::new();
    let documents = values(&Arc::new(Source::new(file, &text)), &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    Some(documents.iter().map(|document| document.value().clone()).collect())
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list(case: &Value, key: &str) -> Vec<Value> {
    case[key].as_array().cloned().unwrap_or_default()
}

/// The objects around that of a case.
pub(super) fn state_of(case: &Value) -> Vec<Value> {
    list(case, "state")
}

/// The state of a case, with the settings that it has.
pub(super) fn snapshot(case: &Value) -> Snapshot {
    let mut settings = memgate_platforms::default_settings();
    if let Some(domain) = case["clusterDomain"].as_str() {
        domain.clone_into(&mut settings.policies.cluster_domain);
    }
    let sources = case["sourceNamespaces"].as_array().into_iter().flatten();
    settings.platforms.orloj.source_namespaces =
        sources.filter_map(Value::as_str).map(str::to_owned).collect();
    let mut snapshot = state::empty(settings);
    for object in list(case, "state") {
        state::add(&mut snapshot, &object).expect("an object");
    }
    snapshot
}

/// The view of an object with its name and labels, and the references to look up.
pub(super) fn view(
    family: &Family,
    object: &Value,
    namespace: &str,
    snapshot: &Snapshot,
) -> (Option<MemoryView>, Vec<Reference>) {
    let work = Budget::default();
    let mut state = StateReader::new(snapshot, &work);
    let name = [text(object, "/metadata/name"), text(object, "/metadata/generateName")];
    let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    let group = text(object, "/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let view = if text(object, "/kind") == "Pod" && group.is_empty() {
        let text = object.to_string();
        let pod = Pod::parse(&text).expect("a pod");
        (family.views.of_pod)([&pod, &pod], namespace, &mut state)
    } else {
        let kinds = family.views.kinds.iter().map(|(kind, _)| *kind);
        let kind = { kinds }.find(|kind| kind.is(group, text(object, "/kind"))).expect("a viewed kind");
        let tree = Tree::read(object, &kind.schema).expect("can be read");
        let operation = Operation::Create;
        (family.views.of_object)(
            &Subject { kind, operation, namespace, name, object: &tree, old: None },
            &mut state,
        )
    };
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let labels = Arc::new(labels.collect());
    let view = view.map(|view| MemoryView { name: name.to_owned(), labels, ..view });
    (view, state.into_unknown())
}

/// The namespace of a case's object, as a request has it.
pub(super) fn namespace_of(case: &Value) -> &str {
    let given = [text(case, "/object/metadata/namespace"), text(case, "/namespace")];
    given.into_iter().find(|namespace| !namespace.is_empty()).unwrap_or("default")
}

/// What is compared of a view.
fn compared(view: &mut Value, expected: &Value) {
    if let Value::Object(fields) = view {
        fields.retain(|key, _| !IDENTITY.contains(&key.as_str()) || expected.get(key).is_some());
    }
    let sources = view.get_mut("sources").and_then(Value::as_array_mut).into_iter().flatten();
    for (index, source) in sources.enumerate() {
        compared(source, &expected["sources"][index]);
    }
}

/// What a view says besides what its JSON does, as a case has it.
fn check_rest(case: &Value, view: &MemoryView, unknown: &[Reference], place: &str) {
    for (path, pointer) in case["at"].as_object().into_iter().flatten() {
        assert_eq!(view.pointer(path).as_str(), pointer, "{place}: {path}");
    }
    let endpoint = view.endpoint.as_ref();
    if let Some(hosts) = case.get("hosts") {
        let found: Vec<&str> =
            endpoint.into_iter().flat_map(|it| &it.hosts).map(|it| it.host.as_str()).collect();
        assert_eq!(*hosts, Value::from(found), "{place}: hosts");
    }
    let why = endpoint.and_then(|endpoint| endpoint.unknown.as_ref().or(endpoint.port_unknown.as_ref()));
    assert_eq!(why.map(ToString::to_string).as_deref(), case["why"].as_str(), "{place}: why");
    if let Some(fields) = case.get("sources") {
        let found: Vec<&str> = view.sources.iter().map(|SourceView { field, .. }| field.as_str()).collect();
        assert_eq!(*fields, Value::from(found), "{place}: sources");
    }
    if let Some(names) = case.get("unknown") {
        let name = |it: &Reference| format!("{} {}/{}", it.kind.kind, it.namespace, it.name);
        let found: Vec<String> = unknown.iter().map(name).collect();
        assert_eq!(*names, Value::from(found), "{place}: unknown");
    }
}

#[test]
fn views_are_what_the_cases_say() {
    for (family, cases) in cases() {
        for case in cases {
            let place = format!("{}: {}", family.name, text(&case, "/name"));
            for key in case.as_object().expect("a case").keys() {
                assert!(KEYS.contains(&key.as_str()), "{place}: {key}");
            }
            for object in list(&case, "state") {
                let group = text(&object, "/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
                let kind =
                    memgate_platforms::state_kind(&memgate_platforms::ALL, group, text(&object, "/kind"));
                assert!(kind.is_some(), "{place}: no decision looks at {object}");
            }
            let (view, unknown) = view(family, &case["object"], namespace_of(&case), &snapshot(&case));
            assert!(!format!("{view:?}").contains("hunter2"), "{place}: a credential");
            let mut found = view.as_ref().map_or(Value::Null, MemoryView::to_json);
            let expected = case.get("view").unwrap_or_else(|| panic!("{place}: no view"));
            compared(&mut found, expected);
            let shown = |value| serde_json::to_string_pretty(value).expect("JSON");
            assert!(found == *expected, "{place}:\n{}\nis not\n{}", shown(&found), shown(expected));
            if let Some(view) = view {
                assert!(family.views.kinds.iter().any(|(_, role)| *role == view.role) || view.kind == "Pod");
                check_rest(&case, &view, &unknown, &place);
            }
        }
    }
}

/// Of stored objects policies ask for labels, and reports name them by uid.
#[test]
fn what_is_audited_keeps_labels_and_uid() {
    for family in memgate_platforms::ALL {
        for kind in family.audited() {
            let object = serde_json::json!({"metadata": {"name": "a", "uid": "u", "labels": {"b": "c"}}});
            let object = Object::read(kind, &object).expect("an object").expect("a name");
            assert_eq!((object.uid(), object.label("b")), (Some("u"), Some("c")), "{kind:?}");
        }
    }
}

/// An object of the state gives the same view as the object that was read, whatever is wrong with it.
#[test]
fn what_was_read_can_be_read_again() {
    for (family, cases) in cases() {
        for case in cases {
            let object = &case["object"];
            let mut audited = family.audited();
            let group = text(object, "/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
            let Some(kind) = audited.find(|kind| kind.is(group, text(object, "/kind"))) else { continue };
            for pointer in fields_of(object) {
                for wrong in wrong_values() {
                    let mut object = object.clone();
                    set(&mut object, &pointer, Some(&wrong));
                    let read = |value: &Value| Tree::parse(&value.to_string(), &kind.schema).expect("JSON");
                    let tree = read(&object);
                    let again = read(&tree.to_json());
                    assert_eq!(tree.content_hash(), again.content_hash(), "{pointer}: {wrong}");
                }
            }
        }
    }
}

/// Objects and states in which each field has wrong values, another one for the next: there is a view, or none.
#[test]
fn wrong_values_are_as_good_as_none() {
    one_wrong_value_is_as_good_as_none_of(8);
}

#[test]
#[ignore = "needs minutes"]
fn every_wrong_value_is_as_good_as_none() {
    one_wrong_value_is_as_good_as_none_of(1);
}

fn one_wrong_value_is_as_good_as_none_of(every: usize) {
    let mut turn = 0;
    for (family, cases) in cases() {
        for case in cases {
            let objects = list(&case, "state").len();
            let places = (0..objects).map(|index| format!("/state/{index}")).chain(["/object".to_owned()]);
            for place in places {
                let original = case.pointer(&place).expect("an object");
                for field in fields_of(original) {
                    turn += 1;
                    for wrong in wrong_values().into_iter().skip(turn % every).step_by(every) {
                        let mut changed = case.clone();
                        let object = changed.pointer_mut(&place).expect("an object");
                        if !set(object, &field, Some(&wrong)) {
                            continue;
                        }
                        let shown = || {
                            let found =
                                view(family, &changed["object"], namespace_of(&changed), &snapshot(&changed));
                            let view = found.0.as_ref();
                            view.map(|view| (view.to_json(), view.pointer("endpoint.host")))
                        };
                        let found = catch_unwind(AssertUnwindSafe(shown));
                        let name = text(&case, "/name");
                        assert!(found.is_ok(), "{}: {name}: {place}{field} is {wrong}", family.name);
                    }
                }
            }
        }
    }
}
