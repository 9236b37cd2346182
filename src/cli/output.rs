//! `-o FORMAT[=FILE]`: which formats go where.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use anstream::StripStream;
use anyhow::Context as _;

use crate::cli::terminal::Terminal;
use crate::family::suggest::{did_you_mean, nearest};
use crate::report::{DEFAULT_WIDTH, Report, ReportFormat, write};

/// One format, and the file that it goes to; standard output without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputArg {
    format: ReportFormat,
    file: Option<PathBuf>,
}

impl FromStr for OutputArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, file) = match text.split_once('=') {
            Some((_, "")) => return Err("the file is missing behind =".to_owned()),
            Some((name, file)) => (name, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let names = ReportFormat::ALL.map(ReportFormat::name);
        let format = ReportFormat::from_name(name).ok_or_else(|| {
            let hint = did_you_mean(nearest(name, names));
            format!("formats are {}{hint}", names.join(", "))
        })?;
        Ok(Self { format, file })
    }
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
/// When two formats go to standard output, or something cannot be written.
pub fn write_outputs(report: &Report<'_>, outputs: &[OutputArg], terminal: Terminal) -> anyhow::Result<()> {
    let on_stdout = outputs.iter().filter(|output| output.file.is_none()).count();
    anyhow::ensure!(on_stdout <= 1, "only one format can go to standard output; write -o FORMAT=FILE");
    if outputs.is_empty() {
        return write_to_stdout(report, ReportFormat::Text, terminal);
    }
    for output in outputs {
        match &output.file {
            None => write_to_stdout(report, output.format, terminal)?,
            Some(path) => {
                let mut text = StripStream::new(Vec::new());
                write(report, output.format, DEFAULT_WIDTH, &mut text)
                    .context("failed to write the report")?;
                std::fs::write(path, text.into_inner())
                    .with_context(|| format!("failed to write {}", path.display()))?;
            }
        }
    }
    Ok(())
}

fn write_to_stdout(report: &Report<'_>, format: ReportFormat, terminal: Terminal) -> anyhow::Result<()> {
    let mut text = Vec::new();
    write(report, format, Terminal::width(&io::stdout()), &mut text).context("failed to write the report")?;
    match format {
        ReportFormat::Text => terminal.out(&text),
        ReportFormat::Concise | ReportFormat::Json => terminal.raw(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_formats_and_files() {
        let file = |name: &str| Some(PathBuf::from(name));
        for (text, expected) in [
            ("text", Ok(OutputArg { format: ReportFormat::Text, file: None })),
            ("json=a=b", Ok(OutputArg { format: ReportFormat::Json, file: file("a=b") })),
            ("json=", Err("the file is missing behind =".to_owned())),
            ("jsn", Err("formats are text, concise, json; did you mean \"json\"?".to_owned())),
        ] {
            assert_eq!(text.parse::<OutputArg>(), expected);
        }
    }
}
