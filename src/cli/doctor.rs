//! `memgate doctor`: finds faults of an installation and of its cluster.
//!
//! With `-o json`:
//!
//! ```text
//! {"version": "0.1.0",
//!  "checks": [{"id", "status": "ok|warn|fail|unknown", "subject", "message", "help"?}],
//!  "summary": {"ok", "warn", "fail", "unknown"}}
//! ```
//!
//! Ids and fields are only added, never removed.

use std::fmt::Write as _;

use anstyle::AnsiColor;
use clap::Parser as _;
use clap::error::{ContextKind, ErrorKind};
use serde_json::json;

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::output::ResultFormat;
use crate::cli::policies::ClusterPolicyArgs;
use crate::cli::serve;
use crate::cli::settings::SettingsArgs;
use crate::cli::terminal::Terminal;
use memgate_cluster::check::{Check, CheckStatus, abbreviated};
use memgate_cluster::doctor::{DoctorOptions, checks};
use memgate_cluster::wait::probe_namespace;
use memgate_install::metadata::DEFAULT_NAMESPACE;
use memgate_model::settings::Settings;
use memgate_workbench::report::counted;

/// How many workloads a text names whose pods lack their memory.
const MAX_LISTED: usize = 20;

/// Find faults of an installation in a cluster
///
/// Checks the webhook configurations, the certificates that they trust, the Service and Deployment
/// of memgate, the rights of its account, what its replicas say of themselves in their Leases, pauses, policies that
/// deny everything, agent pods that run without their memory, and calls memgate by dry runs. Causes come first, each
/// with the command that mends it. Nothing is changed. A check that needs an object that you may not read is unknown.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 no check fails, 1 one does, 2 wrong usage or a fault, such as no
apiserver.",
    after_long_help = "\
Examples:
  memgate doctor
  memgate doctor -n memgate-system --context staging
  memgate doctor -o json --fail-on warn"
)]
pub struct Args {
    /// Namespace of memgate
    #[arg(short, long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    namespace: String,

    /// Namespace of the dry runs
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = probe_namespace)]
    dry_run_namespace: String,

    /// Format of the result
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text", help_heading = "Output")]
    output: ResultFormat,

    /// Least status for exit code 1
    #[arg(long, value_name = "STATUS", value_enum, default_value = "fail", help_heading = "Output")]
    fail_on: FailOnStatus,

    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOnStatus {
    /// Failed checks
    Fail,
    /// Warnings too
    Warn,
}

/// Runs the command.
///
/// # Errors
/// When the cluster cannot be reached or the result cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let options = DoctorOptions {
        namespace: &args.namespace,
        dry_run_namespace: &args.dry_run_namespace,
        max_listed: if args.output == ResultFormat::Json { usize::MAX } else { MAX_LISTED },
        parse_flags,
        wrong_flag,
    };
    let checks = block_on(async {
        let checks = checks(args.cluster.client().await?, &options);
        Box::pin(checks).await.map_err(anyhow::Error::msg)
    })?;
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let [ok, warn, fail, unknown] =
        [CheckStatus::Ok, CheckStatus::Warn, CheckStatus::Fail, CheckStatus::Unknown].map(count);
    match args.output {
        ResultFormat::Text => {
            terminal.out(text(&checks).as_bytes())?;
            let (warned, failed) = (counted(warn, "warning"), counted(fail, "failure"));
            terminal.note(&format!("{ok} ok, {warned}, {failed}, {unknown} unknown"));
        }
        ResultFormat::Json => {
            let summary = json!({"ok": ok, "warn": warn, "fail": fail, "unknown": unknown});
            let output = json!({"version": env!("CARGO_PKG_VERSION"), "checks": checks, "summary": summary});
            terminal.raw(format!("{output:#}\n").as_bytes())?;
        }
    }
    let bad = fail > 0 || (args.fail_on == FailOnStatus::Warn && warn > 0);
    Ok(if bad { ExitStatus::Denied } else { ExitStatus::Clean })
}

/// The flags of `memgate serve` for settings, as they are in memgate's Deployment.
#[derive(Debug, clap::Parser)]
struct DeploymentFlags {
    #[command(flatten)]
    settings: SettingsArgs,

    #[command(flatten)]
    policies: ClusterPolicyArgs,
}

/// The settings of these flags; `None` if a flag is wrong.
pub(super) fn parse_flags(flags: &[&str]) -> Option<Settings> {
    let flags = DeploymentFlags::try_parse_from(flags).ok()?;
    let mut settings = flags.settings.settings(None).ok()?;
    flags.policies.apply(&mut settings.policies);
    Some(settings)
}

/// The arguments of `memgate serve`.
#[derive(Debug, clap::Parser)]
struct ServeArguments {
    #[command(flatten)]
    _serve: serve::Args,
}

/// The first of these arguments of memgate's container that `memgate serve` does not have.
fn wrong_flag(arguments: &[&str]) -> Option<String> {
    let wrong = ServeArguments::try_parse_from(arguments).err()?;
    let is_unknown = wrong.kind() == ErrorKind::UnknownArgument;
    wrong.get(ContextKind::InvalidArg).filter(|_| is_unknown).map(ToString::to_string)
}

/// A line for each check. Checks with the same result about several subjects share a line.
fn text(checks: &[Check]) -> String {
    let mut text = String::new();
    let alike =
        |a: &Check, b: &Check| (a.id, a.status, &a.message, &a.help) == (b.id, b.status, &b.message, &b.help);
    for group in checks.chunk_by(alike) {
        let Some(Check { id, status, message, help, .. }) = group.first() else { continue };
        let (color, name) = match status {
            CheckStatus::Ok => (AnsiColor::Green, "ok"),
            CheckStatus::Unknown => (AnsiColor::Cyan, "unknown"),
            CheckStatus::Warn => (AnsiColor::Yellow, "warn"),
            CheckStatus::Fail => (AnsiColor::Red, "fail"),
        };
        let style = color.on_default().bold();
        let subjects = group.iter().map(|check| check.subject.clone()).filter(|subject| !subject.is_empty());
        let subjects = abbreviated(&subjects.collect::<Vec<_>>());
        let subject = if subjects.is_empty() { subjects } else { format!("{subjects}: ") };
        let _infallible = writeln!(text, "{style}{name}{style:#}[{id}]: {subject}{message}");
        if let Some(help) = help {
            let _infallible = writeln!(text, "  help: {help}");
        }
    }
    text
}
