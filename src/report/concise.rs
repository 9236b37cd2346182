//! One line a finding, `file:line:column: severity [code] message`, as editors and `grep` like it.

use std::io::{self, Write};

use crate::report::{Report, plain};

/// Writes the findings, one a line.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    for located in &report.findings {
        let (place, finding) = (&located.place, located.finding);
        writeln!(
            out,
            "{}:{}:{}: {} [{}] {}",
            plain(place.file),
            place.line,
            place.column,
            finding.severity.name(),
            finding.code.name,
            plain(&finding.message),
        )?;
    }
    Ok(())
}
