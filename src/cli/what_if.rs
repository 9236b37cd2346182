//! `memgate what-if`: the objects whose verdict other policies would change.

use crate::cli::check::note_rules;
use crate::cli::cluster::ClusterArgs;
use crate::cli::input::{InputArgs, load_policies, note_unread};
use crate::cli::output::{OutputArg, OverviewArgs, check_places, is_page, or_reported, write_outputs};
use crate::cli::terminal::Terminal;
use crate::cli::{ExitStatus, live};

use memgate_model::policy::Question;
use memgate_model::request::Point;
use memgate_workbench::files::outcome::{MANIFEST, with_page};
use memgate_workbench::files::run::Run;
use memgate_workbench::files::what_if::what_if;
use memgate_workbench::report::changes;

/// List the objects that other policies would deny, warn about, or accept
///
/// Decides about every object with the current policies and with those of --policy, and prints the objects whose
/// verdict changes, or that get another denial: denials first, then by namespace and owner. A table at the end counts
/// what the new policies find, by policy and namespace. The current policies are those among the files, in --with, or in
/// the cluster; one of --policy replaces the one of the same name. Nothing is changed.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 nothing would newly be denied, 1 something would, 2 an input
cannot be read or parsed, 3 nothing to judge was found.",
    after_long_help = "\
Examples:
  memgate what-if --policy new.yaml deploy/
  memgate what-if --policy new.yaml --context prod --point admission --at 2027-02-01T00:00:00Z
  memgate what-if --base old.yaml --policy new.yaml deploy/ -o json

Without PATH the objects are those of the cluster of --context or --kubeconfig: memory resources and
agents, and agent pods if a policy has rules on pods. With none of them, they are those of the paths of .memgate.yaml,
else of the cluster of KUBECONFIG, else of the working directory."
)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Current policies, in place of those of the same name; repeatable
    ///
    /// A policy that is here and not in --policy is deleted with the new policies.
    #[arg(long, value_name = "PATH", help_heading = "Policies")]
    base: Vec<String>,

    /// Format and file; repeatable [default: text]
    ///
    /// Formats: text, concise, json, github, gitlab, sarif, junit, markdown and html (a page for a browser).
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output")]
    output: Vec<OutputArg>,

    #[command(flatten)]
    overview: OverviewArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
///
/// # Errors
/// When there are no policies, the cluster does not answer, or the report cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let new_paths = &args.input.policies.policy;
    anyhow::ensure!(!new_paths.is_empty(), "no policy was given to try; name it with --policy FILE");
    anyhow::ensure!(
        !args.input.policies.no_policies,
        "--no-policies would leave nothing to try; leave it out"
    );
    anyhow::ensure!(
        new_paths.iter().chain(&args.base).all(|path| path != "-"),
        "policies are read from files, and standard input (-) is not a file"
    );
    check_places(&args.output, terminal)?;
    let shown = args.overview.shown();
    let project = or_reported(args.input.project(terminal), &args.output, terminal)?;
    let settings = args.input.settings(&project)?;
    let Some(new) = load_policies(new_paths, settings.clone(), terminal)? else {
        return Ok(ExitStatus::Failed);
    };
    let Some(base) = load_policies(&args.base, settings, terminal)? else {
        return Ok(ExitStatus::Failed);
    };
    let judges_pods = [&new, &base].iter().any(|inputs| !inputs.snapshot.policies.is_silent(Question::Pod));
    let mut plan = live::plan(&args.input, &args.cluster, &project, judges_pods, terminal)?;
    plan.wants_map = is_page(&args.output);
    let run = Run { plan, occasion: args.input.policies.occasion(Point::Ci) };
    let result = what_if(&run, &base, &new)?;
    if let Some(why) = result.checked.inputs.assumed.as_ref().and_then(|it| it.policies_unknown()) {
        anyhow::ensure!(
            !args.base.is_empty(),
            "the current policies are not known: {why}; give them by --base"
        );
    }
    let report = with_page(result.report(shown), "what-if", &result.checked);
    write_outputs(&report, &args.output, false, terminal)?;
    for error in &report.errors {
        terminal.input_error(error);
    }
    note_unread(&result.checked.inputs, MANIFEST, terminal);
    if report.objects.is_empty() && report.errors.is_empty() {
        terminal.note("error: nothing to judge was found");
        return Ok(ExitStatus::Nothing);
    }
    let changes = report.changes.as_deref().unwrap_or_default();
    note_rules(report.rules, terminal);
    terminal.note(&changes::summary(&report, changes));
    Ok(ExitStatus::of(!report.errors.is_empty(), result.newly_denied() > 0, false))
}
