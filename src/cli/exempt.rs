//! `memgate exempt`: prints a MemoryPolicyExemption that is in force once it is applied.

use anyhow::Context as _;
use jiff::{Timestamp, Unit};

use crate::cli::ExitStatus;
use crate::cli::input::load_policies;
use crate::cli::policies::parse_time;
use crate::cli::terminal::Terminal;
use memgate_manifest::rewrite::yaml;
use memgate_workbench::files::exempt::{ExemptObject, ExemptionRequest, exemption};

/// Print an exemption from a rule of a policy, for one object and a time
///
/// The output is a MemoryPolicyExemption as YAML. An exemption that would not be in force is refused with the reason:
/// its namespace may not grant it, it lasts too long, or the rule does not exist.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 printed, 2 it would not be in force, or wrong usage.",
    after_long_help = "\
Examples:
  memgate exempt --policy policies/ --for policy/baseline/durable --object ArkMemory/team-a/scratch \\
    --ttl 30d --reason \"moves to redis with the March release\" -n platform-exemptions"
)]
pub struct Args {
    /// File with the policy; repeatable
    #[arg(long, value_name = "PATH", required = true)]
    policy: Vec<String>,

    /// Code of the rule; repeatable for rules of one policy
    #[arg(long = "for", value_name = "policy/NAME/RULE", required = true)]
    rules: Vec<String>,

    /// Object, such as ArkMemory/team-a/notes or Namespace/team-a
    ///
    /// The name may be a pattern with * and ?.
    #[arg(long, value_name = "KIND/NS/NAME", value_parser = ExemptObject::parse)]
    object: ExemptObject,

    /// Duration of the exemption, such as 30d or 12h
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    ttl: i128,

    /// Reason, in 10 to 500 characters
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Ticket about it
    #[arg(long, value_name = "TEXT")]
    ticket: Option<String>,

    /// Begin, such as 2027-02-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,

    /// Namespace that grants it
    ///
    /// One of spec.exemptions.namespaces of the policy.
    #[arg(long, short)]
    namespace: String,
}

/// Runs the command.
///
/// # Errors
/// When the exemption would not be in force.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let (policy, rules) = named(&args.rules)?;
    let Some(inputs) = load_policies(&args.policy, memgate_platforms::default_settings(), terminal)? else {
        return Ok(ExitStatus::Failed);
    };
    let wanted = ExemptionRequest {
        policy,
        rules,
        object: args.object.clone(),
        reason: &args.reason,
        ticket: args.ticket.as_deref(),
        from: args.at.unwrap_or_else(Timestamp::now).round(Unit::Second).context("--at")?,
        lasts: args.ttl,
        namespace: &args.namespace,
    };
    match exemption(&wanted, &inputs.snapshot.policies) {
        Ok(manifest) => {
            terminal.raw(yaml(&manifest).as_bytes())?;
            Ok(ExitStatus::Clean)
        }
        Err(problems) => {
            anyhow::bail!("the exemption would not be in force:\n  {}", problems.join("\n  "))
        }
    }
}

/// The policy and the rules of codes such as `policy/baseline/durable`.
fn named(codes: &[String]) -> anyhow::Result<(&str, Vec<&str>)> {
    let mut named: Option<(&str, Vec<&str>)> = None;
    for code in codes {
        let parts: Vec<&str> = code.split('/').collect();
        let ["policy", policy, rule] = parts.as_slice() else {
            anyhow::bail!("--for {code}: write it like policy/baseline/durable");
        };
        let (first, rules) = named.get_or_insert_with(|| (policy, Vec::new()));
        anyhow::ensure!(first == policy, "--for names two policies; an exemption is from one");
        rules.push(rule);
    }
    named.context("--for is missing")
}

fn parse_ttl(text: &str) -> Result<i128, String> {
    let least = 1_000_000_000;
    memgate_policy::duration(text)
        .filter(|nanoseconds| *nanoseconds >= least)
        .ok_or_else(|| "give a duration such as 30d or 12h".to_owned())
}
