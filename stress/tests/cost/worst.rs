//! Inputs that are known by their names, to be tried first and always.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The names of inputs that once cost too much, one in a line.
const KNOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cost/worst.txt");

/// Those of worst.txt.
pub(crate) fn known() -> Result<Vec<String>> {
    let text = fs::read_to_string(KNOWN).with_context(|| format!("failed to read {KNOWN}"))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// The bases that inputs of these names are made of.
pub(crate) fn bases(names: &[String]) -> BTreeSet<String> {
    names.iter().filter_map(|name| Some(name.rsplit_once(" of ")?.1.to_owned())).collect()
}

/// Those that took the most memory, by the CSV that a search has written.
pub(crate) fn of_search(file: &Path, count: usize) -> Result<Vec<String>> {
    let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let mut peaks: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let mut fields = line.splitn(11, ',').skip(9);
        let (Some(peak), Some(name)) = (fields.next(), fields.next()) else { continue };
        let name = name.trim_matches('"').replace("\"\"", "\"");
        let peak: u64 = peak.parse().with_context(|| format!("{line} is not a row of a search"))?;
        let known = peaks.entry(name).or_default();
        *known = peak.max(*known);
    }
    let mut names: Vec<_> = peaks.into_iter().collect();
    names.sort_by_key(|(_, peak)| std::cmp::Reverse(*peak));
    Ok(names.into_iter().take(count).map(|(name, _)| name).collect())
}
