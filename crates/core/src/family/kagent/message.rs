//! Names in messages.

use crate::family::message::{fit_names, truncate};
use memgate_primitives::plain_text::quoted;

/// The longest part of a name in a message.
pub(crate) const MAX_NAME_CHARS: usize = 64;

/// Builds a message with these names in quotes. Each is cut at 64 characters, and shorter in a message that is too long
/// for a warning.
pub(crate) fn with_names<const N: usize>(names: [&str; N], message: impl Fn([&str; N]) -> String) -> String {
    let names = names.map(|name| truncate(name, MAX_NAME_CHARS));
    fit_names(names.each_ref().map(String::as_str), |names| {
        let names = names.map(quoted);
        message(names.each_ref().map(String::as_str))
    })
}
