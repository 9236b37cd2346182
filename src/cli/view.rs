//! `memgate view`: what rules of policies see.

use std::fmt::Write as _;

use crate::cli::ExitStatus;
use crate::cli::input::{InputArgs, note_unread};
use crate::cli::terminal::Terminal;
use crate::manifest::rewrite::yaml;
use crate::model::credential::masked;
use crate::offline::errors::input_error;
use crate::offline::view::{Viewed, ViewedObject, shown, view};
use crate::report::plain;

/// Print what policies see of memory resources, of what refers to them, and of pods
///
/// One YAML document for each object, as it would be stored: the same fields for every platform. A workload
/// stands for its pod, with the containers that memgate adds. No value of a Secret is in it, and of a URL neither
/// userinfo nor query.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate view memory.yaml
  memgate view deploy/ --with cluster-state.yaml
  kubectl get arkmemories -A -o yaml | memgate view -

Exit codes: 0 printed, 2 an input cannot be read or parsed, 3 nothing has a view.")]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
}

/// Runs the command.
///
/// # Errors
/// When something cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let project = args.input.project(terminal)?;
    let Viewed { objects, errors, unread } = view(args.input.read(&project)?, args.input.occasion());
    terminal.raw(documents(&objects).as_bytes())?;
    for error in &errors {
        terminal.input_error(&input_error(error));
    }
    note_unread(&unread, "manifest", terminal);
    if !errors.is_empty() {
        return Ok(ExitStatus::Failed);
    }
    if objects.is_empty() {
        terminal.note("error: nothing of which policies see anything was found");
        terminal.note(
            "  what counts: memory resources, what refers to them, agent pods, and workloads with such pods",
        );
        return Ok(ExitStatus::Nothing);
    }
    Ok(ExitStatus::Clean)
}

/// The views, each below a comment that names its object.
fn documents(objects: &[ViewedObject]) -> String {
    let mut text = String::new();
    for ViewedObject { place, object_ref, views } in objects {
        let (title, file, line) = (object_ref.title(), place.source().name(), place.span().line);
        for view in views {
            if !text.is_empty() {
                text.push_str("---\n");
            }
            let _ = writeln!(text, "# {}", in_one_line(&format!("{title} ({file}:{line})")));
            text.push_str(&yaml(&shown(view)));
        }
    }
    text
}

/// Text from user input as the rest of a line: some readers of YAML know more ends of lines than others.
fn in_one_line(text: &str) -> String {
    plain(&masked(text)).replace(['\u{2028}', '\u{2029}'], " ")
}
