//! `memgate test`: runs case files.

use std::io;
use std::sync::Arc;

use crate::cli::ExitStatus;
use crate::cli::check::note_rules;
use crate::cli::input::{HERE, note_unread};
use crate::cli::output::{OutputArg, write_each};
use crate::cli::project::{Project, ProjectArgs};
use crate::cli::terminal::Terminal;
use memgate_workbench::files::cases::{CasePlan, run as run_cases};
use memgate_workbench::report::cases;

/// Run case files: the decisions that memgate must make
///
/// Each case holds the state of a cluster, a request and the expected decision.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 all passed, 1 a case failed, 2 a file cannot be read or is not a
case file, 3 no case was found.",
    after_long_help = "\
Examples:
  memgate test cases/
  memgate test cases/arkonis.yaml -v
  memgate test cases/ -o text -o junit=cases.xml
  memgate test cases/ --policy policies/

A case:
  - name: rejects-redis-without-section
    state: []                     # objects in the cluster
    object:                       # oldObject too for UPDATE, only that for DELETE
      apiVersion: arkonis.dev/v1alpha1
      kind: ArkMemory
      metadata: {name: notes, namespace: team-a}
      spec: {backend: redis}
    expect:                       # also: warnings_contain, unchanged, after, absent,
      allowed: false              # env, env_absent, containers_present
      codes: [arkonis/redis-required]
      message_contains: [spec.redis is required]"
)]
pub struct Args {
    /// Case files, directories, globs, or - for standard input [default: those of the repository]
    ///
    /// Without FILE, the case files below the paths of .memgate.yaml run, else those below the working directory.
    #[arg(value_name = "FILE")]
    files: Vec<String>,

    #[command(flatten)]
    project: ProjectArgs,

    /// Policies and exemptions in the state of every case; repeatable
    ///
    /// A policy in the state of a case replaces the one of the same name.
    #[arg(long, value_name = "PATH", help_heading = "Policies")]
    policy: Vec<String>,

    /// Print a line for each case
    #[arg(short, long)]
    verbose: bool,

    /// Format and file; repeatable [default: text]
    ///
    /// Formats: text, json, junit and github. Without a file the format is written to standard output, which then
    /// holds nothing else.
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output", value_parser = parse_output)]
    output: Vec<OutputArg>,
}

fn parse_output(text: &str) -> Result<OutputArg, String> {
    OutputArg::parse(text, &cases::FORMATS)
}

/// Runs the command.
///
/// # Errors
/// When the text cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    anyhow::ensure!(
        args.policy.iter().all(|path| path != "-"),
        "policies are read from files, and standard input (-) is not a file"
    );
    let project = if args.files.is_empty() { args.project.read(&[], terminal)? } else { Project::default() };
    let paths = if !args.files.is_empty() {
        args.files.clone()
    } else if project.paths.is_empty() {
        vec![HERE.to_owned()]
    } else {
        project.paths.clone()
    };
    let plan = CasePlan {
        paths: &paths,
        are_searched: args.files.is_empty(),
        within: project.within(&project.paths, &project.directory),
        exclude: Arc::new(project.exclude(&project.directory)?),
        policies: &args.policy,
    };
    let mut run = run_cases(&plan, &mut io::stdin().lock())?;
    run.inputs.switched_off.extend(project.left_out_by(&project.paths));
    let report = run.report();
    for error in &report.errors {
        terminal.input_error(error);
    }
    note_unread(&run.inputs, "case file", terminal);
    write_each(&args.output, terminal, |format, _| {
        let mut bytes = Vec::new();
        cases::write(&report, format, args.verbose, &mut bytes)?;
        Ok(bytes)
    })?;
    terminal.note(&run.summary());
    note_rules(Some(&run.rules), terminal);
    Ok(ExitStatus::of(!run.inputs.errors.is_empty(), run.failed() > 0, run.results.is_empty()))
}
