//! Text from users as outputs show it.

use std::borrow::Cow;

use crate::credential;
use crate::name::{is_dns_subdomain, is_key, meant_name};

/// Whether a character ends a line, starts an escape sequence of a terminal, changes the order in which others are read,
/// or hides: a control character, a line separator, a mark of a writing direction, or one without width that no script
/// needs.
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'
                ..='\u{202e}'
        )
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text with a space for each character that [`misleads`].
pub fn plain(text: &str) -> Cow<'_, str> {
    plain_except(text, |_| false)
}

/// The same, with the characters that `kept` accepts left as they are.
pub fn plain_except(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let blanked = |c: char| misleads(c) && !kept(c);
    // Most texts, without a look at each character.
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if !is_plain && text.contains(blanked) { text.replace(blanked, " ").into() } else { text.into() }
}

/// The name of an object as messages show it, in double quotes: like [`shown_name`], with the length behind the quotes.
pub fn quoted(name: &str) -> String {
    in_quotes(&shown_name(name))
}

/// The name of an object without a namespace, as [`quoted`]: with a `/` it is not one.
pub fn quoted_single(name: &str) -> String {
    if name.contains('/') { in_quotes(&start_of(name)) } else { quoted(name) }
}

/// Another value from user input as messages show it: in double quotes, credentials masked, control characters
/// as spaces, cut after 256 characters.
pub fn quoted_text(value: &str) -> String {
    /// Room for the longest name that Kubernetes accepts, 253 characters.
    const MAX_QUOTED_CHARS: usize = 256;
    format!("\"{}\"", cut(&credential::masked_start(value), MAX_QUOTED_CHARS))
}

/// The name of an object as outputs show it, with or without its namespace. A text that cannot be one, and by which no
/// name was [meant](meant_name), may be a key that was pasted in its place: only its start and its length are shown,
/// `pcsk… (43 characters)`. A name that was cut ends with `…`.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    fn start(part: &str) -> &str {
        part.strip_suffix('…').map_or(part, |start| start.trim_end_matches(['-', '.', '_', ' ']))
    }
    let is_name = |part: &str| {
        (start(part).is_empty() || is_dns_subdomain(start(part))) && !credential::holds_key(part)
    };
    let could_be = |part: &str| is_name(part) || meant_name(start(part)).is_some();
    if could_be(name) || shortened(name).is_some() {
        return name.into();
    }
    match name.split_once('/') {
        Some((namespace, own)) if is_name(namespace) && could_be(own) => name.into(),
        Some((namespace, own)) if is_name(namespace) => format!("{namespace}/{}", start_of(own)).into(),
        _ => start_of(name).into(),
    }
}

/// The key of a mapping, such as the name of a field or of a variable, as outputs show it: like [`shown_name`], if it is
/// long.
pub fn shown_key(key: &str) -> Cow<'_, str> {
    /// Keys of services are longer.
    const MIN_BYTES: usize = 16;
    let start = key.strip_suffix('…').unwrap_or(key);
    let could_be = key.len() < MIN_BYTES || is_key(start) || shortened(key).is_some();
    let is_shown = could_be && !credential::holds_key(key);
    if is_shown { key.into() } else { start_of(key).into() }
}

/// The same in double quotes, like [`quoted`].
pub fn quoted_key(key: &str) -> String {
    in_quotes(&shown_key(key))
}

/// A text of [`shown_name`] in double quotes, the length behind them.
fn in_quotes(shown: &str) -> String {
    let (start, length) = shortened(shown).unwrap_or((shown, ""));
    format!("\"{start}\"{length}")
}

/// The start and the length of a text, never all of it.
fn start_of(text: &str) -> String {
    /// The most characters that are shown.
    const MAX_SHOWN_CHARS: usize = 4;
    let length = text.chars().count();
    let start: String = text.chars().take(MAX_SHOWN_CHARS.min(length.saturating_sub(1))).collect();
    format!(
        "{}… ({length} character{})",
        plain(start.trim_end_matches('…')),
        if length == 1 { "" } else { "s" }
    )
}

/// A text of [`shown_name`] without and with the length of what it stands for, if it is one.
fn shortened(text: &str) -> Option<(&str, &str)> {
    let (end, _) = text.rmatch_indices(" (").next()?;
    let (start, length) = text.split_at_checked(end)?;
    let number = length.strip_prefix(" (")?.strip_suffix(")")?.split_once(" character")?.0;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    // What a user writes in this form is a name before it, or a start.
    let is_start = |part: &str| part.is_empty() || part.chars().count() <= 5 || is_dns_subdomain(part);
    (is_number && start.ends_with('…') && start.split('/').all(is_start)).then_some((start, length))
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
        assert_eq!(plain("a\u{200b}b\u{feff}c\u{9b}d\u{e0041}e\u{2060}f\u{ad}g"), "a b c d e f g");
    }

    #[test]
    fn shows_of_what_cannot_be_a_name_the_start_and_the_length() {
        for (name, expected) in [
            ("notes-redis", "\"notes-redis\""),
            ("team-a/notes.v2", "\"team-a/notes.v2\""),
            ("", "\"\""),
            ("notes-…", "\"notes-…\""),
            ("My Memory of …", "\"My Memory of …\""),
            ("pcsk_5N3uK_9bQ", "\"pcsk…\" (14 characters)"),
            ("team-a/pcsk_5N3uK_9bQ", "\"team-a/pcsk…\" (14 characters)"),
            ("wJalrXUtnFEMI/KMDENG", "\"wJal…\" (20 characters)"),
            ("wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "\"wJal…\" (30 characters)"),
            ("redis://:hunter2@h", "\"redi…\" (18 characters)"),
            ("sk-0123456789abcdef0123", "\"sk-0…\" (23 characters)"),
            ("+", "\"…\" (1 character)"),
            ("Notes_A", "\"Notes_A\""),
            ("team-a/My Memory ", "\"team-a/My Memory \""),
            ("A_\nb", "\"A_ …\" (4 characters)"),
            ("Key… (8 characters) x", "\"Key…\" (21 characters)"),
            ("hunter2Hunter… (8 characters)", "\"hunt…\" (29 characters)"),
        ] {
            assert_eq!(quoted(name), expected);
            assert_eq!(quoted(&shown_name(name)), expected);
        }
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
