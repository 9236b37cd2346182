//! Decides about pods: which families know one, and what they add to it together.
//!
//! Each family that recognises a pod decides on its own. What they add is joined in the order of the
//! families, so a later one sees the pod with the edits of the earlier ones.

mod validity;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::patch::Patch;
use crate::patch::apply::apply;
use memgate_manifest::later::is_filled_in_later;
use memgate_model::decision::{Decision, FamilyShare, PodOrigin};
use memgate_model::edit::{Edit, Op};
use memgate_model::elsewhere::Elsewhere;
use memgate_model::event::{InvolvedObject, PodEvent};
use memgate_model::family::Family;
use memgate_model::finding::{Cause, Finding, Severity};
use memgate_model::injection::{Injection, Item};
use memgate_model::kind::NAMESPACE;
use memgate_model::object::{Lookup, Object};
use memgate_model::pod::Pod;
use memgate_model::reason::Reason;
use memgate_model::request::{Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::view::{MIRROR_POD, REPEATED};
use memgate_platforms::common;
use memgate_platforms::inject::marker;
use memgate_platforms::inject::{INJECT_LABEL, controller_of, label_pointer, not_looked_up};
use memgate_primitives::budget::{Budget, Limit, MAX_PATCH_BYTES, OverLimit, Stop};
use memgate_primitives::plain_text::{cut, quoted, quoted_text, shown_name};
use memgate_primitives::pointer::Pointer;
use serde_json::Value as Json;

use super::added::{confirmed, marked, text_of, unhindered};
use super::{namespace_of_pod, over_limit, policies, reported, resolve_namespace};

/// The longest pod that is read again for the sake of its marker annotation, in bytes: more than etcd stores of most pods.
const MAX_READ_AGAIN_BYTES: usize = 3 << 19;

/// How many characters of a name are kept of a pod without one: the longest name in Kubernetes.
const MAX_NAME_CHARS: usize = 253;

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
        // In a file, it is not known if anything is added.
        Some(later) if is_filled_in_later(later) => InjectMode::Disabled,
        Some("required") => InjectMode::Required,
        Some(other) => InjectMode::Other(other),
    }
}

pub(super) fn decide(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    if request.operation != Operation::Create || !request.subresource.is_empty() {
        return Decision::pass(Reason::NotJudged);
    }
    let Some(text) = request.object else { return Decision::pass(Reason::Malformed) };
    let budget = Budget::new(request.cancelled, text.len());
    let pod = match Pod::parse_within(text, &budget) {
        Ok(pod) => pod,
        Err(error) if !error.is_data() || error.to_string().starts_with(REPEATED) => {
            return Decision::pass(Reason::Unreadable);
        }
        Err(_) => return Decision::pass(Reason::Malformed),
    };
    let decision = decide_read((text, &pod), request, snapshot, &budget);
    let is_nameless = request.name.is_empty() && decision.reason != Reason::NotOurs;
    Decision { origin: is_nameless.then(|| origin(&pod)), steps: budget.taken(), ..decision }
}

fn decide_read(
    (text, pod): (&str, &Pod<'_>),
    request: &Request<'_>,
    snapshot: &Snapshot,
    budget: &Budget<'_>,
) -> Decision {
    let opts_out = inject_mode(pod) == InjectMode::Disabled;
    if opts_out && snapshot.policies.is_empty() {
        return opted_out(pod);
    }
    if pod.annotation(MIRROR_POD).is_some() {
        return Decision::pass(Reason::MirrorPod);
    }
    let namespace = namespace_of_pod(pod, &request.namespace, snapshot);
    let (namespace, state) = resolve_namespace(namespace, snapshot, budget);
    let mut state = state.at(request.occasion.point);
    let decision = if opts_out {
        opted_out(pod)
    } else {
        decide_injection(text, pod, namespace, &snapshot.settings.families, &mut state)
    };
    let known = !matches!(decision.reason, Reason::NotOurs | Reason::NotRecognised | Reason::OptedOut);
    let required = decision.required;
    let with_policies = |(decision, over): (Decision, OverLimit)| {
        policies::refuse_unread(decision, pod, (text, namespace), &over, request, snapshot)
    };
    match budget.stopped() {
        Some(Stop::Cancelled) => return Decision::pass(Reason::Cancelled),
        Some(Stop::OverLimit(over)) => {
            return with_policies((over_limit::pod(&over, known, required).unwrap_or(decision), over));
        }
        None => {}
    }
    let decision = policies::add_to_pod(decision, pod, (text, namespace), request, snapshot, &mut state);
    // The views read more of the pod than the injection, which an opt-out skips.
    match budget.stopped() {
        Some(Stop::Cancelled) => Decision::pass(Reason::Cancelled),
        Some(Stop::OverLimit(over)) => with_policies((decision, over)),
        None => {
            let decision = refuse_after_failed_lookup(decision, &state);
            Decision { unknown: state.into_unknown(), ..decision }
        }
    }
}

fn origin(pod: &Pod<'_>) -> PodOrigin {
    let metadata = pod.metadata.as_ref();
    let generate_name = metadata.and_then(|metadata| metadata.generate_name.as_deref());
    let controller = metadata.and_then(|metadata| metadata.owner_references.as_ref()?.controller());
    // A name is made of its prefix and of letters behind it.
    let shown = |prefix: &str| {
        let start = prefix.trim_end_matches(['-', '.']);
        let shown = shown_name(start);
        if shown == start { cut(prefix, MAX_NAME_CHARS).into_owned() } else { shown.into_owned() }
    };
    PodOrigin {
        generate_name: generate_name.map(shown).unwrap_or_default(),
        owner: controller.map(|owner| {
            cut(&format!("{}/{}", owner.kind, shown_name(&owner.name)), MAX_NAME_CHARS).into_owned()
        }),
    }
}

/// Refuses a pod that requires its memory if an object that the decision depends on could not be looked up, and nothing
/// else refuses the pod.
fn refuse_after_failed_lookup(mut decision: Decision, state: &StateReader<'_>) -> Decision {
    if !decision.required || !decision.allowed() {
        return decision;
    }
    let Some((failed, _)) = state.failed_lookup(|_| true) else { return decision };
    let families = decision.families.iter().map(|share| share.family);
    // The family of the object first; Services are of none.
    let (own, others): (Vec<_>, Vec<_>) =
        families.partition(|family| family.kinds.watched.contains(&&*failed.kind));
    let mut codes = own.into_iter().chain(others).flat_map(|family| family.codes);
    if let Some(code) = codes.find(|code| code.cause == Cause::Unavailable) {
        let message = not_looked_up([failed.kind.kind, &failed.namespace, &failed.name], state);
        decision.findings.push(Finding::deny(code, label_pointer(INJECT_LABEL), message));
        decision.reason = Reason::ReferenceUnknown;
    }
    decision
}

/// The decision of one family about a pod that it recognises.
struct FamilyDecision<'s> {
    family: &'static Family,
    injection: Injection,
    /// Whether the pod is refused when this family's memory is missing.
    required: bool,
    /// The inject label of the namespace, where it counts: that of a pod overrides it.
    namespace_label: Option<&'s str>,
}

impl FamilyDecision<'_> {
    fn refuses(&self) -> bool {
        self.required && !self.injection.unmet.is_empty()
    }
}

/// A pod to which nothing is added. What it brings as the annotation of memgate goes.
fn opted_out(pod: &Pod<'_>) -> Decision {
    let edits = marker::edit(pod, Vec::new(), &|_, _| false).into_iter().collect();
    Decision { edits, ..Decision::pass(Reason::OptedOut) }
}

/// Joins the decisions of the enabled families that recognise the pod.
fn decide_injection(
    text: &str,
    pod: &Pod<'_>,
    namespace: &str,
    families: &[&'static Family],
    state: &mut StateReader<'_>,
) -> Decision {
    let asks = inject_mode(pod) == InjectMode::Required;
    let mut decisions = Vec::new();
    for &family in families {
        let Some(injection) = (family.faces.inject)(pod, namespace, state) else { continue };
        let required = asks && family.pods.honour_required;
        let namespace_label = if asks { None } else { namespace_label(namespace, state) };
        decisions.push(FamilyDecision { family, injection, required, namespace_label });
    }
    if decisions.is_empty() {
        let is_other_pod =
            families.iter().any(|family| family.pods.known_otherwise.is_some_and(|knows| knows(pod)));
        let refused = asks && !is_other_pod;
        return if refused { not_recognised() } else { Decision::pass(Reason::NotOurs) };
    }
    decisions.retain(|decision| decision.namespace_label != Some("disabled"));
    if decisions.is_empty() {
        return opted_out(pod);
    }
    if state.budget().has_ended() {
        // The edits are incomplete and are not used.
        let required = decisions.iter().any(|decision| decision.required);
        return Decision { required, ..Decision::pass(joined_reason(&decisions)) };
    }
    make_edits_consecutive(text, namespace, &mut decisions, state);
    let kept = kept(text, pod, namespace, (families, &decisions), state);
    let mut marker = mark(pod, &mut decisions, &kept);
    if let Some(finding) = marker.as_ref().and_then(|marker| validity::too_long(text, marker)) {
        for FamilyDecision { injection, .. } in
            decisions.iter_mut().filter(|it| !it.injection.edits.is_empty())
        {
            leave_out(injection, finding.clone());
        }
        marker = mark(pod, &mut decisions, &kept);
    }
    join(pod, namespace, decisions, marker, state)
}

/// What stays of the marker annotation that a pod brings.
#[derive(Default)]
struct Kept {
    items: BTreeSet<Item>,
    /// What memgate adds to the pod without these.
    given: BTreeSet<Item>,
    /// The annotation that memgate would write itself.
    own: Json,
}

/// Decides about the pod without what its annotation names. Another webhook may have changed the pod since, so a large
/// pod is not read a second time, and nothing of its annotation stays. What memgate added before stays named where only the
/// surroundings of the pod, such as another container on a port, keep it from being added today.
fn kept(
    text: &str,
    pod: &Pod<'_>,
    namespace: &str,
    (families, decisions): (&[&'static Family], &[FamilyDecision<'_>]),
    state: &mut StateReader<'_>,
) -> Kept {
    let has_earlier = marker::earlier(pod).is_some_and(|earlier| !marker::objects(&earlier).is_empty());
    if !has_earlier || text.len() > MAX_READ_AGAIN_BYTES || !state.budget().bytes(text.len()) {
        return Kept::default();
    }
    let Ok(value) = serde_json::from_str::<Json>(text) else { return Kept::default() };
    let mut decide = |bare: &str| {
        if !state.budget().bytes(text.len()) {
            return Vec::new();
        }
        let Ok(pod) = Pod::parse(bare) else { return Vec::new() };
        decide_injection(bare, &pod, namespace, families, state).edits
    };
    let (mut items, mut given, mut own) = confirmed(&value, &value, &mut decide);
    if !marked(&value).unwrap_or_default().iter().all(|item| items.contains(item)) {
        let (more, more_given, unhindered) = confirmed(&value, &unhindered(value.clone()), &mut decide);
        if !more.is_subset(&items) {
            items.extend(more);
            given.extend(more_given);
            own = unhindered;
        }
    }
    // What this decision takes out does not stay.
    for edit in decisions.iter().flat_map(|it| &it.injection.edits).filter(|edit| edit.op == Op::Remove) {
        let name = value.pointer(edit.pointer.as_str()).map(|it| text_of(it, "name")).unwrap_or_default();
        items.remove(&Item::InitContainer(name));
    }
    Kept { items, given, own }
}

impl Kept {
    fn has(&self, family: &Family, item: &Item) -> bool {
        match item {
            Item::Memory(_) => marker::added_by(&self.own, family).contains(item),
            _ => self.items.contains(item),
        }
    }
}

/// The edit that writes the marker annotation, for what the families add and what stays.
fn mark(pod: &Pod<'_>, decisions: &mut [FamilyDecision<'_>], kept: &Kept) -> Option<Edit> {
    let added = decisions.iter_mut().map(|FamilyDecision { family, injection, .. }| {
        let mut added = std::mem::take(&mut injection.added);
        let restored = std::mem::take(&mut injection.restored).into_iter();
        added.extend(restored.filter(|volume| kept.given.contains(volume)));
        added.retain(|_| !injection.edits.is_empty());
        (*family, if marker::adds_any(&added) { added } else { Vec::new() })
    });
    marker::edit(pod, added.collect(), &|family, item| kept.has(family, item))
}

/// Bases the edits of each family on the pod with the edits of the families before it, and leaves out those with which
/// the pod would be invalid. The findings stay those about the sent pod, whose fields its author knows.
fn make_edits_consecutive(
    text: &str,
    namespace: &str,
    decisions: &mut [FamilyDecision<'_>],
    state: &mut StateReader<'_>,
) {
    let mut text = Cow::Borrowed(text);
    let last = decisions.len().saturating_sub(1);
    for (index, FamilyDecision { family, injection, .. }) in decisions.iter_mut().enumerate() {
        if let Cow::Owned(edited) = &text {
            let pod = Pod::parse(edited).ok();
            let next = pod.and_then(|pod| (family.faces.inject)(&pod, namespace, state));
            let next = next.map(|injection| (injection.edits, injection.added, injection.restored));
            (injection.edits, injection.added, injection.restored) = next.unwrap_or_default();
        }
        if let Some(finding) = validity::refusal(&text, &injection.edits) {
            leave_out(injection, finding);
        }
        if index < last && !injection.edits.is_empty() {
            // Edits that do not apply are a fault, which the check of the whole patch reports.
            let Ok(edited) = apply(&text, &injection.edits) else { return };
            text = Cow::Owned(edited);
        }
    }
}

/// Takes back what a family adds, since the pod would be invalid with it.
fn leave_out(injection: &mut Injection, finding: Finding) {
    injection.edits.clear();
    // Notes are about parts that were put back.
    injection.warnings.retain(|finding| finding.severity != Severity::Note);
    (injection.added, injection.restored) = (Vec::new(), Vec::new());
    injection.reason = Reason::Conflict;
    injection.only_if_required = false;
    injection.unmet.push(finding);
}

/// Makes one decision of those of all families that recognise the pod.
fn join(
    pod: &Pod<'_>,
    namespace: &str,
    decisions: Vec<FamilyDecision<'_>>,
    marker: Option<Edit>,
    state: &StateReader<'_>,
) -> Decision {
    let mut joined = Decision::pass(joined_reason(&decisions));
    for decision in decisions {
        let FamilyDecision { family, injection, required, namespace_label } = decision;
        let edits = injection.edits.len();
        joined.families.push(FamilyShare { family, edits });
        joined.required |= required;
        let severity = if required { Severity::Deny } else { Severity::Warn };
        // What files leave open is not missing.
        let is_open = |finding: &Finding| finding.code.cause == Cause::Unavailable && state.of_files();
        let is_reported = |finding: &Finding| required || !injection.only_if_required && !is_open(finding);
        let reported = injection.unmet.into_iter().filter(is_reported);
        let mut unmet: Vec<Finding> = reported.map(|finding| Finding { severity, ..finding }).collect();
        if let Some(first) = unmet.first_mut().filter(|finding| finding.code.cause == Cause::NotFound) {
            first.missing.clone_from(&injection.missing);
        }
        let admitted_without = unmet.first().filter(|_| !required);
        joined.unmet = joined.unmet.or_else(|| admitted_without.map(|finding| finding.code));
        joined.events.extend(admitted_without.and_then(|finding| {
            let regarding = involved_object(family, pod, namespace, state)?;
            Some(PodEvent { regarding, finding: finding.clone(), partly: edits > 0 })
        }));
        joined.findings.extend(injection.warnings);
        joined.findings.extend(unmet);
        if let InjectMode::Other(value) = inject_mode(pod) {
            joined.findings.extend(label_unknown(family, value));
        }
        let object = || state.peek(&NAMESPACE, "", namespace);
        let unknown =
            namespace_label.and_then(|value| namespace_label_unknown(family, namespace, value, object()));
        joined.findings.extend(unknown);
        joined.edits.extend(injection.edits);
        joined.missing.extend(injection.missing);
    }
    if let Some(marker) = marker {
        let adding = joined.families.iter().rposition(|share| share.edits > 0).unwrap_or(0);
        if let Some(share) = joined.families.get_mut(adding) {
            share.edits += 1;
        }
        joined.edits.push(marker);
    }
    if Patch(&joined.edits).is_longer_than(MAX_PATCH_BYTES) {
        state.budget().over_limit(Pointer::root, Limit::Patch);
    }
    joined.findings.sort_by_cached_key(|finding| reported::position(&finding.pointer));
    // A setting of the pod is one cause, whichever families it concerns.
    joined.findings.dedup_by(|one, other| {
        [&common::POD_DNS, &common::POD_PROXY].contains(&one.code)
            && (one.code, &one.pointer, one.severity) == (other.code, &other.pointer, other.severity)
    });
    joined.not_shown = reported::keep_first(&mut joined.findings);
    joined.from_controller = !joined.missing.is_empty() && is_from_controller(pod, namespace);
    if !joined.allowed() {
        // Another family refuses the pod: nothing starts without its memory.
        joined.events.clear();
    }
    joined
}

/// The joined reason of several families: that of the first one that refuses the pod, else that memory was added,
/// else what is missing, else why nothing was to be added.
fn joined_reason(decisions: &[FamilyDecision<'_>]) -> Reason {
    const IN_ORDER: [Reason; 8] = [
        Reason::Injected,
        Reason::ReferenceMissing,
        Reason::ReferenceInvalid,
        Reason::ReferenceUnknown,
        Reason::NoContainer,
        Reason::Conflict,
        Reason::Complete,
        Reason::NoMemory,
    ];
    let has = |reason: &Reason| decisions.iter().any(|decision| decision.injection.reason == *reason);
    let of = |decision: &FamilyDecision<'_>| decision.injection.reason;
    let refusing = decisions.iter().find(|decision| decision.refuses()).map(of);
    let joined = refusing.or_else(|| IN_ORDER.into_iter().find(has));
    joined.or_else(|| decisions.first().map(of)).unwrap_or(Reason::NotOurs)
}

/// The object on whose behalf the pod runs. One of another namespace is dropped: an Event about it would
/// show that namespace to readers of this one.
fn involved_object(
    family: &'static Family,
    pod: &Pod<'_>,
    namespace: &str,
    state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    let object = (family.faces.involved_object)(pod, namespace, state);
    object.filter(|object| object.namespace == namespace)
}

/// The value of the inject label of a namespace.
fn namespace_label<'s>(namespace: &str, state: &mut StateReader<'s>) -> Option<&'s str> {
    match state.get(&NAMESPACE, "", namespace) {
        Lookup::Found(object) => object.label(INJECT_LABEL),
        Lookup::Absent | Lookup::Unknown(()) => None,
    }
}

fn label_unknown(family: &'static Family, value: &str) -> Option<Finding> {
    let code = family.pods.inject_label_unknown?;
    let message = format!(
        "label memgate.dev/inject: unsupported value {}; use \"disabled\" or \"required\"",
        quoted_text(value)
    );
    Some(Finding::warn(code, label_pointer(INJECT_LABEL), message))
}

fn namespace_label_unknown(
    family: &'static Family,
    namespace: &str,
    value: &str,
    object: Option<&Object>,
) -> Option<Finding> {
    let code = family.pods.inject_label_unknown?;
    let message = format!(
        "namespace {}: label memgate.dev/inject: unsupported value {}; use \"disabled\"",
        quoted(namespace),
        quoted_text(value)
    );
    let at = label_pointer(INJECT_LABEL);
    let finding = Finding::warn(code, Pointer::new("/metadata/namespace"), message);
    Some(finding.and_elsewhere(|| Some(Elsewhere::of(object?, at, "this label"))))
}

fn not_recognised() -> Decision {
    let message = "the pod requires its memory, but has no label by which an enabled family knows it";
    let finding = Finding::deny(&common::POD_NOT_RECOGNISED, label_pointer(INJECT_LABEL), message)
        .help("label the pod with its agent's name as its platform does, or take memgate.dev/inject away");
    Decision { findings: vec![finding], required: true, ..Decision::pass(Reason::NotRecognised) }
}

/// The built-in controllers that try again when their pod is refused. The behaviour of other controllers is not known.
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
