//! What a schema says about a value that is still to be read.

use crate::crd::{JsonTypes, SchemaNode};
use crate::metadata::OBJECT_META;

/// What every Kubernetes object has, whatever its schema says.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What is known about a value.
#[derive(Clone, Copy)]
pub(super) enum Form<'s> {
    /// The whole object.
    Root {
        schema: &'s SchemaNode,
        without_status: bool,
    },
    Known(&'s SchemaNode),
    /// The element of a list of which nothing is known: it keeps no fields.
    Cleared,
    /// It is kept as it was written.
    Raw,
}

impl<'s> Form<'s> {
    /// The schema, where there is one.
    pub(super) const fn schema(self) -> Option<&'s SchemaNode> {
        match self {
            Self::Root { schema, .. } | Self::Known(schema) => Some(schema),
            Self::Cleared | Self::Raw => None,
        }
    }

    /// That of the elements of a list.
    pub(super) fn element(self) -> Self {
        let Some(schema) = self.schema() else { return Self::Cleared };
        match schema.list.items.as_deref() {
            Some(items) => Self::Known(items),
            None if schema.object.preserves_unknown => Self::Raw,
            None => Self::Cleared,
        }
    }

    /// The schema of an object, where it says which fields there are.
    pub(super) fn lacking(self, name: &str) -> Option<&'s SchemaNode> {
        if let Self::Root { .. } = self {
            // A status is dropped without a word.
            if name == "status" || META_FIELDS.contains(&name) {
                return None;
            }
        }
        self.schema().filter(|schema| schema.types == JsonTypes::Object && !schema.object.preserves_unknown)
    }

    /// That of a field; `None` if it is dropped.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        if let Self::Root { without_status, .. } = self {
            match name {
                "metadata" => return Some(Self::Known(&OBJECT_META)),
                "status" if without_status => return None,
                _ => {}
            }
        }
        let rules = &self.schema()?.object;
        let kept = rules.preserves_unknown || rules.embedded && META_FIELDS.contains(&name);
        rules.field(name).map(Self::Known).or_else(|| kept.then_some(Self::Raw))
    }
}
