//! Which of several values the platform uses.
//!
//! An address and the value of a header are either a literal (`value`) or come from a source (`valueFrom`).
//! If an object has several of them, the platform silently uses one and ignores the others. An empty
//! literal counts as absent.

use memgate_model::tree::Tree;

use super::api::{ADDRESS_SOURCES, HEADER_SOURCES};

/// An address, or the value of a header.
#[derive(Debug)]
pub(crate) struct ValueOrSource<'t> {
    /// `value`, of any type, unless it is empty.
    pub(crate) literal: Option<&'t Tree>,
    /// `valueFrom`, of any type.
    pub(crate) value_from: Option<&'t Tree>,
    /// The sources in `valueFrom`; the platform uses the first.
    pub(crate) sources: Vec<ValueSource<'t>>,
    /// Whether the first source overrides the literal.
    source_overrides_literal: bool,
}

/// One source in a `valueFrom`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueSource<'t> {
    /// The name of its field.
    pub(crate) field: &'static str,
    /// Its value, of any type.
    pub(crate) tree: &'t Tree,
}

/// The value that the platform uses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EffectiveValue<'t> {
    /// The literal.
    Literal(&'t Tree),
    /// A source.
    Source(ValueSource<'t>),
    /// Neither is set.
    Nothing,
}

impl<'t> ValueOrSource<'t> {
    /// The address of a Memory.
    pub(crate) fn read_address(address: &'t Tree) -> Self {
        Self::read(address, &ADDRESS_SOURCES)
    }

    /// The value of a header.
    pub(crate) fn read_header(value: &'t Tree) -> Self {
        let value = Self::read(value, &HEADER_SOURCES);
        let source_overrides_literal =
            value.sources.first().is_some_and(|source| source.field == "queryParameterRef");
        ValueOrSource { source_overrides_literal, ..value }
    }

    fn read(tree: &'t Tree, fields: &[&'static str]) -> Self {
        let value_from = tree.get("valueFrom");
        let source = |field: &&'static str| Some(ValueSource { field, tree: value_from?.get(field)? });
        ValueOrSource {
            literal: tree.get("value").filter(|value| value.text() != Some("")),
            value_from,
            sources: fields.iter().filter_map(source).collect(),
            source_overrides_literal: false,
        }
    }

    /// The value that the platform uses.
    pub(crate) fn effective(&self) -> EffectiveValue<'t> {
        match (self.literal, self.sources.first()) {
            (_, Some(source)) if self.source_overrides_literal => EffectiveValue::Source(*source),
            (Some(literal), _) => EffectiveValue::Literal(literal),
            (None, Some(source)) => EffectiveValue::Source(*source),
            (None, None) => EffectiveValue::Nothing,
        }
    }
}

impl<'t> ValueSource<'t> {
    /// A field of the source, if it is a string that is not empty.
    pub(crate) fn text(&self, field: &str) -> Option<&'t str> {
        self.tree.text_at(&[field]).filter(|text| !text.is_empty())
    }

    /// Whether a field is absent or an empty string.
    pub(crate) fn lacks(&self, field: &str) -> bool {
        self.tree.is_object() && self.tree.get(field).is_none_or(|value| value.text() == Some(""))
    }
}
