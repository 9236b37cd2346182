//! Findings that depend on what was decided: which of the notices count, what is left to say once all objects are judged, and the
//! cause first: a denied memory resource names its users, and their warnings that only follow from the denial are marked.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::files::inputs::Inputs;
use crate::files::judge::Decided;
use crate::files::notices::Notice;
use crate::files::passed_over::{PassedOver, Why};
use crate::files::policy_files::leftovers;
use crate::report::{ObjectRef, USED_BY};
use memgate_model::finding::{Code, Finding, Relation, Severity};
use memgate_model::object::Reference;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_platforms::common::{OBJECT_REPEATED, STATE_UNREADABLE};
use memgate_platforms::message::more_of;
use memgate_platforms::{references, validated};
use memgate_policy::codes;
use memgate_policy::leftover::Used;
use memgate_primitives::budget::Budget;
use memgate_primitives::plain_text::shown_name;

/// The codes of findings that something had no effect. What has an effect on other files has one.
pub(crate) const WITHOUT_EFFECT: [&Code; 2] = [&codes::UNUSED, &codes::EXEMPTION_UNUSED];

/// Drops warnings about repeated pods and workloads that do not run an agent.
pub(super) fn drop_repeated_others(inputs: &mut Inputs, judged: &[Decided]) {
    if inputs.notices.iter().all(|notice| notice.finding.code != &OBJECT_REPEATED) {
        return;
    }
    let judged: BTreeSet<&ObjectRef> =
        judged.iter().filter(|it| it.is_judged).map(|it| &it.object.object_ref).collect();
    let is_other = |it: &&PassedOver| !matches!(it.why, Why::OtherKind | Why::NotAnnotated);
    let others = inputs.passed_over.iter().filter(is_other).filter_map(|it| it.object_ref.as_ref());
    let others = others.filter(|it| !judged.contains(it));
    let others: BTreeSet<&ObjectRef> = others.collect();
    let is_kept =
        |notice: &Notice| notice.finding.code != &OBJECT_REPEATED || !others.contains(&notice.object_ref);
    inputs.notices.retain(is_kept);
}

/// Adds the notices about objects that a decision has read or looked for.
pub(super) fn add_of_read(inputs: &mut Inputs, all: &[Decided], snapshot: &Snapshot) {
    let of_read = std::mem::take(&mut inputs.of_read);
    if all.is_empty() {
        inputs.notices.retain(|notice| notice.finding.code != &STATE_UNREADABLE);
    }
    if of_read.is_empty() {
        return;
    }
    let missing = all.iter().flat_map(Decided::findings).flat_map(|finding| &finding.missing);
    let lacking: BTreeSet<&Reference> =
        all.iter().flat_map(|it| &it.decision.unknown).chain(missing).collect();
    let is_counted = |object: &Reference| {
        lacking.contains(object) || snapshot.uses.as_ref().is_some_and(|it| it.has_read(object))
    };
    let counted = of_read.into_iter().filter(|(object, _)| is_counted(object));
    inputs.notices.extend(counted.map(|(_, notice)| notice));
}

/// Notes what may make the objects of which nothing is known.
pub(super) fn add_makers(inputs: &mut Inputs, all: &[Decided], snapshot: &Snapshot) {
    let unknown = all.iter().flat_map(|decided| &decided.decision.unknown);
    let made = unknown.filter_map(|it| Some((it, snapshot.maker_of(it.kind, &it.namespace, &it.name)?)));
    inputs.makers.extend(made.map(|(object, maker)| (object.clone(), Arc::clone(maker))));
}

/// Adds the findings about policies and exemptions. What has no effect on some files may have one on the others.
pub(super) fn add_leftovers(inputs: &mut Inputs, used: &Used, snapshot: &Snapshot, now: Timestamp) {
    let of_others: &[&Code] = match &inputs {
        inputs if inputs.is_partial => &WITHOUT_EFFECT,
        inputs if inputs.is_narrow => &[&codes::EXEMPTION_UNUSED],
        _ => &[],
    };
    let mut leftovers = leftovers(&inputs.policies, snapshot, used, now, &inputs.places);
    leftovers.retain(|notice| !of_others.contains(&notice.finding.code));
    inputs.notices.extend(leftovers);
}

/// Adds the users of each denied memory resource to its first denial, and marks the warnings of users that only repeat it.
pub(super) fn name_users(all: &mut [Decided], snapshot: &Snapshot) {
    let mut denied = BTreeSet::new();
    for decided in all.iter_mut().filter(|decided| !decided.decision.allowed()) {
        let Some((object, users)) = users(decided, snapshot) else { continue };
        decided.users = Some(format!("{USED_BY}{users}").into());
        decided.tell_users();
        denied.insert(object);
    }
    let families = &snapshot.settings.families;
    let follows: Vec<&Code> = families.iter().flat_map(|family| family.validation.follows).copied().collect();
    let repeats = |finding: &Finding| {
        let warns = finding.severity != Severity::Deny && follows.contains(&finding.code);
        let of = finding.elsewhere.first().filter(|_| warns);
        of.is_some_and(|cause| denied.contains(&cause.object))
    };
    for decided in all.iter_mut().filter(|_| !denied.is_empty()) {
        let findings = decided.decision.findings.iter_mut();
        findings.filter(|it| repeats(it)).for_each(|it| it.relation = Relation::Follows);
    }
}

impl Decided {
    /// Lets its first denial name the users, and nothing else: those of an object that is not denied have findings of their own.
    pub(crate) fn tell_users(&mut self) {
        let Some(users) = self.users.as_deref() else { return };
        let mut is_named = false;
        for finding in &mut self.decision.findings {
            let tells = !is_named && finding.is_denial();
            let message = finding.message();
            let has_them = message.contains(users);
            if has_them != tells {
                let message =
                    if tells { format!("{message}{users}") } else { message.replacen(users, "", 1) };
                *finding = finding.clone().with_message(message);
            }
            is_named |= tells;
        }
    }
}

/// A memory resource, and its users in words: `ArkAgent a0 and 11 more`. `None` for another object, and without users.
fn users(decided: &Decided, snapshot: &Snapshot) -> Option<(Reference, String)> {
    let object = &decided.object.object_ref;
    let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
    let (family, kind) = validated(&snapshot.settings.families, group, &object.kind)?;
    let (namespace, budget) = (&*object.namespace, Budget::default());
    let mut state = StateReader::new(snapshot, &budget);
    let mut users = references::users(family, (kind, namespace, &object.name), &mut state);
    let first = users.next()?;
    let more = more_of(1 + users.count(), 1);
    let reference = Reference { kind, namespace: namespace.to_owned(), name: object.name.to_string() };
    Some((reference, format!("{} {}{more}", first.kind.kind, shown_name(&first.name_in(namespace)))))
}
