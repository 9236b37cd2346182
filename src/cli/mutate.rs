//! `memgate mutate`: manifests as a cluster would store them, with the user's own text around the changes.

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::check::{FailOnArgs, exit_status, write_notes, write_to_stderr};
use crate::cli::input::InputArgs;
use crate::cli::terminal::Terminal;
use memgate_manifest::rewrite::Rewritten;
use memgate_workbench::files::place::report;
use memgate_workbench::files::rewrite::{RewrittenFile, rewrite_all};
use memgate_workbench::files::run::decided;
use memgate_workbench::report::{plain, stream};

/// Print manifests as they would be stored: with defaults, and pods with their memory
///
/// The text stays as it was, comments included, except for the additions. Objects that memgate does
/// not know or would deny are printed unchanged; findings go to standard error. A workload gets the
/// additions of its pods in its pod template.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 nothing would be denied, 1 something would, 2 an input cannot be
read or parsed and nothing is printed, 3 nothing to check was found.",
    after_long_help = "\
Examples:
  memgate mutate deploy/ | kubectl apply -f -
  memgate mutate agents/ --with cluster-state.yaml --diff"
)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print a unified diff that names the origin of each added line
    ///
    /// The origins are comments behind the added lines.
    #[arg(long, help_heading = "Output")]
    diff: bool,

    #[command(flatten)]
    fail_on: FailOnArgs,
}

/// Runs the command.
///
/// # Errors
/// When something cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let terminal = args.fail_on.terminal(terminal);
    let project = args.input.project(terminal)?;
    let run = args.input.run(&project)?;
    let fail_on = args.fail_on.or(&project);
    let mut checked = decided(&run)?;
    checked.note_later();
    args.fail_on.hide_later(fail_on, &mut checked);
    let report = report(&checked);
    if report.errors.is_empty() {
        let files = rewrite_all(&checked).context("failed to write the changes")?;
        if args.diff {
            write_diffs(&files, terminal)?;
        } else {
            write_manifests(&files, terminal)?;
        }
    }
    write_to_stderr(&report, terminal)?;
    write_notes(&checked, &report, fail_on, terminal);
    Ok(exit_status(&report, fail_on))
}

fn note_reformatted(name: &str, new: &Rewritten, terminal: Terminal) {
    let name = plain(name);
    for index in &new.reformatted {
        let number = index + 1;
        terminal.note(&format!("note: {name}: document {number} was written again, without its comments"));
    }
}

fn write_manifests(files: &[RewrittenFile<'_>], terminal: Terminal) -> anyhow::Result<()> {
    let files: Vec<_> = files.iter().map(|file| (file.name(), file.new.text.as_str())).collect();
    terminal.raw(stream::text(&files).as_bytes())
}

fn write_diffs(files: &[RewrittenFile<'_>], terminal: Terminal) -> anyhow::Result<()> {
    let changed: Vec<_> = files.iter().filter(|file| file.source.text() != file.new.text).collect();
    if changed.is_empty() {
        terminal.note("nothing to change");
    }
    let mut text = Vec::new();
    for file in changed {
        file.write_diff(&mut text).context("failed to write the diff")?;
        note_reformatted(file.name(), &file.new, terminal);
    }
    terminal.out(&text)
}
