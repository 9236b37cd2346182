//! Errors in one line.

use std::error::Error;
use std::io;
use std::iter::successors;

/// What one error of a chain adds to the line.
pub enum Part {
    /// Nothing: its cause says it all.
    Nothing,
    /// This text, and what its cause adds.
    Text(String),
    /// This text, and nothing of its cause.
    Last(String),
}

/// An error and its causes in one line. Leaves out a cause whose text is already in the line, and the error numbers
/// of the operating system. Messages of the operating system begin with a lower-case letter, as ours do.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    joined(error, own_part)
}

/// The same with what `part` says of each error.
#[must_use]
pub fn joined(error: &(dyn Error + 'static), part: impl Fn(&(dyn Error + 'static)) -> Part) -> String {
    let mut line = String::new();
    for error in successors(Some(error), |error| cause(*error)) {
        let (text, is_last) = match part(error) {
            Part::Nothing => continue,
            Part::Text(text) => (text, false),
            Part::Last(text) => (text, true),
        };
        if line.is_empty() {
            line = text;
        } else if !line.to_lowercase().contains(&text.to_lowercase()) {
            line = format!("{line}: {text}");
        }
        if is_last {
            break;
        }
    }
    line
}

/// The text of one error.
#[must_use]
pub fn own_part(error: &(dyn Error + 'static)) -> Part {
    let is_of_system = error.is::<io::Error>();
    Part::Text(if is_of_system { in_words(error) } else { without_numbers(&error.to_string()) })
}

/// The cause of an error. The standard library passes over the error inside of an [`io::Error`].
#[must_use]
pub fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// The message of the operating system in an error, in lower case: without its number, and without the text that a
/// library added after it. An error without such a number keeps its text.
pub fn in_words(error: &dyn Error) -> String {
    let text = error.to_string();
    match at_number(&text) {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

/// A message without the ` (os error 2)` that the standard library appends.
fn without_numbers(message: &str) -> String {
    let (mut text, mut rest) = (String::new(), message);
    while let Some((words, behind)) = at_number(rest) {
        text.push_str(words);
        rest = behind;
    }
    text.push_str(rest);
    text
}

/// The texts before and behind the first number of an error.
fn at_number(message: &str) -> Option<(&str, &str)> {
    message.match_indices(" (os error ").find_map(|(at, start)| {
        let (words, rest) = message.split_at_checked(at)?;
        let (number, behind) = rest.strip_prefix(start)?.split_once(')')?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some((words, behind))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_numbers_of_errors() {
        for (message, expected) in [
            ("a: File exists (os error 17)", "a: File exists"),
            ("a (os error 2): b (os error 3)", "a: b"),
            ("a (os error x)", "a (os error x)"),
            ("a (os error 2", "a (os error 2"),
            ("", ""),
        ] {
            assert_eq!(without_numbers(message), expected);
        }
    }

    #[test]
    fn writes_causes_in_small_letters() {
        let inner = io::Error::other("Permission denied (os error 13)");
        let outer = io::Error::other("No such Pod");
        assert_eq!(with_causes(&Caused("failed to read A", inner)), "failed to read A: permission denied");
        assert_eq!(with_causes(&Caused("failed", outer)), "failed: No such Pod");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Caused(&'static str, #[source] io::Error);

    #[test]
    fn keeps_the_words_of_the_system() {
        for (message, expected) in [
            ("Not a directory (os error 20)", "not a directory"),
            ("No such file or directory (os error 2) at path \"/tmp/A\"", "no such file or directory"),
            ("Stream closed", "Stream closed"),
        ] {
            assert_eq!(in_words(&io::Error::other(message)), expected);
        }
    }
}
