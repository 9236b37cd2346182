//! `memgate status`: one page that answers what an operator asks at night.
//!
//! With `-o json`:
//!
//! ```text
//! {"replicas": {"answer", "failures": [], "wanted", "available", "versions": [], "entriesFailClosed", "entriesFailOpen"},
//!  "paused": [{"namespace", "family", "until", "by", "reason"}],
//!  "podsWithoutMemory": [{"namespace", "owner", "pods", "cause", "restart", "help"}],
//!  "refused": [{"code", "namespace", "count"}],
//!  "policyChanges": [{"policy", "kind", "user", "manager", "at"}],
//!  "endsSoon": [{"at", "kind", "name"}],
//!  "cost": {"replicas", "cpuCores", "memoryBytes", "p99Seconds"},
//!  "unknown": {"SECTION": ["why"]}}
//! ```
//!
//! `restart` is a command, or null where none makes the pods anew, as for a pod without a controller; `help` is in words.
//! Fields are only added, never removed.

use std::fmt::Write as _;
use std::iter::empty;

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::doctor::parse_flags;
use crate::cli::output::ResultFormat;
use crate::cli::terminal::Terminal;
use memgate_cluster::doctor::DoctorOptions;
use memgate_cluster::status::{Status, status};
use memgate_cluster::wait::probe_namespace;
use memgate_install::metadata::DEFAULT_NAMESPACE;
use memgate_platforms::message::and_more;
use memgate_workbench::report::{counted, plain};

/// Answer what an operator asks at night, on one page
///
/// Says whether memgate answers, where it is paused, which workloads run without their memory and how to make their
/// pods anew, what was refused in the last hour, who changed policies, what ends within 30 days, and what memgate costs.
/// It takes half a minute at most, also while no replica answers, and changes nothing. What you may not read is named.
/// `memgate doctor` has all checks.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 memgate answers, 1 it does not, 2 wrong usage or a fault, such as no apiserver.",
    after_long_help = "\
Examples:
  memgate status
  memgate status -n memgate-system --context staging
  memgate status -o json

Refusals, and the users who changed policies, come from the logs of the replicas (it takes the right
to get pods/log); refusals also from Events of controllers. The cost comes from metrics of the
replicas (pods/proxy). What a replica logged that is gone is not counted."
)]
pub struct Args {
    /// Namespace of memgate
    #[arg(short, long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    namespace: String,

    /// Name of the webhook configurations [default: those of the namespace]
    #[arg(long, value_name = "NAME")]
    webhook_configuration: Option<String>,

    /// Namespace of the dry run
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = probe_namespace)]
    dry_run_namespace: String,

    /// Format of the result
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text", help_heading = "Output")]
    output: ResultFormat,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// How many objects of one kind are read.
const MAX_OBJECTS: usize = 20_000;

/// Runs the command.
///
/// # Errors
/// When the cluster cannot be reached or the result cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let options = DoctorOptions {
        namespace: &args.namespace,
        configuration: args.webhook_configuration.as_deref(),
        dry_run_namespace: &args.dry_run_namespace,
        max_objects: MAX_OBJECTS,
        max_listed: 0,
        settings: memgate_platforms::default_settings(),
        parse_flags,
    };
    let status = block_on(async { Ok(Box::pin(status(args.cluster.client().await?, &options)).await?) })?;
    match args.output {
        ResultFormat::Text => terminal.out(text(&status).as_bytes())?,
        ResultFormat::Json => terminal.raw(format!("{:#}\n", serde_json::to_value(&status)?).as_bytes())?,
    }
    Ok(if status.is_away() { ExitStatus::Denied } else { ExitStatus::Clean })
}

/// A part of the page. All parts together have at most 60 lines.
struct Section {
    /// Its name in the JSON form.
    key: &'static str,
    /// Its title, with what it says in a few words.
    title: String,
    /// Its items, each with a second line, which may be empty.
    items: Vec<(String, String)>,
    /// How many items are shown.
    most: usize,
}

impl Section {
    fn new(key: &'static str, title: &str, count: &str, items: impl Iterator<Item = String>) -> Self {
        let items: Vec<_> = items.map(|item| (item, String::new())).collect();
        Self { key, title: format!("{title}: {count}"), items, most: 5 }
    }
}

fn text(status: &Status) -> String {
    let mut text = String::new();
    // Names and texts of a cluster bring neither lines nor colours of their own.
    let mut line = |indent: &str, line: &str| {
        let _infallible = writeln!(text, "{indent}{}", plain(line));
    };
    for Section { key, title, items, most } in sections(status) {
        line("", &title);
        for (item, more) in items.iter().take(most) {
            line("  ", item);
            if !more.is_empty() {
                line("    ", more);
            }
        }
        if items.len() > most {
            line("  ", &format!("and {} more: -o json", items.len() - most));
        }
        if let Some(why) = status.unknown.get(key) {
            let why: Vec<String> = why.iter().cloned().collect();
            line("  ", &format!("not known: {}", and_more(&why, 2)));
        }
    }
    text
}

/// Whether memgate answers: causes first, then the way out.
fn replicas(status: &Status) -> Section {
    let replicas = &status.replicas;
    let number = |count: Option<i64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let versions: Vec<&str> = replicas.versions.iter().map(String::as_str).collect();
    let state = format!(
        "{} of {} replicas are available, version {}; entries: {} fail closed, {} open",
        number(replicas.available),
        number(replicas.wanted),
        if versions.is_empty() { "not known".to_owned() } else { versions.join(", ") },
        replicas.entries_fail_closed,
        replicas.entries_fail_open,
    );
    let way_out =
        "meanwhile `memgate pause -n NAMESPACE --for 1h --reason TEXT` lets writes of a namespace pass";
    let (answers, way_out) = match replicas.answer {
        _ if status.is_away() => ("memgate does not answer", Some(way_out.to_owned())),
        Some(_) => ("memgate answers", None),
        None => ("Whether memgate answers is not known", None),
    };
    let (first, others) = replicas.failures.split_at(replicas.failures.len().min(3));
    let items = first.iter().cloned().chain(way_out).chain([state]).chain(others.iter().cloned());
    let items = items.map(|item| (item, String::new())).collect();
    Section { key: "replicas", title: answers.to_owned(), items, most: 5 }
}

fn sections(status: &Status) -> [Section; 7] {
    let Status { paused, pods_without_memory, refused, policy_changes, ends_soon, cost, .. } = status;
    let some = |key: &str, count: usize| match count {
        0 if status.unknown.contains_key(key) => "not known".to_owned(),
        0 => "nothing".to_owned(),
        count => count.to_string(),
    };
    let pauses = paused.iter().map(|pause| {
        let family = if pause.family == "*" { String::new() } else { format!(" ({})", pause.family) };
        let until = pause.until.as_deref().unwrap_or("it is ended");
        format!("{}{family} until {until} by {}: {}", pause.namespace, pause.by, pause.reason)
    });
    let pods: usize = pods_without_memory.iter().map(|owner| owner.pods).sum();
    let pods = if pods == 0 { some("podsWithoutMemory", 0) } else { counted(pods, "pod") };
    let owners = pods_without_memory.iter().map(|owner| {
        let pods = counted(owner.pods, "pod");
        let first = format!("{} {}: {pods}: {}", owner.namespace, owner.owner, owner.cause);
        (first, owner.help.clone())
    });
    let requests: u64 = refused.iter().map(|refused| refused.count).sum();
    let requests = some("refused", usize::try_from(requests).unwrap_or(usize::MAX));
    let refusals = refused.iter().map(|refused| {
        let place = if refused.namespace.is_empty() { "the cluster" } else { &refused.namespace };
        format!("{} in {place}: {}", refused.code, refused.count)
    });
    let changes = policy_changes.iter().map(|change| {
        let user = match &change.user {
            Some(user) => format!("by {user}"),
            None => format!("with {}; the logs do not have the user", change.manager),
        };
        format!("{} {} {user}", change.at, change.policy)
    });
    let endings = ends_soon.iter().map(|ending| format!("{} {} {}", ending.at, ending.kind, ending.name));
    let p99 = cost.p99_seconds.map_or_else(String::new, |p99| format!(", p99 below {:.1} ms", p99 * 1000.0));
    let costs = match cost.replicas {
        0 => "not known".to_owned(),
        replicas => format!(
            "{:.3} cores and {:.0} MiB of {}{p99}",
            cost.cpu_cores,
            cost.memory_bytes / f64::from(1 << 20),
            counted(replicas, "replica"),
        ),
    };
    let without_memory = Section::new("podsWithoutMemory", "Without memory", &pods, empty());
    [
        replicas(status),
        Section::new("paused", "Paused", &some("paused", paused.len()), pauses),
        Section { items: owners.collect(), ..without_memory },
        Section::new("refused", "Refused in the last hour", &requests, refusals),
        Section::new(
            "policyChanges",
            "Last changes of policies",
            &some("policyChanges", policy_changes.len()),
            changes,
        ),
        Section::new("endsSoon", "Ends within 30 days", &some("endsSoon", ends_soon.len()), endings),
        Section::new("cost", "Cost", &costs, empty()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_cluster::pause::ListedPause;
    use memgate_cluster::status::{Ending, OwnerWithoutMemory, PolicyChange, Refused};

    #[test]
    fn one_page_whatever_there_is() {
        let owner = |index: usize| OwnerWithoutMemory {
            namespace: "team-a".to_owned(),
            owner: format!("Deployment/scout-{index}"),
            pods: 2,
            cause: "memgate did not answer\n\u{1b}[31m".to_owned(),
            restart: None,
            help: format!("kubectl -n team-a rollout restart deployment/scout-{index}"),
        };
        let mut status = Status { pods_without_memory: (0..500).map(owner).collect(), ..Status::default() };
        status.replicas.answer = Some(false);
        status.replicas.failures = vec!["no\nreplica".to_owned(); 20];
        let pause = || ListedPause {
            namespace: "team-a".to_owned(),
            family: "*".to_owned(),
            until: Some("2030-01-01T00:00:00Z".to_owned()),
            by: "ann".to_owned(),
            reason: "first\nsecond".to_owned(),
        };
        status.paused = (0..500).map(|_| pause()).collect();
        let refused = |count| Refused { code: "a/b".to_owned(), namespace: String::new(), count };
        status.refused = (0..500).map(refused).collect();
        let change = || PolicyChange {
            policy: "durable".to_owned(),
            kind: "MemoryPolicy",
            user: None,
            manager: "kubectl".to_owned(),
            at: "2030-01-01T00:00:00Z".to_owned(),
        };
        status.policy_changes = (0..500).map(|_| change()).collect();
        let ending =
            || Ending { at: "2030-01-01T00:00:00Z".to_owned(), kind: "exemption", name: "a".to_owned() };
        status.ends_soon = (0..500).map(|_| ending()).collect();
        for key in ["replicas", "paused", "podsWithoutMemory", "refused", "policyChanges", "endsSoon", "cost"]
        {
            status.unknown.insert(key, (0..9).map(|index| format!("why {index}")).collect());
        }
        let text = text(&status);
        assert!(text.lines().count() <= 60, "{} lines:\n{text}", text.lines().count());
        assert!(text.starts_with("memgate does not answer\n"), "{text}");
        let restart = "kubectl -n team-a rollout restart deployment/scout-0";
        assert!(text.contains(restart) && text.contains("and 495 more: -o json"), "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("memgate pause -n NAMESPACE --for 1h"), "{text}");
    }
}
