//! Constructors of views, for families.

use crate::kind::Kind;
use crate::memory_view::{MemoryView, Origin, ReferenceView, Role, SecretView, SourceView};
use crate::object::Lookup;
use memgate_primitives::pointer::Pointer;

impl MemoryView {
    /// The view of an agent pod, with the memory that it uses. The pod refers to it by its labels, or names it by its
    /// own variables alone: then its view has the kind of a pod, and the place of its backend in a container.
    pub fn of_pod(family: &'static str, namespace: &str, memories: impl IntoIterator<Item = Self>) -> Self {
        let field = Pointer::new("/metadata/labels");
        let place = |view: &Self| if view.is_undeclared() { view.pointer("backend") } else { field.clone() };
        let sources = memories.into_iter().map(|view| SourceView { field: place(&view), view }).collect();
        Self { sources, ..Self::new(family, Role::Pod, "Pod", namespace, "") }
    }
}

impl SecretView {
    /// A reference to a key of a Secret.
    pub fn new((namespace, name): (&str, &str), key: Option<&str>, field: Pointer) -> Self {
        Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            key: key.map(str::to_owned),
            field,
            origin: None,
        }
    }

    /// The same, read from this field of an object of another kind.
    #[must_use]
    pub fn from(self, kind: &'static Kind, field: impl Into<Pointer>) -> Self {
        Self { origin: Some(Origin { kind, field: field.into() }), ..self }
    }
}

impl ReferenceView {
    /// A reference by namespace and name, with the result of a lookup.
    pub fn new(kind: &Kind, (namespace, name): (&str, &str), field: Pointer, lookup: Lookup<'_>) -> Self {
        let found = match lookup {
            Lookup::Found(_) => Some(true),
            Lookup::Absent => Some(false),
            Lookup::Unknown(()) => None,
        };
        Self { kind: kind.kind, namespace: namespace.to_owned(), name: name.to_owned(), field, found }
    }
}
