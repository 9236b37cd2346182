//! The results as a document has them: goals, tables and pictures, and their place.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::goals::Goal;
use super::measure::sizes;
use super::results::Results;
use super::tables::{number, thousands, write_tables};

/// The lines of a document between which the tables stand.
const BEGIN: &str = "<!-- what follows is written by tools/bench.sh -->\n";
const END: &str = "<!-- end of what tools/bench.sh writes -->\n";

/// Where every round of every figure is.
const RAW: &str = "Every round of each figure is in [benches/results](benches/results).";

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
        writeln!(text, "\n### Goals\n\n| what | goal | measured |\n|---|--:|--:|")?;
    }
    for goal in goals {
        writeln!(text, "| {} | {} | {} |", goal.what, goal.bound(), number(goal.measured()))?;
    }
    write_tables(&mut text, &results.tables)?;
    Ok(text)
}
