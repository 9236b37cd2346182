//! `memgate view`: the fields of objects that policies judge.

use std::fmt::Write as _;

use crate::cli::ExitStatus;
use crate::cli::input::{InputArgs, note_read};
use crate::cli::terminal::Terminal;
use memgate_manifest::rewrite::yaml;
use memgate_model::request::Point;
use memgate_primitives::credential::{masked, masked_keys};
use memgate_workbench::load::load;
use memgate_workbench::report::plain;
use memgate_workbench::view::{Viewed, ViewedObject, shown, view};

/// Print the fields of memory resources, agents and pods that policies judge
///
/// One YAML document for each object, as it would be stored, with the same fields for every platform. A workload
/// is shown as its pod, with the containers that memgate adds. Values of Secrets, and userinfo and queries of URLs,
/// are left out.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 printed, 2 an input cannot be read or parsed, 3 nothing has a view.",
    after_long_help = "\
Examples:
  memgate view memory.yaml
  memgate view deploy/ --with cluster-state.yaml
  kubectl get arkmemories -A -o yaml | memgate view -"
)]
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
    let Viewed { objects, errors, unread } =
        view(load(&args.input.plan(&project, terminal)?)?, args.input.policies.occasion(Point::Ci));
    terminal.raw(masked_keys(&documents(&objects)).as_bytes())?;
    note_read(&errors, &unread, terminal);
    if objects.is_empty() && errors.is_empty() {
        terminal.note(
            "error: no object that policies judge was found\n  \
             what counts: memory resources, what refers to them, agent pods, and workloads with such pods",
        );
    }
    Ok(ExitStatus::of(!errors.is_empty(), false, objects.is_empty()))
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
            for (path, why) in &view.unknown {
                let _ = writeln!(text, "# {}", in_one_line(&format!("{path}: unknown, because {why}")));
            }
            for path in view.remarks.iter().map(|remark| remark.path) {
                let remark = view.remark(path, &view.namespace);
                let _ = writeln!(text, "# {}", in_one_line(&format!("{path}{remark}")));
            }
            text.push_str(&yaml(&shown(view)));
        }
    }
    text
}

/// Text from user input in a comment. Some readers of YAML end a line at U+2028 and U+2029.
fn in_one_line(text: &str) -> String {
    plain(&masked(text)).replace(['\u{2028}', '\u{2029}'], " ")
}
