//! Tables in Markdown, and their place in a document.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::goals::Goal;
use super::measure::{sizes, thousands};
use super::results::{Figure, Results, Row, Spread, Table};

/// The lines of a document between which the tables stand.
const BEGIN: &str = "<!-- what follows is written by tools/bench.sh -->\n";
const END: &str = "<!-- end of what tools/bench.sh writes -->\n";

/// Where every round of every figure is.
const RAW: &str =
    "Every round of each figure is in [benches/results/wire.json](../benches/results/wire.json).";

/// What the tables look like.
const PICTURES: [(&str, &str); 4] = [
    ("Requests a second", "throughput.svg"),
    ("Latency", "latency.svg"),
    ("CPU by objects in the state", "growth-cpu.svg"),
    ("Memory by objects in the state", "growth-memory.svg"),
];

/// Puts the tables where the document has those of an earlier run.
pub(crate) fn replace(document: &Path, tables: &str) -> Result<()> {
    let text = fs::read_to_string(document)?;
    let (before, rest) = text.split_once(BEGIN).context("the document has no place for tables")?;
    let (_, after) = rest.split_once(END).context("the place for tables has no end")?;
    let pictures = PICTURES.map(|(title, file)| format!("![{title}](pictures/{file})")).join("\n");
    Ok(fs::write(
        document,
        format!("{before}{BEGIN}\n{}\n\n{RAW}\n\n{pictures}\n\n{END}{after}", tables.trim()),
    )?)
}

/// All tables, after the goals that were measured.
pub(crate) fn page(results: &Results, goals: &[Goal]) -> Result<String> {
    let mut text = format!("Commit {}, {}, {}.\n", results.commit, results.date, results.machine);
    let sizes = sizes().map(|(name, bytes)| format!("{name}: {} bytes", thousands(bytes)));
    writeln!(
        text,
        "Each cell is the median of its rounds, and the least and the most. Reviews: {}.",
        sizes.join("; ")
    )?;
    if !goals.is_empty() {
        writeln!(text, "\n### Goals\n\n| what | goal | measured | |\n|---|--:|--:|---|")?;
    }
    for goal in goals {
        let met = if goal.is_met() { "met" } else { "**missed**" };
        writeln!(text, "| {} | {} | {} | {met} |", goal.what, goal.bound(), number(goal.measured()))?;
    }
    for table in &results.tables {
        writeln!(text, "\n### {}\n", table.name)?;
        write_table(&mut text, table)?;
    }
    Ok(text)
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
        1_000.0.. => thousands(value.round().max(0.0) as usize),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
