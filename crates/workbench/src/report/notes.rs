//! Notes in one line for each rule, so that many of them do not hide what counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::Style;

use crate::report::{LocatedFinding, by_rule, counted, plain};
use memgate_model::finding::Severity;

const CODE: Style = Style::new().bold();

/// Writes a line for each rule: the number of its findings, what admission does about them, what lists them, and the
/// first one, which is the strictest in the order of an overview.
///
/// # Errors
/// Those of the writer.
pub fn write<'f, 'r: 'f>(
    findings: impl Iterator<Item = &'f LocatedFinding<'r>>,
    listed_by: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    for notes in by_rule(findings) {
        let Some(first) = notes.first() else { continue };
        let (severity, code) = (first.finding.severity.name(), first.finding.code_name());
        let (count, object) = (counted(notes.len(), "finding"), first.object_ref.title());
        let place = first.location.place();
        let (lists, which) = if notes.len() > 1 { (listed_by, "; first ") } else { ("", "; ") };
        let rule = first.finding.policy.as_deref().map(|policy| &policy.rule);
        let only_where = rule.and_then(|rule| rule.only_where()).map(|words| format!("; {words}"));
        let line = format!(
            "{count}{}{lists}{which}{place}: {object}: {}{}",
            at_admission(&notes),
            first.finding.message(),
            only_where.unwrap_or_default()
        );
        writeln!(out, "{CODE}{severity}[{}]{CODE:#}: {}", plain(code), plain(&line))?;
    }
    Ok(())
}

/// What admission does about the objects of these notes, with the strictest first.
fn at_admission(notes: &[&LocatedFinding<'_>]) -> String {
    let mut counts: BTreeMap<(Reverse<Severity>, String), usize> = BTreeMap::new();
    for policy in notes.iter().filter_map(|it| it.finding.policy.as_deref()) {
        if let Some(at_admission) = policy.at_admission {
            *counts.entry((Reverse(at_admission.severity()), at_admission.words())).or_default() += 1;
        }
    }
    let words: Vec<String> =
        counts.into_iter().map(|((_, words), count)| format!("{count} {words}")).collect();
    if words.is_empty() { String::new() } else { format!(" (at admission: {})", words.join("; ")) }
}
