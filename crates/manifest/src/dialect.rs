//! What kubectl reads otherwise than the parsers here. It cuts a text into documents by rules of its own
//! (k8s.io/apimachinery/pkg/util/yaml) and reads each as YAML 1.1, so such a text could show it other objects.

use std::sync::Arc;

use crate::error::SyntaxError;
use crate::outline::TextPart;
use crate::source::Source;

/// The first such place in a part that is not JSON. No quotes and no comment make an exception: kubectl folds these
/// characters in quotes, and in a comment what follows one is content to it.
pub(super) fn read_otherwise(source: &Arc<Source>, part: TextPart) -> Option<SyntaxError> {
    let text = source.text().get(part.bytes())?;
    let is_first = part.start() == 0;
    let odd = text.char_indices().find(|&(at, character)| match character {
        '\u{85}' | '\u{2028}' | '\u{2029}' => true,
        '\u{feff}' => at > 0 || !is_first,
        '\r' => text.as_bytes().get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    let (at, character) = odd.or_else(|| beside_a_marker(text, is_first))?;
    let code = u32::from(character);
    let (message, instead) = match character {
        '\r' => ("without a line feed is a line end to some readers only", "end the line with a line feed"),
        '\u{feff}' => ("stands at the start of a file only", "remove it"),
        '\u{85}' | '\u{2028}' | '\u{2029}' => ("ends a line for kubectl", "remove it"),
        '#' => ("ends a document for kubectl, right behind ---", "put a blank before it"),
        _ => ("is passed over by kubectl here", "remove it"),
    };
    let at = part.start() + at;
    let span = source.span(at, at + character.len_utf8());
    let error = SyntaxError::new(source, span, format!("U+{code:04X} {message}"));
    Some(error.help(if character == '#' {
        instead.to_owned()
    } else {
        format!("{instead}, or write it as \"\\u{code:04x}\" in double quotes")
    }))
}

/// A blank of Unicode, or a comment without a blank before it, that leaves kubectl a `---` where YAML has none; or such a
/// blank at the start of a text, which kubectl passes over where JSON follows.
fn beside_a_marker(text: &str, is_first: bool) -> Option<(usize, char)> {
    let odd = |rest: &str, blanks: &[char]| {
        let trimmed = rest.trim_start_matches(blanks);
        let first = trimmed.chars().next().filter(|it| it.is_whitespace() && !it.is_ascii())?;
        Some((rest.len() - trimmed.len(), first))
    };
    if let Some(found) = is_first.then(|| odd(text, &[' ', '\t', '\r', '\n'])).flatten() {
        return Some(found);
    }
    let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    lines.filter_map(|at| Some((at + 3, text.get(at..)?.strip_prefix("---")?))).find_map(|(at, behind)| {
        let comment = behind.starts_with('#').then_some((0, '#'));
        comment.or_else(|| odd(behind, &[' ', '\t'])).map(|(blanks, first)| (at + blanks, first))
    })
}

/// The first control character, which neither YAML nor JSON allows; YAML parsers take NUL for the end of the text.
pub(super) fn control_character(source: &Arc<Source>, part: TextPart) -> Option<SyntaxError> {
    let control = |byte: u8| byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t');
    let bytes = source.text().as_bytes().get(part.bytes())?;
    let at = part.start() + bytes.iter().copied().position(control)?;
    let code = source.text().as_bytes().get(at).copied().unwrap_or_default();
    let message = format!("a control character (U+{code:04X}) cannot stand here");
    Some(
        SyntaxError::new(source, source.span(at, at + 1), message)
            .help("remove it, or write it as an escape"),
    )
}
