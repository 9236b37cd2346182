//! `-o FORMAT[=FILE]`: output formats and the files they are written to.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anstream::adapter::strip_bytes;
use anyhow::Context as _;

use crate::cli::file::{refuse_link, write_whole};
use crate::cli::terminal::{Terminal, masked_bytes};
use memgate_manifest::error::Error;
use memgate_primitives::suggest::{did_you_mean, nearest};
use memgate_workbench::files::errors::input_error;
use memgate_workbench::report::{DEFAULT_WIDTH, Report, ReportFormat, Shown, for_readers, text, write};

/// A format of a report and its file; without a file the output goes to standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputArg {
    /// The format.
    pub format: ReportFormat,
    /// The file.
    pub file: Option<PathBuf>,
}

impl OutputArg {
    /// Parses `FORMAT[=FILE]` with one of these formats.
    ///
    /// # Errors
    /// When the format is not one of them, or the file is missing behind `=`.
    pub fn parse(text: &str, formats: &[ReportFormat]) -> Result<Self, String> {
        let (wanted, file) = match text.split_once('=') {
            Some((_, "")) => return Err("the file is missing behind =".to_owned()),
            Some((wanted, file)) => (wanted, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
        let hint = || did_you_mean(nearest(wanted, names.iter().copied()));
        let format = ReportFormat::from_name(wanted).filter(|it| formats.contains(it));
        let format = format.ok_or_else(|| format!("formats are {}{}", names.join(", "), hint()))?;
        Ok(Self { format, file })
    }
}

impl FromStr for OutputArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, &ReportFormat::ALL)
    }
}

/// Whether one of the outputs is a page.
pub fn is_page(outputs: &[OutputArg]) -> bool {
    outputs.iter().any(|output| output.format == ReportFormat::Html)
}

/// `--verbose` of a command that writes an overview.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OverviewArgs {
    /// List each note
    ///
    /// Without it, text has one line for all notes of one rule.
    #[arg(short, long)]
    verbose: bool,
}

impl OverviewArgs {
    /// The parts of the report that are written.
    pub const fn shown(self) -> Shown {
        if self.verbose { Shown::All } else { Shown::NotesByRule }
    }
}

/// The format of the result of a command about a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ResultFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// Writes the report in each format of the flags; as text without one. Text in a file has the errors of the inputs too,
/// since standard error is not in the file.
///
/// # Errors
/// Those of [`check_places`], or when a file cannot be written.
pub fn write_outputs(
    report: &Report<'_>,
    outputs: &[OutputArg],
    warnings_fail: bool,
    terminal: Terminal,
) -> anyhow::Result<()> {
    write_each(outputs, terminal, |format, is_file| {
        let width = if is_file { DEFAULT_WIDTH } else { Terminal::width(&io::stdout()) };
        let mut bytes = Vec::new();
        for error in report.errors.iter().filter(|_| is_file && format == ReportFormat::Text) {
            text::write_error(error, width, &mut bytes)?;
        }
        write(report, format, width, warnings_fail, &mut bytes)?;
        Ok(bytes)
    })
}

/// What was made of the choices of a repository. An error in their file is a report too, in the formats of the flags.
///
/// # Errors
/// That of the result, or those of [`write_outputs`].
pub fn or_reported<T>(
    result: anyhow::Result<T>,
    outputs: &[OutputArg],
    terminal: Terminal,
) -> anyhow::Result<T> {
    if let Err(error) = &result
        && let Some(error) = error.downcast_ref::<Error>()
        && !outputs.is_empty()
    {
        let report = Report { errors: vec![input_error(error)], ..Report::default() };
        write_outputs(&report, outputs, false, terminal)?;
    }
    result
}

/// Writes what `render` makes of each format; of text without a format. Its second argument tells whether the bytes go to
/// a file, which gets no styles.
///
/// # Errors
/// Those of [`check_places`], or when a file cannot be written.
pub fn write_each(
    outputs: &[OutputArg],
    terminal: Terminal,
    render: impl Fn(ReportFormat, bool) -> io::Result<Vec<u8>>,
) -> anyhow::Result<()> {
    check_places(outputs, terminal)?;
    let text = [OutputArg { format: ReportFormat::Text, file: None }];
    for OutputArg { format, file } in if outputs.is_empty() { &text } else { outputs } {
        let bytes = render(*format, file.is_some()).context("failed to write the report")?;
        // What is for people the terminal masks itself.
        let is_for_people = file.is_none() && *format == ReportFormat::Text;
        let bytes = if is_for_people { bytes } else { masked_bytes(for_readers(&bytes, *format)) };
        match file {
            Some(path) => write_whole(path, &strip_bytes(&bytes).into_vec())?,
            None if is_for_people => terminal.out(&bytes)?,
            None => terminal.raw(&bytes)?,
        }
    }
    Ok(())
}

/// Checks that no two outputs have the same file, or both go to standard output, and that no page goes to a terminal.
/// Commands that read much call it before they begin.
///
/// # Errors
/// When they do.
pub fn check_places(outputs: &[OutputArg], terminal: Terminal) -> anyhow::Result<()> {
    let is_page = |it: &OutputArg| it.format == ReportFormat::Html && it.file.is_none();
    anyhow::ensure!(
        !(terminal.is_interactive() && outputs.iter().any(is_page)),
        "a page is not for a terminal; write -o html=FILE and open the file in a browser"
    );
    let mut seen: Vec<Option<&Path>> = Vec::new();
    for file in outputs.iter().map(|output| output.file.as_deref()) {
        file.map_or(Ok(()), refuse_link)?;
        match file.filter(|_| seen.contains(&file)) {
            Some(path) => anyhow::bail!("two formats go to {}; give each a file of its own", path.display()),
            None => anyhow::ensure!(
                file.is_some() || !seen.contains(&None),
                "only one format can go to standard output; write -o FORMAT=FILE"
            ),
        }
        seen.push(file);
    }
    Ok(())
}
