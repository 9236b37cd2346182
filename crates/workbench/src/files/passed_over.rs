//! The objects and documents of the inputs that are not checked, with the reasons.

use std::sync::Arc;

use crate::files::objects::UndecidedObject;
use crate::report::ObjectRef;
use memgate_manifest::document::NonObject;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::{Source, Span};
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::reason::Reason;
use memgate_model::snapshot::Snapshot;

/// An object or document that no enabled family has judged.
#[derive(Debug, Clone)]
pub struct PassedOver {
    /// The text.
    pub source: Arc<Source>,
    /// The place in it.
    pub span: Span,
    /// Its name, if it is an object.
    pub object_ref: Option<ObjectRef>,
    /// The reason.
    pub why: Why,
}

/// Why an object or document is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is not a Kubernetes object: it "has no kind".
    NotAnObject(&'static str),
    /// memgate does not check objects of its kind.
    OtherKind,
    /// A program makes manifests of the text.
    Template,
    /// It lacks the annotation with which objects of its kind are checked.
    NotAnnotated,
    /// Its family is not among those that were chosen.
    FamilyOff,
    /// No enabled family knows the pod.
    NotRecognised,
    /// The pod or its namespace opted out.
    OptedOut,
    /// It is a pod in a system namespace of the cluster.
    SystemNamespace,
    /// It is judged when it is made, and no audit judges it later.
    AdmissionOnly,
    /// Another reason.
    Other(Reason),
}

impl Why {
    /// The reasons for which an object of a kind that is checked is not judged on purpose.
    pub(crate) const DECIDED: [Self; 5] =
        [Self::NotAnnotated, Self::AdmissionOnly, Self::NotRecognised, Self::OptedOut, Self::SystemNamespace];

    /// The keyword for programs, and the reason for people: a predicate such as "has no kind".
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::NotAnObject(reason) => ("not-an-object", reason),
            Self::OtherKind => ("other-kind", "is of a kind that memgate does not check"),
            Self::Template => ("template", "is a template, from which a program makes manifests"),
            Self::NotAnnotated => ("not-annotated", "has no annotation that memgate reads"),
            Self::FamilyOff => ("family-off", "belongs to a platform that is switched off"),
            Self::NotRecognised => ("not-recognised", "runs no agent of an enabled platform"),
            Self::OptedOut => ("opted-out", "opted out of injection"),
            Self::SystemNamespace => {
                ("system-namespace", "is in a namespace about whose pods memgate is never asked")
            }
            Self::AdmissionOnly => ("admission-only", "is judged when it is made, and not in an audit"),
            Self::Other(reason @ (Reason::Malformed | Reason::Unreadable)) => {
                (reason.name(), "cannot be read")
            }
            Self::Other(reason @ Reason::OverLimit) => (reason.name(), "is larger than what memgate reads"),
            Self::Other(reason) => (reason.name(), "was not judged"),
        }
    }

    /// The reason of a decision that judged nothing.
    pub const fn of(reason: Reason, is_pod: bool) -> Self {
        match reason {
            Reason::NotOurs if is_pod => Self::NotRecognised,
            Reason::NotOurs => Self::FamilyOff,
            Reason::OptedOut => Self::OptedOut,
            other => Self::Other(other),
        }
    }
}

impl PassedOver {
    /// A document that is not an object.
    pub fn non_object(source: &Arc<Source>, document: &NonObject) -> Self {
        let (source, why) = (Arc::clone(source), Why::NotAnObject(document.reason));
        Self { source, span: document.document.span(), object_ref: None, why }
    }

    /// A text from which a program makes manifests.
    pub fn template(source: &Arc<Source>) -> Self {
        Self { source: Arc::clone(source), span: source.span(0, 0), object_ref: None, why: Why::Template }
    }

    /// An object.
    pub fn object(place: &DocumentPlace, object_ref: ObjectRef, why: Why) -> Self {
        let source = Arc::clone(place.source());
        Self { source, span: place.span(), object_ref: Some(object_ref), why }
    }

    /// Whether another one is about the same object, for the same reason.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source) && (self.span, self.why) == (other.span, other.why)
    }
}

/// Moves objects that run once and end, and policies in force, to those that are passed over; with `pods` also pods and
/// workloads, which audits do not judge.
pub fn pass_over(
    objects: &mut Vec<UndecidedObject>,
    passed_over: &mut Vec<PassedOver>,
    Snapshot { policies, settings, .. }: &Snapshot,
    pods: bool,
) {
    for object in std::mem::take(objects) {
        let request = object.request();
        let mut transient = settings.families.iter().flat_map(|family| family.views.transient);
        let is_transient = transient.any(|kind| kind.is(&request.group, &request.kind));
        let is_policy = memgate_policy::resource::kind(&request.group, &request.kind).is_some();
        let is_faulty = policies.get(object.name()).is_some_and(|policy| policy.invalid.is_some());
        let is_in_force = is_policy && !(request.kind == MEMORY_POLICY.kind && is_faulty);
        if is_transient || is_in_force || (pods && request.is_pod()) {
            let (place, object_ref) = (&object.object.place, object.object.object_ref.clone());
            passed_over.push(PassedOver::object(place, object_ref, Why::AdmissionOnly));
        } else {
            objects.push(object);
        }
    }
}
