//! One line a finding, `file:line:column: severity [code] message`, as editors and `grep` like it.

use std::io::{self, Write};

use crate::report::{Report, plain};

/// Writes the findings, one a line.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    for located in &report.findings {
        let (location, finding) = (&located.location, located.finding);
        writeln!(
            out,
            "{}:{}:{}: {} [{}] {}",
            plain(location.file),
            location.line,
            location.column,
            finding.severity.name(),
            finding.code.name,
            plain(&finding.message),
        )?;
    }
    Ok(())
}
