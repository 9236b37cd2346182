//! The table of docs/operate.md about the time while memgate is away.

#![allow(clippy::expect_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A platform and a resource, such as `arkmemories`.
pub(crate) type Resource = (String, String);
/// What becomes of a write: in a normal namespace, and in one that `policy-strict` knows.
pub(crate) type Outcomes = [String; 2];

/// A kind as rules name it.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') && !kind.ends_with("settings") => format!("{kind}es"),
        None if kind.ends_with("settings") => kind,
        None => format!("{kind}s"),
    }
}

/// The rows of the table that begin with the name of a platform.
pub(crate) fn documented() -> BTreeMap<Resource, Outcomes> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operate.md");
    let page = fs::read_to_string(page).expect("the page");
    let names: BTreeSet<&str> = memgate_platforms::ALL.iter().map(|family| family.name).collect();
    let mut all = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some((name, kinds)) = cells[0].split_once(": ").filter(|(name, _)| names.contains(name)) else {
            continue;
        };
        let outcomes = [1, 2].map(|at| (*cells.get(at).expect("three cells")).to_owned());
        for kind in kinds.split(", ") {
            let known = all.insert((name.to_owned(), plural(kind)), outcomes.clone());
            assert_eq!(known, None, "{name}: {kind} is in two rows");
        }
    }
    all
}
