//! JSON pointers (RFC 6901): where in an object a value stands, as text and as Kubernetes writes fields.
//! Looking a pointer up in an object is not done here.

use std::borrow::Cow;
use std::fmt;

use crate::plain_text::{plain, shown_key};

/// A JSON pointer such as `/spec/redis/secretRef/name`; the empty pointer is the whole document.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(String);

impl Pointer {
    /// The pointer to the whole document.
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// A pointer from text that already is one, such as `/spec/redis`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The pointer to the member `key` below this one; `~` and `/` in the key are escaped.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut text = String::with_capacity(self.0.len() + key.len() + 1);
        text.push_str(&self.0);
        text.push('/');
        push_escaped(&mut text, key);
        Self(text)
    }

    /// The pointer to the list element `index` below this one.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut text = String::with_capacity(self.0.len() + MAX_INDEX_BYTES);
        text.push_str(&self.0);
        push_index(&mut text, index);
        Self(text)
    }

    /// This pointer with all of `below` behind it.
    #[must_use]
    pub fn join(&self, below: &Self) -> Self {
        Self(format!("{}{}", self.0, below.0))
    }

    /// The pointer as text, with its escapes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The pointer to a field as [`Pointer::field`] writes it.
    pub fn of_field(field: &str) -> Self {
        let (mut pointer, mut rest) = (Self::root(), field);
        while !rest.is_empty() {
            let bracketed = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
            let (token, behind) = bracketed.unwrap_or_else(|| {
                let end = rest.char_indices().skip(1).find(|(_, c)| matches!(c, '.' | '['));
                rest.split_at(end.map_or(rest.len(), |(at, _)| at))
            });
            pointer = pointer.key(token);
            rest = behind.strip_prefix('.').unwrap_or(behind);
        }
        pointer
    }

    /// The pointer with every index of a list as `-`, so that it stays the same when an element moves. A key that is a
    /// number counts as an index.
    #[must_use]
    pub fn without_indexes(&self) -> Self {
        let tokens = self.0.split('/').map(|token| if is_index(token) { "-" } else { token });
        Self(tokens.collect::<Vec<_>>().join("/"))
    }

    /// The pointer to what holds this one; `None` at the root.
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.0.rsplit_once('/')?;
        Some(Self(parent.to_owned()))
    }

    /// Whether `other` stands here or below.
    pub fn holds(&self, other: &Self) -> bool {
        other.0.strip_prefix(&self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The keys and indexes on the way, unescaped, from the root down.
    pub fn tokens(&self) -> impl Iterator<Item = Cow<'_, str>> {
        tokens(&self.0)
    }

    /// The same place as Kubernetes writes it, or this text for the whole object.
    pub fn field_or(&self, root: &str) -> String {
        if self.0.is_empty() { root.to_owned() } else { self.field() }
    }

    /// The same place as Kubernetes writes it: `spec.containers[0].env`, `metadata.labels[a/b]`.
    /// Empty at the root; a control character in a key is a blank.
    pub fn field(&self) -> String {
        let mut field = String::with_capacity(self.0.len());
        for token in self.tokens() {
            let token = shown_key(&token);
            if is_index(&token) || token.contains(['.', '/', '…']) {
                field.push('[');
                field.push_str(&token);
                field.push(']');
            } else {
                if !field.is_empty() {
                    field.push('.');
                }
                field.push_str(&token);
            }
        }
        plain(&field).into_owned()
    }

    /// The pointer as outputs have it, with [`shown_key`] of each key.
    pub fn shown(&self) -> Cow<'_, str> {
        if self.tokens().all(|token| matches!(shown_key(&token), Cow::Borrowed(_))) {
            return Cow::Borrowed(&self.0);
        }
        let mut shown = Self::root();
        for token in self.tokens() {
            shown = shown.key(&shown_key(&token));
        }
        Cow::Owned(shown.0)
    }
}

/// The way from the root to a value, as a chain on the stack. It becomes a pointer only where one is needed, to
/// save allocations.
#[derive(Debug, Clone, Copy)]
pub enum Path<'w> {
    /// The whole document.
    Root,
    /// A field of an object.
    Key(&'w Self, &'w str),
    /// An element of a list.
    Index(&'w Self, usize),
    /// A value whose pointer is this text.
    Known(&'w str),
}

impl Path<'_> {
    /// The pointer to the value.
    pub fn pointer(self) -> Pointer {
        let mut text = String::with_capacity(64);
        self.push_to(&mut text);
        Pointer(text)
    }

    fn push_to(self, text: &mut String) {
        match self {
            Self::Root => {}
            Self::Key(above, key) => {
                above.push_to(text);
                text.push('/');
                push_escaped(text, key);
            }
            Self::Index(above, index) => {
                above.push_to(text);
                push_index(text, index);
            }
            Self::Known(pointer) => text.push_str(pointer),
        }
    }
}

/// The bytes of the longest index with its slash.
const MAX_INDEX_BYTES: usize = 21;

/// Appends an index with its slash. Where each element of a list has a finding, `write!` takes several times as long.
pub fn push_index(text: &mut String, index: usize) {
    text.push('/');
    text.push_str(itoa::Buffer::new().format(index));
}

/// Appends a key without its slash.
pub fn push_escaped(text: &mut String, key: &str) {
    if !key.contains(['~', '/']) {
        return text.push_str(key);
    }
    for character in key.chars() {
        match character {
            '~' => text.push_str("~0"),
            '/' => text.push_str("~1"),
            other => text.push(other),
        }
    }
}

impl From<&str> for Pointer {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// From the names of the fields on the way to a place.
impl From<&[&str]> for Pointer {
    fn from(path: &[&str]) -> Self {
        path.iter().fold(Self::root(), |pointer, name| pointer.key(name))
    }
}

impl From<&Self> for Pointer {
    fn from(pointer: &Self) -> Self {
        pointer.clone()
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The list index that a token is, if it is one.
pub fn list_index(token: &str) -> Option<usize> {
    let is_digit = token.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if is_digit && is_index(token) { token.parse().ok() } else { None }
}

/// Whether a token can only be a list index: digits without a leading zero (RFC 6901, section 4).
fn is_index(token: &str) -> bool {
    token == "0"
        || (!token.starts_with('0') && !token.is_empty() && token.bytes().all(|b| b.is_ascii_digit()))
}

/// The tokens of a pointer, unescaped.
pub fn tokens(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(unescape)
}

/// The key that a token stands for.
pub fn unescape(token: &str) -> Cow<'_, str> {
    // Nearly every token is as it is written, and a search for a byte is cheaper than one for a character.
    if !token.as_bytes().contains(&b'~') {
        return token.into();
    }
    let (start, escaped) = token.split_once('~').unwrap_or((token, ""));
    let mut key = String::with_capacity(token.len());
    key.push_str(start);
    for part in escaped.split('~') {
        let (sign, rest) = match part.as_bytes() {
            [b'1', ..] => ('/', part.get(1..)),
            [b'0', ..] => ('~', part.get(1..)),
            _ => ('~', Some(part)),
        };
        key.push(sign);
        key.push_str(rest.unwrap_or_default());
    }
    key.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_unescapes_keys() {
        let pointer = Pointer::root().key("metadata").key("annotations").key("a/b~c");
        assert_eq!(pointer.as_str(), "/metadata/annotations/a~1b~0c");
        assert_eq!(pointer.tokens().collect::<Vec<_>>(), ["metadata", "annotations", "a/b~c"]);
    }

    #[test]
    fn appends_indexes() {
        for index in [0, 7, 10, 9_999, 10_000, usize::MAX] {
            let pointer = Pointer::new("/spec").index(index);
            assert_eq!(pointer.as_str(), format!("/spec/{index}"));
        }
    }

    #[test]
    fn writes_fields_as_kubernetes_does() {
        for (pointer, field) in [
            ("", ""),
            ("/spec/redis/secretRef/name", "spec.redis.secretRef.name"),
            ("/spec/containers/0/env/12", "spec.containers[0].env[12]"),
            ("/metadata/labels/memgate.dev~1inject", "metadata.labels[memgate.dev/inject]"),
        ] {
            assert_eq!(Pointer::new(pointer).field(), field);
            assert_eq!(Pointer::of_field(field).as_str(), pointer);
        }
    }
}
