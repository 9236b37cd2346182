//! What of the inputs is not checked, and why not.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::manifest::document::NonObject;
use crate::manifest::place::DocumentPlace;
use crate::manifest::source::{Source, Span};
use crate::model::reason::Reason;
use crate::report::ObjectRef;

/// Something that no enabled family has judged.
#[derive(Debug)]
pub struct PassedOver {
    /// The text in which it stands.
    pub source: Arc<Source>,
    /// Where.
    pub span: Span,
    /// Its name, if it is an object.
    pub object_ref: Option<ObjectRef>,
    /// Why it is not checked.
    pub why: Why,
}

/// Why something is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is no Kubernetes object: it "has no kind".
    NotAnObject(&'static str),
    /// Nobody checks objects of its kind.
    OtherKind,
    /// It has none of the annotations for which objects of its kind are checked.
    NotAnnotated,
    /// Its family is not among those that were chosen.
    FamilyOff,
    /// No enabled family knows the pod.
    NotRecognised,
    /// The pod or its namespace opted out.
    OptedOut,
    /// It is a pod of a namespace that the cluster itself needs.
    SystemNamespace,
    /// It is judged when it is made, and no audit judges it later.
    AdmissionOnly,
    /// Another reason not to look at it.
    Other(Reason),
}

impl Why {
    /// In words, behind "it".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotAnObject(reason) => reason,
            Self::OtherKind => "is of a kind that memgate does not check",
            Self::NotAnnotated => "has no annotation that memgate reads",
            Self::FamilyOff => "belongs to a family that is switched off",
            Self::NotRecognised => "runs no agent of an enabled family",
            Self::OptedOut => "opted out of injection",
            Self::SystemNamespace => "is in a namespace about whose pods memgate is never asked",
            Self::AdmissionOnly => "is judged when it is made, and not in an audit",
            Self::Other(Reason::Malformed | Reason::Unreadable) => "cannot be read",
            Self::Other(Reason::OverLimit) => "is larger than what memgate reads",
            Self::Other(_) => "was not judged",
        }
    }

    /// The word for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAnObject(_) => "not-an-object",
            Self::OtherKind => "other-kind",
            Self::NotAnnotated => "not-annotated",
            Self::FamilyOff => "family-off",
            Self::NotRecognised => "not-recognised",
            Self::OptedOut => "opted-out",
            Self::SystemNamespace => "system-namespace",
            Self::AdmissionOnly => "admission-only",
            Self::Other(reason) => reason.name(),
        }
    }

    /// Why a decision judged nothing.
    #[must_use]
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
    /// A document that is no object.
    #[must_use]
    pub fn non_object(source: &Arc<Source>, document: &NonObject) -> Self {
        let (source, why) = (Arc::clone(source), Why::NotAnObject(document.reason));
        Self { source, span: document.span, object_ref: None, why }
    }

    /// An object.
    #[must_use]
    pub fn object(place: &DocumentPlace, object_ref: ObjectRef, why: Why) -> Self {
        let source = Arc::clone(place.source());
        Self { source, span: place.span(), object_ref: Some(object_ref), why }
    }

    /// What it is, to be counted: its kind, and why it is not checked where the kind does not say it.
    fn what(&self) -> String {
        let kind = self.object_ref.as_ref().map_or("a document", |object_ref| &object_ref.kind);
        match self.why {
            Why::OtherKind => kind.to_owned(),
            why => format!("{kind} that {}", why.words()),
        }
    }
}

/// How often each kind of thing was passed over: `ConfigMap (2)`.
#[must_use]
pub fn counts(passed_over: &[PassedOver]) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for passed_over in passed_over {
        *counts.entry(passed_over.what()).or_default() += 1;
    }
    counts.into_iter().map(|(what, count)| format!("{what} ({count})")).collect()
}
