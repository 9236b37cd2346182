//! Errors in one line.

use std::error::Error;
use std::io;

/// An error and its causes in one line. Leaves out a cause whose text is already in the line, and the error numbers
/// of the operating system. Messages of the operating system begin with a lower-case letter, as ours do.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = without_numbers(&error.to_string());
    let mut source = error.source();
    while let Some(cause) = source {
        let is_of_system = cause.downcast_ref::<io::Error>().is_some();
        let reason = if is_of_system { in_words(cause) } else { without_numbers(&cause.to_string()) };
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        source = cause.source();
    }
    text
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
