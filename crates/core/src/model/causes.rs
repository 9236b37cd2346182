//! Errors in one line.

use std::error::Error;

/// An error and its causes in one line; a text that is already part of the line is left out, and so are the numbers
/// that the operating system has for its errors.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = without_numbers(&error.to_string());
    let mut source = error.source();
    while let Some(cause) = source {
        let reason = without_numbers(&cause.to_string());
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        source = cause.source();
    }
    text
}

/// A message without the ` (os error 2)` that the standard library puts behind the words.
#[must_use]
pub fn without_numbers(message: &str) -> String {
    const START: &str = " (os error ";
    let mut parts = message.split(START);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => text.push_str(rest),
            _ => {
                text.push_str(START);
                text.push_str(part);
            }
        }
    }
    text
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
}
