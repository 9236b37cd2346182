//! `memgate mutate`: the objects as they would be stored, in the user's own text.

use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::check::{FailOnArgs, status, tell};
use crate::cli::findings::{Judged, judge, report};
use crate::cli::input::{InputArgs, load};
use crate::cli::terminal::Terminal;
use crate::manifest::rewrite::{Rewritten, rewrite};
use crate::manifest::source::Source;
use crate::model::edit::Edit;
use crate::report::{Format, Report, diff, write};

/// Print manifests as they would be stored: with defaults, and pods with their memory
///
/// The text stays as it was but for what is added, comments included. What memgate does not look
/// at, and what would be denied, is printed unchanged; findings go to standard error. A workload
/// gets what its pods would get, in its pod template.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate mutate deploy/ | kubectl apply -f -
  memgate mutate agents/ --with cluster-state.yaml --diff

Exit codes: 0 nothing would be denied, 1 something would, 2 an input cannot be read or parsed
(then nothing is printed), 3 nothing to check was found.")]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print a unified diff instead, in which each added line names where it comes from
    ///
    /// The origins stand behind the added lines as comments, so patch(1) would add them too: leave
    /// them out with --no-origins when the diff is to be applied.
    #[arg(long, help_heading = "Output")]
    diff: bool,

    /// Leave the origins of added lines out of the diff
    #[arg(long, requires = "diff", help_heading = "Output")]
    no_origins: bool,

    #[command(flatten)]
    fail_on: FailOnArgs,
}

/// Runs the command.
///
/// # Errors
/// When something cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let input = load(&args.input)?;
    let verdicts = judge(&input);
    let report = report(&input, &verdicts);
    if report.faults.is_empty() {
        let texts = input
            .sources
            .iter()
            .map(|source| rewritten(source, &verdicts.judged))
            .collect::<Result<Vec<_>, _>>()?;
        let texts: Vec<(&Source, &Rewritten)> = input.sources.iter().map(Arc::as_ref).zip(&texts).collect();
        if args.diff { diffs(&texts, args.no_origins, terminal)? } else { whole(&texts, terminal)? }
    }
    show_findings(&report, terminal)?;
    tell(&input, &report, terminal);
    Ok(status(&report, args.fail_on))
}

fn show_findings(report: &Report<'_>, terminal: Terminal) -> anyhow::Result<()> {
    let mut text = Vec::new();
    write(report, Format::Text, &mut text).context("failed to write the report")?;
    terminal.err(&text);
    Ok(())
}

/// A source with the edits of all its objects that are allowed.
fn rewritten(source: &Arc<Source>, judged: &[Judged<'_>]) -> anyhow::Result<Rewritten> {
    let here = judged.iter().filter(|judged| Arc::ptr_eq(judged.task.document.source(), source));
    let allowed: Vec<_> = here.filter(|judged| judged.admitted.allowed()).collect();
    let edits: Vec<Vec<Edit>> = allowed.iter().map(|judged| edits(judged)).collect();
    let edits: Vec<_> =
        allowed.iter().zip(&edits).map(|(judged, edits)| (&judged.task.document, edits.as_slice())).collect();
    rewrite(source, &edits).context("failed to write the changes")
}

/// The edits of one object as they stand in its document.
fn edits(judged: &Judged<'_>) -> Vec<Edit> {
    let template = &judged.task.template;
    let edits = judged.admitted.edits.iter();
    edits.map(|edit| Edit { pointer: template.join(&edit.pointer), ..edit.clone() }).collect()
}

/// One file as it is; several as one stream that says where each part comes from.
fn whole(texts: &[(&Source, &Rewritten)], terminal: Terminal) -> anyhow::Result<()> {
    if let [(_, only)] = texts {
        return terminal.raw(only.text.as_bytes());
    }
    let mut stream = String::new();
    for (source, new) in texts {
        let text = new.text.trim_start_matches('\u{feff}');
        stream.push_str("---\n# Source: ");
        stream.push_str(&crate::report::plain(source.name()));
        stream.push('\n');
        if text.trim_start().starts_with(['{', '[']) {
            // JSON may be indented with tabs, which YAML forbids; within strings JSON has none.
            stream.push_str(&text.replace('\t', "  "));
        } else {
            stream.push_str(text);
        }
        if !stream.ends_with('\n') {
            stream.push('\n');
        }
    }
    terminal.raw(stream.as_bytes())
}

fn diffs(texts: &[(&Source, &Rewritten)], no_origins: bool, terminal: Terminal) -> anyhow::Result<()> {
    let changed: Vec<_> = texts.iter().filter(|(source, new)| source.text() != new.text).collect();
    if changed.is_empty() {
        terminal.note("nothing to change");
    }
    let mut text = Vec::new();
    for (source, new) in changed {
        let origins = if no_origins { &[] } else { new.origins.as_slice() };
        let change = diff::Change { file: source.name(), before: source.text(), after: &new.text, origins };
        diff::write(&change, &mut text).context("failed to write the diff")?;
        for index in &new.reformatted {
            let (number, name) = (index + 1, source.name());
            terminal.note(&format!(
                "note: {name}: document {number} had to be written anew, without its comments"
            ));
        }
    }
    terminal.out(&text)
}
