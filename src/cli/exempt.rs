//! `memgate exempt`: a MemoryPolicyExemption that would be in force.

use anyhow::Context as _;
use jiff::{Timestamp, Unit};

use crate::cli::ExitStatus;
use crate::cli::input::state_from_files;
use crate::cli::policies::{PolicyArgs, parse_time};
use crate::cli::terminal::Terminal;
use crate::manifest::rewrite::yaml;
use crate::model::settings::Settings;
use crate::offline::exempt::{ExemptObject, ExemptionRequest, exemption};
use crate::policy;

/// Print an exemption from a rule of a policy, for one object and a time
///
/// What is printed is a MemoryPolicyExemption as YAML. One that would not be in force is refused with the reason:
/// its namespace may grant none, it lasts too long, or there is no such rule.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate exempt --policy policies/ --for policy/baseline/durable --object ArkMemory/team-a/scratch \\
    --ttl 30d --reason \"moves to redis with the March release\" -n platform-exemptions

Exit codes: 0 printed, 2 it would not be in force, or wrong usage.")]
pub struct Args {
    /// Where the policy is; can be repeated
    #[arg(long, value_name = "PATH", required = true)]
    policy: Vec<String>,

    /// The rule, as findings name it; can be repeated for rules of one policy
    #[arg(long = "for", value_name = "policy/NAME/RULE", required = true)]
    rules: Vec<String>,

    /// The object, such as ArkMemory/team-a/notes or Namespace/team-a; its name may be a pattern with * and ?
    #[arg(long, value_name = "KIND/NS/NAME", value_parser = ExemptObject::parse)]
    object: ExemptObject,

    /// How long it lasts, such as 30d or 12h
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    ttl: i128,

    /// Why, in 10 to 500 characters
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// The ticket behind it
    #[arg(long, value_name = "TEXT")]
    ticket: Option<String>,

    /// Who approved it
    #[arg(long, value_name = "NAME")]
    approved_by: Option<String>,

    /// When it begins, such as 2027-02-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,

    /// The name of the exemption [default: made of policy, rule and object]
    #[arg(long)]
    name: Option<String>,

    /// The namespace that grants it, one of spec.exemptions.namespaces of the policy
    #[arg(long, short)]
    namespace: String,
}

/// Runs the command.
///
/// # Errors
/// When the exemption would not be in force.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let (policy, rules) = named(&args.rules)?;
    let policies = PolicyArgs { policy: args.policy.clone(), no_policies: false };
    let Some(state) = state_from_files(&[], None, &policies, Settings::default(), terminal)? else {
        return Ok(ExitStatus::Failed);
    };
    let wanted = ExemptionRequest {
        policy,
        rules,
        object: args.object.clone(),
        reason: &args.reason,
        ticket: args.ticket.as_deref(),
        approved_by: args.approved_by.as_deref(),
        from: args.at.unwrap_or_else(Timestamp::now).round(Unit::Second).context("--at")?,
        lasts: args.ttl,
        namespace: &args.namespace,
        name: args.name.as_deref(),
    };
    match exemption(&wanted, &state.policies) {
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
    policy::duration(text)
        .filter(|nanoseconds| *nanoseconds >= least)
        .ok_or_else(|| "give a duration such as 30d or 12h".to_owned())
}
