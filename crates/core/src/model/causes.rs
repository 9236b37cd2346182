//! Errors in one line.

use std::error::Error;

/// An error and its causes in one line; a text that is already part of the line is left out.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let reason = cause.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        source = cause.source();
    }
    text
}
