//! That `memgate check` judges an object as an apiserver with the CRDs and memgate's webhook does.
//!
//! ```text
//! definitions ──maximal──▶ one object of each kind with every field ─┐
//! examples/ ─────────────────────────────────────────────────────────┴─seeds──▶ valid objects
//! seeds ──mutation, metadata──▶ objects with one or two faults, the same ones in each run
//! seeds, stored ──mutation──▶ updates with one or two faults
//! each object ──verdict──▶ what `memgate check` says, what the apiserver answers to a dry run
//! two verdicts ──by_design──▶ equal, different on purpose, or a fault of memgate's
//! pods and workloads ──forms──▶ what a check refuses for its form, the apiserver refuses
//! ```
//!
//! `MEMGATE_PARITY=SEED,COUNT` asks for other objects, or for more of them: `.ci/night` has 10,000.

mod by_design;
pub(crate) mod definitions;
mod forms;
pub(crate) mod maximal;
mod metadata;
mod mutation;
mod random;
mod seeds;
mod verdict;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    thread,
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use crate::fixture::{Fixture, Trial};

use self::{by_design::Designs, mutation::Mutant, verdict::Verdicts};

/// How many objects are tried.
const OBJECTS: usize = 500;

/// Which ones.
const SEED: u64 = 10;

/// How many differences are shown in full.
const SHOWN: usize = 20;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("schema_parity::valid_objects_are_valid_to_both", valid_objects),
        Trial::new("schema_parity::check_judges_as_the_apiserver_does", mutated_objects),
        Trial::new("schema_parity::what_the_apiserver_refuses_is_denied", refused_objects),
        Trial::new("schema_parity::updates_are_judged_as_the_apiserver_does", updated_objects),
        Trial::new("schema_parity::pods_are_refused_for_their_form_by_both", forms::listed),
        Trial::new("schema_parity::what_a_check_refuses_for_its_form_never_works", forms::mutated),
    ]
}

/// What the mutated ones come from: were one of them refused, all that come from it would be.
fn valid_objects(fixture: &Fixture) -> Result<()> {
    let seeds = seeds::all()?;
    let objects = seeds.iter().map(Mutant::unchanged).collect();
    let verdicts = verdict::of_all(fixture, objects)?;
    let refused = verdicts.iter().filter(|verdicts| !verdicts.apiserver.allowed || !verdicts.check.allowed);
    let refused: Vec<String> = refused.map(Verdicts::in_words).collect();
    ensure!(refused.is_empty(), "{} seeds are refused\n{}", refused.len(), refused.join("\n"));
    Ok(())
}

fn mutated_objects(fixture: &Fixture) -> Result<()> {
    let (seed, count) = plan()?;
    let objects = mutation::mutants(&seeds::all()?, seed, count);
    ensure!(objects.len() == count, "there are {} objects, not {count}", objects.len());
    let begin = Instant::now();
    let verdicts = verdict::of_all(fixture, objects)?;
    let designs = Designs::new()?;
    println!("{count} objects in {:.0?}; {}", begin.elapsed(), shares(&verdicts, &designs));
    let different: Vec<&Verdicts> = verdicts.iter().filter(|verdicts| designs.differ(verdicts)).collect();
    ensure!(different.is_empty(), "{}", tell(&different, seed));
    Ok(())
}

/// The same with an old object, which rules in CEL compare.
fn updated_objects(fixture: &Fixture) -> Result<()> {
    const OBJECTS: usize = 4_000;
    let stored = seeds::stored(fixture)?;
    let kinds: BTreeSet<String> = stored.iter().map(|seed| seed.object["kind"].to_string()).collect();
    let verdicts = verdict::of_all(fixture, mutation::mutants(&stored, SEED, OBJECTS))?;
    let designs = Designs::new()?;
    println!("{} updates of {} kinds; {}", verdicts.len(), kinds.len(), shares(&verdicts, &designs));
    let different: Vec<&Verdicts> = verdicts.iter().filter(|verdicts| designs.differ(verdicts)).collect();
    ensure!(different.is_empty(), "{}", tell(&different, SEED));
    Ok(())
}

/// At least 300 objects that the apiserver refuses, of every kind: a check denies each of them.
fn refused_objects(fixture: &Fixture) -> Result<()> {
    const AT_LEAST: usize = 300;
    const TRIED: usize = 1_500;
    const OTHER_SEED: u64 = 31;
    let seeds = seeds::all()?;
    let verdicts = verdict::of_all(fixture, mutation::mutants(&seeds, OTHER_SEED, TRIED))?;
    let designs = Designs::new()?;
    let refused = verdicts.iter().filter(|it| !it.apiserver.allowed && designs.reason(it).is_none());
    let refused: Vec<&Verdicts> = refused.collect();
    let kinds: BTreeSet<&str> = refused.iter().map(|it| it.mutant.kind.as_str()).collect();
    let all: BTreeSet<&str> = seeds.iter().filter_map(|seed| seed.object["kind"].as_str()).collect();
    ensure!(refused.len() >= AT_LEAST, "{} objects are refused", refused.len());
    ensure!(kinds == all, "of {:?} none is refused", all.difference(&kinds));
    let missed: Vec<&Verdicts> = refused.into_iter().filter(|it| it.check.allowed).collect();
    ensure!(missed.is_empty(), "{}", tell(&missed, OTHER_SEED));
    Ok(())
}

/// The objects that are asked for: those of each run, or others.
fn plan() -> Result<(u64, usize)> {
    let Ok(asked) = env::var("MEMGATE_PARITY") else { return Ok((SEED, OBJECTS)) };
    let (seed, count) = asked.split_once(',').context("MEMGATE_PARITY is SEED,COUNT")?;
    Ok((seed.parse()?, count.parse()?))
}

/// How many are refused, and how many differ by design: were most of them refused, or none, little
/// would be shown.
fn shares(verdicts: &[Verdicts], designs: &Designs) -> String {
    let refused = verdicts.iter().filter(|verdicts| !verdicts.apiserver.allowed).count();
    let mut by_reason = BTreeMap::<_, usize>::new();
    for reason in verdicts.iter().filter_map(|verdicts| designs.reason(verdicts)) {
        *by_reason.entry(reason).or_default() += 1;
    }
    let mut text = format!("{refused} are refused");
    for (reason, count) in by_reason {
        let _ = write!(text, "\n  {count} differ by design: {reason}");
    }
    text
}

/// The differences in words: of those that are refused for the same reason the shortest object; what works in
/// a cluster and is refused by a check first, then the most frequent.
fn tell(different: &[&Verdicts], seed: u64) -> String {
    let mut groups = BTreeMap::<_, Vec<&Verdicts>>::new();
    for verdicts in different {
        groups.entry((verdicts.check.allowed, verdicts.refused_for())).or_default().push(verdicts);
    }
    let too_strict = different.iter().filter(|verdicts| !verdicts.check.allowed).count();
    let mut text = format!("{} objects are judged differently (seed {seed})", different.len());
    let _ = write!(text, ", {too_strict} of them refused by the check alone; of {} reasons:", groups.len());
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|((allowed, _), group)| (*allowed, Reverse(group.len())));
    for (_, group) in groups.iter().take(SHOWN) {
        let shortest = group.iter().min_by_key(|verdicts| verdicts.mutant.json.len());
        let _ =
            write!(text, "\n\n{} × {}", group.len(), shortest.map_or_else(String::new, |it| it.in_words()));
    }
    text
}

/// As many threads as there are processors: what is done here needs them, and waits for nothing.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
