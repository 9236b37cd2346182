//! Gives the objects of a map of memory the verdicts of a run.

use std::collections::BTreeMap;

use crate::build::plan::Plan;
use crate::files::inputs::Inputs;
use crate::files::judge::Checked;
use crate::files::load::Error;
use crate::files::map::mapped;
use crate::files::run::{Run, judged_without_ignored};
use crate::files::view::shown_text;
use crate::report::map::{MapVerdict, MappedMemory, MappedObject, MemoryMap, UnitMap};
use memgate_model::finding::{Finding, Relation, Severity};

/// Judges the files of a run, and makes the map of each unit with the verdicts.
///
/// # Errors
/// Those of [`judged_without_ignored`].
pub fn judged_map(Run { plan, occasion }: &Run) -> Result<(MemoryMap, Inputs), Error> {
    let plan = Plan { wants_map: true, ..plan.clone() };
    let mut checked = judged_without_ignored(&Run { plan, occasion: *occasion })?;
    let mut map = checked.map.take().unwrap_or_default();
    judge(&mut map, &checked);
    Ok((map, checked.inputs))
}

/// Gives the objects of a map their verdicts.
pub(crate) fn judge(map: &mut MemoryMap, checked: &Checked) {
    let mut units: BTreeMap<&str, &mut BTreeMap<MappedObject, MapVerdict>> = BTreeMap::new();
    for UnitMap { unit, judged, .. } in &mut map.units {
        units.insert(unit, judged);
    }
    let of_objects = checked.decided.iter().map(|decided| {
        let warnings = decided.decision.not_shown.warnings > 0;
        // As in a report: the cause has what only follows from it.
        let is_warning = |it: &Finding| it.severity == Severity::Warn && it.relation != Relation::Follows;
        let has_warnings = warnings || decided.findings().any(is_warning);
        (&decided.object.object_ref, !decided.allowed(), has_warnings)
    });
    let of_files = checked.inputs.notices.iter().map(|notice| {
        let finding = &notice.finding;
        (&notice.object_ref, finding.is_denial(), finding.severity == Severity::Warn)
    });
    for (object_ref, is_denied, has_warnings) in of_objects.chain(of_files) {
        let verdict = match (is_denied, has_warnings) {
            (true, _) => MapVerdict::Denied,
            (_, true) => MapVerdict::Warned,
            _ => continue,
        };
        if let Some(judged) = units.get_mut(&*shown_text(&object_ref.unit)) {
            let known = judged.entry(mapped(object_ref)).or_default();
            *known = verdict.max(*known);
        }
    }
    map.units.iter_mut().for_each(mark_users_of_denied);
}

/// Gives those that use denied memory the verdict that they would run without it.
fn mark_users_of_denied(unit: &mut UnitMap) {
    let is_denied = |it: &&MappedMemory| unit.verdict_of(it) == MapVerdict::Denied;
    let lines = unit.memories.iter().filter(is_denied).flat_map(|memory| &memory.users);
    let users: Vec<MappedObject> = lines.map(|line| line.user.clone()).collect();
    for user in users {
        let known = unit.judged.entry(user).or_default();
        *known = MapVerdict::Memoryless.max(*known);
    }
}
