//! The numbers of findings by policy and namespace: a table for people, rows for programs.

use std::io::{self, Write};

use anstyle::Style;
use serde::{Serialize, Serializer};

use crate::report::plain;
use memgate_primitives::plain_text::shown_name;

const HEADER: Style = Style::new().bold();

/// Stands for what has no name: rules of no policy, and objects without a namespace.
const NONE: &str = "-";

/// The columns.
const COLUMNS: [&str; 7] = ["policy", "namespace", "objects", "denials", "warnings", "exempted", "total"];

/// How many columns are names.
const NAMES: usize = 2;

/// The numbers of each policy in each namespace.
#[derive(Debug, Default)]
pub struct Table<'a> {
    /// By policy, then by namespace. Only those with findings.
    pub rows: Vec<Row<'a>>,
    /// The sums; each object counts once.
    pub total: Numbers,
}

/// The numbers of one policy in one namespace.
#[derive(Debug, Serialize)]
pub struct Row<'a> {
    /// The policy; absent for the rules of the platforms themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<&'a str>,
    /// The namespace; empty for objects without one.
    #[serde(serialize_with = "as_shown")]
    pub namespace: &'a str,
    /// The numbers.
    #[serde(flatten)]
    pub numbers: Numbers,
}

fn as_shown<S: Serializer>(name: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shown_name(name))
}

/// Numbers of objects and findings. In an audit, denials and warnings are those of admission today.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Numbers {
    /// The objects that were judged.
    pub objects: usize,
    /// The findings that refuse an object.
    pub denials: usize,
    /// The findings that warn.
    pub warnings: usize,
    /// The findings that an exemption covers.
    pub exempted: usize,
    /// All findings, with those that are only reported.
    #[serde(rename = "findings")]
    pub all: usize,
}

impl Numbers {
    /// Adds other numbers.
    pub fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.denials += other.denials;
        self.warnings += other.warnings;
        self.exempted += other.exempted;
        self.all += other.all;
    }

    pub(super) fn cells(self) -> [String; 5] {
        [self.objects, self.denials, self.warnings, self.exempted, self.all].map(|count| count.to_string())
    }
}

/// Writes the table with its total as the last line.
///
/// # Errors
/// Those of the writer.
pub fn write(table: &Table<'_>, out: &mut impl Write) -> io::Result<()> {
    let name =
        |name: &str| if name.is_empty() { NONE.to_owned() } else { plain(&shown_name(name)).into_owned() };
    let line = |policy: &str, namespace: &str, numbers: Numbers| {
        let [objects, denials, warnings, exempted, all] = numbers.cells();
        [name(policy), name(namespace), objects, denials, warnings, exempted, all]
    };
    let rows = table.rows.iter().map(|it| line(it.policy.unwrap_or_default(), it.namespace, it.numbers));
    let mut lines: Vec<[String; 7]> = std::iter::once(COLUMNS.map(str::to_owned)).chain(rows).collect();
    lines.push(line("total", "", table.total));
    let mut widths = [0; 7];
    for cells in &lines {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for (cells, number) in lines.iter().zip(0_usize..) {
        // Names begin at the left, numbers end at the right.
        let aligned = |(column, (cell, width)): (usize, (&String, usize))| {
            if column < NAMES { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        };
        let text = cells.iter().zip(widths).enumerate().map(aligned).collect::<Vec<_>>().join("  ");
        let style = if number == 0 { HEADER } else { Style::new() };
        writeln!(out, "{style}{}{style:#}", text.trim_end())?;
    }
    Ok(())
}
