//! How messages of rules show values, names and lists.

use memgate_model::typed_rule::JudgedView;
use memgate_primitives::credential;
use memgate_primitives::glob::Glob;
use memgate_primitives::plain_text::{self, cut};

/// The most characters of a value.
const MAX_VALUE_CHARS: usize = 64;

/// The most bytes of a list. Lists that users write are shorter.
const MAX_LIST_BYTES: usize = 1024;

/// A text of a view, to be shown in a sentence that is made later.
pub(super) struct Shown {
    text: Box<str>,
    is_foreign: bool,
}

impl Shown {
    pub(super) fn of(judged: &JudgedView<'_>, text: &str) -> Self {
        Self { text: text.into(), is_foreign: judged.is_foreign() }
    }

    /// As [`value`] shows it.
    pub(super) fn value(&self) -> String {
        if self.is_foreign { HIDDEN.to_owned() } else { quoted(&self.text, MAX_VALUE_CHARS) }
    }

    /// As [`name`] shows it.
    pub(super) fn name(&self) -> String {
        if self.is_foreign { HIDDEN.to_owned() } else { plain_name(&self.text) }
    }

    /// A quantity or another number of a view, which may be written with very many digits.
    pub(super) fn number(&self) -> String {
        if self.is_foreign { "…".to_owned() } else { cut(&self.text, MAX_VALUE_CHARS).into_owned() }
    }
}

/// A value in quotes; `"…"` when it belongs to another namespace than the subject's.
pub(super) fn value(judged: &JudgedView<'_>, text: &str) -> String {
    Shown::of(judged, text).value()
}

/// The text in place of a value whose label or annotation has the name of a credential, in quotes.
pub(super) const HIDDEN: &str = "\"…\"";

/// The name of an object in quotes; `"…"` when it is written in another namespace than the subject's.
pub(super) fn name(judged: &JudgedView<'_>, text: &str) -> String {
    Shown::of(judged, text).name()
}

/// The name of an object in quotes, in any namespace.
pub(super) fn plain_name(text: &str) -> String {
    plain_text::quoted(text)
}

fn quoted(text: &str, max: usize) -> String {
    let text = credential::masked_start(text);
    format!("\"{}\"", cut(&text, max))
}

/// The second half of a message about a value that is not allowed: `; use A`, `; use one of A, B`; empty without
/// a list.
pub(super) fn use_one_of(allowed: Option<&[String]>) -> String {
    match allowed {
        None | Some([]) => String::new(),
        Some([one]) => format!("; use {one}"),
        Some(all) => format!("; use one of {}", list(all.iter().map(String::as_str))),
    }
}

/// `A`, `A or B`, `A, B or C`.
pub(super) fn a_or_b(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", list(first.iter().map(String::as_str))),
    }
}

/// Patterns as the policy writes them.
pub(super) fn patterns(globs: &[Glob]) -> String {
    list(globs.iter().map(Glob::as_str))
}

/// Texts with `or` between them.
pub(super) fn or(texts: impl Iterator<Item = String>) -> String {
    joined(texts, " or ")
}

fn list<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    joined(texts, ", ")
}

/// A list, cut after [`MAX_LIST_BYTES`]: each finding of a rule has it, and an object may have ten thousand findings.
fn joined(texts: impl Iterator<Item = impl AsRef<str>>, between: &str) -> String {
    let mut list = String::new();
    for text in texts {
        let text = text.as_ref();
        if list.len() + text.len() > MAX_LIST_BYTES {
            list.extend([between, "…"]);
            break;
        }
        if !list.is_empty() {
            list.push_str(between);
        }
        list.push_str(text);
    }
    list
}
