//! One input: a base, a place in it, what fills it, how, and how much; and the review that carries it.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::fill::Fill;
use crate::outline::Outline;
use crate::scene::{Base, REVIEW};
use crate::shape::Place;

/// The numbers of an old object begin here where it has other parts than the new one.
const OTHERS: usize = 5_000_000;

/// What a review has around its objects.
const ENVELOPE: usize = 600;

/// How the parts are spread over the elements of the list above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spread {
    /// All of them in one element.
    One,
    /// So many in each of many elements.
    Many(usize),
}

/// What is being done, and how the old object compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Create,
    /// UPDATE with the same object.
    Same,
    /// UPDATE of one as large with other parts.
    Differs,
    /// UPDATE that adds everything.
    Grows,
    /// UPDATE that removes everything.
    Shrinks,
    Delete,
}

impl Change {
    pub(crate) const ALL: [Self; 6] =
        [Self::Create, Self::Same, Self::Differs, Self::Grows, Self::Shrinks, Self::Delete];

    const fn operation(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Delete => "DELETE",
            _ => "UPDATE",
        }
    }
}

/// The path of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Mutate,
    Validate,
}

impl Call {
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
        }
    }
}

/// Everything but the size.
#[derive(Debug, Clone)]
pub(crate) struct Input<'s> {
    pub(crate) base: &'s Base,
    pub(crate) place: Arc<Place>,
    pub(crate) fill: Fill,
    pub(crate) spread: Spread,
    /// A second place, which gets half of the room.
    pub(crate) also: Option<(Arc<Place>, Fill)>,
    pub(crate) change: Change,
    pub(crate) call: Call,
    /// Whether the pod asks to be refused rather than started without memory.
    pub(crate) required: bool,
}

impl fmt::Display for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let required = if self.required { " required" } else { "" };
        let (stem, path) = (self.stem(), self.call.path());
        write!(f, "{stem} {:?} {path}{required} of {}", self.change, self.base.name)
    }
}

impl Input<'_> {
    /// The beginning of the name: what is filled, and how.
    pub(crate) fn stem(&self) -> String {
        let each = match self.spread {
            Spread::One => String::new(),
            Spread::Many(count) => format!(" each {count}"),
        };
        let also = self.also.as_ref().map(|(place, fill)| format!(" and {place} {}", fill.name()));
        format!("{} {} {}{each}{}", self.base.kind, self.place, self.fill.name(), also.unwrap_or_default())
    }

    /// The kind with its family, and the place. Inputs with the same group are one row of a report.
    pub(crate) fn group(&self) -> (String, String) {
        let family = self.base.name.split('/').next().unwrap_or_default();
        let also = self.also.as_ref().map_or_else(String::new, |(place, _)| format!(" and {place}"));
        (format!("{family} {}", self.base.kind), format!("{}{also}", self.place))
    }

    /// The review, of about so many bytes.
    pub(crate) fn review(&self, bytes: usize) -> String {
        if self.base.kind == REVIEW {
            return self.object(bytes, 0);
        }
        let room = bytes.saturating_sub(ENVELOPE);
        let small = || self.small().to_string();
        let (object, old) = match self.change {
            Change::Create => (self.object(room, 0), "null".to_owned()),
            Change::Grows => (self.object(room, 0), small()),
            Change::Shrinks => (small(), self.object(room, 0)),
            Change::Delete => ("null".to_owned(), self.object(room, 0)),
            Change::Same => {
                let half = self.object(room / 2, 0);
                (half.clone(), half)
            }
            Change::Differs => (self.object(room / 2, 0), self.object(room / 2, OTHERS)),
        };
        self.envelope(&object, &old)
    }

    /// The review of the object as it is.
    pub(crate) fn small_review(&self) -> String {
        self.envelope(&self.small().to_string(), "null")
    }

    /// The filled object; its numbers begin with `first`.
    pub(crate) fn object(&self, bytes: usize, first: usize) -> String {
        let Some((place, fill)) = &self.also else {
            return self.outline(self.small()).filled(self, bytes, first);
        };
        let (place, fill) = (Arc::clone(place), fill.clone());
        let other = Self { place, fill, spread: Spread::One, also: None, ..self.clone() };
        let half = other.object(bytes / 2, first);
        let half = serde_json::from_str(&half).unwrap_or_else(|_| self.small());
        self.outline(half).filled(self, bytes, first)
    }

    fn outline(&self, object: Value) -> Outline {
        Outline::new(object, &self.base.schema, &self.place, self.fill.frame(), self.spread)
    }

    fn small(&self) -> Value {
        let mut object = self.base.object.clone();
        if self.required {
            object["metadata"]["labels"]["memgate.dev/inject"] = json!("required");
        }
        object
    }

    fn envelope(&self, object: &str, old: &str) -> String {
        let text = |key: &str| self.base.object[key].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or_else(|| ("", text("apiVersion")));
        let kind = json!({"group": group, "version": version, "kind": text("kind")});
        let resource = text("kind").to_lowercase() + "s";
        let resource = json!({"group": group, "version": version, "resource": resource});
        let name = &self.base.object["metadata"]["name"];
        let (operation, namespace) = (self.change.operation(), json!(self.base.namespace));
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u-1","kind":{kind},"resource":{resource},"requestKind":{kind},"requestResource":{resource},"name":{name},"namespace":{namespace},"operation":"{operation}","userInfo":{{"username":"cost"}},"object":{object},"oldObject":{old},"dryRun":false}}}}"#
        )
    }
}
