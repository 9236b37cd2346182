//! Decides about one object.
//!
//! ```text
//! UndecidedObject ──admitted──▶ Admitted ──forget_later──▶ what is known of it ──at_places──▶ Decision
//! ```

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use crate::build::ours::Ours;
use crate::build::rules::change;
use crate::files::errors::fault_of;
use crate::files::inputs::Unfilled;
use crate::files::judge::Decided;
use crate::files::objects::{CheckedObject, UndecidedObject, open_state};
use memgate_core::admission::{self, Admitted, admit};
use memgate_core::decide::{form, later};
use memgate_core::state;
use memgate_manifest::error::Error;
use memgate_manifest::later::is_filled_in_later;
use memgate_model::decision::Decision;
use memgate_model::finding::{Cause, Finding, Severity};
use memgate_model::object::Reference;
use memgate_model::reason::Reason;
use memgate_model::request::{Occasion, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::workload;
use memgate_primitives::fix::Fix;
use memgate_primitives::pointer::Pointer;
use serde_json::Value;

/// What was made of an object.
pub(super) enum ObjectOutcome {
    /// A decision.
    Decided(Box<Decided>),
    /// memgate is never asked about it.
    Exempt(Box<CheckedObject>),
    /// It cannot be decided.
    Fault(Error),
}

/// Decides about an object.
pub(super) fn decide(
    undecided: UndecidedObject,
    states: &States<'_>,
    occasion: Occasion<'static>,
) -> ObjectOutcome {
    if undecided.is_exempt() {
        return ObjectOutcome::Exempt(undecided.into_object());
    }
    match decision(&undecided, states, occasion) {
        Ok(decision) => ObjectOutcome::Decided(Box::new(decided(undecided.into_object(), decision))),
        Err(fault) => ObjectOutcome::Fault(fault_of(&undecided.object, &fault)),
    }
}

fn decided(object: Box<CheckedObject>, decision: Decision) -> Decided {
    // Nor is it known whether it opts out.
    let is_label = |it: &Pointer| it.as_str().ends_with("/labels/memgate.dev~1inject");
    let is_later = object.later.as_ref().is_some_and(|later| later.unknown.iter().any(is_label));
    let is_judged = is_later
        || !decision.families.is_empty()
        || !decision.policies.is_empty()
        || decision.reason == Reason::Valid;
    let mut decided = Decided { object, decision, is_judged, users: None };
    decided.is_judged |= !decided.allowed();
    decided
}

/// The decision about an object, with its findings at their places in the document.
fn decision(
    undecided: &UndecidedObject,
    states: &States<'_>,
    occasion: Occasion<'static>,
) -> Result<Decision, admission::Error> {
    let (request, [snapshot, bare]) = (undecided.request_at(occasion), states.of(undecided));
    let mut admitted = admitted(&request, snapshot, states)?;
    let literal = literal_findings(undecided, occasion, bare, &admitted.decision.findings);
    if undecided.object.later.is_some() || !std::ptr::eq(snapshot, bare) {
        forget_later(&mut admitted, undecided, (occasion, bare), states)?;
    }
    let mut decision = Decision { edits: admitted.edits, ..admitted.decision };
    decision.findings.extend(literal);
    if !decision.allowed() && decision.reason == Reason::Valid {
        decision.reason = Reason::Invalid;
    }
    decision.unknown.retain(has_known_name);
    at_places(&mut decision.findings, undecided, (&request, snapshot));
    decision.findings.extend(of_form(undecided));
    decision.findings.shrink_to_fit();
    Ok(decision)
}

/// The answers of both calls. What is not found counts only if the inputs hold objects of its kind.
fn admitted(
    request: &Request<'_>,
    snapshot: &Snapshot,
    states: &States<'_>,
) -> Result<Admitted, admission::Error> {
    let mut admitted = admit(request, snapshot)?;
    if admitted.decision.findings.iter().any(is_not_found) {
        let open = admit(request, &states.open)?;
        note_not_found(&mut admitted.decision.findings, &open.decision.findings);
    }
    Ok(admitted)
}

/// Leaves of a decision what holds whatever a later step fills in.
fn forget_later(
    admitted: &mut Admitted,
    undecided: &UndecidedObject,
    (occasion, bare): (Occasion<'static>, &Snapshot),
    states: &States<'_>,
) -> Result<(), admission::Error> {
    let Admitted { decision, edits, .. } = admitted;
    if decision.findings.is_empty() && edits.is_empty() {
        return Ok(());
    }
    let without = undecided.without_later().map_err(|_| admission::Error::Unreadable)?;
    let without = admit(&without.request_at(occasion), bare)?;
    let known = (&without.decision, &*without.edits);
    later::keep_known(&undecided.request_at(occasion), &states.later, (decision, edits), known);
    let object = &undecided.object;
    edits.retain(|edit| !object.is_put_in(&object.in_document(&edit.pointer)));
    Ok(())
}

/// Whether an object that is not known has a name that is. Why a whole kind is not known, another note says.
fn has_known_name(it: &Reference) -> bool {
    !it.name.is_empty() && ![&it.namespace, &it.name].into_iter().any(|it| is_filled_in_later(it))
}

/// Gives findings their places in the document, and the values that were judged there.
fn at_places(
    findings: &mut Vec<Finding>,
    undecided: &UndecidedObject,
    (request, snapshot): (&Request<'_>, &Snapshot),
) {
    let (object, values) = (&undecided.object, JudgedValues::of(undecided));
    let at_place = |mut finding: Finding| {
        let place = object.in_document(&finding.pointer);
        let is_fixed = !object.is_put_in(&place) && !is_taken(&finding, request, snapshot);
        finding.settle_at(&place);
        values.pin(&mut finding, &place);
        let related = finding.related.take().map(|(pointer, label)| (object.in_document(&pointer), label));
        let finding = Finding { pointer: place, related, ..finding };
        if is_fixed { finding } else { finding.fix(None) }
    };
    *findings = std::mem::take(findings).into_iter().map(at_place).collect();
}

/// Whether another object has the name that a finding would write: the two would become one.
fn is_taken(finding: &Finding, request: &Request<'_>, snapshot: &Snapshot) -> bool {
    let details = finding.details();
    let Some(Fix::Text(name)) = details.fix.as_ref().filter(|_| finding.pointer.as_str() == "/metadata/name")
    else {
        return false;
    };
    let kind = memgate_platforms::state_kind(&snapshot.settings.families, &request.group, &request.kind);
    kind.and_then(|kind| snapshot.kind(kind)?.object(&request.namespace, name)).is_some()
}

/// The findings about URLs of which a later step fills in parts, whatever it fills in: about a literal password, host or scheme.
/// They read as those about the text itself, if there are such.
fn literal_findings(
    undecided: &UndecidedObject,
    occasion: Occasion<'static>,
    snapshot: &Snapshot,
    written: &[Finding],
) -> Vec<Finding> {
    const WORDS: [[&str; 3]; 4] = [
        ["", "unknown", "http"],
        ["unknown", "unknown", "https"],
        ["1", "1.1.1.1", "postgres"],
        ["1.1.1", "unknown.example.com", "redis"],
    ];
    let is_same = |one: &Finding, other: &Finding| one.code == other.code && one.pointer == other.pointer;
    let mut judged: Vec<Vec<Finding>> = Vec::new();
    for words in WORDS.into_iter().filter(|_| undecided.object.later.is_some()) {
        let Some((filled, places)) = undecided.with_parts_filled(words) else { return Vec::new() };
        let mut request = filled.request_at(occasion);
        let others = request.occasion.later.map(|later| later.difference(&places).cloned().collect());
        request.occasion.later = others.as_ref();
        // A Service may be that of the words.
        let is_of_text = |it: &Finding| {
            let is_of_core = it.elsewhere.iter().any(|other| other.object.kind.group.is_empty());
            places.contains(&it.pointer) && it.missing.is_empty() && !is_of_core && it.policy.is_none()
        };
        let found = admit(&request, snapshot).map(|admitted| admitted.decision.findings).unwrap_or_default();
        judged.push(found.into_iter().filter(is_of_text).collect());
    }
    // What is denied with some words says nothing of the rest of it.
    let is_in = |it: &Finding, found: &Vec<Finding>| {
        let hides = |other: &Finding| other.is_denial() && !it.is_denial() && other.pointer == it.pointer;
        found.iter().any(|other| is_same(it, other) || hides(other))
    };
    let mut common: Vec<Finding> = Vec::new();
    for it in judged.iter().flatten() {
        if judged.iter().all(|found| is_in(it, found)) && !common.iter().any(|known| is_same(known, it)) {
            common.push(it.clone());
        }
    }
    let as_written = |it: Finding| written.iter().find(|own| is_same(own, &it)).cloned().unwrap_or(it);
    common.into_iter().map(as_written).collect()
}

/// The values of an object, or of one of several templates in it, read when a finding needs one.
pub(crate) struct JudgedValues<'o> {
    json: &'o str,
    /// Where it is in the document.
    within: Pointer,
    value: OnceCell<Value>,
}

impl<'o> JudgedValues<'o> {
    fn of(undecided: &'o UndecidedObject) -> Self {
        let (within, json) = undecided.judged_part();
        Self { within, ..Self::whole(json) }
    }

    /// The values of an object in JSON.
    pub(crate) const fn whole(json: &'o str) -> Self {
        Self { json, within: Pointer::root(), value: OnceCell::new() }
    }

    /// Gives a finding the value that was judged, if it does not say it: what is missing, or the value at its place. Of an
    /// absent value, and of what holds others, nothing is compared.
    pub(crate) fn pin(&self, finding: &mut Finding, place: &Pointer) {
        if !finding.fingerprint_value.is_empty() || finding.policy.is_some() || finding.at_key {
            return;
        }
        let name = |it: &Reference| format!("{} {}/{}", it.kind.kind, it.namespace, it.name);
        let missing = finding.missing.first().map(name);
        finding.fingerprint_value = missing.or_else(|| self.at(finding.cause, place)).unwrap_or_default();
    }

    fn at(&self, cause: Cause, place: &Pointer) -> Option<String> {
        let value = self.value.get_or_init(|| serde_json::from_str(self.json).unwrap_or_default());
        let is_single = |value: &Value| !value.is_object() && !value.is_array();
        match value.pointer(place.as_str().strip_prefix(self.within.as_str())?)? {
            Value::String(text) => Some(text.clone()),
            Value::Object(entries) if cause != Cause::Required && place.tokens().nth(1).is_some() => {
                let text = canonical(entries);
                (entries.values().all(is_single) || text.len() <= MAX_NESTED_BYTES).then_some(text)
            }
            Value::Object(_) | Value::Array(_) | Value::Null => None,
            value => Some(value.to_string()),
        }
    }
}

/// How long a value with others inside may be that is compared whole. A longer one is a section rather than a value.
const MAX_NESTED_BYTES: usize = 1024;

/// An object as JSON, with its fields in order.
fn canonical(entries: &serde_json::Map<String, Value>) -> String {
    let sorted: BTreeMap<_, _> = entries.iter().collect();
    let fields = sorted.into_iter().map(|(name, value)| match value {
        Value::Object(entries) => format!("{}:{}", Value::from(name.as_str()), canonical(entries)),
        value => format!("{}:{value}", Value::from(name.as_str())),
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Whether a finding warns about an object that was not found.
fn is_not_found(finding: &Finding) -> bool {
    finding.severity == Severity::Warn && finding.cause == Cause::NotFound
}

/// Why it is not known whether an object is missing.
pub(crate) const NO_OBJECT_OF_KIND: &str = "the inputs hold no object of this kind";

/// Turns warnings about objects that were not found into notes, unless `open` has them too. A file often holds an agent
/// whose memory is elsewhere.
fn note_not_found(findings: &mut [Finding], open: &[Finding]) {
    let stay: BTreeSet<_> =
        open.iter().map(|finding| (finding.code_name(), finding.pointer.as_str())).collect();
    for finding in findings.iter_mut().filter(|finding| is_not_found(finding)) {
        if !stay.contains(&(finding.code_name(), finding.pointer.as_str())) {
            change(finding, Severity::Note, NO_OBJECT_OF_KIND);
        }
    }
}

/// The findings about the form of a pod, and of the workload that makes it. Where nothing of ours is, there are none.
fn of_form(undecided: &UndecidedObject) -> Vec<Finding> {
    let (request, values) = (undecided.request(), JudgedValues::of(undecided));
    let in_document = |mut finding: Finding| {
        let pointer = undecided.object.in_document(&finding.pointer);
        finding.settle_at(&pointer);
        Finding { pointer, ..finding }
    };
    let mut findings = match undecided.workload_request() {
        None => form::findings(&request),
        Some(workload) => {
            let of_pod = form::findings_of_template(&request).into_iter().map(in_document);
            form::findings(&workload).into_iter().chain(of_pod).collect()
        }
    };
    let is_workload = request.is_pod() || workload::find(&request.group, &request.kind).is_some();
    if !findings.is_empty() && is_workload && !undecided.is_of_agent() {
        // A label of the wrong type may be the one that makes it an agent.
        let is_ours = Ours::new(&memgate_platforms::default_settings()).is_in(undecided.manifest());
        findings.retain(|finding| is_ours && finding.pointer.as_str() != "/metadata/name");
    }
    for finding in &mut findings {
        let place = finding.pointer.clone();
        values.pin(finding, &place);
    }
    findings
}

/// The state by which objects are decided, and what is made of it for single decisions.
pub(crate) struct States<'s> {
    whole: &'s Snapshot,
    /// Kinds of which the inputs hold no object are unknown.
    open: Snapshot,
    /// Without what a later step fills in, if there is any.
    bare: Option<Snapshot>,
    /// The places in its objects that a later step fills in.
    later: BTreeMap<Reference, BTreeSet<Pointer>>,
    /// All that is in namespaces is unknown.
    without_namespaced: OnceLock<Snapshot>,
}

impl<'s> States<'s> {
    pub(super) fn new(whole: &'s Snapshot, unfilled: Vec<Unfilled>) -> Self {
        let mut bare = (!unfilled.is_empty()).then(|| whole.clone());
        let mut of_objects: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for Unfilled { bare: object, later } in unfilled {
            if let Some(reference) = state::reference(&whole.settings, &object) {
                of_objects.entry(reference).or_default().extend(later);
            }
            // What cannot be added was not there before.
            if let Some(bare) = &mut bare {
                drop(state::add(bare, &object));
            }
        }
        Self { whole, open: open_state(whole), bare, later: of_objects, without_namespaced: OnceLock::new() }
    }

    /// That for an object: with the text of what is filled in later, and without it.
    fn of(&self, undecided: &UndecidedObject) -> [&Snapshot; 2] {
        if undecided.hides_namespace() {
            return [self.without_namespaced.get_or_init(|| self.whole.without_namespaced()); 2];
        }
        [self.whole, self.bare.as_ref().unwrap_or(self.whole)]
    }
}
