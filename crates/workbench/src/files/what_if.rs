//! The effect of other policies: each object is checked with both sets, and those whose verdict differs are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::files::errors::error_of;
use crate::files::inputs::Inputs;
use crate::files::judge::{Checked, Decided, check};
use crate::files::load::{Error, each_unit};
use crate::files::map::map_if_wanted;
use crate::files::objects::CheckedObject;
use crate::files::place::overview;
use crate::files::policy_files::replaced;
use crate::files::run::{Run, join_all};
use crate::files::trace::{stand, trace};
use crate::report::changes::{Change, PolicyVerdict};
use crate::report::{Report, Shown};
use memgate_manifest::error::Error as Fault;
use memgate_model::decision::NotShown;
use memgate_model::finding::{Finding, Severity};
use memgate_model::policy::Policies;
use memgate_policy::codes::INVALID;
use memgate_policy::defaults::missing;
use memgate_primitives::plain_text::{shown_key, shown_name};
use memgate_primitives::pointer::Pointer;

/// The objects with the verdicts under the new policies.
#[derive(Debug)]
pub struct WhatIf {
    /// All objects. An object has the findings that change its verdict, and notes about defaults that it lacks.
    pub checked: Checked,
    changes: Vec<Changed>,
}

/// An object whose verdict changes, or that is denied by more rules than before.
#[derive(Debug)]
struct Changed {
    /// The index of the object.
    index: usize,
    owner: Option<String>,
    from: PolicyVerdict,
    to: PolicyVerdict,
}

/// Identifies an object in both runs.
type ComparedKey = (String, usize, Pointer);

/// Decides about all objects of a plan with the policies of `base` instead of those of the same names, and with those of `new`,
/// which replace the policies of `base` too.
///
/// # Errors
/// Those of [`load()`](crate::files::load::load()).
pub fn what_if(run: &Run, base: &Inputs, new: &Inputs) -> Result<WhatIf, Error> {
    let [base, new] = [base, new].map(|given| (&given.snapshot.policies, &given.places));
    let of_unit = |mut inputs: Inputs| {
        inputs.places.extend(base.1.clone());
        inputs.places.extend(new.1.clone());
        let current = Arc::clone(&inputs.snapshot.policies);
        let mut before = Inputs { objects: inputs.objects.clone(), ..Inputs::new(inputs.snapshot.clone()) };
        before.snapshot.policies = replaced(&current, &Policies::default(), base.0);
        inputs.snapshot.policies = replaced(&current, base.0, new.0);
        effect(run, before, inputs)
    };
    let (plain, others) = each_unit(&run.plan, of_unit)?;
    Ok(joined(plain, others))
}

/// What was found in plain manifests and in the units together.
fn joined(mut all: WhatIf, others: Vec<WhatIf>) -> WhatIf {
    let mut start = all.checked.decided.len();
    let mut more = Vec::with_capacity(others.len());
    for WhatIf { checked, changes } in others {
        let count = checked.decided.len();
        all.changes.extend(changes.into_iter().map(|it| Changed { index: it.index + start, ..it }));
        start += count;
        more.push(checked);
    }
    if !more.is_empty() {
        join_all(&mut all.checked, more);
    }
    all
}

fn effect(Run { plan, occasion }: &Run, before: Inputs, after: Inputs) -> WhatIf {
    let (occasion, mut files) = (*occasion, plan.files());
    let owners = after.objects.iter().filter_map(|it| Some((key(&it.object), owner(it.manifest())?)));
    let owners: BTreeMap<ComparedKey, String> = owners.collect();
    let before: BTreeMap<ComparedKey, Decided> =
        check(before, occasion).decided.into_iter().map(|it| (key(&it.object), it)).collect();
    let map = map_if_wanted(plan, &after, occasion);
    let mut after = check(after, occasion);
    // The same in both runs, and what the policy would change is not known.
    let Checked { inputs, decided, .. } = &mut after;
    for decided in decided.iter_mut().filter(|it| faults_of_policy(it).next().is_some()) {
        stand(decided, &inputs.origins, &mut files);
    }
    inputs.errors.extend(decided.iter().flat_map(faults_of_policy));
    let mut compared = compare(before, Checked { map, ..after }, &owners);
    trace(&mut compared.checked, &mut files);
    compared
}

/// The object in its file; a workload and its pod are one.
fn key(object: &CheckedObject) -> ComparedKey {
    (object.place.source().name().to_owned(), object.place.start(), object.template())
}

/// The controller of an object, or its first owner, as `Kind name`.
fn owner(manifest: &str) -> Option<String> {
    // Most objects have no owner, and parsing an object costs time.
    if !manifest.contains("ownerReferences") {
        return None;
    }
    let manifest: Value = serde_json::from_str(manifest).ok()?;
    let owners = manifest.pointer("/metadata/ownerReferences")?.as_array()?;
    let controls = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let owner = owners.iter().find(controls).or_else(|| owners.first())?;
    let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    Some(format!("{} {}", shown_key(text("kind")), shown_name(text("name"))))
}

fn compare(
    mut before: BTreeMap<ComparedKey, Decided>,
    checked: Checked,
    owners: &BTreeMap<ComparedKey, String>,
) -> WhatIf {
    let Checked { decided, inputs, .. } = checked;
    let mut all = Vec::with_capacity(decided.len());
    let mut changes = Vec::new();
    for mut after in decided {
        let key = key(&after.object);
        let base = before.remove(&key);
        let (from, to) = (base.as_ref().map_or(PolicyVerdict::Allowed, verdict), verdict(&after));
        let base = base.map(|mut base| take_findings(&mut base)).unwrap_or_default();
        let findings = take_findings(&mut after);
        let telling = if from == to {
            // An object that is denied already may be denied by one more rule.
            let denials = only_in(findings, &base).into_iter().filter(Finding::is_denial);
            denials.filter(|_| to == PolicyVerdict::Denied).collect()
        } else if to > from || to == PolicyVerdict::Warned {
            only_in(findings, &base)
        } else {
            lifted(base, &findings)
        };
        if from != to || !telling.is_empty() {
            after.decision.findings = telling;
            changes.push(Changed { index: all.len(), owner: owners.get(&key).cloned(), from, to });
        }
        after.decision.findings.extend(after.decision.edits.iter().filter_map(missing));
        all.push(after);
    }
    // The new policies do not judge these objects.
    for (key, mut gone) in before {
        let from = verdict(&gone);
        let findings = take_findings(&mut gone);
        if from != PolicyVerdict::Allowed {
            gone.decision.findings = lifted(findings, &[]);
            changes.push(Changed {
                index: all.len(),
                owner: owners.get(&key).cloned(),
                from,
                to: PolicyVerdict::Allowed,
            });
        }
        all.push(gone);
    }
    WhatIf { checked: Checked { decided: all, inputs, ..checked }, changes }
}

/// What is wrong with a policy or an exemption among the objects.
fn faults_of_policy(decided: &Decided) -> impl Iterator<Item = Fault> {
    let faults = decided.findings().filter(|finding| *finding.code == INVALID && finding.is_denial());
    faults.map(|finding| {
        let standing = decided.object.standing(&finding.pointer);
        error_of(standing.source(), standing.carets(finding.at_key).0, finding)
    })
}

/// Takes all findings out of a decision.
fn take_findings(Decided { decision, .. }: &mut Decided) -> Vec<Finding> {
    decision.not_shown = NotShown::default();
    std::mem::take(&mut decision.findings)
}

fn verdict(decided: &Decided) -> PolicyVerdict {
    let warns = |finding: &Finding| finding.policy.is_some() && finding.severity == Severity::Warn;
    if !decided.allowed() {
        PolicyVerdict::Denied
    } else if decided.findings().any(warns) {
        PolicyVerdict::Warned
    } else {
        PolicyVerdict::Allowed
    }
}

/// The identity of a finding: rule, place and severity.
fn identity(finding: &Finding) -> (String, String, Severity) {
    (finding.code_name().to_owned(), finding.pointer.as_str().to_owned(), finding.severity)
}

/// The findings of policies that are not among `others`.
fn only_in(findings: Vec<Finding>, others: &[Finding]) -> Vec<Finding> {
    let known: BTreeSet<_> = others.iter().map(identity).collect();
    let is_new =
        |it: &Finding| it.policy.is_some() && it.severity != Severity::Note && !known.contains(&identity(it));
    findings.into_iter().filter(is_new).collect()
}

/// The findings that are gone, as notes.
fn lifted(base: Vec<Finding>, findings: &[Finding]) -> Vec<Finding> {
    let note = |finding: Finding| {
        let message = format!("no longer: {}", finding.message());
        // Its rule is in the current policies, which are not shown.
        Finding { severity: Severity::Note, elsewhere: Vec::new(), ..finding.with_message(message) }
    };
    only_in(base, findings).into_iter().map(note).collect()
}

impl WhatIf {
    /// The number of objects that would be newly denied.
    pub fn newly_denied(&self) -> usize {
        let is_new =
            |change: &&Changed| change.to == PolicyVerdict::Denied && change.from != PolicyVerdict::Denied;
        self.changes.iter().filter(is_new).count()
    }

    /// The changes, as a report.
    pub fn report(&self, shown: Shown) -> Report<'_> {
        let mut report = overview(&self.checked, shown);
        report.changes = Some(self.changes.iter().filter_map(|changed| self.change(changed)).collect());
        report
    }

    fn change<'r>(&'r self, changed: &'r Changed) -> Option<Change<'r>> {
        let Changed { index, owner, from, to } = changed;
        let object = &self.checked.decided.get(*index)?.object;
        let (source, line) = object.file_and_line();
        Some(Change {
            object_ref: &object.object_ref,
            owner: owner.as_deref(),
            file: source.name(),
            line,
            from: *from,
            to: *to,
        })
    }
}
