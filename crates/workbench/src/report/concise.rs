//! One line a finding, `file:line:column: severity [code] message`, as editors and `grep` like it.
//!
//! Errors of inputs come first, as `error` with the code `syntax` or `unreadable`; one without a place has `1:1`. Then
//! come denials, warnings and notes.

use std::io::{self, Write};

use crate::report::{Report, at_line_start, plain};

/// Writes errors and findings, one a line.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    for error in &report.errors {
        let (file, (line, column)) = (error.file.unwrap_or("memgate"), error.position.unwrap_or((1, 1)));
        let (file, code, advice) = (at_line_start(file), error.code(), error.advice());
        writeln!(out, "{file}:{line}:{column}: error [{code}] {}", plain(&advice))?;
    }
    for located in report.denials_first() {
        let (place, finding) = (located.location.place(), located.finding);
        let (severity, code, message) = (finding.severity.name(), finding.code_name(), located.told());
        writeln!(out, "{}: {severity} [{code}] {}", at_line_start(&place), plain(&message))?;
    }
    Ok(())
}
