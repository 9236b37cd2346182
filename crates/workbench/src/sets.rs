//! Checks the sets of a repository apart, each with its own state, and joins what was found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::joined::{deduplicate, join_inputs};
use crate::judge::{Checked, Decided, WITHOUT_EFFECT, check, is_departed_note};
use crate::load::{Error, InputPlan, InputSet, Inputs, Sources, load};
use crate::load_sets::{load_set, outside_of_sets};
use crate::notices::Notice;
use crate::page::PageInputs;
use memgate_manifest::source::Source;
use memgate_model::finding::Finding;
use memgate_model::request::Occasion;

/// Loads and checks the files of a plan, set by set, and applies the rules of the repository.
///
/// # Errors
/// Those of [`load`].
pub fn check_all(plan: &InputPlan, occasion: Occasion<'static>) -> Result<Checked, Error> {
    let mut checked = match plan.sets.as_slice() {
        [] => check_whole(plan, load(plan)?, "", occasion),
        [first, others @ ..] => {
            let mut known = Sources::new();
            let mut all = check_set(plan, first, &mut known, occasion)?;
            let mut without_effect = WithoutEffect::default();
            without_effect.add(&mut all, true);
            for set in others {
                let mut other = check_set(plan, set, &mut known, occasion)?;
                without_effect.add(&mut other, false);
                join(&mut all, other);
            }
            if let Some((plan, alone)) = outside_of_sets(plan, &all.inputs.sources) {
                join(&mut all, check_set(&plan, &alone, &mut known, occasion)?);
            }
            all.inputs.notices.extend(without_effect.notices.into_values());
            deduplicate(&mut all.inputs);
            all
        }
    };
    checked.rules = plan.rules.clone();
    apply_rules(&mut checked);
    Ok(checked)
}

/// Checks what was loaded of a set, and keeps what a page shows of it.
fn check_whole(plan: &InputPlan, inputs: Inputs, set: &str, occasion: Occasion<'static>) -> Checked {
    let page = PageInputs::if_wanted(plan.wants_page, &inputs, set, occasion);
    Checked { page, ..check(inputs, occasion) }
}

fn check_set(
    plan: &InputPlan,
    set: &InputSet,
    known: &mut Sources,
    occasion: Occasion<'static>,
) -> Result<Checked, Error> {
    let inputs = load_set(plan, set, known)?;
    let mut checked = check_whole(plan, inputs, &set.name, occasion);
    let name: Arc<str> = set.name.as_str().into();
    for decided in &mut checked.decided {
        decided.object.object_ref.set = Arc::clone(&name);
    }
    for notice in &mut checked.inputs.notices {
        notice.object_ref.set = Arc::clone(&name);
    }
    for object_ref in checked.inputs.passed_over.iter_mut().filter_map(|it| it.object_ref.as_mut()) {
        object_ref.set = Arc::clone(&name);
    }
    let places = std::mem::take(&mut checked.inputs.places);
    checked.places_of_sets.insert(set.name.clone(), places);
    Ok(checked)
}

/// The findings that something had no effect. They are true if all sets that have the file with it have them.
#[derive(Default)]
struct WithoutEffect {
    /// By code, file, place and message.
    notices: BTreeMap<(&'static str, String, usize, String), Notice>,
    /// The files of the sets so far; other files are read for each set.
    files: BTreeSet<String>,
}

impl WithoutEffect {
    /// Takes those of a set, and drops those that the set contradicts.
    fn add(&mut self, checked: &mut Checked, is_first: bool) {
        let files: BTreeSet<String> = checked.inputs.sources.iter().map(|it| it.name().to_owned()).collect();
        let is_one = |notice: &Notice| WITHOUT_EFFECT.contains(&notice.finding.code);
        let all = std::mem::take(&mut checked.inputs.notices);
        let (taken, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(is_one);
        checked.inputs.notices = kept;
        let key = |it: &Notice| {
            let (file, message) = (it.source.name().to_owned(), it.finding.message().into_owned());
            (it.finding.code.name, file, it.span.start, message)
        };
        let here: BTreeMap<_, _> = taken.into_iter().map(|notice| (key(&notice), notice)).collect();
        let is_elsewhere = |file: &String| self.files.contains(file) && !files.contains(file);
        self.notices.retain(|key, _| here.contains_key(key) || is_elsewhere(&key.1));
        let is_new = |file: &String| files.contains(file) && !self.files.contains(file);
        self.notices.extend(here.into_iter().filter(|(key, _)| is_first || is_new(&key.1)));
        self.files.extend(files);
    }
}

/// Adds what another set has.
fn join(all: &mut Checked, other: Checked) {
    let Checked { mut inputs, decided, policies, places_of_sets, page, .. } = other;
    // One for all sets.
    if all.inputs.notices.iter().any(is_departed_note) {
        inputs.notices.retain(|notice| !is_departed_note(notice));
    }
    if let (Some(all), Some(page)) = (&mut all.page, page) {
        all.add(page);
    }
    all.decided.extend(decided);
    all.policies.extend(policies);
    all.places_of_sets.extend(places_of_sets);
    join_inputs(&mut all.inputs, inputs);
}

/// Gives each finding the severity that the repository wants, and leaves out those that are switched off.
fn apply_rules(checked: &mut Checked) {
    let rules = checked.rules.clone();
    if rules.is_empty() {
        return;
    }
    let Inputs { notices, unread, .. } = &mut checked.inputs;
    let mut known = BTreeMap::new();
    let mut stays = |source: &Arc<Source>, finding: &mut Finding| {
        let key = (Arc::as_ptr(source), finding.code_name().to_owned());
        let rule = *known.entry(key).or_insert_with(|| rules.find(source.name(), finding.code_name()));
        rule.is_none_or(|rule| rule.apply(finding, &mut unread.lowered))
    };
    for Decided { object, admitted, of_form, .. } in &mut checked.decided {
        let source = object.place.source();
        if !admitted.decision.findings.is_empty() {
            Arc::make_mut(admitted).decision.findings.retain_mut(|finding| stays(source, finding));
        }
        of_form.retain_mut(|finding| stays(source, finding));
    }
    notices.retain_mut(|notice| stays(&notice.source, &mut notice.finding));
}
