//! Writes the objects whose verdict other policies would change, by namespace and owner.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::report::{LocatedFinding, ObjectRef, Report, at_line_start, counted, plain};

const HEADER: Style = Style::new().bold();

/// The verdict about an object. Later variants are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No policy warns or denies.
    Allowed,
    /// A rule of a policy warns.
    Warned,
    /// It is denied.
    Denied,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Warned => "warned",
            Self::Denied => "denied",
        }
    }

    const fn style(self) -> Style {
        match self {
            Self::Allowed => AnsiColor::Green.on_default().bold(),
            Self::Warned => AnsiColor::Yellow.on_default().bold(),
            Self::Denied => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// An object whose verdict changes.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The object.
    pub object_ref: &'a ObjectRef,
    /// Its owner, as `Kind name`.
    pub owner: Option<&'a str>,
    /// The file.
    pub file: &'a str,
    /// The line at which it starts, from 1.
    pub line: usize,
    /// The current verdict.
    pub from: Verdict,
    /// The verdict under the new policies.
    pub to: Verdict,
}

/// Writes the objects in groups, each with the findings that make the difference.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, changes: &[Change<'_>], out: &mut impl Write) -> io::Result<()> {
    let mut findings: BTreeMap<*const ObjectRef, Vec<&LocatedFinding<'_>>> = BTreeMap::new();
    for located in &report.findings {
        findings.entry(std::ptr::from_ref(located.object_ref)).or_default().push(located);
    }
    let mut sorted: Vec<&Change<'_>> = changes.iter().collect();
    sorted.sort_by_key(|it| {
        (&it.object_ref.namespace, it.owner, &it.object_ref.kind, &it.object_ref.name, it.file, it.line)
    });
    for of_namespace in sorted.chunk_by(|one, two| one.object_ref.namespace == two.object_ref.namespace) {
        let namespace = of_namespace.first().map(|it| it.object_ref.namespace.as_str()).unwrap_or_default();
        let title = if namespace.is_empty() { "without a namespace" } else { namespace };
        writeln!(out, "{HEADER}{}{HEADER:#}", at_line_start(title))?;
        for of_owner in of_namespace.chunk_by(|one, two| one.owner == two.owner) {
            let owner = of_owner.first().and_then(|it| it.owner);
            if let Some(owner) = owner {
                writeln!(out, "  of {}", plain(owner))?;
            }
            let indent = if owner.is_some() { "    " } else { "  " };
            for change in of_owner {
                let found = findings.get(&std::ptr::from_ref(change.object_ref)).map(Vec::as_slice);
                write_change(change, found.unwrap_or_default(), indent, out)?;
            }
        }
    }
    let shown: BTreeSet<_> = sorted.iter().map(|it| std::ptr::from_ref(it.object_ref)).collect();
    // An object whose verdict stays has notes about defaults.
    for located in &report.findings {
        if !shown.contains(&std::ptr::from_ref(located.object_ref)) {
            write_finding(located, &format!("{}: ", plain(&located.object_ref.title())), out)?;
        }
    }
    Ok(())
}

fn write_change(
    change: &Change<'_>,
    findings: &[&LocatedFinding<'_>],
    indent: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let Change { object_ref, from, to, .. } = change;
    let style = to.style();
    let title = format!("{} {}", object_ref.kind, object_ref.name);
    writeln!(out, "{indent}{}: {} → {style}{}{style:#}", plain(&title), from.name(), to.name())?;
    findings.iter().try_for_each(|located| write_finding(located, &format!("{indent}  "), out))
}

fn write_finding(located: &LocatedFinding<'_>, start: &str, out: &mut impl Write) -> io::Result<()> {
    let LocatedFinding { finding, location, .. } = located;
    let place = format!("{}:{}:{}", location.file, location.line, location.column);
    writeln!(out, "{start}{}: {}", at_line_start(&place), plain(&finding.message()))
}

/// The numbers in one line.
#[must_use]
pub fn summary(report: &Report<'_>, changes: &[Change<'_>]) -> String {
    let count = |from: Option<Verdict>, to: Option<Verdict>| {
        let is_it = |change: &&Change<'_>| {
            let stricter = change.to > change.from;
            from.is_none_or(|from| change.from == from && !stricter)
                && to.is_none_or(|to| change.to == to && stricter)
        };
        changes.iter().filter(is_it).count()
    };
    let passed_over = match report.passed_over.len() {
        0 => String::new(),
        count => format!("; {count} passed over"),
    };
    format!(
        "{} judged: {} newly denied, {} newly warned about; {} no longer denied, {} no longer warned about{passed_over}",
        counted(report.objects.len(), "object"),
        count(None, Some(Verdict::Denied)),
        count(None, Some(Verdict::Warned)),
        count(Some(Verdict::Denied), None),
        count(Some(Verdict::Warned), None),
    )
}
