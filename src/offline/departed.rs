//! Notes about kinds that the next line of a platform does not have: one for each kind, with what becomes of it.

use std::collections::BTreeMap;

use crate::report::{ObjectRef, Report, plain};
use memgate_core::family;
use memgate_model::family::Family;

/// The notes, in the order of the platforms' rows.
pub fn notes(report: &Report<'_>, families: &[&'static Family]) -> Vec<String> {
    let judged = report.objects.iter().map(|object| (object.object_ref, object.file, object.line));
    let others = report.passed_over.iter().filter_map(|it| Some((it.object_ref?, it.file, it.line)));
    let mut places: BTreeMap<(usize, usize), (usize, &str, usize)> = BTreeMap::new();
    for (object, file, line) in judged.chain(others) {
        if let Some(row) = row(object, families) {
            places.entry(row).or_insert((0, file, line)).0 += 1;
        }
    }
    let note = |((family, row), (count, file, line)): (&(usize, usize), &(usize, &str, usize))| {
        let (group, kind, becomes) = families.get(*family)?.definitions.departed.get(*row)?;
        Some(format!("{}:{line}: {kind} of {group} ({count}): {becomes}", plain(file)))
    };
    places.iter().filter_map(note).collect()
}

/// The place of an object's kind in the rows. A version that moved to another group is not of the line that ends.
fn row(object: &ObjectRef, families: &[&'static Family]) -> Option<(usize, usize)> {
    let (group, version) = object.api_version.split_once('/')?;
    let is_it = |(known, kind, _): &(&str, &str, &str)| *known == group && **kind == *object.kind;
    let find = |(index, family): (usize, &&'static Family)| {
        Some((index, family.definitions.departed.iter().position(is_it)?))
    };
    let is_moved = family::validated(families, group, &object.kind)
        .is_some_and(|(family, kind)| (family.definitions.stand_in.moved)(kind, version).is_some());
    families.iter().enumerate().find_map(find).filter(|_| !is_moved)
}
