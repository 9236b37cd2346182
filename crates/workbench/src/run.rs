//! One run: the steps from a plan to judged objects, for commands and the editor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ignore;
use crate::inputs::Inputs;
use crate::judge::{Checked, Decided, WITHOUT_EFFECT, check, is_departed_note};
use crate::judged_by::JudgedBy;
use crate::load::{Error, load};
use crate::notices::Notice;
use crate::page::PageInputs;
use crate::passed_over::pass_over;
use crate::plan::Plan;
use crate::policy_files::PolicyOrigin;
use crate::report::ObjectRef;
use crate::rules::Rules;
use crate::sets::each_set;
use crate::what_if::replaced;
use memgate_manifest::source::Source;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::object::Reference;
use memgate_model::policy::Policies;
use memgate_model::request::Occasion;
use memgate_primitives::pointer::Pointer;

/// What a command or the editor judges, at which point and time.
#[derive(Debug, Clone)]
pub struct Run {
    /// What is read.
    pub plan: Plan,
    /// The point and the time of decisions.
    pub occasion: Occasion<'static>,
}

/// Loads and judges the files of a run, set by set, and applies the rules of the repository.
///
/// # Errors
/// Those of [`load`].
pub fn judged(run: &Run) -> Result<Checked, Error> {
    let Run { plan, occasion } = run;
    let (mut checked, others) = each_set(plan, |inputs| {
        let page = PageInputs::if_wanted(plan.wants_page, &inputs, *occasion);
        Checked { page, ..check(inputs, *occasion) }
    })?;
    if !plan.sets.is_empty() {
        join_all(&mut checked, others, plan.sets.len());
    }
    checked.rules = plan.rules.clone();
    apply_rules(&mut checked);
    checked.note_later();
    Ok(checked)
}

/// The same, with notes in place of the findings that comments ignore.
///
/// # Errors
/// Those of [`load`].
pub fn judged_without_ignored(run: &Run) -> Result<Checked, Error> {
    let mut checked = judged(run)?;
    ignore::apply(&mut checked);
    Ok(checked)
}

/// What `judge` makes of a run; with `weighs` it also counts the findings of given policies that the checked files weaken.
///
/// # Errors
/// Those of [`load`], or when standard input cannot be read.
pub fn weighed(
    run: &mut Run,
    weighs: bool,
    judge: impl FnOnce(&Run) -> Result<Checked, Error>,
) -> Result<Checked, Error> {
    if !weighs || run.plan.policies.is_empty() {
        return judge(run);
    }
    run.plan.keep_stdin()?;
    let mut checked = judge(run)?;
    checked.inputs.weakened = weakened(run, &checked)?;
    Ok(checked)
}

/// How many findings of the policies that were given beside the inputs count less because of what only the inputs say:
/// labels of Namespaces, exemptions, and the rules of the repository.
///
/// # Errors
/// Those of [`load`].
fn weakened(Run { plan, occasion }: &Run, checked: &Checked) -> Result<usize, Error> {
    let judged_by = JudgedBy::Policies;
    let alone = Plan { judged_by, rules: Rules::default(), wants_page: false, ..plan.clone() };
    let alone = judged(&Run { plan: alone, occasion: *occasion })?;
    let is_given = |policy: &str| {
        let (kind, name) = (&MEMORY_POLICY, policy.to_owned());
        let policy = Reference { kind, namespace: String::new(), name };
        alone.inputs.policies.origin(&policy) == Some(PolicyOrigin::Policies)
    };
    let mut now: BTreeMap<_, Vec<Severity>> = BTreeMap::new();
    for (key, severity) in of_policies(checked, &|_| true) {
        now.entry(key).or_default().push(severity);
    }
    let mut count = 0;
    for (key, severity) in of_policies(&alone, &is_given).filter(|(_, it)| *it != Severity::Note) {
        let mut same = now.get_mut(&key).into_iter().flatten();
        match same.find(|it| **it >= severity) {
            // It stands for one finding.
            Some(found) => *found = Severity::Note,
            None => count += 1,
        }
    }
    Ok(count)
}

/// The findings of some policies, each with its severity.
fn of_policies<'c>(
    checked: &'c Checked,
    is_one: &'c impl Fn(&str) -> bool,
) -> impl Iterator<Item = ((&'c ObjectRef, Pointer, &'c str), Severity)> {
    let located = checked.decided.iter().flat_map(|decided| {
        decided.located_findings().map(move |(finding, at)| (&decided.object.object_ref, finding, at))
    });
    let is_one = |finding: &Finding| finding.policy.as_ref().is_some_and(|it| is_one(&it.rule.policy));
    let located = located.filter(move |(_, finding, _)| is_one(finding));
    located.map(|(object, finding, at)| ((object, at, finding.code_name()), finding.severity))
}

/// Judges stored objects by the policies of the inputs, and by those that were given beside them.
///
/// # Errors
/// Those of [`load`].
pub fn audited(run: &Run, given: Inputs) -> Result<Checked, Error> {
    let Run { plan, occasion } = run;
    let mut inputs = load(plan)?;
    if !plan.ignores_policies {
        let policies = &given.snapshot.policies;
        inputs.snapshot.policies = replaced(&inputs.snapshot.policies, &Policies::default(), policies);
    }
    inputs.places.extend(given.places);
    let page = PageInputs::if_wanted(plan.wants_page, &inputs, *occasion);
    let families = inputs.snapshot.settings.families.clone();
    pass_over(&mut inputs.objects, &mut inputs.passed_over, &families, true);
    Ok(Checked { page, ..check(inputs, *occasion) })
}

/// Joins what was found in the first set and in the others. Those behind the last set of the repository are open files that
/// are in none.
fn join_all(all: &mut Checked, others: Vec<Checked>, count: usize) {
    let mut without_effect = WithoutEffect::default();
    name_set(all);
    without_effect.add(all, true);
    for (mut other, number) in others.into_iter().zip(1..) {
        name_set(&mut other);
        if number < count {
            without_effect.add(&mut other, false);
        }
        join(all, other);
    }
    all.inputs.notices.extend(without_effect.notices.into_values());
    all.inputs.deduplicate();
}

/// Gives objects the name of their set, by which reports tell them apart.
fn name_set(checked: &mut Checked) {
    let Checked { inputs, decided, places_of_sets, .. } = checked;
    let name: Arc<str> = inputs.set.as_str().into();
    for decided in decided {
        decided.object.object_ref.set = Arc::clone(&name);
    }
    for notice in &mut inputs.notices {
        notice.object_ref.set = Arc::clone(&name);
    }
    for object_ref in inputs.passed_over.iter_mut().filter_map(|it| it.object_ref.as_mut()) {
        object_ref.set = Arc::clone(&name);
    }
    places_of_sets.insert(inputs.set.clone(), std::mem::take(&mut inputs.places));
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
    all.inputs.join(inputs);
}

/// Gives each finding the severity that the repository wants, and leaves out those that are switched off.
fn apply_rules(checked: &mut Checked) {
    let rules = checked.rules.clone();
    if rules.is_empty() {
        return;
    }
    let Inputs { notices, lowered, .. } = &mut checked.inputs;
    let mut known = BTreeMap::new();
    let mut stays = |source: &Arc<Source>, finding: &mut Finding| {
        let key = (Arc::as_ptr(source), finding.code_name().to_owned());
        let rule = *known.entry(key).or_insert_with(|| rules.find(source.name(), finding.code_name()));
        rule.is_none_or(|rule| rule.apply(finding, lowered))
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
