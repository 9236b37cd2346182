//! All inputs: each base with each of its places filled in each way.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::fill::{Fill, Frame, fills, pairs};
use crate::input::{Call, Change, Input, Spread};
use crate::scene::{REVIEW, Scene};
use crate::shape::{Place, Sort, Step, places};

/// Places below these are like others of their sort, and have no rules that compare them with others.
const ALONE: [&str; 4] = ["volumes", "status", "managedFields", "ephemeralContainers"];

/// Which of them are meant.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// One in so many places, or pairs of places, is tried.
    pub(crate) one_in: u64,
    /// How many ways to fill each place of each kind.
    pub(crate) per_place: usize,
    /// Whether each way is tried with every change and call, or with one of them.
    pub(crate) every_change: bool,
    /// Another seed, other ways.
    pub(crate) seed: u64,
    /// Parts that the name of an input has to have.
    pub(crate) parts: Vec<String>,
}

/// The inputs of a scene that are meant. They are chosen by their names, so that an input more or less does
/// not change which others are.
pub(crate) fn inputs<'s>(scene: &'s Scene, choice: &Choice) -> Vec<Input<'s>> {
    let mut groups: BTreeMap<_, Vec<(u64, Input<'s>)>> = BTreeMap::new();
    for_each(scene, &mut |input| {
        if !choice.parts.iter().all(|part| may_have(&input, part)) {
            return;
        }
        let name = input.group();
        if !hash(&(name.0.clone() + &name.1), choice.seed).is_multiple_of(choice.one_in) {
            return;
        }
        let group = groups.entry(name).or_default();
        group.push((hash(&input.to_string(), choice.seed), input));
        if group.len() > 2 * choice.per_place {
            keep(group, choice.per_place);
        }
    });
    let mut all = Vec::new();
    for (_, mut group) in groups {
        keep(&mut group, choice.per_place);
        for (hash, input) in group {
            let mut variants = variants(&input);
            variants.retain(|input| {
                let name = input.to_string();
                choice.parts.iter().all(|part| name.contains(part))
            });
            if !choice.every_change && !variants.is_empty() {
                let one = usize::try_from(hash % 1009).unwrap_or_default() % variants.len();
                variants = vec![variants.swap_remove(one)];
            }
            all.extend(variants);
        }
    }
    all
}

/// The inputs with these names, in this order.
///
/// # Errors
/// When there is none of such a name: one that was renamed would be passed over in silence.
pub(crate) fn named<'s>(scene: &'s Scene, names: &[String]) -> Result<Vec<Input<'s>>> {
    let mut found: BTreeMap<String, Input<'s>> = BTreeMap::new();
    for_each(scene, &mut |input| {
        let (start, end) = (input.stem(), format!(" of {}", input.base.name));
        if names.iter().any(|name| name.starts_with(&start) && name.ends_with(&end)) {
            found.extend(variants(&input).into_iter().map(|input| (input.to_string(), input)));
        }
    });
    let missing: Vec<_> = names.iter().filter(|name| !found.contains_key(*name)).collect();
    ensure!(missing.is_empty(), "there are no such inputs: {missing:#?}");
    Ok(names.iter().filter_map(|name| found.get(name).cloned()).collect())
}

fn keep(group: &mut Vec<(u64, Input<'_>)>, count: usize) {
    group.sort_by_key(|(hash, _)| *hash);
    group.truncate(count);
}

/// Whether one of the variants has this part in its name.
fn may_have(input: &Input<'_>, part: &str) -> bool {
    input.to_string().contains(part) || variants(input).iter().any(|input| input.to_string().contains(part))
}

fn for_each<'s>(scene: &'s Scene, take: &mut impl FnMut(Input<'s>)) {
    for base in &scene.bases {
        let places: Vec<_> = places(&base.schema).into_iter().map(Arc::new).collect();
        let plain = |place: &Arc<Place>, fill, spread, also| {
            let (place, change, call) = (Arc::clone(place), Change::Create, Call::Mutate);
            Input { base, place, fill, spread, also, change, call, required: false }
        };
        for place in &places {
            let has_element = has_element(&base.object, &place.steps);
            let fills = fills(place.sort, &place.schema);
            for fill in fills.into_iter().filter(|fill| has_element || !matches!(fill, Fill::Template(_))) {
                for spread in spreads(place, &fill) {
                    take(plain(place, fill.clone(), spread, None));
                }
            }
        }
        for (first, second) in pairs_of(&places) {
            for (fill, other) in pairs(first.sort).into_iter().zip(pairs(second.sort)) {
                take(plain(first, fill, Spread::One, Some((Arc::clone(second), other))));
            }
        }
    }
}

/// Whether a base has an element at the place, to be repeated with other words.
fn has_element(object: &Value, steps: &[Step]) -> bool {
    let found = steps.iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Item => value.get(0),
        Step::Entry => value.as_object().and_then(|fields| fields.values().next()),
    });
    found.and_then(Value::as_array).is_some_and(|items| !items.is_empty())
}

/// FNV-1a, with its bits mixed once more.
fn hash(text: &str, seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn spreads(place: &Place, fill: &Fill) -> Vec<Spread> {
    let holds = matches!(place.sort, Sort::List | Sort::Map | Sort::Object);
    match (place.steps.contains(&Step::Item), fill.frame()) {
        (true, Frame::Element | Frame::Member) if holds => {
            vec![Spread::One, Spread::Many(1), Spread::Many(30)]
        }
        (true, Frame::Whole) => vec![Spread::One, Spread::Many(4)],
        _ => vec![Spread::One],
    }
}

/// Lists and maps that a rule may compare with each other.
fn pairs_of(places: &[Arc<Place>]) -> Vec<(&Arc<Place>, &Arc<Place>)> {
    let alone = |step: &Step| matches!(step, Step::Field(name) if ALONE.contains(&name.as_str()));
    let is_one = |place: &&Arc<Place>| {
        let deep = place.steps.iter().filter(|step| **step == Step::Item).count();
        let inside = place.steps.split_last().map_or(&[][..], |(_, above)| above);
        matches!(place.sort, Sort::List | Sort::Map) && deep < 2 && !inside.iter().any(alone)
    };
    let lists: Vec<_> = places.iter().filter(is_one).collect();
    let mut pairs = Vec::new();
    for (index, first) in lists.iter().enumerate() {
        pairs.extend(lists.iter().skip(index + 1).map(|second| (*first, *second)));
    }
    pairs
}

/// Every call, and every change, that an apiserver would make of the object.
fn variants<'s>(input: &Input<'s>) -> Vec<Input<'s>> {
    let with = |change, call, required| Input { change, call, required, ..input.clone() };
    let created = |call, required| with(Change::Create, call, required);
    if let Some(referrer) = &input.base.referrer {
        let call = if referrer.kind == "Pod" { Call::Mutate } else { Call::Validate };
        return vec![created(call, false)];
    }
    if input.base.kind == "Pod" {
        return vec![created(Call::Mutate, false), created(Call::Mutate, true)];
    }
    if input.base.kind == REVIEW {
        return vec![created(Call::Mutate, false), created(Call::Validate, false)];
    }
    let mutated = Change::ALL.into_iter().filter(|change| *change != Change::Delete);
    let mutated = mutated.map(|change| with(change, Call::Mutate, false));
    mutated.chain(Change::ALL.map(|change| with(change, Call::Validate, false))).collect()
}
