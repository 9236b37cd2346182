//! The commands of the feature `workstation`.

pub mod completions;
pub mod lsp;
pub mod man;
pub mod map;
pub mod schema;

use clap::Subcommand;

use crate::cli::ExitStatus;
use crate::cli::terminal::Terminal;

/// A command for editors, shells or people.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Map(Box<map::Args>),
    Lsp(Box<lsp::Args>),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs one of them. `memgate` is the whole command line.
///
/// # Errors
/// Those of the command.
pub(super) fn run(args: &Command, memgate: clap::Command, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    match args {
        Command::Map(args) => map::run(args, terminal),
        Command::Lsp(args) => lsp::run(args, terminal),
        Command::Schema(args) => schema::run(args, terminal),
        Command::Completions(args) => completions::run(args, memgate, terminal),
        Command::Man(args) => man::run(args, memgate, terminal),
    }
}

/// The command line without the flags that `lsp` has with other commands and refuses.
pub(super) fn with_layout(memgate: clap::Command) -> clap::Command {
    let refused = ["no_render", "kustomize_args", "helm_args", "values", "sources"];
    let refused = |arg: &clap::Arg| refused.contains(&arg.get_id().as_str());
    memgate.mut_subcommand("lsp", |lsp| lsp.mut_args(|arg| if refused(&arg) { arg.hide(true) } else { arg }))
}

/// Prints the names that a command takes, a line each.
fn list_choices(
    command: &str,
    names: impl IntoIterator<Item = String>,
    terminal: Terminal,
) -> anyhow::Result<ExitStatus> {
    let names: String = names.into_iter().map(|name| name + "\n").collect();
    terminal.raw(names.as_bytes())?;
    terminal.note(&format!("note: these are the names that memgate {command} takes; give it one of them"));
    Ok(ExitStatus::Clean)
}
