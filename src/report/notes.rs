//! Notes in one line for each rule, so that many of them do not hide what counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::Style;

use crate::report::{LocatedFinding, counted, plain};
use memgate_model::finding::Severity;

const CODE: Style = Style::new().bold();

/// Writes a line for each rule: the number of its notes, what admission does about them, and the first one, which is the
/// strictest in the order of an overview.
///
/// # Errors
/// Those of the writer.
pub fn write(notes: &[&LocatedFinding<'_>], out: &mut impl Write) -> io::Result<()> {
    let mut by_rule: BTreeMap<&str, Vec<&LocatedFinding<'_>>> = BTreeMap::new();
    for located in notes {
        by_rule.entry(located.finding.code_name()).or_default().push(located);
    }
    let mut rules: Vec<_> = by_rule.into_iter().collect();
    rules.sort_by_key(|(_, notes)| Reverse(notes.first().map(|it| it.effect())));
    for (code, notes) in rules {
        let Some(first) = notes.first() else { continue };
        let (count, object) = (counted(notes.len(), "finding"), first.object_ref.title());
        let place = format!("{}:{}:{}", first.location.file, first.location.line, first.location.column);
        let (lists, which) = if notes.len() > 1 { ("; -v lists them", "; first ") } else { ("", "; ") };
        let line = format!(
            "{count}{}{lists}{which}{place}: {object}: {}",
            at_admission(&notes),
            first.finding.message()
        );
        writeln!(out, "{CODE}note[{}]{CODE:#}: {}", plain(code), plain(&line))?;
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
