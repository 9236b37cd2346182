//! `memgate audit`: judges stored objects by policies.

use crate::cli::check::{FailOnArgs, finish};
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::input::{InputArgs, load_policies};
use crate::cli::output::{OutputArg, OverviewArgs, check_places, is_page, or_reported};
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use crate::cli::{ExitStatus, live};
use memgate_cluster::audit::{AuditPlan, audit};
use memgate_cluster::client::{KubeContext, own_namespace};
use memgate_cluster::installation::apiserver_version;
use memgate_model::request::Point;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::outcome::with_page;
use memgate_workbench::files::place::overview;
use memgate_workbench::files::run::{Run, audited};

/// Judge stored objects by policies, and tell what admission would do
///
/// Judges memory resources and agents as they are, by the audit actions of policies. Each finding names what
/// admission would do with the object today, and the date from which it will be denied. Denials come first, then
/// warnings, then a line for the notes of each rule. A table at the end counts by policy and namespace what admission
/// would do today. Pods, and objects that run once and end, are not audited. Nothing is changed.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 nothing is denied, 1 something is, 2 an input cannot be read or
parsed, 3 nothing to judge was found. By default an audit only reports.",
    after_long_help = "\
Examples:
  memgate audit --context prod
  memgate audit deploy/ --policy policies/ --fail-on warn

Without PATH the objects are those of the cluster of --context or --kubeconfig. With none of them,
they are those of the paths of .memgate.yaml, else of the cluster of KUBECONFIG, else of the working directory."
)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Format and file; repeatable [default: text]
    ///
    /// Formats: text, concise, json, github, gitlab, sarif, junit, markdown and html (a page for a browser).
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output")]
    output: Vec<OutputArg>,

    #[command(flatten)]
    overview: OverviewArgs,

    #[command(flatten)]
    fail_on: FailOnArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    write: WriteArgs,
}

/// What is written into the cluster.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
struct WriteArgs {
    /// Read the cluster of this pod, as its service account
    #[arg(long, requires = "write", conflicts_with_all = ["kubeconfig", "context"], hide_short_help = true)]
    in_cluster: bool,

    /// Write reports and the status of policies into the cluster, in place of printing
    ///
    /// Running agent pods without their memory are named too. Only what differs is written. Exit codes: 0 written, 2 not
    /// all of it. The CronJob of an installation runs this.
    #[arg(long, conflicts_with_all = ["paths", "with", "namespace", "policy", "point", "at", "output"], hide_short_help = true)]
    write: bool,

    /// Read the workloads of ark's memory service, by which policies judge whether memory is durable
    #[arg(long, requires = "write", hide_short_help = true)]
    ark_brokers: bool,
}

/// Runs the command.
///
/// # Errors
/// When the cluster does not answer, or the report cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let terminal = args.fail_on.terminal(terminal);
    check_places(&args.output, terminal)?;
    let shown = args.overview.shown();
    let project = or_reported(args.input.project(terminal), &args.output, terminal)?;
    if args.write.write {
        return write(args, &project, terminal);
    }
    let fail_on = args.fail_on.or(&project);
    let Some(given) = load_policies(&args.input.policies.policy, args.input.settings(&project)?, terminal)?
    else {
        return Ok(ExitStatus::Failed);
    };
    // The map of the page has the agent pods.
    let wants_map = is_page(&args.output);
    let plan = live::plan(&args.input, &args.cluster, &project, wants_map, terminal)?;
    let occasion = args.input.policies.occasion(Point::Audit);
    let run = Run { plan: Plan { wants_map, ..plan }, occasion };
    let checked = audited(&run, &given)?;
    let report = with_page(overview(&checked, shown), "audit", &checked);
    finish(&checked, &report, &args.output, fail_on, terminal)
}

/// Audits a cluster, and writes what was found into it.
fn write(args: &Args, project: &Project, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let WriteArgs { in_cluster, ark_brokers, .. } = args.write;
    anyhow::ensure!(
        in_cluster || args.cluster.is_named(),
        "--write needs a cluster: --in-cluster in a pod, else --kubeconfig or --context"
    );
    let mut settings = args.input.settings(project)?;
    let installation = own_namespace();
    settings.policies.own_namespace.clone_from(&installation);
    settings.platforms.watches_workloads = ark_brokers;
    let audited = block_on(async {
        let client =
            if in_cluster { KubeContext::client_of_pod().await? } else { args.cluster.client().await? };
        settings.platforms.apiserver = apiserver_version(&client).await;
        Ok(audit(client, &AuditPlan { settings, installation }).await)
    })?;
    for sentence in &audited.said {
        terminal.note(sentence);
    }
    for fault in &audited.faults {
        terminal.note(&format!("error: {fault}"));
    }
    Ok(if audited.faults.is_empty() { ExitStatus::Clean } else { ExitStatus::Failed })
}
