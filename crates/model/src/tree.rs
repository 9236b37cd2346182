//! An object of a family's own kind, read once into a small plain tree.
//!
//! These objects are rare and small, and wrong types and unknown fields in them must be reported. So they are read
//! into a tree, guided by a [`Schema`]: fields that the schema does not name are skipped and take no memory,
//! whatever their size or depth. Pods are read in another way (`pod`).
//!
//! As in Go, the last of several equal keys wins, and a `null` field counts as absent. This module reports no
//! findings.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize as _;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess};

use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::digest;
use crate::recurring_texts::RecurringTexts;
use crate::schema::{Field, Schema};
use crate::view::Text;
use memgate_primitives::budget::{Budget, Limit, MAX_ENTRIES};
use memgate_primitives::json::{self, Reader, Scalar, Seed};
use memgate_primitives::number;
use memgate_primitives::pointer::{Path, Pointer};

/// How many unknown field names of one object are kept. A longer list would not help the user.
const MAX_UNKNOWN_FIELDS: usize = 64;

/// One value of the tree. It is small, since the state holds very many of them: rare parts are boxed.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// `null` as a list element or as the whole document; a `null` field is absent instead.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number that is integral and fits 64 bits, however it was written.
    Integer(i64),
    /// Any other number.
    Fraction(Number),
    /// A string; shared, since a few strings recur in the objects of a kind.
    Text(Arc<str>),
    /// A list; empty when the schema does not expect a list.
    List(Vec<Self>),
    /// An object; empty when the schema does not expect an object.
    Map(Map),
    /// An object of strings.
    Texts(Box<Texts>),
}

/// The entries of an object of strings. A `null` counts as absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Texts {
    /// The entries with a string value, in document order.
    entries: Vec<(Arc<str>, Arc<str>)>,
    /// The first `MAX_UNKNOWN_FIELDS` keys with another value, with the JSON type of each.
    others: Vec<(Arc<str>, &'static str)>,
}

/// The fields of one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Map {
    known: Vec<KnownField>,
    /// Parts that few objects have, boxed, since the state holds very many objects.
    rest: Option<Box<Rest>>,
}

/// A field that the schema has.
#[derive(Debug, Clone)]
struct KnownField {
    field: &'static Field,
    /// The position among all fields of the object, from 0.
    position: u32,
    tree: Tree,
}

impl PartialEq for KnownField {
    fn eq(&self, other: &Self) -> bool {
        self.field.name == other.field.name && self.position == other.position && self.tree == other.tree
    }
}

/// Parts that few objects have.
#[derive(Debug, Clone, Default, PartialEq)]
struct Rest {
    /// Names that the schema does not have, with their position, the first
    /// `MAX_UNKNOWN_FIELDS` of them.
    unknown: Vec<(String, u32)>,
    /// The text of an object that was read as [`Schema::Whole`].
    text: Option<Box<str>>,
    /// The digest of an object that was read as [`Schema::Compared`].
    digest: Option<u64>,
}

impl Tree {
    /// Reads JSON text by `schema`.
    ///
    /// # Errors
    /// When the text is not JSON, or a string that is read holds a lone surrogate, or a number that
    /// is read is beyond what a double can hold.
    pub fn parse(text: &str, schema: &Schema) -> serde_json::Result<Self> {
        Self::parse_with(text, schema, None)
    }

    /// The same within the limits of a decision. If a limit is reached, the rest is left out, and `budget` has
    /// ended.
    ///
    /// # Errors
    /// Those of [`Tree::parse`].
    pub fn parse_within(text: &str, schema: &Schema, budget: &Budget<'_>) -> serde_json::Result<Self> {
        Self::parse_with(text, schema, Some(budget))
    }

    fn parse_with(text: &str, schema: &Schema, budget: Option<&Budget<'_>>) -> serde_json::Result<Self> {
        json::parse(text, Seed(TreeReader { schema, budget, is_stored: false, path: Path::Root }))
    }

    /// Reads any self-describing format by `schema`.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn read<'de, D: Deserializer<'de>>(deserializer: D, schema: &Schema) -> Result<Self, D::Error> {
        TreeReader { schema, budget: None, is_stored: false, path: Path::Root }.read(deserializer)
    }

    /// The same with at most as many values as `budget` has steps. Where it has fewer, the rest is left out, and
    /// `budget` has ended.
    pub(super) fn read_stored(text: &str, schema: &Schema, budget: &Budget<'_>) -> serde_json::Result<Self> {
        json::parse(
            text,
            Seed(TreeReader { schema, budget: Some(budget), is_stored: true, path: Path::Root }),
        )
    }

    /// Takes no more memory than needed, for a tree that is kept: no room to grow into, and texts that recur shared.
    /// Returns how many bytes it holds on to. No deeper than its schema.
    pub fn settle(&mut self, recurring: &mut RecurringTexts) -> usize {
        match self {
            Self::Text(text) => recurring.share(text),
            Self::List(elements) => {
                let own = fit(elements);
                elements.iter_mut().fold(own, |bytes, element| bytes + element.settle(recurring))
            }
            Self::Map(map) => {
                let own = fit(&mut map.known) + map.rest.as_mut().map_or(0, |rest| rest.settle());
                let fields = map.known.iter_mut();
                fields.fold(own, |bytes, known| bytes + known.tree.settle(recurring))
            }
            Self::Texts(texts) => {
                let own = size_of::<Texts>() + fit(&mut texts.entries) + fit(&mut texts.others);
                let others = texts.others.iter().map(|(key, _)| key.len() + 32).sum::<usize>();
                let entries = texts.entries.iter_mut();
                entries.fold(own + others, |bytes, (key, text)| {
                    bytes + recurring.share(key) + recurring.share(text)
                })
            }
            Self::Null | Self::Boolean(_) | Self::Integer(_) | Self::Fraction(_) => 0,
        }
    }

    /// Drops all but what is at this path.
    pub(super) fn narrow(&mut self, path: &[&str]) {
        match (self, path) {
            (_, []) => {}
            (Self::Map(map), [name, rest @ ..]) => {
                map.rest = None;
                map.known.retain(|known| known.field.name == *name);
                map.known.iter_mut().for_each(|known| known.tree.narrow(rest));
            }
            (other, _) => *other = Self::Null,
        }
    }

    /// The field `name` of an object; `None` when it is absent or `null`, or this is not an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(map) => map.known(name).map(|known| &known.tree),
            _ => None,
        }
    }

    /// An object that was read as [`Schema::Whole`], with all its fields. `None` for any other value, and
    /// for an object that nests too deep to be copied.
    pub fn whole(&self) -> Option<serde_json::Map<String, Value>> {
        match self {
            Self::Map(map) => serde_json::from_str(map.rest.as_ref()?.text.as_deref()?).ok(),
            _ => None,
        }
    }

    /// The digest of an object that was read as [`Schema::Compared`]: the same for two with the same fields, in
    /// any order; a `null` field counts as absent. `None` for any other value, and for an object that nests too
    /// deep.
    pub fn digest(&self) -> Option<u64> {
        match self {
            Self::Map(map) => map.rest.as_ref()?.digest,
            _ => None,
        }
    }

    /// The tree as JSON: reading it by the same schema gives the same tree, without the names of fields that the
    /// schema does not have, and without digests.
    ///
    /// The recursion goes no deeper than the schema.
    pub fn to_json(&self) -> Value {
        self.json_by(&|tree| tree.whole())
    }

    /// The tree as JSON, where `whole` may give an object with fields that the schema does not have.
    fn json_by(&self, whole: &impl Fn(&Self) -> Option<serde_json::Map<String, Value>>) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(flag) => (*flag).into(),
            Self::Integer(number) => (*number).into(),
            Self::Fraction(number) => number.clone().into(),
            Self::Text(text) => (**text).into(),
            Self::List(elements) => elements.iter().map(|element| element.json_by(whole)).collect(),
            Self::Map(map) => Value::Object(whole(self).unwrap_or_else(|| {
                let mut fields: Vec<_> = map.known.iter().collect();
                fields.sort_by_key(|known| known.position);
                let json = |known: &KnownField| (known.field.name.to_owned(), known.tree.json_by(whole));
                fields.into_iter().map(json).collect()
            })),
            Self::Texts(texts) => {
                let Texts { entries, others } = &**texts;
                let texts = entries.iter().map(|(key, text)| (key.to_string(), (**text).into()));
                let others = others.iter().map(|(key, type_name)| (key.to_string(), example(type_name)));
                Value::Object(texts.chain(others).collect())
            }
        }
    }

    /// The value at the end of a path of field names; `None` as for [`Tree::get`].
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |tree, name| tree.get(name))
    }

    /// The string at the end of a path of field names, if it is one.
    pub fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path).and_then(Self::text)
    }

    /// The string at the end of a path of field names, unless it is empty.
    pub fn filled_at(&self, path: &[&str]) -> Option<&str> {
        self.text_at(path).filter(|text| !text.is_empty())
    }

    /// The string, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if it is one.
    pub const fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The elements of a list; empty for any other value.
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }

    /// The elements of the list at the end of a path of field names; none where there is no list.
    pub fn list_at(&self, path: &[&str]) -> &[Self] {
        self.at(path).map(Self::elements).unwrap_or_default()
    }

    /// Whether this is an object.
    pub const fn is_object(&self) -> bool {
        matches!(self, Self::Map(_) | Self::Texts(_))
    }

    /// The value of `key` in an object of strings.
    pub fn entry(&self, key: &str) -> Option<&str> {
        self.entries().find(|(known, _)| *known == key).map(|(_, text)| text)
    }

    /// Whether an object read as [`Schema::Keys`] or [`Schema::Texts`] has this key.
    pub fn has_key(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// The entries of an object of strings, in document order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = match self {
            Self::Texts(texts) => texts.entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|(key, text)| (&**key, &**text))
    }

    /// The keys whose values are not strings in an object of strings (the first few), with the JSON type of each
    /// value.
    pub fn non_texts(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let others = match self {
            Self::Texts(texts) => texts.others.as_slice(),
            _ => &[],
        };
        others.iter().map(|(key, type_name)| (&**key, *type_name))
    }

    /// The keys of an object read as [`Schema::Keys`] or [`Schema::Texts`], without keys whose values are not
    /// strings.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries().map(|(key, _)| key)
    }

    /// The names of fields that the schema does not have (the first few), in document order.
    pub fn unknown_fields(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::Map(map) => map.unknown(),
            _ => &[],
        };
        names.iter().map(|(name, _)| name.as_str())
    }

    /// Whether both have the same known fields with the same content, in any order.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self.content_hash() == other.content_hash()
    }

    /// Whether this is an object without any field that the schema names.
    pub fn is_empty_object(&self) -> bool {
        matches!(self, Self::Map(map) if map.known.is_empty())
    }

    /// A hash of the known fields: the same for two trees whose known fields are equivalent, in any order.
    /// Unknown fields do not count.
    pub fn content_hash(&self) -> u64 {
        digest::of(&self.json_by(&|_| None).to_string()).unwrap_or_default()
    }

    /// The name of the JSON type, as messages write it.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer(_) => "integer",
            Self::Fraction(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) | Self::Texts(_) => "object",
        }
    }

    /// The position of a pointer in the document, for sorting findings: one number for each level. A missing field
    /// sorts after all fields of its parent.
    pub fn document_position(&self, pointer: &Pointer) -> Vec<u32> {
        let mut positions = Vec::new();
        let mut here = Some(self);
        for token in pointer.tokens() {
            let (position, below) = here.map_or((u32::MAX, None), |tree| tree.position_and_child(&token));
            positions.push(position);
            here = below;
        }
        positions
    }

    /// The position of a field or element, and its value.
    fn position_and_child(&self, token: &str) -> (u32, Option<&Self>) {
        match self {
            Self::Map(map) => {
                if let Some(known) = map.known(token) {
                    return (known.position, Some(&known.tree));
                }
                let unknown = map.unknown().iter().find(|(name, _)| name == token);
                (unknown.map_or(u32::MAX, |(_, position)| *position), None)
            }
            Self::List(elements) => {
                let index = token.parse::<u32>().unwrap_or(u32::MAX);
                (index, elements.get(index as usize))
            }
            Self::Texts(_) => {
                let index = self.keys().position(|key| key == token);
                (index.and_then(|index| u32::try_from(index).ok()).unwrap_or(u32::MAX), None)
            }
            _ => (u32::MAX, None),
        }
    }
}

/// An example of a value of a JSON type.
fn example(type_name: &str) -> Value {
    match type_name {
        "boolean" => false.into(),
        "array" => Value::Array(Vec::new()),
        "object" => Value::Object(serde_json::Map::new()),
        "number" => 0.5.into(),
        _ => 0.into(),
    }
}

/// Frees the room that a list has to grow into, and returns how many bytes it takes without it. It is moved, since
/// allocators leave a list that shrinks by less than half where it is.
fn fit<T>(list: &mut Vec<T>) -> usize {
    if list.capacity() > list.len() {
        let mut fitting = Vec::with_capacity(list.len());
        fitting.append(list);
        *list = fitting;
    }
    size_of_val(list.as_slice())
}

impl Rest {
    /// As [`Tree::settle`].
    fn settle(&mut self) -> usize {
        let names: usize = self.unknown.iter().map(|(name, _)| name.len().next_multiple_of(16)).sum();
        size_of::<Self>() + fit(&mut self.unknown) + names + self.text.as_ref().map_or(0, |text| text.len())
    }
}

impl Map {
    fn known(&self, name: &str) -> Option<&KnownField> {
        self.known.iter().find(|known| known.field.name == name)
    }

    fn unknown(&self) -> &[(String, u32)] {
        self.rest.as_ref().map(|rest| rest.unknown.as_slice()).unwrap_or_default()
    }

    fn put(&mut self, field: &'static Field, position: u32, tree: Tree) {
        self.known.retain(|known| known.field.name != field.name);
        if tree != Tree::Null {
            self.known.push(KnownField { field, position, tree });
        }
    }

    fn note_unknown(&mut self, name: &str, position: u32, seed: TreeReader<'_, '_>) {
        let unknown = self.unknown();
        let has_room = unknown.len() < MAX_UNKNOWN_FIELDS;
        if has_room && unknown.iter().all(|(known, _)| known != name) && seed.step() {
            self.rest.get_or_insert_default().unknown.push((name.to_owned(), position));
        }
    }
}

/// Reads one value.
#[derive(Clone, Copy)]
struct TreeReader<'s, 'w> {
    schema: &'s Schema,
    /// Counts the values that are kept; `None` for objects of the state.
    budget: Option<&'w Budget<'w>>,
    /// Whether an apiserver stores it: a list or map may have any number of entries, and hardly any names are kept that
    /// the schema does not have.
    is_stored: bool,
    path: Path<'w>,
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
}

impl<'de> Reader<'de> for TreeReader<'_, '_> {
    type Value = Tree;

    fn read<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        match self.schema {
            Schema::Whole(fields) | Schema::Compared(fields) => read_with_text(deserializer, fields, self),
            _ => deserializer.deserialize_any(Seed(self)),
        }
    }

    #[inline]
    fn scalar<E: Error>(self, scalar: Scalar<'de>) -> Result<Tree, E> {
        Ok(match (scalar, self.schema) {
            // The prompt of a run may be here, in place of an object.
            (Scalar::Null, _) | (Scalar::Text(_), Schema::Pruned(_)) => Tree::Null,
            (Scalar::Boolean(value), _) => Tree::Boolean(value),
            (Scalar::Number(number), _) => {
                let whole = || number.as_f64().filter(|_| number.is_f64()).and_then(number::whole);
                let integer = number.as_i64().or_else(whole);
                integer.map_or_else(|| Tree::Fraction(number.clone()), Tree::Integer)
            }
            // Only the type of the value matters, so its bytes need not be kept.
            (Scalar::Text(_), Schema::Any) => Tree::Text(Arc::default()),
            (Scalar::Text(text), Schema::Credential) => Tree::Text(masked(&text).into()),
            (Scalar::Text(text), _) => Tree::Text(text.into()),
        })
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut elements = Vec::new();
        let place = |index| TreeReader { path: Path::Index(&self.path, index), ..self };
        match self.schema {
            Schema::List(schema) => {
                let element = |index| TreeReader { schema, ..place(index) };
                while let Some(element) = list.next_element_seed(Seed(element(elements.len())))? {
                    if !self.has_room(elements.len()) {
                        break;
                    }
                    elements.push(element);
                }
            }
            Schema::Named(named) => {
                while let Some(text) = list.next_element::<Box<RawValue>>()?.filter(|_| self.has_room(0)) {
                    let element = place(elements.len());
                    let read = read_by(&text, &NAMED, element)?;
                    let is_of = |(name, _): &&(&str, _)| read.text_at(&["name"]) == Some(*name);
                    if let Some((_, schema)) = named.iter().find(is_of) {
                        elements.push(read_by(&text, schema, element)?);
                    }
                }
            }
            _ => {}
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Tree::List(elements))
    }

    fn object<A: MapAccess<'de>>(self, map: A) -> Result<Tree, A::Error> {
        match self.schema {
            Schema::Open(fields)
            | Schema::Pruned(fields)
            | Schema::Whole(fields)
            | Schema::Compared(fields)
            | Schema::Either(fields) => read_fields(map, fields, self).map(Tree::Map),
            Schema::Texts => read_texts(map, self),
            Schema::Keys => read_keys(map).map(|keys| Tree::Texts(keys.into())),
            _ => {
                skip_entries(map)?;
                Ok(Tree::Map(Map::default()))
            }
        }
    }
}

/// What is kept of a credential.
pub(crate) const fn masked(text: &str) -> &'static str {
    if text.is_empty() { "" } else { "*" }
}

/// Reads the JSON text of an object first, and then its fields from that text. Parts that are not read cause no
/// recursion. Keeps the text or, for a comparison, only its digest.
fn read_with_text<'de, D: Deserializer<'de>>(
    deserializer: D,
    fields: &'static [Field],
    seed: TreeReader<'_, '_>,
) -> Result<Tree, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    let mut tree = read_by(&text, &Schema::Open(fields), seed)?;
    if let Tree::Map(map) = &mut tree {
        let rest = map.rest.get_or_insert_default();
        match seed.schema {
            Schema::Compared(_) => rest.digest = digest::of(text.get()),
            _ => rest.text = Some(text.into()),
        }
    }
    Ok(tree)
}

fn read_by<E: Error>(text: &RawValue, schema: &Schema, seed: TreeReader<'_, '_>) -> Result<Tree, E> {
    json::parse(text.get(), Seed(TreeReader { schema, ..seed })).map_err(E::custom)
}

/// What is read of an element to know its schema.
const NAMED: Schema = Schema::Pruned(&[Field::new("name", Schema::Text)]);

fn read_fields<'de, A: MapAccess<'de>>(
    mut access: A,
    fields: &'static [Field],
    seed: TreeReader<'_, '_>,
) -> Result<Map, A::Error> {
    let mut map = Map::default();
    let mut position = 0;
    while let Some(Text(key)) = access.next_key::<Text<'de>>()? {
        // Keeps the field's own `'static` name in place of the key, without an allocation.
        if let Some(field) = fields.iter().find(|field| field.name == key).filter(|_| seed.step()) {
            let path = Path::Key(&seed.path, field.name);
            let tree = access.next_value_seed(Seed(TreeReader { schema: &field.schema, path, ..seed }))?;
            map.put(field, position, tree);
        } else {
            access.next_value::<IgnoredAny>()?;
            // Of a stored object, a name is kept only to tell that it is not empty.
            let is_wanted = !seed.is_stored || map == Map::default();
            if is_wanted && !matches!(seed.schema, Schema::Pruned(_)) {
                map.note_unknown(&key, position, seed);
            }
        }
        position += 1;
    }
    if seed.is_stored && !map.known.is_empty() {
        map.rest = None;
    }
    Ok(map)
}

fn read_texts<'de, A: MapAccess<'de>>(mut access: A, seed: TreeReader<'_, '_>) -> Result<Tree, A::Error> {
    let mut all = Vec::new();
    let text = TreeReader { schema: &Schema::Text, ..seed };
    while let Some(Text(key)) = access.next_key::<Text<'de>>()? {
        if seed.has_room(all.len()) {
            all.push((key.into(), access.next_value_seed(Seed(text))?));
        } else {
            access.next_value::<IgnoredAny>()?;
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

fn read_keys<'de, A: MapAccess<'de>>(mut access: A) -> Result<Texts, A::Error> {
    let mut keys = Vec::new();
    while let Some(Text(key)) = access.next_key::<Text<'de>>()? {
        access.next_value::<IgnoredAny>()?;
        keys.push((key.into(), Arc::default()));
    }
    Ok(Texts { entries: last_of_equal(keys), others: Vec::new() })
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

fn skip_entries<'de, A: MapAccess<'de>>(mut access: A) -> Result<(), A::Error> {
    while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: Schema = Schema::Open(&[
        Field::new("ttl", Schema::Integer),
        Field::new("name", Schema::Text),
        Field::new("data", Schema::Keys),
        Field::new("list", Schema::List(&Schema::Text)),
    ]);

    fn parse(text: &str) -> Tree {
        Tree::parse(text, &SCHEMA).expect("valid JSON")
    }

    #[test]
    fn the_last_of_equal_keys_wins_and_null_is_absent() {
        let tree = parse(r#"{"ttl":1,"name":"a","ttl":2,"name":null}"#);
        assert_eq!(tree.get("ttl"), Some(&Tree::Integer(2)));
        assert_eq!(tree.get("name"), None);
    }

    #[test]
    fn reads_integers_as_the_apiserver_does() {
        for (text, tree) in [
            ("3600.0", Tree::Integer(3600)),
            ("1e3", Tree::Integer(1000)),
            ("-0.0", Tree::Integer(0)),
            ("1.5", Tree::Fraction(Number::from_f64(1.5).expect("finite"))),
            ("9223372036854775807", Tree::Integer(i64::MAX)),
            ("9223372036854775808", Tree::Fraction(9_223_372_036_854_775_808_u64.into())),
        ] {
            assert_eq!(parse(&format!(r#"{{"ttl":{text}}}"#)).get("ttl"), Some(&tree), "{text}");
        }
    }

    #[test]
    fn keeps_no_secret_value() {
        let tree = parse(r#"{"data":{"KEY":"c2VjcmV0"}}"#);
        assert!(tree.get("data").expect("data").has_key("KEY"));
        assert!(!format!("{tree:?}").contains("c2VjcmV0"));
    }

    #[test]
    fn skips_what_is_too_deep_without_recursion() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let tree = parse(&format!(r#"{{"else":{deep},"ttl":{deep}}}"#));
        assert_eq!(tree.unknown_fields().collect::<Vec<_>>(), ["else"]);
        assert_eq!(tree.get("ttl").map(Tree::type_name), Some("array"));
    }

    #[test]
    fn keeps_the_text_of_what_is_copied_whole() {
        const LIST: Schema = Schema::List(&Schema::Whole(&[Field::new("name", Schema::Text)]));
        let text = r#"[{"name":"a","more":{"b":[1,null]}},null,"c"]"#;
        let json: Value = serde_json::from_str(text).expect("JSON");
        for tree in [Tree::parse(text, &LIST), Tree::read(&json, &LIST)] {
            let elements = tree.expect("valid JSON").elements().to_vec();
            assert_eq!(elements[0].text_at(&["name"]), Some("a"));
            assert_eq!(elements[0].whole().map(Value::Object).as_ref(), json.get(0));
            assert_eq!(elements[1], Tree::Null);
            assert_eq!((elements[2].text(), elements[2].whole()), (Some("c"), None));
        }
        let deep = format!(r#"[{{"name":"a","deep":{}{}}}]"#, "[".repeat(200_000), "]".repeat(200_000));
        let tree = Tree::parse(&deep, &LIST).expect("valid JSON");
        assert_eq!(tree.elements()[0].text_at(&["name"]), Some("a"));
        assert_eq!(tree.elements()[0].whole(), None);
    }

    #[test]
    fn compares_all_of_an_object_by_its_digest() {
        const SCHEMA: Schema = Schema::Compared(&[Field::new("name", Schema::Text)]);
        let read = |text: &str| Tree::parse(text, &SCHEMA).expect("valid JSON");
        let tree = read(r#"{"name":"a","more":{"b":[1,"x"],"c":true}}"#);
        assert_eq!((tree.text_at(&["name"]), tree.whole()), (Some("a"), None));
        for (other, same) in [
            (r#"{ "more": {"c":true, "b":[1,"x"]}, "name":"\u0061", "none":null }"#, true),
            (r#"{"more":0,"name":"a","more":{"b":[1,"x"],"c":true}}"#, true),
            (r#"{"name":"a","more":{"b":["x",1],"c":true}}"#, false),
            (r#"{"name":"a","more":{"b":[1,"x"],"c":true,"d":null}}"#, false),
            (r#"{"name":"a","more":{"b":[1,"x"],"c":false}}"#, false),
            (r#"{"name":"a","more":{"b":[1],"x":[],"c":true}}"#, false),
            (r#"{"name":"a"}"#, false),
        ] {
            assert_eq!(tree.digest() == read(other).digest(), same, "{other}");
        }
        let deep = format!(r#"{{"name":"a","deep":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(read(&deep).digest(), None);
    }

    #[test]
    fn compares_without_order() {
        let tree = parse(r#"{"odd":1,"ttl":2,"name":"a","list":["b"]}"#);
        for (other, same) in [
            (r#"{"list":["b"],"name":"a","ttl":2.0,"odd":2}"#, true),
            (r#"{"list":["b"],"name":"a","ttl":2,"even":1}"#, true),
            (r#"{"list":["b"],"name":"a","ttl":3,"odd":1}"#, false),
            (r#"{"list":["b"],"ttl":2,"odd":1}"#, false),
            (r#"{"list":["b","c"],"name":"a","ttl":2,"odd":1}"#, false),
        ] {
            assert_eq!(tree.is_equivalent(&parse(other)), same, "{other}");
        }
    }

    #[test]
    fn orders_by_place_in_the_document() {
        let tree = parse(r#"{"odd":1,"name":"a","ttl":2}"#);
        let position = |pointer: &str| tree.document_position(&Pointer::new(pointer));
        assert!(position("/odd") < position("/name"));
        assert!(position("/name") < position("/ttl"));
        assert!(position("/ttl") < position("/absent"));
    }
}
