//! `memgate view`: the fields of objects that policies judge.

use crate::cli::ExitStatus;
use crate::cli::input::{InputArgs, note_read};
use crate::cli::terminal::Terminal;
use memgate_workbench::files::load::each_unit;
use memgate_workbench::files::run::Run;
use memgate_workbench::files::trace::trace_objects;
use memgate_workbench::files::view::{documents, view};

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
    let Run { plan, occasion } = args.input.run(&project)?;
    let of_unit = |mut inputs| {
        trace_objects(&mut inputs, &plan);
        (view(&mut inputs, occasion), inputs)
    };
    let ((mut objects, mut inputs), others) = each_unit(&plan, of_unit)?;
    for (more, other) in others {
        objects.extend(more);
        inputs.join(other);
    }
    terminal.out(documents(&objects).as_bytes())?;
    note_read(&inputs, terminal);
    if objects.is_empty() && inputs.errors.is_empty() {
        terminal.note(
            "error: nothing that policies judge was found: no memory resource, nothing that refers to one, and no agent",
        );
    }
    Ok(ExitStatus::of(!inputs.errors.is_empty(), false, objects.is_empty()))
}
