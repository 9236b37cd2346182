//! The search for inputs that cost too much: many small ones, and the worst of them larger and larger.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::door::Door;
use crate::input::Input;
use crate::measure::{Bound, Measured, measure};
use crate::table;

/// How a search goes.
pub(crate) struct Search {
    /// The first is for all inputs, the others for the worst. After one comes its double.
    pub(crate) sizes: Vec<usize>,
    /// How many inputs of each place are tried in the further sizes.
    pub(crate) keep: usize,
    /// How long each further size may take.
    pub(crate) time: Duration,
    /// Inputs above this share of their bound are not tried in further sizes; they are known to be bad.
    pub(crate) stop: f64,
    /// The share of its bound above which an input fails the run, on a machine that is as fast as the bounds mean: more than
    /// 1 where it is shared.
    pub(crate) fails_at: f64,
    /// What the input in the middle takes of its CPU time on such a machine, where nothing else runs; `None` where certain
    /// inputs were asked for, which say nothing about the machine.
    pub(crate) middle: Option<f64>,
    pub(crate) directory: PathBuf,
    pub(crate) name: String,
}

/// Measures, writes the tables, and fails when an input is above a bound.
pub(crate) fn run(search: &Search, door: &mut dyn Door, inputs: &[Input<'_>]) -> Result<()> {
    let start = Instant::now();
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    let [first, further @ ..] = search.sizes.as_slice() else { bail!("there is no size") };
    for (number, input) in inputs.iter().enumerate() {
        all.push(measure(door, input, *first)?);
        if number % 5000 == 4999 {
            eprintln!("{} of {} in {:.0?}", number + 1, inputs.len(), start.elapsed());
            table::write(&all, &notes, &search.directory, &search.name)?;
        }
    }
    notes.push(format!("{} inputs of {first} bytes in {:.0?}.", all.len(), start.elapsed()));
    let middle = middle(&all);
    notes.push(format!("The input in the middle takes {middle:.2} of its CPU time."));
    let worst = worst(&all, search);
    let mut half = *first;
    for size in further {
        let note = grow(search, door, &worst, (half, *size), &mut all)?;
        eprintln!("{note}");
        notes.push(note);
        table::write(&all, &notes, &search.directory, &search.name)?;
        half = *size;
    }
    // A machine that is slower than that of the bounds. What makes all inputs dearer does not show here, but in
    // `tools/instructions.sh`.
    let slowness = search.middle.map_or(1.0, |expected| (middle / expected).max(1.0));
    let fails_at = search.fails_at * slowness;
    // A machine that was busy for a moment shows in some inputs: those are measured once more.
    for one in all.iter_mut().filter(|one| one.worst() > fails_at) {
        let later = measure(door, &one.input.clone(), one.size)?;
        if later.share(Bound::Cpu) < one.share(Bound::Cpu) {
            *one = Measured { growth: one.growth, ..later };
        }
    }
    let path = table::write(&all, &notes, &search.directory, &search.name)?;
    eprintln!("{}", path.display());
    let above = all.iter().filter(|one| one.worst() > fails_at).count();
    if above > 0 {
        let of = all.len();
        bail!("{above} of {of} inputs are above {fails_at:.2} times a bound; see {}", path.display());
    }
    Ok(())
}

/// What the input in the middle takes of its CPU time.
fn middle(all: &[Measured<'_>]) -> f64 {
    let mut shares: Vec<f64> = all.iter().map(|one| one.share(Bound::Cpu)).collect();
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() / 2).copied().unwrap_or_default()
}

/// The worst inputs of each place, the worst of all first; each with what it cost.
fn worst<'s>(all: &[Measured<'s>], search: &Search) -> Vec<Measured<'s>> {
    let mut groups: BTreeMap<_, Vec<&Measured<'s>>> = BTreeMap::new();
    for one in all.iter().filter(|one| one.share(Bound::Cpu) < search.stop) {
        groups.entry(one.input.group()).or_default().push(one);
    }
    let by_cost = |a: &&Measured<'_>, b: &&Measured<'_>| b.share(Bound::Cpu).total_cmp(&a.share(Bound::Cpu));
    let mut worst = Vec::new();
    for group in groups.values_mut() {
        group.sort_by(by_cost);
        worst.extend(group.iter().take(search.keep).copied());
    }
    worst.sort_by(by_cost);
    worst.into_iter().cloned().collect()
}

/// Measures inputs in a further size as long as there is time, and says how many there was time for.
fn grow<'s>(
    search: &Search,
    door: &mut dyn Door,
    worst: &[Measured<'s>],
    (half, size): (usize, usize),
    all: &mut Vec<Measured<'s>>,
) -> Result<String> {
    let start = Instant::now();
    let mut tried = 0;
    let halves: BTreeMap<_, _> = all
        .iter()
        .filter(|one| one.size == half && size == 2 * half)
        .map(|one| (one.input.to_string(), one.clone()))
        .collect();
    for known in worst {
        if start.elapsed() > search.time {
            break;
        }
        let mut one = measure(door, &known.input, size)?;
        if let Some(half) = halves.get(&one.input.to_string()) {
            one.compare(half);
            if one.share(Bound::Growth) > 1.0 {
                one = again(door, &one)?;
            }
        }
        all.push(one);
        tried += 1;
    }
    let (of, took) = (worst.len(), start.elapsed());
    Ok(format!("{tried} of {of} worst inputs of {size} bytes in {took:.0?}."))
}

/// Both sizes once more: a machine that was busy for a moment shows as growth.
fn again<'s>(door: &mut dyn Door, one: &Measured<'s>) -> Result<Measured<'s>> {
    let mut best = one.clone();
    for _ in 0..3 {
        let half = measure(door, &one.input, one.size / 2)?;
        let mut next = measure(door, &one.input, one.size)?;
        next.growth = Some(0.0);
        next.compare(&half);
        if next.growth < best.growth {
            best = next;
        }
    }
    Ok(best)
}

/// Where the tables go.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/cost")
}
