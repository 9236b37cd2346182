//! `memgate mutate`: manifests as a cluster would store them, with the user's own text around the changes.

use std::path::Path;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::check::{FailOnArgs, exit_status, write_notes, write_to_stderr};
use crate::cli::file::rewrite_whole;
use crate::cli::input::InputArgs;
use crate::cli::output::{OutputArg, is_page, write_files};
use crate::cli::terminal::Terminal;
use memgate_manifest::rewrite::Rewritten;
use memgate_workbench::load::load;
use memgate_workbench::outside::check;
use memgate_workbench::place::report;
use memgate_workbench::report::{counted, patches, plain, stream};
use memgate_workbench::rewrite::{
    self, RewrittenFile, given_a_mask, given_before_its_agent, repeated, rewrite_all,
};
use memgate_workbench::run::{Run, weighed};
use memgate_workbench::trace::trace_all;

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
  memgate mutate agents/ --with cluster-state.yaml --diff
  memgate mutate agents/ --write"
)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    result: ResultArgs,

    /// With --diff: without the origins of added lines
    #[arg(long, requires = "diff", help_heading = "Output")]
    no_origins: bool,

    /// Write the findings to a file too; repeatable
    ///
    /// Formats: text, concise, json, jsonl, github, gitlab, sarif and junit.
    #[arg(short, long = "output", value_name = "FORMAT=FILE", help_heading = "Output")]
    output: Vec<OutputArg>,

    #[command(flatten)]
    fail_on: FailOnArgs,
}

/// How the changes are written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct ResultArgs {
    /// Print a unified diff that names the origin of each added line
    ///
    /// The origins are comments behind the added lines. To apply the diff with patch(1), leave them out with
    /// --no-origins.
    #[arg(long)]
    diff: bool,

    /// Print a JSON patch (RFC 6902) for each changed object
    ///
    /// Each is a line with apiVersion, kind, namespace, name, file and line of the object. Values from memory resources
    /// are not masked, even if an address holds a credential.
    #[arg(long, conflicts_with_all = ["diff", "write"])]
    patch: bool,

    /// Write the changes into the files
    ///
    /// A file is written whole and keeps its permissions; a link keeps pointing at it. It is not written when it is
    /// read-only or has changed meanwhile.
    #[arg(short, long, conflicts_with_all = ["diff", "render"])]
    write: bool,
}

/// Runs the command.
///
/// # Errors
/// When something cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let terminal = args.fail_on.terminal(terminal);
    anyhow::ensure!(!is_page(&args.output), "-o html goes with check, audit and what-if");
    let project = args.input.project(terminal)?;
    let mut run = args.input.run(&project, terminal)?;
    anyhow::ensure!(
        !(args.result.write && run.plan.reads_stdin()),
        "--write writes files, and standard input (-) is not a file; leave --write out"
    );
    let fail_on = args.fail_on.or(&project);
    let judge = |run: &Run| Ok(check(load(&run.plan)?, run.occasion));
    let mut checked = weighed(&mut run, fail_on.strict, judge)?;
    let plan = run.plan;
    trace_all(&mut checked, &plan);
    checked.note_later();
    checked.note_unused_state();
    args.fail_on.hide_later(fail_on, &mut checked);
    if let Some(twice) = repeated(&checked).filter(|_| args.result.write || args.result.patch) {
        anyhow::bail!(twice);
    }
    if let Some(title) = plan.snapshot.is_some().then(|| given_a_mask(&checked)).flatten() {
        let advice = format!("{title} is given a credential that the snapshot masks");
        anyhow::ensure!(
            !args.result.write && !args.result.patch,
            "{advice}; give the memory resource by --with, and it takes the place of the one in the snapshot"
        );
        terminal.note(&plain(&format!("note: {advice}, so what is shown is not what a cluster would add")));
    }
    if let Some((pod, ensemble)) = given_before_its_agent(&checked) {
        terminal.note(&plain(&format!(
            "note: the Agent of {pod} is made by {ensemble}; in a cluster a pod that starts before it gets no memory"
        )));
    }
    let report = report(&checked);
    write_files(&report, &args.output, fail_on.warnings, terminal)?;
    let mut is_written = true;
    if report.errors.is_empty() {
        let files = rewrite_all(&checked).context("failed to write the changes")?;
        if args.result.patch {
            let mut lines = Vec::new();
            patches::write(rewrite::patches(&checked), &mut lines).context("failed to write the patches")?;
            terminal.raw(&lines)?;
        } else if args.result.write {
            is_written = write_files_back(&files, terminal);
        } else if args.result.diff {
            write_diffs(&files, args.no_origins, terminal)?;
        } else {
            write_manifests(&files, terminal)?;
        }
    }
    write_to_stderr(&report, terminal)?;
    write_notes(&checked, &report, fail_on, terminal);
    Ok(if is_written { exit_status(&report, fail_on) } else { ExitStatus::Failed })
}

/// Writes the changed files. The result is whether all of them were written.
fn write_files_back(files: &[RewrittenFile<'_>], terminal: Terminal) -> bool {
    let mut written = 0;
    let changed: Vec<_> = files.iter().filter(|file| file.source.text() != file.new.text).collect();
    for RewrittenFile { source, new, .. } in &changed {
        match rewrite_whole(Path::new(source.name()), source.text(), &new.text) {
            Ok(()) => written += 1,
            Err(error) => terminal.error(&error),
        }
        note_reformatted(source.name(), new, terminal);
    }
    terminal.note(&format!("{} written", counted(written, "file")));
    written == changed.len()
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

fn write_diffs(files: &[RewrittenFile<'_>], no_origins: bool, terminal: Terminal) -> anyhow::Result<()> {
    let changed: Vec<_> = files.iter().filter(|file| file.source.text() != file.new.text).collect();
    if changed.is_empty() {
        terminal.note("nothing to change");
    }
    let mut text = Vec::new();
    for file in changed {
        file.write_diff(!no_origins, &mut text).context("failed to write the diff")?;
        note_reformatted(file.name(), &file.new, terminal);
    }
    terminal.out(&text)
}
