//! Values of other types than a schema of known fields has.

use memgate_primitives::pointer::{Path, Pointer};

use crate::schema::{Field, Schema};
use crate::tree::Tree;

/// A value of another type than a schema has.
#[derive(Debug)]
pub struct Misfit<'t> {
    /// Where it is.
    pub pointer: Pointer,
    /// The type of the schema.
    pub expected: &'static str,
    /// The type of the value.
    pub got: &'static str,
    /// The value, if it was kept.
    pub value: Option<&'t Tree>,
}

impl Tree {
    /// The first value in this one that is of another type than there.
    pub fn misfit(&self, schema: &Schema, here: Path<'_>) -> Option<Misfit<'_>> {
        let got = self.type_name();
        if let Some(expected) = schema.type_name().filter(|expected| *expected != got) {
            return Some(Misfit { pointer: here.pointer(), expected, got, value: Some(self) });
        }
        if let Some((key, got)) = self.non_texts().next() {
            return Some(Misfit { pointer: here.pointer().key(key), expected: "string", got, value: None });
        }
        if let Schema::List(element) = schema {
            let elements = || self.elements().iter().enumerate();
            return elements().find_map(|(index, value)| value.misfit(element, Path::Index(&here, index)));
        }
        let below = |field: &Field| self.get(field.name)?.misfit(&field.schema, Path::Key(&here, field.name));
        schema.fields().iter().find_map(below)
    }
}
