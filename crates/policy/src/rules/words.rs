//! Lists of allowed and denied words. Case does not count.

use std::collections::BTreeSet;

use memgate_model::cel_view::{CelSide, InCel, MessagePart};
use memgate_model::finding::Cause;

use super::super::in_cel::{NOT_ASCII, VALUE, list, text};
use super::super::reader::{Fields, Reader};

/// The most entries of a list.
pub(super) const MAX_ENTRIES: usize = 256;

/// The most characters of an entry.
pub(super) const MAX_CHARS: usize = 253;

/// A list of words.
#[derive(Debug)]
pub(super) struct Words {
    /// As they are written.
    pub(super) texts: Vec<String>,
    folded: BTreeSet<String>,
}

impl Words {
    /// The words of a field; `None` when it is absent.
    pub(super) fn read(fields: &Fields<'_>, field: &str) -> Option<Self> {
        let texts = fields.texts(field, MAX_ENTRIES, MAX_CHARS)?;
        Some(Self::new(texts.into_iter().map(|(text, _)| text.to_owned()).collect()))
    }

    fn new(texts: Vec<String>) -> Self {
        let folded = texts.iter().map(|text| text.to_lowercase()).collect();
        Self { texts, folded }
    }

    pub(super) fn contains(&self, value: &str) -> bool {
        self.folded.contains(&value.to_lowercase())
    }
}

/// Allowed and denied words; a denied word wins.
#[derive(Debug)]
pub(super) struct Allowed {
    pub(super) allow: Option<Words>,
    deny: Option<Words>,
}

impl Allowed {
    pub(super) fn read(fields: &Fields<'_>) -> Self {
        Self { allow: Words::read(fields, "allow"), deny: Words::read(fields, "deny") }
    }

    pub(super) fn accepts(&self, value: &str) -> bool {
        let is_denied = self.deny.as_ref().is_some_and(|deny| deny.contains(value));
        !is_denied && self.allow.as_ref().is_none_or(|allow| allow.contains(value))
    }

    /// Whether both lists are absent, so that every word is accepted.
    pub(super) const fn is_empty(&self) -> bool {
        self.allow.is_none() && self.deny.is_none()
    }

    /// Whether the value of `it` is accepted, in CEL; `None` for words outside ASCII, which CEL cannot fold.
    fn in_cel(&self) -> Option<String> {
        let lists = [&self.allow, &self.deny].into_iter().flatten();
        if !lists.clone().flat_map(|words| &words.texts).all(|text| text.is_ascii()) {
            return None;
        }
        let among = |words: &Words, not: &str| {
            let words: Vec<String> = words.folded.iter().cloned().collect();
            format!("{not}({VALUE}.lowerAscii() in {})", list(&words))
        };
        let allow = self.allow.as_ref().map(|words| among(words, ""));
        let deny = self.deny.as_ref().map(|words| among(words, "!"));
        let parts: Vec<String> = allow.into_iter().chain(deny).collect();
        Some(if parts.is_empty() { "true".to_owned() } else { parts.join(" && ") })
    }

    /// Adds to `said` that each value at a path of a view must be accepted; `what` and `end` are the words of the
    /// message around the value.
    pub(super) fn add_in_cel(
        &self,
        said: &mut InCel,
        side: &CelSide<'_>,
        (path, field): (&str, &str),
        (what, end): (&str, String),
    ) {
        let Some(accepts) = self.in_cel() else { return said.leave_out(field, NOT_ASCII) };
        if let Some(entries) = said.entries(side, path, field) {
            let message = vec![text(what), MessagePart::Quoted(1), text(end)];
            said.add(format!("{entries}.filter(it, !({accepts}))"), message);
        }
    }

    /// The allowed words, as they are written.
    pub(super) fn instead(&self) -> Option<&[String]> {
        self.allow.as_ref().map(|allow| allow.texts.as_slice())
    }
}

/// The fields of a rule, at least one of which must be there.
pub(super) fn fields<'v>(reader: &Reader<'v>, known: &[&str]) -> Option<Fields<'v>> {
    let fields = reader.fields(known)?;
    if !known.iter().any(|name| fields.has(name)) {
        let names = super::super::reader::one_of(known);
        fields.fault_here(Cause::Required, &format!("asks for nothing; use {names}"));
        return None;
    }
    Some(fields)
}
