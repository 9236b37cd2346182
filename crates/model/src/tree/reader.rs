//! Reads JSON into a tree, guided by a schema.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize as _;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess};
use serde_json::value::RawValue;

use super::{MAX_UNKNOWN_FIELDS, Map, Texts, Tree};
use crate::digest;
use crate::schema::{Field, Schema};
use memgate_primitives::budget::{Budget, Limit, MAX_ENTRIES};
use memgate_primitives::json::{Reader, Scalar, Seed, Text};
use memgate_primitives::number;
use memgate_primitives::pointer::Path;

/// Reads one value.
#[derive(Clone, Copy)]
pub(super) struct TreeReader<'s, 'w> {
    pub(super) schema: &'s Schema,
    /// Counts the values that are kept; `None` for objects of the state.
    pub(super) budget: Option<&'w Budget<'w>>,
    /// Whether an apiserver stores it: a list or map may have any number of entries, and hardly any names are kept that
    /// the schema does not have.
    pub(super) is_stored: bool,
    pub(super) path: Path<'w>,
}

impl<'de> Reader<'de> for TreeReader<'_, '_> {
    type Value = Tree;

    fn scalar<E: Error>(self, scalar: Scalar<'de>) -> Result<Tree, E> {
        Ok(match (self.schema, scalar) {
            // The prompt of a run may be here, in place of an object.
            (_, Scalar::Null) | (Schema::Pruned(_), Scalar::Text(_)) => Tree::Null,
            (_, Scalar::Boolean(value)) => Tree::Boolean(value),
            (_, Scalar::Number(number)) => {
                let integer = number.as_i64().ok_or_else(|| number.as_f64().unwrap_or_default());
                integer.map_or_else(
                    |it| number::whole(it).map_or(Tree::Fraction(it), Tree::Integer),
                    Tree::Integer,
                )
            }
            // Only the type of the value matters, so its bytes need not be kept.
            (Schema::Any, Scalar::Text(_)) => Tree::Text(Arc::default()),
            (Schema::Credential, Scalar::Text(text)) => Tree::Text(masked(&text).into()),
            (_, Scalar::Text(text)) => Tree::Text((*text).into()),
        })
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut elements = Vec::new();
        let place = |index| TreeReader { path: Path::Index(&self.path, index), ..self };
        match self.schema {
            Schema::List(schema) => {
                let element = |index| Seed(TreeReader { schema, ..place(index) });
                while let Some(element) = list.next_element_seed(element(elements.len()))? {
                    if !self.has_room(elements.len()) {
                        break;
                    }
                    elements.push(element);
                }
            }
            Schema::Named(named) => {
                while let Some(text) = list.next_element::<Box<RawValue>>()?.filter(|_| self.has_room(0)) {
                    let element = place(elements.len());
                    let read = element.read_by(&NAMED, &text)?;
                    let is_of = |(name, _): &&(&str, _)| read.text_at(&["name"]) == Some(*name);
                    if let Some((_, schema)) = named.iter().find(is_of) {
                        elements.push(element.read_by(schema, &text)?);
                    }
                }
            }
            _ => {}
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Tree::List(elements))
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<Tree, A::Error> {
        match self.schema {
            Schema::Object(fields)
            | Schema::Open(fields)
            | Schema::Pruned(fields)
            | Schema::Whole(fields)
            | Schema::Compared(fields) => self.fields(object, fields).map(Tree::Map),
            Schema::Texts => self.texts(object),
            Schema::Keys => keys(object),
            _ => {
                while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Tree::Map(Map::default()))
            }
        }
    }

    fn read<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        match self.schema {
            Schema::Whole(fields) | Schema::Compared(fields) => self.read_with_text(deserializer, fields),
            _ => deserializer.deserialize_any(Seed(self)),
        }
    }
}

impl TreeReader<'_, '_> {
    /// Whether one more value may be kept.
    fn step(&self) -> bool {
        self.budget.is_none_or(Budget::step)
    }

    /// Whether a list or map with this many entries may get another one.
    fn has_room(&self, entries: usize) -> bool {
        let Some(budget) = self.budget else { return true };
        if entries >= MAX_ENTRIES && !self.is_stored {
            budget.over_limit(|| self.path.pointer(), Limit::Entries);
        }
        budget.step()
    }

    /// Reads the JSON text of an object first, and then its fields from that text. Parts that are not read cause no
    /// recursion. Keeps the text or, for a comparison, only its digest.
    fn read_with_text<'de, D: Deserializer<'de>>(
        self,
        deserializer: D,
        fields: &'static [Field],
    ) -> Result<Tree, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let mut tree = self.read_by(&Schema::Open(fields), &text)?;
        if let Tree::Map(map) = &mut tree {
            let rest = map.rest.get_or_insert_default();
            match self.schema {
                Schema::Compared(_) => rest.digest = digest::of(text.get()),
                _ => rest.text = Some(text.into()),
            }
        }
        Ok(tree)
    }

    fn read_by<E: Error>(self, schema: &Schema, text: &RawValue) -> Result<Tree, E> {
        let reader = TreeReader { schema, ..self };
        reader.read(&mut serde_json::Deserializer::from_str(text.get())).map_err(E::custom)
    }

    fn fields<'de, A: MapAccess<'de>>(
        self,
        mut object: A,
        fields: &'static [Field],
    ) -> Result<Map, A::Error> {
        let mut map = Map::default();
        let mut position = 0;
        while let Some(Text(key)) = object.next_key::<Text<'de>>()? {
            // Keeps the field's own `'static` name in place of the key, without an allocation.
            if let Some(field) = fields.iter().find(|field| field.name == key).filter(|_| self.step()) {
                let path = Path::Key(&self.path, field.name);
                let reader = TreeReader { schema: &field.schema, path, ..self };
                map.put(field, position, object.next_value_seed(Seed(reader))?);
            } else {
                object.next_value::<IgnoredAny>()?;
                // Of a stored object, a name is kept only to tell that it is not empty.
                let is_wanted = !self.is_stored || map == Map::default();
                if is_wanted && !matches!(self.schema, Schema::Pruned(_)) {
                    self.note_unknown(&mut map, &key, position);
                }
            }
            position += 1;
        }
        if self.is_stored && !map.known.is_empty() {
            map.rest = None;
        }
        Ok(map)
    }

    fn note_unknown(self, map: &mut Map, name: &str, position: u32) {
        let unknown = map.unknown();
        let has_room = unknown.len() < MAX_UNKNOWN_FIELDS;
        if has_room && unknown.iter().all(|(known, _)| known != name) && self.step() {
            map.rest.get_or_insert_default().unknown.push((name.to_owned(), position));
        }
    }

    fn texts<'de, A: MapAccess<'de>>(self, mut object: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        let text = Seed(TreeReader { schema: &Schema::Text, ..self });
        while let Some(Text(key)) = object.next_key::<Text<'de>>()? {
            if self.has_room(all.len()) {
                all.push((key.into(), object.next_value_seed(text)?));
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        let (mut entries, mut others) = (Vec::new(), Vec::new());
        for (key, value) in last_of_equal(all) {
            match value {
                Tree::Text(value) => entries.push((key, value)),
                Tree::Null => {}
                other if others.len() < MAX_UNKNOWN_FIELDS => others.push((key, other.type_name())),
                _ => {}
            }
        }
        Ok(Tree::Texts(Texts { entries, others }.into()))
    }
}

/// What is kept of a credential.
pub(crate) const fn masked(text: &str) -> &'static str {
    if text.is_empty() { "" } else { "*" }
}

/// What is read of an element to know its schema.
const NAMED: Schema = Schema::Pruned(&[Field::new("name", Schema::Text)]);

fn keys<'de, A: MapAccess<'de>>(mut object: A) -> Result<Tree, A::Error> {
    let mut keys = Vec::new();
    while let Some((Text(key), IgnoredAny)) = object.next_entry::<Text<'de>, IgnoredAny>()? {
        keys.push((key.into(), Arc::default()));
    }
    Ok(Tree::Texts(Texts { entries: last_of_equal(keys), others: Vec::new() }.into()))
}

/// Keeps the last of several entries with equal keys.
fn last_of_equal<V>(mut entries: Vec<(Arc<str>, V)>) -> Vec<(Arc<str>, V)> {
    // Going backwards, the first entry of each key is the last one in the list.
    let mut seen = BTreeSet::new();
    let mut last: Vec<bool> = entries.iter().rev().map(|(key, _)| seen.insert(&**key)).collect();
    drop(seen);
    if last.contains(&false) {
        entries.retain(|_| last.pop().unwrap_or(true));
    }
    entries
}
