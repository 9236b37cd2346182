//! The page of `check -o html` about a folder, with the texts of the editor. The map of its memory is on it.

use memgate_workbench::outcome::{FailOn, with_page};
use memgate_workbench::place::report;
use memgate_workbench::report::{DEFAULT_WIDTH, ReportFormat, in_format_without_commands, write};
use memgate_workbench::run::{Run, judged_without_ignored};

/// The command with which an editor asks for it; its argument is the address of the folder.
pub(crate) const COMMAND: &str = "memgate.page";

/// The page.
///
/// # Errors
/// In words, when the files cannot be loaded, or this build writes no page.
pub(crate) fn page(mut run: Run) -> Result<String, String> {
    run.plan.checks_only_open = false;
    run.plan.wants_page = true;
    let checked = judged_without_ignored(&run).map_err(|why| why.to_string())?;
    let fail_on = FailOn { warnings: false, strict: false, allows_empty: false };
    let report = with_page(report(&checked), "check", &checked, &run, fail_on);
    let mut bytes = Vec::new();
    write(&report, ReportFormat::Html, DEFAULT_WIDTH, false, &mut bytes).map_err(|why| why.to_string())?;
    let bytes = in_format_without_commands(bytes, ReportFormat::Html);
    String::from_utf8(bytes).map_err(|why| why.to_string())
}
