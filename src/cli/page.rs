//! The data of the page of `-o html`: what was judged and when, and the notes of the run.

use crate::cli::output::OutputArg;
use memgate_model::request::Occasion;
use memgate_workbench::load::InputPlan;
use memgate_workbench::page::PageInputs;
use memgate_workbench::report::ReportFormat;
use memgate_workbench::report::html_data::Page;

/// Whether one of the outputs is a page.
pub fn is_wanted(outputs: &[OutputArg]) -> bool {
    outputs.iter().any(|output| output.format == ReportFormat::Html)
}

/// The page of a command, if the inputs were read for one. `notes` are those that the command writes to standard error.
pub fn page<'r>(
    command: &'static str,
    plan: &InputPlan,
    inputs: Option<&PageInputs>,
    occasion: Occasion<'static>,
    notes: impl FnOnce() -> Vec<String>,
) -> Option<Page<'r>> {
    let PageInputs { map, exemptions } = inputs?;
    Some(Page {
        command,
        judged: judged(plan),
        point: occasion.point.name(),
        time: occasion.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        table: None,
        map: map.clone(),
        exemptions: exemptions.clone(),
        assumed: notes(),
    })
}

/// What was judged, in the words of the command line.
fn judged(plan: &InputPlan) -> Vec<String> {
    let snapshot = plan.snapshot.iter().map(|path| path.display().to_string());
    let with_snapshot = snapshot.filter(|_| plan.checks_snapshot);
    with_snapshot.chain(plan.checked.iter().cloned()).collect()
}
