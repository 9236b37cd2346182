//! `memgate lsp`: serves editors.

use std::io::{self, BufReader};

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::input::InputArgs;
use crate::cli::terminal::Terminal;
use memgate_editor::session::serve;

/// Serve an editor: findings while you write, in the Language Server Protocol
///
/// Reads and writes messages on standard input and output; an editor starts it. Findings of open files are those of
/// `memgate check`, with the texts of the editor in place of files, and the repository around them. It also has hover, go to
/// definition and references between objects, and fixes. docs/editors.md has settings for editors.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 the editor ended the session, 1 it did so without shutdown, 2 wrong usage or a fault.",
    after_long_help = "\
Examples:
  memgate lsp
  memgate lsp --with cluster-state.yaml --policy policies/"
)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
}

/// Runs the command.
///
/// # Errors
/// When nothing can be written to the editor.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let terminal = terminal.without_notes();
    let directory = std::env::current_dir().context("the working directory cannot be read")?;
    if let Some(why) = args.input.unfit_for_changes(&directory) {
        anyhow::bail!("{why}; leave it out");
    }
    let input = args.input.from_directory(&directory);
    let planner = || {
        let run = input.project(terminal).and_then(|project| input.run(&project));
        run.map_err(|error| format!("{error:#}"))
    };
    let is_regular = serve(BufReader::new(io::stdin()), io::stdout().lock(), &planner)?;
    Ok(if is_regular { ExitStatus::Clean } else { ExitStatus::Denied })
}
