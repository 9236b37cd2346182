//! `memgate explain`: the page of a finding code.

use std::fmt::Write as _;

use crate::cli::ExitStatus;
use crate::cli::terminal::Terminal;
use crate::family;
use crate::family::suggest::nearest;
use crate::model::finding::Code;
use crate::report::page::title;

/// Explain a finding code: what is wrong, why it matters, what to do
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate explain                          list all codes
  memgate explain arkonis/redis-required   the page of one code")]
pub struct Args {
    /// The code, such as arkonis/redis-required; all codes are listed without one
    code: Option<String>,
}

fn codes() -> impl Iterator<Item = &'static Code> {
    family::codes(&family::ALL)
}

/// Runs the command.
///
/// # Errors
/// When there is no such code.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let text = match &args.code {
        None => list(),
        Some(name) => match codes().find(|code| code.name == name) {
            Some(code) => format!("{}\n", code.page.trim_end()),
            None => anyhow::bail!("there is no code \"{name}\"{}", hint(name)),
        },
    };
    terminal.out(text.as_bytes())?;
    Ok(ExitStatus::Clean)
}

fn list() -> String {
    let width = codes().map(|code| code.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for code in codes() {
        let _infallible = writeln!(text, "{:width$}  {}", code.name, title(code));
    }
    text
}

/// The code that was probably meant, which may be one without its family.
fn hint(name: &str) -> String {
    let mut names = codes().map(|code| code.name);
    let bare = names.find(|code| code.split_once('/').is_some_and(|(_, bare)| bare == name));
    match bare.or_else(|| nearest(name, codes().map(|code| code.name))) {
        Some(near) => format!("; did you mean {near}?"),
        None => "; `memgate explain` lists all codes".to_owned(),
    }
}
