//! What several rules share: lists of allowed and denied words, in which case does not count.

use std::collections::BTreeSet;

use memgate_model::finding::Cause;
use memgate_primitives::plain_text::quoted_text;
use memgate_primitives::pointer::Pointer;

use crate::reader::{Fields, Reader};

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
        Self::read_within(fields, field, MAX_CHARS)
    }

    /// The same, each of so many characters.
    pub(super) fn read_within(fields: &Fields<'_>, field: &str, max_chars: usize) -> Option<Self> {
        let texts = fields.texts(field, MAX_ENTRIES, max_chars)?;
        let texts: Vec<String> = texts.into_iter().map(|(text, _)| text.to_owned()).collect();
        let folded = texts.iter().map(|text| text.to_lowercase()).collect();
        Some(Self { texts, folded })
    }

    pub(super) fn contains(&self, value: &str) -> bool {
        self.folded.contains(&value.to_lowercase())
    }
}

/// Allowed and denied words; a denied word wins.
#[derive(Debug)]
pub(super) struct Allowed {
    pub(super) allow: Option<Words>,
    pub(super) deny: Option<Words>,
}

impl Allowed {
    pub(super) fn read(fields: &Fields<'_>) -> Self {
        Self { allow: Words::read(fields, "allow"), deny: Words::read(fields, "deny") }
    }

    pub(super) fn accepts(&self, value: &str) -> bool {
        let is_denied = self.deny.as_ref().is_some_and(|deny| deny.contains(value));
        !is_denied && self.allow.as_ref().is_none_or(|allow| allow.contains(value))
    }

    /// The allowed words that are denied too.
    pub(super) fn contradictions(&self) -> Vec<(Pointer, String)> {
        let (Some(allow), Some(deny)) = (&self.allow, &self.deny) else { return Vec::new() };
        denied_too(allow.texts.iter().map(String::as_str), |word| deny.contains(word))
    }
}

/// The entries of `allow` that are denied too.
pub(super) fn denied_too<'t>(
    allow: impl Iterator<Item = &'t str>,
    is_denied: impl Fn(&str) -> bool,
) -> Vec<(Pointer, String)> {
    let at = |index| Pointer::new("/allow").index(index);
    let both = allow.zip(0..).filter(|(word, _)| is_denied(word));
    both.map(|(word, index)| (at(index), format!("{} is denied too, which wins", quoted_text(word))))
        .collect()
}

/// The fields of a rule, at least one of which must be there.
pub(super) fn fields<'v>(reader: &Reader<'v>, known: &[&str]) -> Option<Fields<'v>> {
    let fields = reader.fields(known)?;
    if !known.iter().any(|name| fields.has(name)) {
        let names = crate::reader::one_of(known);
        fields.fault_here(Cause::Required, &format!("asks for nothing; use {names}"));
        return None;
    }
    Some(fields)
}
