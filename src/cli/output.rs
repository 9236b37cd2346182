//! `-o FORMAT[=FILE]`: which formats go where.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anstream::StripStream;
use anyhow::Context as _;

use crate::cli::file::write_whole;
use crate::cli::terminal::Terminal;
use crate::family::suggest::{did_you_mean, nearest};
use crate::report::cases::CaseFormat;
use crate::report::{DEFAULT_WIDTH, FormatOptions, Report, ReportFormat, text, write};

/// One format, and the file that it goes to; standard output without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputArg {
    format: ReportFormat,
    file: Option<PathBuf>,
}

/// The same for what came of case files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseOutputArg {
    /// The format.
    pub format: CaseFormat,
    /// The file.
    pub file: Option<PathBuf>,
}

impl FromStr for OutputArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = parse(text, &ReportFormat::ALL, ReportFormat::name)?;
        Ok(Self { format, file })
    }
}

impl FromStr for CaseOutputArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = parse(text, &CaseFormat::ALL, CaseFormat::name)?;
        Ok(Self { format, file })
    }
}

fn parse<F: Copy>(
    text: &str,
    formats: &[F],
    name_of: impl Fn(F) -> &'static str,
) -> Result<(F, Option<PathBuf>), String> {
    let (name, file) = match text.split_once('=') {
        Some((_, "")) => return Err("the file is missing behind =".to_owned()),
        Some((name, file)) => (name, Some(PathBuf::from(file))),
        None => (text, None),
    };
    let format = formats.iter().copied().find(|format| name_of(*format) == name).ok_or_else(|| {
        let names: Vec<&str> = formats.iter().map(|format| name_of(*format)).collect();
        let hint = did_you_mean(nearest(name, names.iter().copied()));
        format!("formats are {}{hint}", names.join(", "))
    })?;
    Ok((format, file))
}

/// The form of the result of a command about a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ResultFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// Writes the report in every format that was asked for; as text when none was.
///
/// # Errors
/// When two formats go to one place, or something cannot be written.
pub fn write_outputs(
    report: &Report<'_>,
    outputs: &[OutputArg],
    warnings_fail: bool,
    terminal: Terminal,
) -> anyhow::Result<()> {
    check_places(outputs.iter().map(|output| output.file.as_deref()))?;
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

/// Writes the report to the files that were named, for commands whose standard output is for something else.
///
/// # Errors
/// When an output names no file or one that another names too, or something cannot be written.
pub fn write_files(report: &Report<'_>, outputs: &[OutputArg], warnings_fail: bool) -> anyhow::Result<()> {
    check_places(outputs.iter().map(|output| output.file.as_deref()))?;
    for OutputArg { format, file } in outputs {
        let path = file.as_deref().with_context(|| {
            format!("standard output is for the manifests; write -o {}=FILE", format.name())
        })?;
        write_report_file(report, *format, warnings_fail, path)?;
    }
    Ok(())
}

/// Checks that no two outputs go to one place.
///
/// # Errors
/// When two go to standard output or to one file.
pub fn check_places<'p>(files: impl Iterator<Item = Option<&'p Path>>) -> anyhow::Result<()> {
    let mut seen: Vec<Option<&Path>> = Vec::new();
    for file in files {
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

/// In a file, text has the errors of the inputs too: nobody sees standard error beside it.
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
            assert_eq!(check_places(files.iter().map(|file| file.map(Path::new))).is_ok(), fine, "{files:?}");
        }
    }
}
