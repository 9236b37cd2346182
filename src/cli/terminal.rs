//! Standard output and standard error.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal as _, Write};
#[cfg(unix)]
use std::os::fd::AsFd as Stream;
#[cfg(windows)]
use std::os::windows::io::AsHandle as Stream;

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;
use terminal_size::{Width, terminal_size_of};

use memgate_certs::library_error::explained;
use memgate_primitives::causes::in_words;
use memgate_primitives::credential::masked_keys;
use memgate_workbench::report::{DEFAULT_WIDTH, InputError, ReportFormat, for_readers, text};

/// With fewer columns, source lines could not be shown.
const MIN_WIDTH: usize = 40;

/// Standard output and standard error, with the choice of colours.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    color: ColorChoice,
    has_notes: bool,
}

impl Terminal {
    /// The streams of the process.
    pub const fn new(color: clap::ColorChoice) -> Self {
        let color = match color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        Self { color, has_notes: true }
    }

    /// The same streams, but notes are not written.
    #[must_use]
    pub const fn without_notes(self) -> Self {
        Self { has_notes: false, ..self }
    }

    /// Whether standard output is a terminal.
    pub fn is_interactive(self) -> bool {
        io::stdout().is_terminal()
    }

    /// The columns of a stream: from `COLUMNS`, else from the terminal.
    pub fn width(stream: &impl Stream) -> usize {
        let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let has = || terminal_size_of(stream).map(|(Width(columns), _)| usize::from(columns));
        asked
            .filter(|columns| *columns > 0)
            .or_else(has)
            .map_or(DEFAULT_WIDTH, |columns| columns.max(MIN_WIDTH))
    }

    /// Writes text for people to standard output, without ANSI styles if colours are off, [for readers](for_readers), and
    /// with keys of known forms masked. A pipe whose reader has closed it (`| head`) is not an error.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn out(self, text: &[u8]) -> anyhow::Result<()> {
        let text = &masked_bytes(for_readers(text, ReportFormat::Text));
        let mut stream = AutoStream::new(io::stdout().lock(), self.color);
        ignore_closed_pipe(stream.write_all(text).and_then(|()| stream.flush()))
    }

    /// Writes bytes to standard output as they are.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn raw(self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut stream = io::stdout().lock();
        ignore_closed_pipe(stream.write_all(bytes).and_then(|()| stream.flush()))
    }

    /// Writes text to standard error, styled as [`Terminal::out`] does.
    pub fn err(self, text: &[u8]) {
        let text = &masked_bytes(for_readers(text, ReportFormat::Text));
        let mut stream = AutoStream::new(io::stderr().lock(), self.color);
        // An error here cannot be shown, since standard error does not work.
        let _ = stream.write_all(text).and_then(|()| stream.flush());
    }

    /// Writes a note or the summary, one line, to standard error.
    pub fn note(self, line: &str) {
        if self.has_notes {
            self.err(format!("{line}\n").as_bytes());
        }
    }

    /// Writes an error to standard error, with its causes, in one line.
    pub fn error(self, error: &anyhow::Error) {
        self.input_error(&InputError { line: explained(error.as_ref()), ..InputError::default() });
    }

    /// Writes an error of an input to standard error, with the source line if the location is known.
    pub fn input_error(self, error: &InputError<'_>) {
        let mut text = Vec::new();
        if text::write_error(error, Self::width(&io::stderr()), &mut text).is_ok() {
            self.err(&text);
        }
    }
}

/// The text with keys of known forms masked.
pub fn masked_bytes(text: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&text).map(masked_keys) {
        Ok(Cow::Owned(masked)) => masked.into_bytes(),
        _ => text,
    }
}

fn ignore_closed_pipe(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other
            .map_err(|error| anyhow::Error::msg(in_words(&error)))
            .context("failed to write to standard output"),
    }
}
