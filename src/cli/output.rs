//! `-o FORMAT[=FILE]`: output formats and the files they are written to.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anstream::adapter::strip_bytes;
use anyhow::Context as _;

use crate::cli::file::write_whole;
use crate::cli::terminal::{Terminal, masked_bytes};
use crate::cli::workstation;
use memgate_manifest::error::Error;
use memgate_primitives::suggest::{did_you_mean, nearest};
use memgate_workbench::built;
use memgate_workbench::errors::input_error;
use memgate_workbench::report::{
    DEFAULT_WIDTH, Report, ReportFormat, Shown, in_format_without_commands, text, write,
};

/// A format and its file; without a file the output goes to standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatAndFile<F> {
    /// The format.
    pub format: F,
    /// The file.
    pub file: Option<PathBuf>,
}

/// A format of a report and its file.
pub type OutputArg = FormatAndFile<ReportFormat>;

impl<F: Copy> FormatAndFile<F> {
    /// Parses `FORMAT[=FILE]` with one of these formats, which have these names.
    ///
    /// # Errors
    /// When the format is not one of them, or the file is missing behind `=`.
    pub fn parse(text: &str, formats: &[F], name: fn(F) -> &'static str) -> Result<Self, String> {
        let (wanted, file) = match text.split_once('=') {
            Some((_, "")) => return Err("the file is missing behind =".to_owned()),
            Some((wanted, file)) => (wanted, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let names: Vec<&str> = formats.iter().map(|format| name(*format)).collect();
        let format = formats.iter().find(|format| name(**format) == wanted).ok_or_else(|| {
            let hint = did_you_mean(nearest(wanted, names.iter().copied()));
            format!("formats are {}{hint}", names.join(", "))
        })?;
        Ok(Self { format: *format, file })
    }
}

impl FromStr for OutputArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let output = Self::parse(text, &ReportFormat::ALL, ReportFormat::name)?;
        if output.format == ReportFormat::Html && !built::HAS_WORKSTATION {
            return Err(workstation::missing("-o html").to_string());
        }
        Ok(output)
    }
}

/// Whether one of the outputs is a page.
pub fn is_page(outputs: &[OutputArg]) -> bool {
    has_format(outputs, ReportFormat::Html)
}

/// Whether one of the outputs has this format.
pub fn has_format(outputs: &[OutputArg], format: ReportFormat) -> bool {
    outputs.iter().any(|output| output.format == format)
}

/// `--summary` and `--verbose`: how much of an overview is written.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OverviewArgs {
    /// Print the table by policy and namespace alone
    ///
    /// With -o text or json.
    #[arg(long)]
    summary: bool,

    /// List each note
    ///
    /// Without it, text has one line for all notes of one rule.
    #[arg(short, long, conflicts_with = "summary")]
    verbose: bool,
}

/// `--statistics` and `--verbose`: how many of the findings are written.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct FindingArgs {
    /// Count findings by code, with an example of each
    ///
    /// With -o text or json. The findings themselves are not written.
    #[arg(long, conflicts_with = "diff")]
    statistics: bool,

    /// List each finding
    ///
    /// Without it, text shows equal findings once and at most three of one cause, and has one line for the others.
    #[arg(short, long, conflicts_with = "statistics")]
    verbose: bool,
}

impl FindingArgs {
    /// The parts of the report that are written.
    ///
    /// # Errors
    /// When one of the formats has no statistics.
    pub fn shown(self, outputs: &[OutputArg]) -> anyhow::Result<Shown> {
        let numbers = (self.statistics, "--statistics", Shown::Statistics);
        shown(outputs, numbers, self.verbose, Shown::Folded)
    }
}

/// The parts of a report: the numbers alone if a flag asks for them, which each format has to hold; else all of it, or what
/// is written without a flag.
fn shown(
    outputs: &[OutputArg],
    (are_asked, flag, numbers): (bool, &str, Shown),
    verbose: bool,
    otherwise: Shown,
) -> anyhow::Result<Shown> {
    let formats = [ReportFormat::Text, ReportFormat::Json];
    if let Some(OutputArg { format, .. }) =
        outputs.iter().find(|it| are_asked && !formats.contains(&it.format))
    {
        anyhow::bail!("-o {} lists findings; {flag} goes with text and json", format.name());
    }
    let unasked = if verbose { Shown::All } else { otherwise };
    Ok(if are_asked { numbers } else { unasked })
}

impl OverviewArgs {
    /// The parts of the report that are written.
    ///
    /// # Errors
    /// When one of the formats has no table.
    pub fn shown(self, outputs: &[OutputArg]) -> anyhow::Result<Shown> {
        shown(outputs, (self.summary, "--summary", Shown::Table), self.verbose, Shown::NotesByRule)
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

/// Writes the report to files, for a command with something else on standard output.
///
/// # Errors
/// When an output has no file or the file of another output, or a file cannot be written.
pub fn write_files(
    report: &Report<'_>,
    outputs: &[OutputArg],
    warnings_fail: bool,
    terminal: Terminal,
) -> anyhow::Result<()> {
    if let Some(OutputArg { format, .. }) = outputs.iter().find(|output| output.file.is_none()) {
        anyhow::bail!("standard output is for the manifests; write -o {}=FILE", format.name());
    }
    if outputs.is_empty() { Ok(()) } else { write_outputs(report, outputs, warnings_fail, terminal) }
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
        let bytes =
            if is_for_people { bytes } else { masked_bytes(in_format_without_commands(bytes, *format)) };
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
