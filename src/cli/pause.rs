//! `memgate pause`: has the apiserver not ask memgate for a time.
//!
//! With `-o json`, `memgate pause list` prints `[{"namespace", "family", "until", "by", "reason"}]`, with `*` for all
//! namespaces or platforms. Fields are only added, never removed.

use std::time::Duration;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::families;
use crate::cli::output::ResultFormat;
use crate::cli::terminal::Terminal;
use memgate_cluster::pause::{ListedPause, NewPause, Scope, end, list, now, start};
use memgate_install::metadata::DEFAULT_NAMESPACE;
use memgate_model::family::Family;
use memgate_model::pause::Pause;
use memgate_primitives::name::is_dns_label;

/// The longest pause without `--long`.
const DAY: Duration = Duration::from_hours(24);

/// The longest reason, in characters: a sentence or two.
const MAX_REASON_CHARS: usize = 500;

/// Have the apiserver not ask memgate for a time, in a namespace or in the whole cluster
///
/// It also works while no replica answers: the conditions of memgate's webhook entries ask the
/// apiserver's own authorizer. In a paused namespace nothing is reviewed, injected or refused; pods that
/// require their memory start without it. The pause is a RoleBinding (with --all a ClusterRoleBinding) called memgate-paused,
/// which replicas remove at its end. A second pause of the same place replaces the first.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    before_help = "\
Exit codes: 0 done, 2 wrong usage or a fault, such as a namespace that does not
exist or a right that is missing.",
    after_long_help = "\
Examples:
  memgate pause -n team-a --for 1h --reason \"memgate is down, INC-123\"
  memgate pause --all --family ark --for 30m --reason \"upgrade of ark\"
  memgate pause list
  memgate pause list -n team-a
  memgate pause end -n team-a
  memgate pause end --all

It takes the verb `skip` on `webhooks` of memgate.dev, or `bind` on the ClusterRole memgate-skip,
and the right to create the binding. Owners of a namespace do not have them."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    start: Start,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(List),
    End(End),
}

#[derive(Debug, clap::Args)]
#[command(group = place())]
struct Start {
    /// Namespace to pause
    #[arg(short, long, value_name = "NAME", value_parser = namespace)]
    namespace: Option<String>,

    /// Pause the whole cluster
    #[arg(long)]
    all: bool,

    /// Only this platform
    #[arg(long, value_name = "PLATFORM", value_parser = families::parse)]
    family: Option<&'static Family>,

    /// How long, such as 30m, 4h or 1d; at most 24h without --long
    #[arg(long = "for", value_name = "DURATION", value_parser = length, required = true)]
    length: Option<Duration>,

    /// Why, for people who find the pause
    #[arg(long, value_name = "TEXT", value_parser = reason, required = true)]
    reason: Option<String>,

    /// Allow more than 24 hours
    #[arg(long)]
    long: bool,

    /// Namespace of memgate
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAMESPACE, value_parser = namespace)]
    memgate_namespace: String,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// List what is paused
#[derive(Debug, clap::Args)]
struct List {
    /// List the pauses of this namespace alone, not those of the whole cluster
    #[arg(short, long, value_name = "NAME", value_parser = namespace)]
    namespace: Option<String>,

    /// Format of the result
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: ResultFormat,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// End the pauses of a namespace, or every pause
#[derive(Debug, clap::Args)]
#[command(group = place())]
struct End {
    /// Namespace whose pauses end
    #[arg(short, long, value_name = "NAME", value_parser = namespace)]
    namespace: Option<String>,

    /// End every pause: those of the whole cluster, and those of namespaces
    #[arg(long)]
    all: bool,

    /// Only those of this platform
    #[arg(long, value_name = "PLATFORM", value_parser = families::parse)]
    family: Option<&'static Family>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A namespace or the whole cluster: one of the two.
fn place() -> clap::ArgGroup {
    clap::ArgGroup::new("place").required(true).args(["namespace", "all"])
}

/// Runs the command.
///
/// # Errors
/// When the pause is too long, the user lacks a right, or the apiserver does not answer.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    match &args.command {
        None => run_start(&args.start, terminal),
        Some(Command::List(args)) => run_list(args, terminal),
        Some(Command::End(args)) => run_end(args, terminal),
    }
}

fn run_start(args: &Start, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let length = args.length.context("give --for")?;
    anyhow::ensure!(
        args.long || length <= DAY,
        "--for is more than 24 hours: a pause is for an incident; give --long too if it must be"
    );
    let new = NewPause {
        scope: args.namespace.as_deref().map_or(Scope::Cluster, Scope::Namespace),
        family: args.family.map(|family| family.name),
        length: SignedDuration::try_from(length).context("--for is too long")?,
        reason: args.reason.as_deref().context("give --reason")?,
        home: &args.memgate_namespace,
    };
    let pause = block_on(async { Ok(start(&args.cluster.client().await?, &new).await?) })?;
    let place = place_of(&pause);
    let until = &pause.until;
    let end =
        args.namespace.as_ref().map_or_else(|| "--all".to_owned(), |namespace| format!("-n {namespace}"));
    let text = format!(
        "memgate is paused {place} until {until}: nothing is reviewed there.\n\
         To end it before: memgate pause end {end}\n"
    );
    terminal.out(text.as_bytes())?;
    Ok(ExitStatus::Clean)
}

fn run_list(args: &List, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let (pauses, now) = block_on(async {
        let client = args.cluster.client().await?;
        let scope = args.namespace.as_deref().map_or(Scope::Cluster, Scope::Namespace);
        Ok((list(&client, scope).await?, now(&client).await?))
    })?;
    match args.output {
        ResultFormat::Json => {
            let all: Vec<_> = pauses.iter().map(ListedPause::from).collect();
            terminal.raw(format!("{:#}\n", json!(all)).as_bytes())?;
        }
        ResultFormat::Text if pauses.is_empty() => {
            let text = args.namespace.as_ref().map_or_else(
                || "nothing is paused\n".to_owned(),
                |namespace| {
                    format!("the namespace {namespace} has no pause of its own; `memgate pause list` has those of the cluster\n")
                },
            );
            terminal.out(text.as_bytes())?;
        }
        ResultFormat::Text => {
            let lines: String = pauses.iter().map(|pause| line(pause, now)).collect();
            terminal.out(lines.as_bytes())?;
        }
    }
    Ok(ExitStatus::Clean)
}

fn run_end(args: &End, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let scope = args.namespace.as_deref().map_or(Scope::Cluster, Scope::Namespace);
    let family = args.family.map(|family| family.name);
    let ended = block_on(async {
        let client = args.cluster.client().await?;
        let mut pauses = list(&client, scope).await?;
        pauses.retain(|pause| family.is_none() || pause.family.as_deref() == family);
        for pause in &pauses {
            end(&client, pause).await?;
        }
        Ok(pauses)
    })?;
    if ended.is_empty() {
        terminal.out(b"nothing is paused\n")?;
    }
    for pause in &ended {
        terminal.out(format!("the pause {} has ended\n", place_of(pause)).as_bytes())?;
    }
    Ok(ExitStatus::Clean)
}

/// Where a pause is, and of which platform.
fn place_of(pause: &Pause) -> String {
    let place = pause.namespace.as_ref().map_or_else(
        || "in the whole cluster".to_owned(),
        |namespace| format!("in the namespace {namespace}"),
    );
    let of = pause.family.as_ref().map_or_else(String::new, |family| format!(" for {family}"));
    place + &of
}

fn line(pause: &Pause, now: Timestamp) -> String {
    let until = match pause.end() {
        Some(end) if end <= now => format!("ended at {end}, to be removed by a replica"),
        Some(end) if pause.written_end().is_none() => format!("until {end} (its annotation cannot be read)"),
        Some(end) => format!("until {end}"),
        None => "without an end".to_owned(),
    };
    format!("paused {} {until}, by {}: {}\n", place_of(pause), pause.by, pause.reason)
}

/// Parses the name of a namespace.
fn namespace(name: &str) -> Result<String, String> {
    if is_dns_label(name) {
        Ok(name.to_owned())
    } else {
        Err("this cannot be the name of a namespace".to_owned())
    }
}

/// Parses the length of a pause, as policies and `memgate exempt` have durations: days too.
fn length(text: &str) -> Result<Duration, String> {
    memgate_policy::duration(text)
        .and_then(|nanoseconds| u64::try_from(nanoseconds / 1_000_000_000).ok().map(Duration::from_secs))
        .filter(|length| *length >= Duration::from_secs(1))
        .ok_or_else(|| "give a duration of a second or more, such as 30m, 4h or 1d".to_owned())
}

/// Parses a reason: a line of text.
fn reason(text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.chars().count() {
        0 => Err("say why, for people who find the pause".to_owned()),
        1..=MAX_REASON_CHARS => Ok(line),
        _ => Err(format!("give at most {MAX_REASON_CHARS} characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_line_that_says_something() {
        assert_eq!(reason(" down,\n INC-1 "), Ok("down, INC-1".to_owned()));
        for text in ["", " ", "\t\n"] {
            assert!(reason(text).is_err(), "{text:?}");
        }
        assert!(reason(&"a".repeat(MAX_REASON_CHARS + 1)).is_err());
    }

    #[test]
    fn a_pause_lasts_a_second_or_more() {
        for (text, minutes) in [
            ("90m", 90),
            ("1d", 24 * 60),
            ("24h", 24 * 60),
            ("7d", 7 * 24 * 60),
            ("999999d", 999_999 * 24 * 60),
        ] {
            assert_eq!(length(text), Ok(Duration::from_mins(minutes)), "{text}");
        }
        for text in ["", "0s", "0d", "-1h", "-1d", "10ms", "1.5d", "1d12h", "9999999d", "soon"] {
            assert!(length(text).is_err(), "{text}");
        }
    }
}
