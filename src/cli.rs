//! The command line: the arguments of each command, and the exit code.
//!
//! Each command has a module with its arguments and a `run` that does the work and returns an
//! [`ExitStatus`]. Only this module and those below it print; only `main.rs` ends the process.

pub mod audit;
pub mod certs;
pub mod check;
pub mod choice;
pub mod cluster;
pub mod completions;
pub mod crds;
pub mod doctor;
pub mod duration;
pub mod exempt;
pub mod explain;
pub mod explain_pod;
pub mod families;
pub mod file;
pub mod fix;
pub mod gone;
pub mod help;
pub mod input;
pub mod keys;
pub mod limits;
pub mod live;
pub mod lsp;
pub mod man;
pub mod manifests;
pub mod map;
pub mod mutate;
pub mod output;
pub mod policies;
pub mod project;
pub mod pull_request;
pub mod review;
pub mod schema;
pub mod serve;
pub mod server_keys;
pub mod settings;
pub mod terminal;
pub mod test;
pub mod view;
pub mod wait;
pub mod what_if;

use std::borrow::Cow;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::cli::terminal::Terminal;
use memgate_primitives::plain_text::plain_except;

/// How a run ended, as an exit code on which scripts rely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Nothing would be denied.
    Clean,
    /// Something would be denied, or a case failed.
    Denied,
    /// Wrong usage, an input that cannot be read or parsed, or a fault of memgate.
    Failed,
    /// Nothing to check was found.
    Nothing,
}

impl ExitStatus {
    /// The status of a command that judges objects, by whether an input was wrong, an object was denied, and there was
    /// none.
    pub const fn of(failed: bool, denied: bool, is_empty: bool) -> Self {
        match (failed, denied, is_empty) {
            (true, ..) => Self::Failed,
            (_, true, _) => Self::Denied,
            (_, _, true) => Self::Nothing,
            _ => Self::Clean,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(match status {
            ExitStatus::Clean => 0,
            ExitStatus::Denied => 1,
            ExitStatus::Failed => 2,
            ExitStatus::Nothing => 3,
        })
    }
}

/// Gives AI agents on Kubernetes their memory, and reports why it cannot
///
/// memgate reads the memory resources of agent platforms, refuses those that cannot work, and
/// gives agent pods the environment that their memory needs. It runs as an admission webhook in
/// a cluster (serve) and on manifest files (check, mutate, review), with the same verdicts.
#[derive(Debug, Parser)]
#[command(name = "memgate", version, max_term_width = 100, before_help = help::EXIT_CODES)]
#[command(disable_help_flag = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print help; -h prints the short form
    #[arg(short, long, global = true, action = ArgAction::Help, help_heading = "General", display_order = 1000)]
    help: Option<bool>,

    /// Colours [default: auto]
    ///
    /// auto means on a terminal, unless NO_COLOR is set.
    #[arg(
        long,
        global = true,
        value_name = "auto|always|never",
        value_enum,
        default_value = "auto",
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "General",
        display_order = 1001
    )]
    color: clap::ColorChoice,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(Box<check::Args>),
    Mutate(Box<mutate::Args>),
    View(view::Args),
    Review(review::Args),
    Test(test::Args),
    Serve(Box<serve::Args>),
    Wait(wait::Args),
    Doctor(doctor::Args),
    Audit(Box<audit::Args>),
    WhatIf(Box<what_if::Args>),
    Exempt(exempt::Args),
    Explain(explain::Args),
    ExplainPod(explain_pod::Args),
    Crds(crds::Args),
    Manifests(Box<manifests::Args>),
    Certs(certs::Args),
    Map(Box<map::Args>),
    Lsp(Box<lsp::Args>),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs one command line, of which the first argument is the name of the program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitStatus {
    // The server and the Kubernetes client use the TLS provider of the process. To install it fails only if another one
    // was installed before, which works as well.
    let _ = memgate_certs::provider().install_default();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(error) = gone::error(&arguments) {
        Terminal::new(clap::ColorChoice::Auto).error(&error);
        return ExitStatus::Failed;
    }
    let parsed =
        command().try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return print_usage(&error),
    };
    let terminal = Terminal::new(cli.color);
    run(&cli.command, terminal).unwrap_or_else(|error| {
        terminal.error(&error);
        ExitStatus::Failed
    })
}

/// The command line with the layout of its help texts, and without the flags that `lsp` has with other commands and refuses.
fn command() -> clap::Command {
    let refused = ["no_render", "kustomize_args", "helm_args", "values", "sources"];
    let refused = |arg: &clap::Arg| refused.contains(&arg.get_id().as_str());
    let memgate = help::with_layout(Cli::command());
    memgate.mut_subcommand("lsp", |lsp| lsp.mut_args(|arg| if refused(&arg) { arg.hide(true) } else { arg }))
}

fn run(args: &Command, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    match args {
        Command::Check(args) => check::run(args, terminal),
        Command::Mutate(args) => mutate::run(args, terminal),
        Command::View(args) => view::run(args, terminal),
        Command::Review(args) => review::run(args, terminal),
        Command::Test(args) => test::run(args, terminal),
        Command::Serve(args) => serve::run(args, terminal),
        Command::Wait(args) => wait::run(args, terminal),
        Command::Doctor(args) => doctor::run(args, terminal),
        Command::Audit(args) => audit::run(args, terminal),
        Command::WhatIf(args) => what_if::run(args, terminal),
        Command::Exempt(args) => exempt::run(args, terminal),
        Command::Explain(args) => explain::run(args, terminal),
        Command::ExplainPod(args) => explain_pod::run(args, terminal),
        Command::Crds(args) => crds::run(args, terminal),
        Command::Manifests(args) => manifests::run(args, terminal),
        Command::Certs(args) => certs::run(args, terminal),
        Command::Map(args) => map::run(args, terminal),
        Command::Lsp(args) => lsp::run(args, terminal),
        Command::Schema(args) => schema::run(args, terminal),
        Command::Completions(args) => completions::run(args, command(), terminal),
        Command::Man(args) => man::run(args, command()),
    }
}

/// Prints help and the version to standard output, and wrong usage to standard error.
fn print_usage(error: &clap::Error) -> ExitStatus {
    let was_requested = !error.use_stderr();
    // A shell expands `*` to names of files, some of which look like flags.
    let text = error.render().to_string();
    match plain_except(&text, |c| c == '\n') {
        Cow::Owned(text) => Terminal::new(clap::ColorChoice::Never).err(text.as_bytes()),
        // An error here cannot be shown, since the stream does not work.
        Cow::Borrowed(_) => drop(error.print()),
    }
    if was_requested { ExitStatus::Clean } else { ExitStatus::Failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_fit_together() {
        command().debug_assert();
    }

    /// What is hardly ever changed is a key of the settings file.
    #[test]
    fn an_installation_has_few_flags() {
        let mut memgate = command();
        memgate.build();
        let manifests = memgate.find_subcommand("manifests").expect("is a command");
        let flags: Vec<&str> = manifests.get_arguments().filter_map(clap::Arg::get_long).collect();
        assert!(flags.len() <= 15, "{flags:?}");
    }

    #[test]
    fn the_short_help_of_check_fits_on_a_screen() {
        let mut memgate = command().term_width(80);
        memgate.build();
        let check = memgate.find_subcommand_mut("check").expect("is a command");
        let help = check.render_help().to_string();
        assert!(help.lines().count() <= 50, "{} lines:\n{help}", help.lines().count());
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}
