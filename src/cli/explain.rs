//! `memgate explain`: prints the page of a finding code, or describes a rule of a policy.

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::input::load_policies;
use crate::cli::terminal::Terminal;
use memgate_core::decide::codes;
use memgate_install::runbooks;
use memgate_model::finding::Code;
use memgate_primitives::suggest::{did_you_mean, nearest};
use memgate_workbench::build::rules::nearest_code;
use memgate_workbench::files::explain;
use memgate_workbench::files::inputs::Inputs;
use memgate_workbench::report::page::{self, title};

/// Explain a finding code: what is wrong, why it matters, what to do
///
/// Lists the codes of a platform, and prints the runbook of an alert too.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 printed, 2 there is no such code, or a policy cannot be read.",
    after_long_help = "\
Examples:
  memgate explain                          list all codes
  memgate explain arkonis                  list those of one platform
  memgate explain arkonis/redis-required   print the page of one code
  memgate explain runbook/no-answer        print the runbook of an alert; memgate explain runbook lists them
  memgate explain policy/baseline/durable --policy policies/   describe a rule of a policy"
)]
pub struct Args {
    /// Code, such as arkonis/redis-required, platform, or runbook/NAME; without one all codes are listed
    code: Option<String>,

    /// File with the policy of the rule; repeatable
    #[arg(long, value_name = "PATH")]
    policy: Vec<String>,
}

fn codes() -> impl Iterator<Item = &'static Code> {
    codes::all(&memgate_platforms::ALL)
}

/// Runs the command.
///
/// # Errors
/// When there is no such code.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    if let Some((policy, rule)) = args.code.as_deref().and_then(rule_of) {
        return explain_rule(args, policy, rule, terminal);
    }
    let text = match args.code.as_deref() {
        None => list(codes_below("")),
        Some("runbook") => list(runbooks().map(|(name, text)| (format!("runbook/{name}"), text))),
        Some(name) => match name.strip_prefix("runbook/") {
            Some(name) => runbook(name)?,
            None => of_code(name)?,
        },
    };
    terminal.out(text.as_bytes())?;
    Ok(ExitStatus::Clean)
}

/// Policy and rule of a code such as `policy/baseline/durable`.
fn rule_of(code: &str) -> Option<(&str, &str)> {
    code.strip_prefix("policy/")?.split_once('/')
}

fn explain_rule(args: &Args, policy: &str, rule: &str, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    if args.policy.is_empty() {
        anyhow::bail!("policy/{policy}/{rule} is a rule of a policy; give the policy with --policy PATH");
    }
    let Some(inputs) = load_policies(&args.policy, memgate_platforms::default_settings(), terminal)? else {
        return Ok(ExitStatus::Failed);
    };
    terminal.out(rule_text(&inputs, policy, rule)?.as_bytes())?;
    Ok(ExitStatus::Clean)
}

fn rule_text(inputs: &Inputs, policy: &str, rule: &str) -> anyhow::Result<String> {
    let policies = &inputs.snapshot.policies;
    let found = policies.get(policy).with_context(|| {
        let names = policies.iter().map(|policy| policy.name.as_str());
        format!("--policy gives no policy \"{policy}\"{}", did_you_mean(nearest(policy, names)))
    })?;
    let ids = || found.rules.iter().map(|rule| rule.about.id.as_str());
    let rule = found.rules.iter().find(|it| it.about.id == rule).with_context(|| {
        let hint = match nearest(rule, ids()) {
            Some(near) => did_you_mean(Some(near)),
            None => format!("; it has {}", ids().collect::<Vec<_>>().join(", ")),
        };
        format!("policy \"{policy}\" has no rule \"{rule}\"{hint}")
    })?;
    Ok(explain::rule(found, rule, inputs))
}

/// The page of a code, or the list of the codes that begin with a name and `/`.
fn of_code(name: &str) -> anyhow::Result<String> {
    if let Some(code) = codes().find(|code| code.name == name) {
        return Ok(format!("{}\n", page::of_code(code).trim_end()));
    }
    let below: Vec<_> = codes_below(&format!("{name}/")).collect();
    if !below.is_empty() {
        return Ok(list(below));
    }
    let platforms = memgate_platforms::ALL.iter().map(|family| family.name);
    match nearest_code(name).or_else(|| nearest(name, platforms)) {
        Some(near) => anyhow::bail!("there is no code \"{name}\"; did you mean {near}?"),
        None => anyhow::bail!("there is no code \"{name}\"; `memgate explain` lists all codes"),
    }
}

fn runbook(name: &str) -> anyhow::Result<String> {
    let Some((_, text)) = runbooks().find(|(known, _)| *known == name) else {
        let hint = did_you_mean(nearest(name, runbooks().map(|(known, _)| known)));
        anyhow::bail!("there is no runbook \"{name}\"{hint}; `memgate explain runbook` lists all of them");
    };
    Ok(format!("{}\n", page::with_links(text, "runbooks").trim_end()))
}

/// The codes whose names begin like this, with their pages.
fn codes_below(start: &str) -> impl Iterator<Item = (String, &'static str)> {
    codes()
        .filter(move |code| code.name.starts_with(start))
        .map(|code| (code.name.to_owned(), code.page.text()))
}

/// Each page by its name and its title.
fn list(pages: impl IntoIterator<Item = (String, &'static str)>) -> String {
    let pages: Vec<_> = pages.into_iter().collect();
    let width = pages.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    pages.iter().fold(String::new(), |all, (name, page)| format!("{all}{name:width$}  {}\n", title(page)))
}
