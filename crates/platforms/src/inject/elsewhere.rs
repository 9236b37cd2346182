//! Places in other objects, for findings about a pod.

use memgate_model::edit::Origin;
use memgate_model::elsewhere::Elsewhere;
use memgate_model::kind::Kind;
use memgate_model::object::{Object, Reference};
use memgate_primitives::pointer::Pointer;

use super::Unmet;

/// The label of the place that a missing variable or endpoint would have come from.
pub(crate) const NOT_INJECTED: &str = "not injected";

/// Adds to an unmet injection the place in another object that is the cause.
pub(crate) fn unmet_by(mut unmet: Unmet, object: &Object, pointer: Pointer, label: &'static str) -> Unmet {
    if let Some(finding) = unmet.unmet.first_mut() {
        finding.elsewhere.push(Elsewhere::of(object, pointer, label));
    }
    unmet
}

/// The place that the origin of a variable names, in an object of one of these kinds.
pub(crate) fn origin_place(origin: &Origin, kinds: &[&'static Kind]) -> Option<Elsewhere> {
    let (kind, path) = origin.resource.split_once(' ')?;
    let kind = kinds.iter().copied().find(|known| known.kind == kind)?;
    let (namespace, name) = path.split_once('/').unwrap_or(("", path));
    let object = Reference { kind, namespace: namespace.to_owned(), name: name.to_owned() };
    Some(Elsewhere { object, pointer: Pointer::of_field(&origin.field), label: NOT_INJECTED })
}

#[cfg(test)]
mod tests {
    use memgate_model::kind::{NAMESPACE, SECRET};

    use super::*;

    #[test]
    fn finds_the_object_and_the_field() {
        let origin = |resource: &str| Origin {
            resource: resource.into(),
            field: "metadata.annotations[a.b/c]".into(),
            rule: "",
        };
        let kinds = [&SECRET, &NAMESPACE];
        let found = origin_place(&origin("Secret team-a/x"), &kinds).expect("a Secret");
        let Reference { kind, namespace, name } = &found.object;
        assert_eq!((*kind, namespace.as_str(), name.as_str()), (&SECRET, "team-a", "x"));
        assert_eq!(found.pointer.as_str(), "/metadata/annotations/a.b~1c");
        let found = origin_place(&origin("Namespace team-a"), &kinds).expect("a Namespace");
        assert_eq!((found.object.namespace.as_str(), found.object.name.as_str()), ("", "team-a"));
        assert_eq!(origin_place(&origin("Pod team-a/x"), &kinds), None);
        assert_eq!(origin_place(&origin(""), &kinds), None);
    }
}
