//! Tables in Markdown.

use std::fmt::Write as _;

use anyhow::Result;

use super::results::{Figure, Row, Spread, Table};

/// Each table below its name.
pub(crate) fn write_tables(text: &mut String, tables: &[Table]) -> Result<()> {
    for table in tables {
        writeln!(text, "\n### {}\n", table.name)?;
        write_table(text, table)?;
    }
    Ok(())
}

fn write_table(text: &mut String, table: &Table) -> Result<()> {
    let Some(first) = table.rows.first() else { return Ok(()) };
    // Nothing is ever refused on a machine that has nothing else to do.
    let shown = |figure: &&Figure| {
        let of = |row: &Row| {
            row.figures.iter().any(|found| found.name == figure.name && found.spread().most > 0.0)
        };
        table.rows.iter().any(of)
    };
    let names: Vec<_> = first.figures.iter().filter(shown).map(|figure| figure.name.as_ref()).collect();
    writeln!(
        text,
        "| {} | server | {} |\n|---|---|{}",
        table.by,
        names.join(" | "),
        "--:|".repeat(names.len())
    )?;
    for row in &table.rows {
        let find = |name: &&str| row.figures.iter().find(|figure| figure.name == *name);
        let cells: Vec<_> = names
            .iter()
            .map(|name| find(name).map_or_else(String::new, |figure| cell(figure.spread())))
            .collect();
        writeln!(text, "| {} | {} | {} |", row.case, row.server, cells.join(" | "))?;
    }
    Ok(())
}

fn cell(Spread { least, median, most }: Spread) -> String {
    let [least, median, most] = [least, median, most].map(number);
    if least == most { median } else { format!("{median} ({least} – {most})") }
}

/// With about three digits.
pub(crate) fn number(value: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate that people read")]
    match value.abs() {
        1_000.0.. => {
            format!("{}{}", if value < 0.0 { "-" } else { "" }, thousands(value.abs().round() as usize))
        }
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A number as people read it: 100,000.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}
