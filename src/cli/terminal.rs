//! Standard output and standard error.

use std::io::{self, ErrorKind, IsTerminal as _, Write};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;

use crate::report::Fault;
use crate::report::text;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless the environment says otherwise.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where a command writes to.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    color: ColorChoice,
}

impl Terminal {
    /// The process's own streams.
    #[must_use]
    pub const fn new(color: Color) -> Self {
        let color = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Self { color }
    }

    /// Whether standard output goes to a person.
    #[must_use]
    pub fn is_interactive(self) -> bool {
        io::stdout().is_terminal()
    }

    /// Writes text to standard output; ANSI styles are taken out where they are not wanted. A
    /// reader that has gone away has seen enough: that is no error.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn out(self, text: &[u8]) -> anyhow::Result<()> {
        let mut stream = AutoStream::new(io::stdout().lock(), self.color);
        written(stream.write_all(text).and_then(|()| stream.flush()))
    }

    /// Writes bytes to standard output as they are.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn raw(self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut stream = io::stdout().lock();
        written(stream.write_all(bytes).and_then(|()| stream.flush()))
    }

    /// Writes text to standard error, styled as [`Terminal::out`] does.
    pub fn err(self, text: &[u8]) {
        let mut stream = AutoStream::new(io::stderr().lock(), self.color);
        // Nobody is left to tell when this fails.
        let _ = stream.write_all(text).and_then(|()| stream.flush());
    }

    /// Writes a line to standard error.
    pub fn note(self, line: &str) {
        self.err(format!("{line}\n").as_bytes());
    }

    /// Says what went wrong, causes and all, in one line.
    pub fn error(self, error: &anyhow::Error) {
        self.fault(&Fault { line: format!("{error:#}"), shown: None });
    }

    /// Says what is wrong with an input, with the source where the place is known.
    pub fn fault(self, fault: &Fault<'_>) {
        let mut text = Vec::new();
        if text::write_fault(fault, &mut text).is_ok() {
            self.err(&text);
        }
    }
}

fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("failed to write to standard output"),
    }
}
