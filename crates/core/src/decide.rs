//! The decision: one pure function that the webhook and every command call.
//!
//! [`decide`] takes a request and a snapshot and returns findings and edits. It has no clock, no
//! I/O and no randomness; the same input gives the same decision everywhere. It lists what it could not
//! look up in [`Decision::unknown`].

mod preview;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::family::inject::{INJECT_LABEL, controller_of, label_pointer, marker};
use crate::family::{self, common};
use crate::model::change::is_metadata_only_update;
use crate::model::decision::Decision;
use crate::model::event::{InvolvedObject, PodEvent};
use crate::model::family::{Family, Subject};
use crate::model::finding::{Finding, Phase, Severity, quoted};
use crate::model::kind::{Kind, NAMESPACE};
use crate::model::object::{DEFAULT_NAMESPACE, Lookup, is_deleting};
use crate::model::pod::Pod;
use crate::model::pointer::Pointer;
use crate::model::reason::Reason;
use crate::model::request::{Operation, Request};
use crate::model::snapshot::Snapshot;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;
use crate::model::view::MIRROR_POD;
use crate::model::workload;

/// Decides one request.
///
/// A decision on a pod belongs to the mutating call. A decision on a family's own resource has its
/// edits for the mutating call and its findings for the validating one, which comes later and sees
/// the object with the edits applied.
#[must_use]
pub fn decide(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    if request.is_pod() {
        return decide_pod(request, snapshot);
    }
    if let Some(workload) = workload::find(&request.group, &request.kind) {
        return preview::decide(workload, request, snapshot);
    }
    match family::validated(&snapshot.settings.families, &request.group, &request.kind) {
        Some((family, kind)) => decide_resource(family, kind, request, snapshot),
        None => Decision::pass(Reason::NotOurs),
    }
}

/// The value of the inject label of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InjectMode<'p> {
    None,
    Disabled,
    Required,
    Other(&'p str),
}

fn inject_mode<'p>(pod: &'p Pod<'_>) -> InjectMode<'p> {
    match pod.label(INJECT_LABEL) {
        None => InjectMode::None,
        Some("disabled") => InjectMode::Disabled,
        Some("required") => InjectMode::Required,
        Some(other) => InjectMode::Other(other),
    }
}

/// The namespace that a pod declares by itself, for a manifest without one.
fn declared_namespace<'p>(pod: &'p Pod<'_>, families: &[&'static Family]) -> Option<&'p str> {
    // A pod's own word counts whichever families are switched on.
    let all = family::ALL.iter().chain(families);
    all.filter_map(|family| family.namespace_of_pod).find_map(|read_namespace| read_namespace(pod))
}

fn decide_pod(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    if request.operation != Operation::Create || !request.subresource.is_empty() {
        return Decision::pass(Reason::NotJudged);
    }
    match request.object {
        Some(pod) => decide_new_pod(pod, &request.namespace, snapshot),
        None => Decision::pass(Reason::Malformed),
    }
}

/// Decides about a new pod; an empty `namespace` means that the request has none.
fn decide_new_pod(pod: &str, namespace: &str, snapshot: &Snapshot) -> Decision {
    let pod = match Pod::parse(pod) {
        Ok(pod) => pod,
        Err(error) if !error.is_data() => return Decision::pass(Reason::Unreadable),
        Err(_) => return Decision::pass(Reason::Malformed),
    };
    if inject_mode(&pod) == InjectMode::Disabled {
        return Decision::pass(Reason::OptedOut);
    }
    if pod.deleting() {
        return Decision::pass(Reason::Deleting);
    }
    if pod.annotation(MIRROR_POD).is_some() {
        return Decision::pass(Reason::MirrorPod);
    }
    let metadata_namespace = pod.metadata.as_ref().and_then(|metadata| metadata.namespace.as_deref());
    let namespace = first_non_empty([namespace, metadata_namespace.unwrap_or_default()]);
    let namespace = match (namespace, &snapshot.settings.namespace) {
        ("", None) => declared_namespace(&pod, &snapshot.settings.families).unwrap_or_default(),
        _ => namespace,
    };
    let (namespace, mut state) = resolve_namespace(namespace, snapshot);
    let decision = decide_injection(namespace, &pod, &snapshot.settings.families, &mut state);
    Decision { unknown: state.into_unknown(), ..decision }
}

/// The namespace of an object, given the one of its request or metadata. Without that the settings
/// decide, and without settings it is `default`; the reader then knows that it is an assumption.
fn resolve_namespace<'n>(namespace: &'n str, snapshot: &'n Snapshot) -> (&'n str, StateReader<'n>) {
    match (namespace, &snapshot.settings.namespace) {
        ("", Some(given)) => (given, StateReader::new(snapshot)),
        ("", None) => (DEFAULT_NAMESPACE, StateReader::without_namespace(snapshot)),
        (namespace, _) => (namespace, StateReader::new(snapshot)),
    }
}

/// The first enabled family that recognises the pod decides.
fn decide_injection(
    namespace: &str,
    pod: &Pod<'_>,
    families: &[&'static Family],
    state: &mut StateReader<'_>,
) -> Decision {
    let inject_mode = inject_mode(pod);
    let required = inject_mode == InjectMode::Required;
    let recognised =
        families.iter().find_map(|family| Some((*family, (family.inject)(pod, namespace, state)?)));
    let Some((family, injection)) = recognised else {
        let is_other_pod =
            families.iter().any(|family| family.knows_other_pods.is_some_and(|knows| knows(pod)));
        let refused = required && !is_other_pod;
        return if refused { not_recognised() } else { Decision::pass(Reason::NotOurs) };
    };
    let required = required && family.honours_required;
    // The label of a pod overrides that of its namespace.
    let namespace_mode = if required { None } else { namespace_label(namespace, state) };
    if namespace_mode == Some("disabled") {
        return Decision::pass(Reason::OptedOut);
    }
    let mut edits = Vec::new();
    if !injection.edits.is_empty() {
        let marker = marker::edit(pod, family, injection.added);
        edits = injection.edits;
        edits.push(marker);
    }
    let severity = if required { Severity::Deny } else { Severity::Warn };
    let reported = injection.unmet.into_iter().filter(|_| required || !injection.quiet);
    let unmet: Vec<Finding> = reported.map(|finding| Finding { severity, ..finding }).collect();
    let admitted_without = unmet.first().filter(|_| !required);
    let event = admitted_without.and_then(|finding| {
        let regarding = involved_object(family, pod, namespace, state)?;
        Some(PodEvent { regarding, finding: finding.clone(), partly: !edits.is_empty() })
    });
    let mut findings = injection.warnings;
    findings.extend(unmet);
    if let InjectMode::Other(value) = inject_mode {
        findings.push(label_unknown(family, value));
    }
    findings.extend(namespace_mode.map(|value| namespace_label_unknown(family, namespace, value)));
    findings.sort_by(|a, b| compare_pointers(&a.pointer, &b.pointer));
    let (family, missing) = (Some(family), injection.missing);
    let from_controller = !missing.is_empty() && is_from_controller(pod, namespace);
    let pass = Decision::pass(injection.reason);
    Decision { findings, edits, missing, from_controller, required, event, family, ..pass }
}

/// The built-in controllers that try again when a pod of theirs is refused. What others do is not known.
const RETRYING_CONTROLLERS: [(&str, &[&str]); 2] =
    [("apps", &["ReplicaSet", "StatefulSet", "DaemonSet"]), ("batch", &["Job"])];

/// Whether one of these made the pod.
fn is_from_controller(pod: &Pod<'_>, namespace: &str) -> bool {
    controller_of(pod, namespace).is_some_and(|controller| {
        let group = controller.api_version.split_once('/').map_or("", |(group, _)| group);
        let is = |(of, kinds): &(&str, &[&str])| *of == group && kinds.contains(&controller.kind.as_ref());
        RETRYING_CONTROLLERS.iter().any(is)
    })
}

/// The object on whose behalf the pod runs. One of another namespace is dropped: an Event about it would
/// show that namespace to readers of this one.
fn involved_object(
    family: &'static Family,
    pod: &Pod<'_>,
    namespace: &str,
    state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    let object = (family.involved_object)(pod, namespace, state);
    object.filter(|object| object.namespace == namespace)
}

/// The value of the inject label of a namespace.
fn namespace_label<'s>(namespace: &str, state: &mut StateReader<'s>) -> Option<&'s str> {
    match state.get(&NAMESPACE, "", namespace) {
        Lookup::Found(object) => object.label(INJECT_LABEL),
        Lookup::Absent | Lookup::Unknown => None,
    }
}

fn label_unknown(family: &'static Family, value: &str) -> Finding {
    let message = format!(
        "label memgate.dev/inject: unsupported value {}; use \"disabled\" or \"required\"",
        quoted(value)
    );
    Finding::warn(family.inject_label_unknown, label_pointer(INJECT_LABEL), message)
}

fn namespace_label_unknown(family: &'static Family, namespace: &str, value: &str) -> Finding {
    let message = format!(
        "namespace {}: label memgate.dev/inject: unsupported value {}; use \"disabled\"",
        quoted(namespace),
        quoted(value)
    );
    Finding::warn(family.inject_label_unknown, Pointer::new("/metadata/namespace"), message)
}

fn not_recognised() -> Decision {
    let message = "the pod requires its memory, but has no label by which an enabled family knows it";
    let finding = Finding::deny(&common::POD_NOT_RECOGNISED, label_pointer(INJECT_LABEL), message)
        .help("label the pod with its agent's name as its platform does, or take memgate.dev/inject away");
    Decision { findings: vec![finding], required: true, ..Decision::pass(Reason::NotRecognised) }
}

fn decide_resource(
    family: &'static Family,
    kind: &'static Kind,
    request: &Request<'_>,
    snapshot: &Snapshot,
) -> Decision {
    if request.operation == Operation::Connect || !request.subresource.is_empty() {
        return Decision::pass(Reason::NotJudged);
    }
    let deleted = request.operation == Operation::Delete;
    let text = if deleted { request.old_object } else { request.object };
    let object = match text.map(|text| Tree::parse(text, &kind.schema)) {
        Some(Ok(object)) => object,
        Some(Err(_)) => return Decision::pass(Reason::Unreadable),
        None if deleted => return Decision::pass(Reason::NotJudged),
        None => return Decision::pass(Reason::Malformed),
    };
    if is_deleting(&object) && !deleted {
        return Decision::pass(Reason::Deleting);
    }
    if family.validates_changes_only && is_metadata_only_update(request) {
        return Decision::pass(Reason::NotJudged);
    }
    let old = request.old_object.filter(|_| request.operation == Operation::Update);
    let old = old.and_then(|text| Tree::parse(text, &kind.schema).ok());
    let metadata = |field| object.at(&["metadata", field]).and_then(Tree::text).unwrap_or_default();
    let name = first_non_empty([&request.name, metadata("name")]);
    let namespace = first_non_empty([&request.namespace, metadata("namespace")]);
    let (namespace, state) = if kind.namespaced {
        resolve_namespace(namespace, snapshot)
    } else {
        ("", StateReader::new(snapshot))
    };
    let operation = request.operation;
    let subject = Subject { kind, operation, namespace, name, object: &object, old: old.as_ref() };
    decide_subject(family, &subject, state)
}

/// The first text that is not empty. Callers put the request before the object's own metadata.
fn first_non_empty<const N: usize>(texts: [&str; N]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

fn decide_subject(family: &'static Family, subject: &Subject<'_>, mut state: StateReader<'_>) -> Decision {
    let mut findings = (family.validate)(subject, &mut state);
    if let Some(old) = subject.old {
        ratchet(family, subject, old, &mut findings, &mut state);
    }
    let denied = findings.iter().any(|finding| finding.severity == Severity::Deny);
    findings.retain(|finding| !(denied && finding.when_allowed));
    findings.sort_by_cached_key(|finding| subject.object.document_position(&finding.pointer));
    let edits = if subject.operation == Operation::Delete {
        Vec::new()
    } else {
        (family.default)(subject, &mut state)
    };
    let reason = match (denied, edits.is_empty()) {
        (true, _) => Reason::Invalid,
        (false, false) => Reason::Defaulted,
        (false, true) => Reason::Valid,
    };
    let unknown = state.into_unknown();
    let family = Some(family);
    Decision { findings, edits, unknown, family, phase: Phase::Validate, ..Decision::pass(reason) }
}

/// Turns each denial that the stored object already deserves into a warning, so that a stored object can
/// still be labelled, annotated and freed of its finalizers.
/// Source: Kubernetes documentation, CRD validation ratcheting.
fn ratchet(
    family: &'static Family,
    subject: &Subject<'_>,
    old: &Tree,
    findings: &mut [Finding],
    state: &mut StateReader<'_>,
) {
    if findings.iter().all(|finding| finding.severity == Severity::Warn) {
        return;
    }
    let stored = Subject { operation: Operation::Create, object: old, old: None, ..*subject };
    let old_findings = (family.validate)(&stored, state);
    let denied = old_findings.iter().filter(|old| old.severity == Severity::Deny);
    let old_denials: BTreeSet<_> = denied.map(Finding::fingerprint).collect();
    for finding in findings {
        if old_denials.contains(&finding.fingerprint()) {
            finding.severity = Severity::Warn;
        }
    }
}

/// Orders two pointers by position, in an object whose fields are sorted by name, as the apiserver
/// sends them.
fn compare_pointers(a: &Pointer, b: &Pointer) -> Ordering {
    fn key(token: Cow<'_, str>) -> (usize, Cow<'_, str>) {
        (token.parse().unwrap_or(0), token)
    }
    a.tokens().map(key).cmp(b.tokens().map(key))
}
