//! Applies edits to JSON text, and checks that they apply. What no edit leads to stays as it is: its order, and its
//! numbers as they are written.
//!
//! The text is read along the pointers of the edits, independently of how the object was read for the decision. Only the
//! objects and lists that a pointer leads through are taken apart, and written again without white space; their other
//! members are kept as text. So depth and unusual numbers elsewhere do not matter.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::patch::PatchError;
use memgate_model::edit::{Edit, Op, Value};
use memgate_model::view::Text;
use memgate_primitives::json::{self, Reader, Scalar, Seed};
use memgate_primitives::members::ByKey;
use memgate_primitives::pointer::{list_index, tokens, unescape};

/// The text of the object after the edits, in their order.
///
/// # Errors
/// The first edit that does not apply.
pub fn apply(object: &str, edits: &[Edit]) -> Result<String, PatchError> {
    let mut text = String::with_capacity(object.len());
    edited(object, edits)?.write_to(&mut text);
    Ok(text)
}

/// Whether the edits apply to the object, in their order.
///
/// # Errors
/// The first edit that does not apply.
pub fn check(object: &str, edits: &[Edit]) -> Result<(), PatchError> {
    edited(object, edits).map(drop)
}

fn edited<'a>(object: &'a str, edits: &'a [Edit]) -> Result<Node<'a>, PatchError> {
    let parents = edits.iter().filter_map(|edit| Some(edit.pointer.as_str().rsplit_once('/')?.0));
    let parents: BTreeSet<&str> = parents.collect();
    let mut root = Node::read(object, parents.into_iter().collect()).map_err(|_| PatchError::Unreadable)?;
    for edit in edits {
        root.change(edit).ok_or_else(|| PatchError::At(edit.pointer.clone()))?;
    }
    Ok(root)
}

/// A part of the object.
enum Node<'a> {
    /// As it was sent.
    Text(Cow<'a, str>),
    /// Written by an edit.
    Written(&'a Value),
    List(Vec<Self>),
    /// The last of equal keys counts. A field that was removed is `None`.
    Object(ByKey<Cow<'a, str>, Option<Self>>),
}

/// Reads a value along the pointers that lead on from it. Members to which none leads stay text.
struct Parts<'w>(Vec<&'w str>);

impl<'w> Parts<'w> {
    /// What the pointers lead to, and the rest of each behind that.
    fn members<K: Ord>(&self, member: impl Fn(&'w str) -> Option<K>) -> BTreeMap<K, Vec<&'w str>> {
        let mut members = BTreeMap::<K, Vec<_>>::new();
        for pointer in self.0.iter().filter_map(|pointer| pointer.strip_prefix('/')) {
            let (token, rest) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
            if let Some(member) = member(token) {
                members.entry(member).or_default().push(rest);
            }
        }
        members
    }
}

impl<'a> Reader<'a> for Parts<'_> {
    type Value = Node<'a>;

    fn scalar<E: Error>(self, scalar: Scalar<'a>) -> Result<Node<'a>, E> {
        Ok(Node::of(scalar.into()))
    }

    fn list<A: SeqAccess<'a>>(self, mut list: A) -> Result<Node<'a>, A::Error> {
        let (mut elements, members) = (Vec::new(), self.members(list_index));
        while let Some(element) = list.next_element_seed(Member(members.get(&elements.len())))? {
            elements.push(element);
        }
        Ok(Node::List(elements))
    }

    fn object<A: MapAccess<'a>>(self, mut object: A) -> Result<Node<'a>, A::Error> {
        let (mut fields, members) = (ByKey::default(), self.members(|token| Some(unescape(token))));
        while let Some(Text(key)) = object.next_key()? {
            let value = object.next_value_seed(Member(members.get(&key)))?;
            fields.insert(key, Some(value));
        }
        Ok(Node::Object(fields))
    }
}

/// A member to which these pointers lead.
struct Member<'m, 'w>(Option<&'m Vec<&'w str>>);

impl<'a> DeserializeSeed<'a> for Member<'_, '_> {
    type Value = Node<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Node<'a>, D::Error> {
        match self.0 {
            Some(pointers) => Parts(pointers.clone()).read(deserializer),
            None => <&RawValue>::deserialize(deserializer).map(|raw| Node::Text(raw.get().into())),
        }
    }
}

impl<'a> Node<'a> {
    fn read(text: &'a str, pointers: Vec<&str>) -> serde_json::Result<Self> {
        json::parse(text, Seed(Parts(pointers)))
    }

    fn of(value: Json) -> Self {
        match value {
            Json::Array(elements) => Self::List(elements.into_iter().map(Self::of).collect()),
            Json::Object(members) => {
                let fields = members.into_iter().map(|(key, value)| (key.into(), Some(Self::of(value))));
                Self::Object(fields.collect())
            }
            scalar => Self::Text(scalar.to_string().into()),
        }
    }

    fn change(&mut self, edit: &'a Edit) -> Option<()> {
        let (parent, target) = edit.pointer.as_str().rsplit_once('/')?;
        let (target, new) = (unescape(target), Self::Written(&edit.value));
        match tokens(parent).try_fold(self, |node, token| node.opened().member(&token))?.opened() {
            Self::List(elements) => {
                let is_new = edit.op == Op::Add;
                let at = list_index(&target).filter(|at| *at < elements.len() + usize::from(is_new))?;
                let new = (edit.op != Op::Remove).then_some(new);
                drop(elements.splice(at..at + usize::from(!is_new), new));
            }
            Self::Object(fields) => {
                let is_known = fields.get(&target).is_some_and(Option::is_some);
                if !is_known && edit.op != Op::Add {
                    return None;
                }
                fields.insert(target, (edit.op != Op::Remove).then_some(new));
            }
            Self::Text(_) | Self::Written(_) => return None,
        }
        Some(())
    }

    /// The node, taken apart if it is an object or a list.
    fn opened(&mut self) -> &mut Self {
        let opened = match self {
            Self::Text(Cow::Borrowed(text)) => Self::read(text, Vec::new()).ok(),
            Self::Written(value) => serde_json::to_value(value).ok().map(Self::of),
            _ => None,
        };
        if let Some(opened) = opened {
            *self = opened;
        }
        self
    }

    fn member(&mut self, token: &str) -> Option<&mut Self> {
        match self {
            Self::List(elements) => elements.get_mut(list_index(token)?),
            Self::Object(fields) => fields.get_mut(token)?.as_mut(),
            Self::Text(_) | Self::Written(_) => None,
        }
    }

    fn write_to(&self, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Written(value) => out.push_str(&serde_json::to_string(value).unwrap_or_default()),
            Self::List(elements) => {
                let mut before = '[';
                for element in elements {
                    out.push(std::mem::replace(&mut before, ','));
                    element.write_to(out);
                }
                out.push_str(if before == '[' { "[]" } else { "]" });
            }
            Self::Object(fields) => {
                let mut before = '{';
                for (key, node) in fields.iter().filter_map(|(key, node)| Some((key, node.as_ref()?))) {
                    out.push(std::mem::replace(&mut before, ','));
                    out.push_str(&Json::from(&**key).to_string());
                    out.push(':');
                    node.write_to(out);
                }
                out.push_str(if before == '{' { "{}" } else { "}" });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use memgate_primitives::pointer::Pointer;

    use crate::patch::Patch;

    use super::*;

    fn edit(op: Op, pointer: &str, text: &str) -> Edit {
        let value = if op == Op::Remove { Value::Nothing } else { Value::Text(text.to_owned()) };
        Edit { op, pointer: Pointer::new(pointer), value, origins: Vec::new() }
    }

    /// Texts whose ends are at all places of eight bytes, with what could be taken for an end.
    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!["a", "\"", "\\", "{", "]", ",", "é", "\n", "~", "/"]),
            0..50,
        )
        .prop_map(|parts| parts.concat())
    }

    fn json_value() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            text().prop_map(Json::from),
            any::<i32>().prop_map(Json::from),
            Just(Json::Null),
            Just(json!(1.5e300)),
            Just(json!(true)),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::vec((text(), inner), 0..4).prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    proptest! {
        /// Edits give what the library `json_patch` gives, whatever stands around them.
        #[test]
        fn agrees_with_another_library(
            before in json_value(),
            list in prop::collection::vec(json_value(), 0..6),
            key in text(),
            value in json_value(),
            at in 0_usize..8,
            new in text(),
            is_pretty in any::<bool>(),
        ) {
            let object = json!({"before": before, "deep": [{"list": list, key.clone(): value}], "after": before});
            let text = if is_pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
            let text = text.expect("JSON");
            let deep = Pointer::new("/deep/0");
            let in_list = deep.key("list");
            let edits = [
                edit(Op::Add, in_list.index(at).as_str(), &new),
                edit(Op::Add, in_list.index(at + 1).as_str(), &new),
                edit(Op::Replace, in_list.index(0).as_str(), "first"),
                edit(Op::Remove, in_list.index(at / 2).as_str(), ""),
                edit(Op::Add, deep.key(&key).as_str(), &new),
                edit(Op::Add, "/after", "set"),
                edit(Op::Remove, "/before", ""),
                edit(Op::Add, "/before", &new),
            ];
            for count in 1..=edits.len() {
                let edits = &edits[..count];
                let mut expected = object.clone();
                let patch = serde_json::to_value(Patch(edits)).and_then(serde_json::from_value::<json_patch::Patch>);
                let fits = json_patch::patch(&mut expected, &patch.expect("a patch")).is_ok();
                prop_assert_eq!(check(&text, edits).is_ok(), fits, "{} {:?}", text, edits);
                if fits {
                    let applied: Json = serde_json::from_str(&apply(&text, edits).expect("applies")).expect("JSON");
                    prop_assert_eq!(applied, expected);
                }
            }
        }
    }

    #[test]
    fn ends_on_text_that_is_not_json() {
        for text in [
            "", "{", "[", "{\"a\"", "{\"a\":", "{\"a\":[:", "[:]", "{:}", "{\"a\" 1}", "\"", "\"\\",
            "{\"a\":1}}", "]",
        ] {
            let edits = [edit(Op::Add, "/a/0", "x")];
            assert!(check(text, &edits).is_err(), "{text}");
            assert!(check(text, &[edit(Op::Add, "/a/b/c", "x")]).is_err(), "{text}");
        }
        assert_eq!(check("{}", &[edit(Op::Add, "", "x")]), Err(PatchError::At(Pointer::root())));
    }

    #[test]
    fn reads_as_deep_as_the_pointers_and_not_as_the_text() {
        let deep = |key: &str| format!("\"{key}\":{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        let text = format!(r#"{{{},{},"a":{{"b":{{}}}}}}"#, deep("a"), deep("z"));
        assert_eq!(check(&text, &[edit(Op::Add, "/a/b/c", "x")]), Ok(()));
        let text = format!("{{{}}}", deep("a"));
        assert!(check(&text, &[edit(Op::Add, "/a/b/c", "x")]).is_err());
        assert!(check(&text, &[edit(Op::Add, "/a/0/0/0", "x")]).is_ok());
    }

    /// Whatever serde_json cannot read as a value, beside an element that is changed too.
    #[test]
    fn values_beside_a_change_stay_as_they_are_written() {
        let odd = r#"1e400,-0.0,1.50,123456789012345678901234567890,"\ud800""#;
        let text = format!(r#"{{"n":[{odd}],"a":[{odd},{{"x":[{odd}],"0":[{odd}]}},{{}}]}}"#);
        let after = format!(r#"{{"n":[{odd}],"a":[{odd},{{"x":[{odd},"new"],"0":[{odd}]}},{{}}]}}"#);
        assert_eq!(apply(&text, &[edit(Op::Add, "/a/5/x/5", "new")]), Ok(after));
        assert!(check(&text, &[edit(Op::Add, "/a/0/x", "new")]).is_err());
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let applied = apply(r#"{"a":[],"\u0061":["x"]}"#, &[edit(Op::Add, "/a/1", "y")]);
        assert_eq!(applied.as_deref(), Ok(r#"{"a":["x","y"]}"#));
        let applied = apply(r#"{"a":1,"b":2,"\u0061":3}"#, &[edit(Op::Remove, "/a", "")]);
        assert_eq!(applied.as_deref(), Ok(r#"{"b":2}"#));
        let edits = [edit(Op::Remove, "/a", ""), edit(Op::Add, "/a", "new")];
        assert_eq!(apply(r#"{"a":1,"b":2}"#, &edits).as_deref(), Ok(r#"{"a":"new","b":2}"#));
    }

    /// Looking through all fields for each edit would take minutes.
    #[test]
    fn many_fields_and_many_edits() {
        let fields = (0..100_000).map(|number| (number.to_string(), json!(number)));
        let text = Json::Object(fields.collect()).to_string();
        let edits: Vec<_> = (0..100_000)
            .map(|number| match number % 3 {
                0 => edit(Op::Remove, &format!("/{number}"), ""),
                1 => edit(Op::Add, &format!("/{number}"), "x"),
                _ => edit(Op::Add, &format!("/new-{number}"), "x"),
            })
            .collect();
        let applied: Json = serde_json::from_str(&apply(&text, &edits).expect("applies")).expect("JSON");
        assert_eq!(applied.as_object().map(serde_json::Map::len), Some(100_000 - 33_334 + 33_333));
    }
}
