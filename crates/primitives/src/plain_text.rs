//! Text from users as outputs show it.

use std::borrow::Cow;

use crate::credential;

/// A text with a space for each control character, line separator and mark of a writing direction: it cannot end a line,
/// start an escape sequence of a terminal, or be read in another order than it has.
pub fn plain(text: &str) -> Cow<'_, str> {
    plain_except(text, |_| false)
}

/// The same, with the control characters that `kept` accepts left as they are.
pub fn plain_except(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let misleads = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let blanked = |c: char| (c.is_control() || misleads(c)) && !kept(c);
    if text.contains(blanked) { text.replace(blanked, " ").into() } else { text.into() }
}

/// A value from user input as messages show it: in double quotes, credentials masked, control characters
/// as spaces, cut after 256 characters.
pub fn quoted(value: &str) -> String {
    /// Room for the longest name that Kubernetes accepts, 253 characters.
    const MAX_QUOTED_CHARS: usize = 256;
    format!("\"{}\"", cut(&credential::masked_start(value), MAX_QUOTED_CHARS))
}

/// A text up to so many characters, with a space for each control character. In a text that is cut, keys of known forms
/// are masked, because the start of a key may not be recognised as one.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(most) else { return plain(text) };
    let read = text.floor_char_boundary(end + credential::MAX_READ_BYTES);
    let masked = credential::masked_keys(text.get(..read).unwrap_or_default());
    format!("{}…", plain(masked.get(..end).unwrap_or_default())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_text_on_one_line() {
        assert_eq!(plain("a\nb\r\u{85}c\u{2028}d\u{2029}e\u{1b}["), "a b  c d e [");
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{200f}d\u{200d}"), "a b c d\u{200d}");
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(cut("añb", 3), "añb");
        assert_eq!(cut("añb", 2), "añ…");
        assert_eq!(cut("a\nb", 2), "a …");
    }

    #[test]
    fn masks_a_key_of_which_it_shows_the_start() {
        assert_eq!(cut("ä.eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln", 12), "ä.**********…");
        assert_eq!(cut("ä.sk-0123456789abcdef", 8), "ä.******…");
    }
}
