//! What was measured, as a table for people and as one for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::measure::{Bound, Measured, allowed};

/// How many rows of each table are shown.
const ROWS: usize = 400;

/// Writes `NAME.md` and `NAME.csv` to a directory and says where they are.
pub(crate) fn write(all: &[Measured<'_>], notes: &[String], directory: &Path, name: &str) -> Result<PathBuf> {
    fs::create_dir_all(directory).with_context(|| format!("failed to make {}", directory.display()))?;
    let path = directory.join(name).with_extension("md");
    fs::write(&path, markdown(all, notes)?).with_context(|| format!("failed to write {}", path.display()))?;
    fs::write(path.with_extension("csv"), csv(all)?)?;
    Ok(path)
}

fn markdown(all: &[Measured<'_>], notes: &[String]) -> Result<String> {
    let mut text = String::new();
    let above = all.iter().filter(|one| one.worst() > 1.0).count();
    writeln!(text, "{} measured, {above} above a bound.", all.len())?;
    for note in notes {
        writeln!(text, "\n{note}")?;
    }
    for bound in Bound::ALL {
        section(&mut text, all, bound)?;
    }
    Ok(text)
}

fn section(text: &mut String, all: &[Measured<'_>], bound: Bound) -> Result<()> {
    let mut groups: BTreeMap<_, Vec<&Measured<'_>>> = BTreeMap::new();
    for one in all {
        groups.entry(one.input.group()).or_default().push(one);
    }
    let mut rows = Vec::new();
    for group in groups.into_values() {
        let above = group.iter().filter(|one| one.share(bound) > 1.0).count();
        let worst = group.iter().max_by(|a, b| a.share(bound).total_cmp(&b.share(bound)));
        rows.extend(worst.map(|worst| (*worst, above, group.len())));
    }
    rows.sort_by(|a, b| b.0.share(bound).total_cmp(&a.0.share(bound)));
    let above = rows.iter().filter(|(one, ..)| one.share(bound) > 1.0).count();
    let of = rows.len();
    writeln!(
        text,
        "\n## {}\n\n{above} of {of} places are above it; the worst input of each:\n",
        bound.name()
    )?;
    writeln!(
        text,
        "| share | CPU ms | may | growth | body KB | status | answer | patch | peak MiB | above | input |"
    )?;
    writeln!(text, "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")?;
    for (one, above, of) in rows.into_iter().take(above.clamp(15, ROWS)) {
        let (cost, ms) = (one.cost, |time: std::time::Duration| time.as_secs_f64() * 1000.0);
        let growth = one.growth.map_or_else(String::new, |growth| format!("{growth:.2}"));
        writeln!(
            text,
            "| {:.2} | {:.1} | {:.1} | {growth} | {} | {} | {} | {} | {} | {above}/{of} | {} |",
            one.share(bound),
            ms(cost.cpu),
            ms(allowed(cost.body)),
            cost.body >> 10,
            cost.status,
            cost.response,
            cost.patch,
            cost.peak >> 20,
            one.input,
        )?;
    }
    Ok(())
}

fn csv(all: &[Measured<'_>]) -> Result<String> {
    let mut text = "worst,cpu_us,allowed_us,growth,size,body,status,answer,patch,peak,input\n".to_owned();
    let mut rows: Vec<_> = all.iter().collect();
    rows.sort_by(|a, b| b.worst().total_cmp(&a.worst()));
    for one in rows {
        let cost = one.cost;
        writeln!(
            text,
            "{:.3},{},{},{},{},{},{},{},{},{},\"{}\"",
            one.worst(),
            cost.cpu.as_micros(),
            allowed(cost.body).as_micros(),
            one.growth.map_or_else(String::new, |growth| format!("{growth:.2}")),
            one.size,
            cost.body,
            cost.status,
            cost.response,
            cost.patch,
            cost.peak,
            one.input.to_string().replace('"', "\"\""),
        )?;
    }
    Ok(text)
}
