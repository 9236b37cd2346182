//! One run: the steps from a plan to judged objects, for commands and the editor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::build::layout::shown;
use crate::build::neighbours::MadeElsewhere;
use crate::build::plan::Plan;
use crate::build::rules::IgnoredCodes;
use crate::files::difference::{AtBase, mark};
use crate::files::inputs::Inputs;
use crate::files::judge::{Checked, Decided, NO_OBJECT_OF_KIND, WITHOUT_EFFECT, check};
use crate::files::load::{Error, each_unit};
use crate::files::map::map_if_wanted;
use crate::files::notices::Notice;
use crate::files::passed_over::pass_over;
use crate::files::policy_files::replaced;
use crate::files::trace::trace;
use crate::files::unjudged::{Tree, judged_documents};
use crate::files::{ignore, parts};
use memgate_manifest::source::Source;
use memgate_model::decision::Decision;
use memgate_model::elsewhere::Elsewhere;
use memgate_model::finding::{Finding, Relation, Severity};
use memgate_model::object::Reference;
use memgate_model::policy::Policies;
use memgate_model::request::Occasion;
use memgate_primitives::plain_text::plain;

/// What a command or the editor judges, at which point and time.
#[derive(Debug, Clone)]
pub struct Run {
    /// What is read.
    pub plan: Plan,
    /// The point and the time of decisions.
    pub occasion: Occasion<'static>,
}

/// Loads and judges the files of a run, unit by unit, and applies the rules of the repository.
///
/// # Errors
/// Those of [`load()`](crate::files::load::load()).
pub fn judged(run: &Run) -> Result<Checked, Error> {
    compared(run, None)
}

/// The same for a branch with these files, with denials of what it broke and of what it hides.
///
/// # Errors
/// Those of [`load()`](crate::files::load::load()).
pub fn compared(run: &Run, with: Option<(&AtBase, &Tree)>) -> Result<Checked, Error> {
    let Run { plan, occasion } = run;
    let mut files = plan.files();
    let (mut checked, others) = each_unit(plan, |mut inputs| {
        let map = map_if_wanted(plan, &inputs, *occasion);
        if plan.cluster.is_some() {
            pass_over(&mut inputs.objects, &mut inputs.passed_over, &inputs.snapshot, true);
        }
        let parts = parts::judge(&inputs, *occasion);
        let mut checked = Checked { map, ..check(inputs, *occasion) };
        leave_out_made_elsewhere(&mut checked);
        checked.standings =
            [(checked.inputs.unit.clone(), std::mem::take(&mut checked.inputs.standing))].into();
        if plan.is_base || with.is_some() {
            checked.judged = judged_documents(&checked, &mut files);
        }
        parts::add(&mut checked, parts);
        trace(&mut checked, &mut files);
        checked
    })?;
    if !others.is_empty() {
        join_all(&mut checked, others);
    }
    if let Some((base, tree)) = with {
        mark(&mut checked, base, (tree, plan));
    }
    checked.rules = plan.rules.clone();
    apply_rules(&mut checked);
    checked.note_later();
    Ok(checked)
}

/// The same, with notes in place of the findings that comments ignore, and without those that do not count in this run.
///
/// # Errors
/// Those of [`load()`](crate::files::load::load()).
pub fn judged_without_ignored(run: &Run) -> Result<Checked, Error> {
    let mut checked = judged(run)?;
    ignore::apply(&mut checked, None);
    leave_out(&mut checked, &run.plan.ignored);
    Ok(checked)
}

/// Leaves out the findings that do not count in this run, and counts them. That comes last, so that comments and rules that
/// are about them have an effect.
pub fn leave_out(checked: &mut Checked, ignored: &IgnoredCodes) {
    let mut seen = BTreeSet::new();
    for Decided { object, decision, .. } in &mut checked.decided {
        decision.findings.retain(|finding| {
            let stays = !ignored.has(finding.code_name());
            if !stays && finding.relation != Relation::Follows {
                // Two units may have one file.
                let standing = object.standing(&finding.pointer);
                let at = (Arc::as_ptr(standing.source()), standing.carets(finding.at_key).0.start);
                seen.insert((at, finding.code_name().to_owned()));
            }
            stays
        });
    }
    tell_follows(&mut checked.decided);
    let notices = &mut checked.inputs.notices;
    let before = notices.len();
    notices.retain(|notice| !ignored.has(notice.finding.code_name()));
    checked.left_out = seen.len() + before - notices.len();
}

/// The users of a denied object whose denials do not count in this run have findings of their own, and so have those that are
/// denied themselves.
fn tell_follows(all: &mut [Decided]) {
    let causes =
        all.iter().filter(|it| it.findings().any(Finding::is_denial)).map(|it| &it.object.object_ref);
    let causes: BTreeSet<_> = causes
        .map(|it| {
            (Arc::clone(&it.unit), Arc::clone(&it.kind), Arc::clone(&it.namespace), Arc::clone(&it.name))
        })
        .collect();
    for Decided { object, decision, .. } in &mut *all {
        let is_alone = |finding: &Finding| {
            let cause = finding.elsewhere.first().filter(|_| finding.relation == Relation::Follows);
            cause.is_some_and(|Elsewhere { object: cause, .. }| {
                if finding.is_denial() {
                    return true;
                }
                let [kind, namespace, name] = [cause.kind.kind, &cause.namespace, &cause.name].map(Arc::from);
                !causes.contains(&(Arc::clone(&object.object_ref.unit), kind, namespace, name))
            })
        };
        let findings = decision.findings.iter_mut();
        findings.filter(|it| is_alone(it)).for_each(|it| it.relation = Relation::New);
    }
    all.iter_mut().for_each(Decided::tell_users);
}

/// Judges stored objects by the policies of the inputs, and by those that were given beside them.
///
/// # Errors
/// Those of [`load()`](crate::files::load::load()).
pub fn audited(run: &Run, given: &Inputs) -> Result<Checked, Error> {
    let Run { plan, occasion } = run;
    checked_all(plan, |mut inputs| {
        if !plan.ignores_policies {
            let policies = &given.snapshot.policies;
            inputs.snapshot.policies = replaced(&inputs.snapshot.policies, &Policies::default(), policies);
        }
        inputs.places.extend(given.places.clone());
        let map = map_if_wanted(plan, &inputs, *occasion);
        pass_over(&mut inputs.objects, &mut inputs.passed_over, &inputs.snapshot, true);
        Checked { map, ..check(inputs, *occasion) }
    })
}

/// Judges the files of a run, without the rules of the repository.
///
/// # Errors
/// Those of [`load()`](crate::files::load::load()).
pub fn decided(Run { plan, occasion }: &Run) -> Result<Checked, Error> {
    checked_all(plan, |inputs| {
        let mut checked = check(inputs, *occasion);
        leave_out_made_elsewhere(&mut checked);
        checked
    })
}

/// What `check` makes of all units, with places in files.
fn checked_all(plan: &Plan, check: impl Fn(Inputs) -> Checked) -> Result<Checked, Error> {
    let mut files = plan.files();
    let (mut all, others) = each_unit(plan, |inputs| {
        let mut checked = check(inputs);
        trace(&mut checked, &mut files);
        checked
    })?;
    if !others.is_empty() {
        join_all(&mut all, others);
    }
    Ok(all)
}

/// Joins what was found in plain manifests and in the units.
pub(crate) fn join_all(all: &mut Checked, others: Vec<Checked>) {
    let mut without_effect = WithoutEffect::default();
    name_unit(all);
    without_effect.take(all);
    for mut other in others {
        name_unit(&mut other);
        without_effect.take(&mut other);
        join(all, other);
    }
    all.inputs.notices.extend(without_effect.all());
    all.inputs.deduplicate();
}

/// Gives objects the name of their unit, by which reports tell them apart.
fn name_unit(checked: &mut Checked) {
    let Checked { inputs, decided, places_of_units, .. } = checked;
    let name: Arc<str> = inputs.unit.as_str().into();
    for decided in decided {
        decided.object.object_ref.unit = Arc::clone(&name);
    }
    for notice in &mut inputs.notices {
        notice.object_ref.unit = Arc::clone(&name);
    }
    for object_ref in inputs.passed_over.iter_mut().filter_map(|it| it.object_ref.as_mut()) {
        object_ref.unit = Arc::clone(&name);
    }
    places_of_units.insert(inputs.unit.clone(), std::mem::take(&mut inputs.places));
}

/// Identifies a finding that something had no effect: code, file, place and message.
type NoticeKey = (&'static str, String, usize, String);

/// The files of each unit, with its findings that something had no effect. They are true if all units that have the file with it
/// have them; plain manifests, which come first, count in all.
#[derive(Default)]
struct WithoutEffect(Vec<(BTreeSet<String>, BTreeMap<NoticeKey, Notice>)>);

impl WithoutEffect {
    /// Takes those of a unit.
    fn take(&mut self, checked: &mut Checked) {
        let Inputs { sources, origins, notices, .. } = &mut checked.inputs;
        let own = sources.iter().chain(origins.traced()).map(|it| it.name().to_owned());
        let plain = self.0.first().into_iter().flat_map(|(files, _)| files).cloned();
        let files = own.chain(plain).collect();
        let taken = notices.extract_if(.., |notice| WITHOUT_EFFECT.contains(&notice.finding.code));
        let keyed = taken.map(|it| {
            let (file, message) = (it.source.name().to_owned(), it.finding.message().into_owned());
            ((it.finding.code.name, file, it.span.start, message), it)
        });
        self.0.push((files, keyed.collect()));
    }

    /// The true ones, each once.
    fn all(self) -> impl Iterator<Item = Notice> {
        let is_true = |key: &NoticeKey| {
            self.0.iter().all(|(files, found)| found.contains_key(key) || !files.contains(&key.1))
        };
        let all = self.0.iter().flat_map(|(_, found)| found).filter(|(key, _)| is_true(key));
        let once: BTreeMap<NoticeKey, Notice> = all.map(|(key, it)| (key.clone(), it.clone())).collect();
        once.into_values()
    }
}

/// Adds what another unit has.
fn join(all: &mut Checked, other: Checked) {
    let Checked { inputs, decided, policies, rule_counts, places_of_units, map, judged, standings, .. } =
        other;
    all.judged.join(judged);
    all.standings.extend(standings);
    if let (Some(all), Some(map)) = (&mut all.map, map) {
        all.units.extend(map.units);
    }
    all.decided.extend(decided);
    all.policies.extend(policies);
    all.rule_counts.join(rule_counts);
    all.places_of_units.extend(places_of_units);
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
    for Decided { object, decision, .. } in &mut checked.decided {
        decision.findings.retain_mut(|finding| stays(object.standing(&finding.pointer).source(), finding));
    }
    notices.retain_mut(|notice| stays(&notice.source, &mut notice.finding));
}

/// Leaves out what is said because an object is missing that another unit makes, or that something may make. Of one that a file has
/// which no kustomization lists it says so, and where another unit has objects of the kind, a missing one is no note.
fn leave_out_made_elsewhere(checked: &mut Checked) {
    let (neighbours, number) = (Arc::clone(&checked.inputs.neighbours), checked.inputs.number);
    if neighbours.is_empty() {
        return;
    }
    for Decided { decision: Decision { findings, unknown, .. }, .. } in &mut checked.decided {
        let find = |it: &Reference| neighbours.find(number, it);
        unknown.retain(|it| find(it) != Some(MadeElsewhere::Made));
        let elsewhere = |it: &Finding| if it.is_denial() { None } else { it.missing.iter().find_map(find) };
        findings.retain_mut(|finding| {
            match elsewhere(finding) {
                Some(MadeElsewhere::Made) => return false,
                Some(MadeElsewhere::Unknown) => {
                    unknown.extend(finding.missing.first().cloned());
                    return false;
                }
                Some(MadeElsewhere::Unlisted(file)) => {
                    warn(
                        finding,
                        &format!("; {} has it, but no kustomization lists it", plain(&shown(&file))),
                    );
                }
                None if finding.missing.iter().any(|it| neighbours.has_kind(number, it.kind)) => {
                    warn(finding, "");
                }
                None => {}
            }
            true
        });
    }
}

/// Makes a warning of a note that the inputs hold no object of a kind, with these words behind it.
fn warn(finding: &mut Finding, more: &str) {
    let message = finding.message().into_owned();
    let bare = message.strip_suffix(&format!(" ({NO_OBJECT_OF_KIND})"));
    if bare.is_some() {
        finding.severity = finding.severity.max(Severity::Warn);
    }
    *finding = finding.clone().with_message(format!("{}{more}", bare.unwrap_or(&message)));
}
