//! What is wrong with an input: its parts, for all formats.

use std::borrow::Cow;

use crate::report::{FileLocation, Related};

/// An input, or one document in it, that could not be used.
#[derive(Debug, Default)]
pub struct InputError<'a> {
    /// What is wrong, in one line that names the file, and line and column where they are known.
    pub line: String,
    /// The file as the user named it; nothing when it is about none.
    pub file: Option<&'a str>,
    /// Line and column, from 1, as far as they are known.
    pub position: Option<(usize, usize)>,
    /// What is wrong, without the place.
    pub message: String,
    /// What to do, when the message does not say it already.
    pub help: Option<String>,
    /// The stretch of the text, to show the source.
    pub location: Option<FileLocation<'a>>,
    /// The second location, where two contradict each other.
    pub related: Option<Related<'a>>,
}

impl InputError<'_> {
    /// What programs know it by where findings have their code: whether the text is wrong, or could not be had.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        if self.position.is_some() { "syntax" } else { "unreadable" }
    }

    /// What is wrong and what to do, in one line.
    #[must_use]
    pub fn advice(&self) -> Cow<'_, str> {
        match &self.help {
            Some(help) => Cow::Owned(format!("{}; {help}", self.message)),
            None => Cow::Borrowed(&self.message),
        }
    }
}
