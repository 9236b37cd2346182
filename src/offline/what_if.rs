//! What other policies would change: every object is decided about with both, and those whose verdict differs stay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::manifest::source::Source;
use crate::model::decision::NotShown;
use crate::model::finding::{Finding, Severity};
use crate::model::pointer::Pointer;
use crate::model::policy::Policies;
use crate::model::request::Occasion;
use crate::offline::check::{Checked, Decided, check};
use crate::offline::checked_object::CheckedObject;
use crate::offline::findings::report;
use crate::offline::load::Inputs;
use crate::report::Report;
use crate::report::changes::{Change, Verdict};

/// The objects with what the new policies make of them.
#[derive(Debug)]
pub struct WhatIf {
    /// All objects; findings are left of those whose verdict changes, and of these the ones that change it.
    checked: Checked,
    changes: Vec<Changed>,
}

/// An object whose verdict changes.
#[derive(Debug)]
struct Changed {
    /// Which of the objects it is.
    index: usize,
    owner: Option<String>,
    from: Verdict,
    to: Verdict,
}

/// Which object it is, in both runs.
type Key = (*const Source, usize, Pointer);

/// Policies and what they were read with.
#[derive(Debug)]
pub struct PolicySets {
    /// Those that count today.
    pub base: Arc<Policies>,
    /// Those that would.
    pub new: Arc<Policies>,
}

/// The policies of the state, those of `base` in the place of theirs, and the same with `new`: a policy of `base` that
/// `new` does not have is gone there.
#[must_use]
pub fn policy_sets(state: &Policies, base: &Policies, new: &Policies) -> PolicySets {
    let with = |others: &Policies, without: &Policies| {
        let mut all = state.clone();
        without.iter().for_each(|policy| all.remove(&policy.name));
        without.exemptions().for_each(|it| all.remove_exemption(&it.namespace, &it.name));
        others.iter().for_each(|policy| all.insert(Arc::clone(policy)));
        others.exemptions().for_each(|exemption| all.insert_exemption(Arc::clone(exemption)));
        Arc::new(all)
    };
    PolicySets { base: with(base, &Policies::default()), new: with(new, base) }
}

/// Decides about all objects of the inputs with both sets of policies.
#[must_use]
pub fn what_if(inputs: Inputs, sets: PolicySets, occasion: Occasion<'static>) -> WhatIf {
    let owners = inputs.objects.iter().filter_map(|it| Some((key(&it.object), owner(it.manifest())?)));
    let owners: BTreeMap<Key, String> = owners.collect();
    let mut base = Inputs { objects: inputs.objects.clone(), ..Inputs::default() };
    base.snapshot = inputs.snapshot.clone();
    base.snapshot.policies = sets.base;
    let mut new = inputs;
    new.snapshot.policies = sets.new;
    let before: BTreeMap<Key, Decided> =
        check(base, occasion).decided.into_iter().map(|decided| (key(&decided.object), decided)).collect();
    compare(before, check(new, occasion), &owners)
}

/// The object in its file; a workload and its pod are one.
fn key(object: &CheckedObject) -> Key {
    (Arc::as_ptr(object.place.source()), object.place.span().start, object.template.clone())
}

/// The controller of an object, or its first owner, as `Kind name`.
fn owner(manifest: &str) -> Option<String> {
    // Most objects have none, and reading all of an object is not for free.
    if !manifest.contains("ownerReferences") {
        return None;
    }
    let manifest: Value = serde_json::from_str(manifest).ok()?;
    let owners = manifest.pointer("/metadata/ownerReferences")?.as_array()?;
    let controls = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let owner = owners.iter().find(controls).or_else(|| owners.first())?;
    let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    Some(format!("{} {}", text("kind"), text("name")))
}

fn compare(mut before: BTreeMap<Key, Decided>, checked: Checked, owners: &BTreeMap<Key, String>) -> WhatIf {
    let Checked { decided, .. } = checked;
    let mut all = Vec::with_capacity(decided.len());
    let mut changes = Vec::new();
    for mut after in decided {
        let key = key(&after.object);
        let base = before.remove(&key);
        let (from, to) = (base.as_ref().map_or(Verdict::Allowed, verdict), verdict(&after));
        let base = base.map(|mut base| take_findings(&mut base)).unwrap_or_default();
        let findings = take_findings(&mut after);
        if from != to {
            let stays = to > from || to == Verdict::Warned;
            after.admitted.decision.findings =
                if stays { only_in(findings, &base) } else { lifted(base, &findings) };
            changes.push(Changed { index: all.len(), owner: owners.get(&key).cloned(), from, to });
        }
        all.push(after);
    }
    // No new policy judges these.
    for (key, mut gone) in before {
        let from = verdict(&gone);
        let findings = take_findings(&mut gone);
        if from != Verdict::Allowed {
            gone.admitted.decision.findings = lifted(findings, &[]);
            changes.push(Changed {
                index: all.len(),
                owner: owners.get(&key).cloned(),
                from,
                to: Verdict::Allowed,
            });
        }
        all.push(gone);
    }
    WhatIf { checked: Checked { decided: all, ..checked }, changes }
}

/// Takes everything that was found out of a decision; what the apiserver says of its form is the same on both sides.
fn take_findings(decided: &mut Decided) -> Vec<Finding> {
    decided.of_form.clear();
    decided.admitted.decision.not_shown = NotShown::default();
    std::mem::take(&mut decided.admitted.decision.findings)
}

fn verdict(decided: &Decided) -> Verdict {
    let warns = |finding: &Finding| finding.policy.is_some() && finding.severity == Severity::Warn;
    if !decided.allowed() {
        Verdict::Denied
    } else if decided.findings().any(warns) {
        Verdict::Warned
    } else {
        Verdict::Allowed
    }
}

/// What makes two findings the same: rule, place and severity.
fn identity(finding: &Finding) -> (String, String, Severity) {
    (finding.code_name().to_owned(), finding.pointer.as_str().to_owned(), finding.severity)
}

/// The findings of policies that are not among others.
fn only_in(findings: Vec<Finding>, others: &[Finding]) -> Vec<Finding> {
    let known: BTreeSet<_> = others.iter().map(identity).collect();
    let is_new =
        |it: &Finding| it.policy.is_some() && it.severity != Severity::Note && !known.contains(&identity(it));
    findings.into_iter().filter(is_new).collect()
}

/// What was found and is found no more, as notes.
fn lifted(base: Vec<Finding>, findings: &[Finding]) -> Vec<Finding> {
    let note = |finding: Finding| {
        let message = format!("no longer: {}", finding.message());
        // The rule stands in the policies of today, of which nothing is shown.
        Finding { severity: Severity::Note, elsewhere: Vec::new(), ..finding.with_message(message) }
    };
    only_in(base, findings).into_iter().map(note).collect()
}

impl WhatIf {
    /// How many objects would newly be denied.
    #[must_use]
    pub fn newly_denied(&self) -> usize {
        self.changes.iter().filter(|change| change.to == Verdict::Denied).count()
    }

    /// The objects with what was read.
    #[must_use]
    pub const fn checked(&self) -> &Checked {
        &self.checked
    }

    /// What changes, as a report.
    #[must_use]
    pub fn report(&self) -> Report<'_> {
        let mut report = report(&self.checked);
        report.changes = Some(self.changes.iter().filter_map(|changed| self.change(changed)).collect());
        report
    }

    fn change<'r>(&'r self, changed: &'r Changed) -> Option<Change<'r>> {
        let Changed { index, owner, from, to } = changed;
        let object = &self.checked.decided.get(*index)?.object;
        Some(Change {
            object_ref: &object.object_ref,
            owner: owner.as_deref(),
            file: object.place.source().name(),
            line: object.place.span().line,
            from: *from,
            to: *to,
        })
    }
}
