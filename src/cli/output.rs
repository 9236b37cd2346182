//! `-o FORMAT[=FILE]`: output formats and the files they are written to.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anstream::StripStream;
use anyhow::Context as _;
use serde::Serialize;

use crate::cli::file::write_whole;
use crate::cli::terminal::Terminal;
use crate::report::{DEFAULT_WIDTH, FormatOptions, Report, ReportFormat, text, write};
use memgate_primitives::suggest::{did_you_mean, nearest};

/// A format and its file; without a file it is written to standard output.
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
        let (name, file) = match text.split_once('=') {
            Some((_, "")) => return Err("the file is missing behind =".to_owned()),
            Some((name, file)) => (name, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let format = formats.iter().copied().find(|format| format.name() == name).ok_or_else(|| {
            let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
            let hint = did_you_mean(nearest(name, names.iter().copied()));
            format!("formats are {}{hint}", names.join(", "))
        })?;
        Ok(Self { format, file })
    }
}

impl FromStr for OutputArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, &ReportFormat::ALL)
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

/// An object as indented JSON with a line end.
///
/// # Errors
/// When the object cannot be written as JSON, which is a fault of memgate.
pub fn json(object: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(object).context("failed to write the result")?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes the report in each format of the flags; as text without one.
///
/// # Errors
/// When two formats have the same file, or a file cannot be written.
pub fn write_outputs(
    report: &Report<'_>,
    outputs: &[OutputArg],
    warnings_fail: bool,
    terminal: Terminal,
) -> anyhow::Result<()> {
    check_places(outputs)?;
    if outputs.is_empty() {
        return write_to_stdout(report, ReportFormat::Text, warnings_fail, terminal);
    }
    for OutputArg { format, file } in outputs {
        match file {
            None => write_to_stdout(report, *format, warnings_fail, terminal)?,
            Some(path) => write_report_file(report, *format, warnings_fail, path)?,
        }
    }
    Ok(())
}

/// Writes the report to files, for a command with something else on standard output.
///
/// # Errors
/// When an output has no file or the file of another output, or a file cannot be written.
pub fn write_files(report: &Report<'_>, outputs: &[OutputArg], warnings_fail: bool) -> anyhow::Result<()> {
    check_places(outputs)?;
    for OutputArg { format, file } in outputs {
        let path = file.as_deref().with_context(|| {
            format!("standard output is for the manifests; write -o {}=FILE", format.name())
        })?;
        write_report_file(report, *format, warnings_fail, path)?;
    }
    Ok(())
}

/// Checks that no two outputs have the same file, or both go to standard output.
///
/// # Errors
/// When two go to standard output or to one file.
pub fn check_places(outputs: &[OutputArg]) -> anyhow::Result<()> {
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

/// Writes a report to a file. Text gets the errors of the inputs too, since standard error is not in the file.
fn write_report_file(
    report: &Report<'_>,
    format: ReportFormat,
    warnings_fail: bool,
    path: &Path,
) -> anyhow::Result<()> {
    let mut text = StripStream::new(Vec::new());
    if format == ReportFormat::Text {
        for error in &report.errors {
            text::write_error(error, DEFAULT_WIDTH, &mut text).context("failed to write the report")?;
        }
    }
    let options = FormatOptions { width: DEFAULT_WIDTH, warnings_fail };
    write(report, format, options, &mut text).context("failed to write the report")?;
    write_whole(path, &text.into_inner())
}

fn write_to_stdout(
    report: &Report<'_>,
    format: ReportFormat,
    warnings_fail: bool,
    terminal: Terminal,
) -> anyhow::Result<()> {
    let mut text = Vec::new();
    let options = FormatOptions { width: Terminal::width(&io::stdout()), warnings_fail };
    write(report, format, options, &mut text).context("failed to write the report")?;
    match format {
        ReportFormat::Text => terminal.out(&text),
        _ => terminal.raw(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_formats_and_files() {
        let file = |name: &str| Some(PathBuf::from(name));
        let wrong =
            "formats are text, concise, json, jsonl, github, gitlab, sarif, junit; did you mean \"json\"?";
        for (text, expected) in [
            ("text", Ok(OutputArg { format: ReportFormat::Text, file: None })),
            ("json=a=b", Ok(OutputArg { format: ReportFormat::Json, file: file("a=b") })),
            ("json=", Err("the file is missing behind =".to_owned())),
            ("jsn", Err(wrong.to_owned())),
        ] {
            assert_eq!(text.parse::<OutputArg>(), expected);
        }
    }

    #[test]
    fn has_one_place_for_each_format() {
        for (files, fine) in [
            (vec![None], true),
            (vec![None, Some("a"), Some("b")], true),
            (vec![None, None], false),
            (vec![Some("a"), Some("a")], false),
        ] {
            let output =
                |file: Option<&str>| OutputArg { format: ReportFormat::Json, file: file.map(PathBuf::from) };
            let outputs: Vec<OutputArg> = files.iter().copied().map(output).collect();
            assert_eq!(check_places(&outputs).is_ok(), fine, "{files:?}");
        }
    }
}
