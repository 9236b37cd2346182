//! Text from users as outputs show it.

use std::borrow::Cow;

/// A text with a space for each control character: it cannot end a line or start an escape sequence of a terminal.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    plain_except(text, |_| false)
}

/// The same, with the control characters that `kept` accepts left as they are.
#[must_use]
pub fn plain_except(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let blanked = |c: char| c.is_control() && !kept(c);
    if text.contains(blanked) { text.replace(blanked, " ").into() } else { text.into() }
}
