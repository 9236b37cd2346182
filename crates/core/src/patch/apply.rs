//! Applies edits to JSON text, and checks that they apply. What no edit names stays as it is, byte for byte.
//!
//! The text is read along the pointers of the edits, independently of how the object was read for the decision: by
//! another reader, which looks for the ends of values only. The decision has shown before that the text is JSON. Only
//! the objects and lists that a pointer leads through are taken apart; their other members are copied as text,
//! neighbours together. So depth, number, unusual numbers and repeated keys elsewhere do not matter. A list into which
//! edits only insert is read as far as the last index that they name.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use crate::patch::PatchError;
use memgate_model::edit::{Edit, Op, Value};
use memgate_primitives::json_reader::{BLANKS, part_length};
use memgate_primitives::pointer::{list_index, tokens, unescape};

/// The text of the object after the edits, in their order. The object has to be known to be JSON.
///
/// # Errors
/// The first edit that does not apply.
pub fn apply(object: &str, edits: &[Edit]) -> Result<String, PatchError> {
    edited(object, edits, |root| {
        let mut text = String::with_capacity(object.len());
        root.write_to(&mut text);
        text
    })
}

/// Whether the edits apply to the object, in their order. The object has to be known to be JSON.
///
/// # Errors
/// The first edit that does not apply.
pub fn check(object: &str, edits: &[Edit]) -> Result<(), PatchError> {
    edited(object, edits, |_| ())
}

fn edited<T>(object: &str, edits: &[Edit], read: impl FnOnce(&Node<'_>) -> T) -> Result<T, PatchError> {
    let groups: Vec<&[Edit]> = edits.chunk_by(|one, next| place(one).0 == place(next).0).collect();
    let mut paths = Paths::default();
    for group in &groups {
        paths.insert(group);
    }
    let values: Vec<Written<'_>> = edits.iter().map(Written::by).collect();
    let mut values = values.iter();
    let mut root = Node::whole(object, &paths).ok_or(PatchError::Unreadable)?;
    for group in groups {
        let first = || PatchError::At(group.first().map(|edit| edit.pointer.clone()).unwrap_or_default());
        let (node, paths) = root.parent_of(group, &paths).ok_or_else(first)?;
        for (edit, value) in group.iter().zip(&mut values) {
            node.change(edit, value, paths).ok_or_else(|| PatchError::At(edit.pointer.clone()))?;
        }
    }
    Ok(read(&root))
}

/// The pointer to the object or list that an edit changes, and the last token; empty at the root.
fn place(edit: &Edit) -> (&str, &str) {
    let pointer = edit.pointer.as_str();
    let slash = pointer.bytes().rposition(|byte| byte == b'/').unwrap_or_default();
    let (parent, token) = pointer.split_at(slash);
    (parent, token.get(1..).unwrap_or_default())
}

/// The tokens of the parent of these edits, which have the same one.
fn parent_tokens(group: &[Edit]) -> impl Iterator<Item = Cow<'_, str>> {
    tokens(group.first().map(place).unwrap_or_default().0)
}

/// What an edit writes, and its text once it is needed.
struct Written<'e> {
    value: &'e Value,
    text: OnceCell<String>,
}

impl<'e> Written<'e> {
    const fn by(edit: &'e Edit) -> Self {
        Self { value: &edit.value, text: OnceCell::new() }
    }

    fn text(&self) -> &str {
        // Values of edits can always be written as JSON.
        self.text.get_or_init(|| serde_json::to_string(self.value).unwrap_or_default())
    }
}

/// The tokens of all pointers, sorted, by their common starts. The elements of a list are one, since inserts shift them.
#[derive(Default)]
struct Paths<'e>(Vec<(Cow<'e, str>, Self)>);

impl<'e> Paths<'e> {
    /// Adds the pointers of edits with the same parent.
    fn insert(&mut self, group: &'e [Edit]) {
        let mut parent = self;
        for token in parent_tokens(group) {
            let Some(below) = parent.entry(Self::name(token)) else { return };
            parent = below;
        }
        for edit in group {
            parent.entry(Self::name(unescape(place(edit).1)));
        }
    }

    /// The paths below this name, which is there from now on.
    fn entry(&mut self, name: Cow<'e, str>) -> Option<&mut Self> {
        let at = match self.position(&name) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (name, Self::default()));
                at
            }
        };
        self.0.get_mut(at).map(|(_, below)| below)
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    /// The name of all elements of a list, or of a field.
    fn name(token: Cow<'e, str>) -> Cow<'e, str> {
        if list_index(&token).is_some() { Cow::Borrowed("0") } else { token }
    }

    fn below(&self, token: &str) -> Option<&Self> {
        let at = self.position(if list_index(token).is_some() { "0" } else { token }).ok()?;
        self.0.get(at).map(|(_, below)| below)
    }

    /// Whether all pointers end at elements of the list here.
    fn only_insert(&self) -> bool {
        matches!(&self.0[..], [(name, paths)] if name == "0" && paths.0.is_empty())
    }
}

/// A value: text, or the parts of a list or object that a pointer leads through.
enum Node<'a> {
    Text(&'a str),
    Written(&'a Written<'a>),
    List(Vec<Part<'a>>),
    Object(Vec<Part<'a>>),
}

/// A part of a list or object.
enum Part<'a> {
    /// So many neighbours that no edit leads into, with the commas between them.
    Others(&'a str, usize),
    /// The rest of a list, of which not even the number is known.
    Unread(&'a str),
    Element(Node<'a>),
    Field(Cow<'a, str>, Node<'a>),
}

impl<'a> Node<'a> {
    /// Reads a whole text.
    fn whole(text: &'a str, paths: &Paths<'_>) -> Option<Self> {
        let mut cursor = Cursor { text, at: 0 };
        let node = Self::opened_at(&mut cursor, paths)?;
        cursor.peek().is_none().then_some(node)
    }

    /// Reads the value at the cursor, and takes it apart if a pointer leads through it.
    fn at(cursor: &mut Cursor<'a>, paths: &Paths<'_>) -> Option<Self> {
        if paths.0.is_empty() || paths.only_insert() {
            return cursor.value().map(Self::Text);
        }
        Self::opened_at(cursor, paths)
    }

    fn opened_at(cursor: &mut Cursor<'a>, paths: &Paths<'_>) -> Option<Self> {
        let next = cursor.peek()?;
        match (next, paths.below("0")) {
            (b'{', _) => Self::object_at(cursor, paths).map(Self::Object),
            (b'[', Some(paths)) => Self::list_at(cursor, paths).map(Self::List),
            // Where no pointer has an index, a list stays closed. So reading is as deep as the pointers, and not as the text.
            _ => cursor.value().map(Self::Text),
        }
    }

    fn object_at(cursor: &mut Cursor<'a>, paths: &Paths<'_>) -> Option<Vec<Part<'a>>> {
        let mut parts = Vec::new();
        // Where the neighbours before the cursor begin that no edit leads into, and how many there are.
        let (mut first, mut others) = (0, 0);
        let mut end = 0;
        cursor.skip(b'{')?;
        while cursor.peek()? != b'}' {
            let start = cursor.at;
            let key = cursor.key()?;
            cursor.skip(b':')?;
            if let Some(paths) = paths.below(&key) {
                parts.extend(cursor.others(first..end, others));
                parts.push(Part::Field(key, Self::at(cursor, paths)?));
                others = 0;
            } else {
                cursor.value()?;
                first = if others == 0 { start } else { first };
                others += 1;
            }
            end = cursor.at;
            cursor.skip_comma();
        }
        cursor.skip(b'}')?;
        parts.extend(cursor.others(first..end, others));
        Some(parts)
    }

    /// Reads a list, of which all elements have these paths below them.
    fn list_at(cursor: &mut Cursor<'a>, paths: &Paths<'_>) -> Option<Vec<Part<'a>>> {
        let mut parts = Vec::new();
        cursor.skip(b'[')?;
        while cursor.peek()? != b']' {
            parts.push(Part::Element(Self::at(cursor, paths)?));
            cursor.skip_comma();
        }
        cursor.skip(b']')?;
        Some(parts)
    }

    /// The object or list that these edits change, with the pointers through it; `None` when there is none.
    fn parent_of<'n, 'p>(
        &'n mut self,
        group: &[Edit],
        paths: &'p Paths<'p>,
    ) -> Option<(&'n mut Self, &'p Paths<'p>)> {
        parent_tokens(group).try_fold((self, paths), |(node, paths), token| {
            let node = match node.opened(paths)? {
                Self::List(parts) => element(parts, list_index(&token)?),
                Self::Object(parts) => field(parts, &token),
                Self::Text(_) | Self::Written(_) => None,
            };
            Some((node?, paths.below(&token)?))
        })
    }

    /// Makes one edit in this object or list; `None` when it does not fit.
    fn change(&mut self, edit: &Edit, value: &'a Written<'a>, paths: &Paths<'_>) -> Option<()> {
        // The root is neither in an object nor in a list.
        (!edit.pointer.as_str().is_empty()).then_some(())?;
        let (target, new) = (unescape(place(edit).1), Self::Written(value));
        match self.opened(paths)? {
            Self::List(parts) => change_list(parts, list_index(&target)?, edit.op, new),
            Self::Object(parts) => change_object(parts, target, edit.op, new),
            Self::Text(_) | Self::Written(_) => None,
        }
    }

    /// Takes a value apart that an earlier edit wrote, or that was left as text.
    fn opened(&mut self, paths: &Paths<'_>) -> Option<&mut Self> {
        let text = match *self {
            Self::Text(text) => text,
            Self::Written(written) => written.text(),
            Self::List(_) | Self::Object(_) => return Some(self),
        };
        let list = text.strip_prefix('[').filter(|_| paths.only_insert());
        *self = match list.and_then(|list| list.strip_suffix(']')).map(str::trim) {
            Some("") => Self::List(Vec::new()),
            Some(elements) => Self::List(vec![Part::Unread(elements)]),
            None => Self::whole(text, paths)?,
        };
        Some(self)
    }

    fn write_to(&self, out: &mut String) {
        let (open, parts, close) = match self {
            Self::Text(text) => return out.push_str(text),
            Self::Written(written) => return out.push_str(written.text()),
            Self::List(parts) => ('[', parts, ']'),
            Self::Object(parts) => ('{', parts, '}'),
        };
        out.push(open);
        for (index, part) in parts.iter().enumerate() {
            out.push_str(if index > 0 { "," } else { "" });
            match part {
                Part::Others(text, _) | Part::Unread(text) => out.push_str(text),
                Part::Element(node) => node.write_to(out),
                Part::Field(key, node) => {
                    out.push_str(&serde_json::Value::from(&**key).to_string());
                    out.push(':');
                    node.write_to(out);
                }
            }
        }
        out.push(close);
    }
}

fn change_list<'a>(parts: &mut Vec<Part<'a>>, index: usize, op: Op, new: Node<'a>) -> Option<()> {
    match op {
        Op::Add => {
            let at = boundary(parts, index)?;
            parts.insert(at, Part::Element(new));
        }
        Op::Replace => *element(parts, index)? = new,
        Op::Remove => {
            element(parts, index)?;
            let at = boundary(parts, index)?;
            parts.remove(at);
        }
    }
    Some(())
}

fn change_object<'a>(parts: &mut Vec<Part<'a>>, key: Cow<'_, str>, op: Op, new: Node<'a>) -> Option<()> {
    let known = field(parts, &key);
    match (op, known) {
        (Op::Add | Op::Replace, Some(known)) => *known = new,
        (Op::Add, None) => parts.push(Part::Field(key.into_owned().into(), new)),
        (Op::Remove, Some(_)) => parts.retain(|part| !matches!(part, Part::Field(name, _) if *name == key)),
        (Op::Remove | Op::Replace, None) => return None,
    }
    Some(())
}

/// The value of a field that an edit names. Of several equal keys the last one counts.
fn field<'p, 'a>(parts: &'p mut [Part<'a>], key: &str) -> Option<&'p mut Node<'a>> {
    parts.iter_mut().rev().find_map(|part| match part {
        Part::Field(name, node) if *name == key => Some(node),
        _ => None,
    })
}

/// The element of this index, as a part of its own.
fn element<'p, 'a>(parts: &'p mut Vec<Part<'a>>, index: usize) -> Option<&'p mut Node<'a>> {
    let at = boundary(parts, index)?;
    boundary(parts, index + 1)?;
    let part = parts.get_mut(at)?;
    if let Part::Others(text, _) = *part {
        *part = Part::Element(Node::Text(text));
    }
    match part {
        Part::Element(node) => Some(node),
        Part::Others(..) | Part::Unread(_) | Part::Field(..) => None,
    }
}

/// The place among the parts of a list where the element of this index begins, or the list ends.
fn boundary(parts: &mut Vec<Part<'_>>, index: usize) -> Option<usize> {
    let (mut at, mut left) = (0, index);
    while left > 0 {
        match parts.get_mut(at)? {
            Part::Others(text, count) if left < *count => {
                let (before, behind) = split(text, left)?;
                let rest = Part::Others(behind, *count - left);
                (*text, *count) = (before, left);
                parts.insert(at + 1, rest);
                left = 0;
            }
            Part::Unread(text) => {
                let (before, behind) = split(text, left)?;
                let rest = (!behind.is_empty()).then_some(Part::Unread(behind));
                parts.splice(at..=at, [Part::Others(before, left)].into_iter().chain(rest));
                left = 0;
            }
            Part::Others(_, count) => left -= *count,
            Part::Element(_) | Part::Field(..) => left -= 1,
        }
        at += 1;
    }
    Some(at)
}

/// Cuts elements of a list behind the first ones.
fn split(text: &str, count: usize) -> Option<(&str, &str)> {
    let mut cursor = Cursor { text, at: 0 };
    let mut end = 0;
    for _ in 0..count {
        cursor.value()?;
        end = cursor.at;
        cursor.skip_comma();
    }
    cursor.peek();
    Some((text.get(..end)?, text.get(cursor.at..)?))
}

/// A place in a text that is known to be JSON, outside of a string.
///
/// It finds the ends of values and does not look at anything else, which takes a third of the instructions of reading
/// them: this is done for each pod that gets memory.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Skips blanks, and returns the byte behind them.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !BLANKS.contains(&byte) {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Skips blanks and this byte; `None` if there is another one.
    fn skip(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn skip_comma(&mut self) {
        let _last = self.skip(b',');
    }

    /// Skips a key, and returns it without escapes.
    fn key(&mut self) -> Option<Cow<'a, str>> {
        self.peek().filter(|byte| *byte == b'"')?;
        let (end, escapes) = string_end(self.text.as_bytes(), self.at)?;
        let quoted = self.text.get(self.at..end)?;
        self.at = end;
        if escapes {
            return serde_json::from_str(quoted).ok().map(Cow::Owned);
        }
        quoted.get(1..quoted.len() - 1).map(Cow::Borrowed)
    }

    /// Skips a value.
    fn value(&mut self) -> Option<&'a str> {
        self.peek()?;
        let (text, start) = (self.text, self.at);
        let bytes = text.as_bytes();
        let (mut at, mut depth) = (start, 0_usize);
        loop {
            match *bytes.get(at)? {
                b'"' => (at, _) = string_end(bytes, at)?,
                b'{' | b'[' => {
                    depth += 1;
                    at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    at += 1;
                }
                // What separates the values within this one, or the bytes of a number or a word.
                _ if depth > 0 => at += 1,
                _ => at += word_length(bytes.get(at..)?),
            }
            if depth == 0 {
                self.at = at;
                return text.get(start..at).filter(|value| !value.is_empty());
            }
        }
    }

    /// So many neighbours at this place, if there are any.
    fn others(&self, range: Range<usize>, count: usize) -> Option<Part<'a>> {
        (count > 0).then(|| Part::Others(self.text.get(range).unwrap_or_default(), count))
    }
}

/// The length of a number or a word.
fn word_length(bytes: &[u8]) -> usize {
    let ends = |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']') || BLANKS.contains(byte);
    bytes.iter().position(ends).unwrap_or(bytes.len())
}

/// Where the string ends that begins at this quote, and whether it has escapes.
#[inline]
fn string_end(bytes: &[u8], quote: usize) -> Option<(usize, bool)> {
    let (mut at, mut escapes) = (quote + 1, false);
    loop {
        at += part_length(bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some((at + 1, escapes));
        }
        escapes = true;
        at += 2;
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

    #[test]
    fn the_last_of_equal_keys_counts() {
        let applied = apply(r#"{"a":[],"\u0061":["x"]}"#, &[edit(Op::Add, "/a/1", "y")]);
        assert_eq!(applied.as_deref(), Ok(r#"{"a":[],"a":["x","y"]}"#));
    }
}
