//! Names in messages.

use crate::message::{fit_message, truncate};
use memgate_primitives::plain_text::quoted;

/// The longest part of a name in a message.
const MAX_NAME_CHARS: usize = 64;

/// A name in quotes, cut at this many characters, and at 64 in any case.
pub(crate) fn shown(name: &str, limit: usize) -> String {
    quoted(&truncate(name, limit.min(MAX_NAME_CHARS)))
}

/// Builds a message with these names in quotes, as long as fits into a warning.
pub(crate) fn with_names<const N: usize>(names: [&str; N], message: impl Fn([&str; N]) -> String) -> String {
    fit_message(|limit| {
        let names = names.map(|name| shown(name, limit));
        message(names.each_ref().map(String::as_str))
    })
}
