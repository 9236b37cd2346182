//! Decides about every object of the inputs, as both webhook calls would.
//!
//! ```text
//! Inputs ──decide_all──▶ JudgedObjects ──keep_first, notes──▶ Checked
//! ```

mod decide;
mod notes;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use crate::build::judged_by::Standing;
use crate::build::rules::Rules;
use crate::files::inputs::Inputs;
pub(crate) use crate::files::judge::decide::{JudgedValues, NO_OBJECT_OF_KIND, States};
use crate::files::judge::decide::{ObjectOutcome, decide};
pub(crate) use crate::files::judge::notes::WITHOUT_EFFECT;
use crate::files::judged_documents::JudgedDocuments;
use crate::files::notices::Notice;
use crate::files::objects::CheckedObject;
use crate::files::passed_over::{PassedOver, Why};
use crate::files::places::ObjectPlaces;
use crate::in_order;
use crate::report::counted;
use crate::report::map::MemoryMap;
use memgate_core::decide::MAX_REPORTED;
use memgate_manifest::source::Source;
use memgate_model::decision::{Decision, NotShown};
use memgate_model::finding::{Finding, Severity};
use memgate_model::policy::Policies;
use memgate_model::request::Occasion;
use memgate_model::snapshot::Snapshot;
use memgate_model::workload;
use memgate_platforms::common::VALUE_UNKNOWN;
use memgate_policy::counts::RuleCounts;
use memgate_policy::leftover::Used;
use memgate_primitives::pointer::Pointer;

/// The inputs with the decisions about their objects.
#[derive(Debug, Default)]
pub struct Checked {
    /// What was read, without the objects and the state.
    pub inputs: Inputs,
    /// The objects that were judged or have findings, in document order.
    pub decided: Vec<Decided>,
    /// The names of the policies.
    pub policies: BTreeSet<String>,
    /// How many objects each rule of the policies judged; empty if no policy took part.
    pub rule_counts: RuleCounts,
    /// How many findings have [ignored codes](crate::build::rules::IgnoredCodes) and were left out.
    pub left_out: usize,
    /// With units, the places of the objects of each.
    pub places_of_units: BTreeMap<String, ObjectPlaces>,
    /// The severities that the repository gives to findings.
    pub rules: Rules,
    /// The map of memory before anything is judged, if it is wanted.
    pub map: Option<MemoryMap>,
    /// From what the judged objects come, if that is compared with another commit.
    pub judged: JudgedDocuments,
    /// What counts in each unit, if that is kept.
    pub standings: BTreeMap<String, Standing>,
}

impl Checked {
    fn new(inputs: Inputs, verdicts: JudgedObjects, policies: &Policies) -> Self {
        Self {
            inputs,
            decided: verdicts.decided,
            policies: policies.iter().map(|policy| policy.name.clone()).collect(),
            rule_counts: verdicts.counts,
            ..Self::default()
        }
    }

    /// Adds the note about what a later step fills in, one for all objects.
    pub fn note_later(&mut self) {
        let judged = self.decided.iter().filter(|decided| decided.is_judged).map(|it| &it.object);
        let later = judged.filter_map(|it| Some((it, it.later.as_deref()?)));
        // A file may be in several units.
        let (mut seen, mut count, mut encrypted, mut first) = (BTreeSet::new(), 0, 0, None);
        for (object, later) in later.filter(|(_, later)| later.count > 0) {
            if seen.insert((Arc::as_ptr(object.place.source()), object.place.start())) {
                count += later.count;
                encrypted += later.encrypted;
                first = first.or_else(|| Some((object, later.first.as_ref()?)));
            }
        }
        let place = first.map(|(object, pointer)| {
            let standing = object.standing(pointer);
            (Arc::clone(standing.source()), standing.carets(false).0)
        });
        // Objects of which it fills in the kind were not judged.
        let is_kind = |notice: &mut Notice| notice.finding.code == &VALUE_UNKNOWN;
        let kinds: Vec<Notice> = self.inputs.notices.extract_if(.., is_kind).collect();
        count += kinds.len();
        let place = place.or_else(|| kinds.first().map(|it| (Arc::clone(&it.source), it.span)));
        let Some((source, span)) = place else { return };
        let values =
            |count: usize| format!("{} {}", counted(count, "value"), if count == 1 { "is" } else { "are" });
        let kinds = [(count - encrypted, "filled in later"), (encrypted, "encrypted")];
        let kinds = kinds.iter().filter(|(count, _)| *count > 0);
        let kinds: Vec<String> = kinds.map(|(count, how)| format!("{} {how}", values(*count))).collect();
        let rest = if count == 1 { "it is not judged" } else { "they are not judged; this is the first" };
        let message = format!("{}, so {rest}", kinds.join(" and "));
        let finding = Finding::warn(&VALUE_UNKNOWN, Pointer::root(), message)
            .help("check what that step writes, or give the file that says its values");
        let finding = Finding { severity: Severity::Note, ..finding };
        self.add_notices([Notice::new(&source, span, finding)]);
    }

    /// Adds findings about files, with the severities that the repository gives to them.
    pub(crate) fn add_notices(&mut self, notices: impl IntoIterator<Item = Notice>) {
        for mut notice in notices {
            let finding = &mut notice.finding;
            let rule = self.rules.find(notice.source.name(), finding.code_name());
            if rule.is_none_or(|rule| rule.apply(finding, &mut self.inputs.lowered)) {
                self.inputs.notices.push(notice);
            }
        }
    }
}

/// An object with its decision.
#[derive(Debug)]
pub struct Decided {
    /// The object.
    pub object: Box<CheckedObject>,
    /// The decision of both webhook calls together, with their edits. Findings have their places in the document; those of
    /// an apiserver about the form of a pod and its workload, made before it calls memgate, come last.
    pub decision: Decision,
    /// Whether this counts as checked: an enabled family or a policy judged it, or it was denied.
    pub is_judged: bool,
    /// The users of a denied memory resource, in words, which its first denial names.
    pub(crate) users: Option<Box<str>>,
}

impl Decided {
    /// Whether no finding denies it, shown or not. A denial that became a note does not count.
    pub fn allowed(&self) -> bool {
        self.decision.allowed() && self.decision.not_shown.denials == 0
    }

    /// The findings that are shown.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.decision.findings.iter()
    }
}

/// A core decides about at least so many objects: with fewer, another thread costs more than it saves.
const OBJECTS_OF_A_CORE: usize = 32;

/// Decides about every object. One that cannot be decided becomes an error and does not hide the others; one that
/// no enabled family judges is passed over.
pub fn check(mut inputs: Inputs, occasion: Occasion<'static>) -> Checked {
    let mut snapshot = take_state(&mut inputs);
    let policies = std::mem::take(&mut snapshot.policies);
    // What is wrong with the others is said at their own places, and not of each object.
    snapshot.policies = in_force(&policies);
    let mut verdicts = decide_all(&mut inputs, &snapshot, occasion);
    snapshot.policies = policies;
    keep_first_of_each(&mut verdicts.decided);
    notes::name_users(&mut verdicts.decided, &snapshot);
    notes::drop_repeated_others(&mut inputs, &verdicts.decided);
    notes::add_of_read(&mut inputs, &verdicts.decided, &snapshot);
    notes::add_makers(&mut inputs, &verdicts.decided, &snapshot);
    notes::add_leftovers(&mut inputs, &verdicts.used, &snapshot, occasion.now);
    sort_passed_over(&mut inputs);
    Checked::new(inputs, verdicts, &snapshot.policies)
}

/// The state of the inputs, which keep its settings.
fn take_state(inputs: &mut Inputs) -> Snapshot {
    let settings = inputs.snapshot.settings.clone();
    std::mem::replace(&mut inputs.snapshot, Snapshot::new(settings))
}

/// The policies that are in force.
fn in_force(policies: &Arc<Policies>) -> Arc<Policies> {
    let mut in_force = Arc::clone(policies);
    for policy in policies.iter().filter(|policy| policy.invalid.is_some()) {
        Arc::make_mut(&mut in_force).remove(&policy.name);
    }
    in_force
}

/// What was decided, and what took part in that.
#[derive(Default)]
struct JudgedObjects {
    decided: Vec<Decided>,
    used: Used,
    counts: RuleCounts,
}

/// Decides about the objects of the inputs. What is not judged goes to those that are passed over, and to the errors.
fn decide_all(inputs: &mut Inputs, snapshot: &Snapshot, occasion: Occasion<'static>) -> JudgedObjects {
    let occasion = Occasion { counts_rules: true, ..occasion };
    let states = States::new(snapshot, std::mem::take(&mut inputs.unfilled));
    let objects = std::mem::take(&mut inputs.objects);
    let mut verdicts = JudgedObjects::default();
    let work = |undecided| decide(undecided, &states, occasion);
    let take = |verdict| {
        verdicts.take(verdict, inputs);
        Ok::<_, Infallible>(())
    };
    let Ok(()) = in_order::each(objects, OBJECTS_OF_A_CORE, work, take);
    // Policies judge none of their own kinds.
    if !verdicts.used.kinds.is_empty() {
        verdicts.counts.add_rules(&snapshot.policies);
    }
    verdicts
}

impl JudgedObjects {
    fn take(&mut self, verdict: ObjectOutcome, inputs: &mut Inputs) {
        match verdict {
            ObjectOutcome::Decided(mut decided) => {
                self.note_used(&decided);
                self.counts.add(&std::mem::take(&mut decided.decision.rules));
                if !decided.is_judged {
                    pass_over(&decided, inputs);
                }
                if decided.is_judged || !decided.decision.findings.is_empty() {
                    self.decided.push(*decided);
                }
            }
            ObjectOutcome::Exempt(object) => {
                let CheckedObject { place, object_ref, .. } = *object;
                inputs.passed_over.push(PassedOver::object(&place, object_ref, Why::SystemNamespace));
            }
            ObjectOutcome::Fault(error) => inputs.errors.push(error),
        }
    }

    /// Notes the policies, exemptions and kinds of a decision.
    fn note_used(&mut self, Decided { object, decision, .. }: &Decided) {
        self.used.policies.extend(decision.policies.iter().cloned());
        self.used.exemptions.extend(decision.exemptions.iter().cloned());
        let kind = if object.is_workload() { "Pod" } else { &object.object_ref.kind };
        self.used.kinds.extend(decision.families.iter().map(|share| (share.family.name, kind.to_owned())));
    }
}

/// Adds an object that was not judged to those that are passed over; one with several templates once.
fn pass_over(Decided { object, decision, .. }: &Decided, inputs: &mut Inputs) {
    let (group, kind) = (object.object_ref.group(), &*object.object_ref.kind);
    let makes_pods = workload::find(group, kind).is_some() || group.is_empty() && kind == "Pod";
    let why = Why::of(decision.reason, makes_pods);
    let passed_over = PassedOver::object(&object.place, object.object_ref.clone(), why);
    if inputs.passed_over.last().is_none_or(|last| !last.is_same(&passed_over)) {
        inputs.passed_over.push(passed_over);
    }
}

/// Sorts what is passed over by its place in the inputs.
fn sort_passed_over(inputs: &mut Inputs) {
    let order = InputOrder::of(&inputs.sources);
    inputs.passed_over.sort_by_cached_key(|it| order.place(&it.source, it.span.start));
}

/// Keeps the findings about each object with several pods that are reported.
fn keep_first_of_each(all: &mut [Decided]) {
    let is_one_object = |one: &Decided, other: &Decided| Arc::ptr_eq(&one.object.place, &other.object.place);
    all.chunk_by_mut(is_one_object).filter(|pods| pods.len() > 1).for_each(keep_first);
}

/// Keeps the findings about one object that are reported: denials before warnings, warnings before notes, of each the
/// first ones.
pub(crate) fn keep_first(of_object: &mut [Decided]) {
    let mut room = MAX_REPORTED;
    let severities = [Severity::Deny, Severity::Warn, Severity::Note];
    let mut left = severities.map(|severity| {
        let all = of_object.iter().flat_map(Decided::findings).filter(|it| it.severity == severity).count();
        let kept = all.min(room);
        room -= kept;
        (severity, kept)
    });
    for Decision { findings, not_shown: NotShown { denials, warnings }, .. } in
        of_object.iter_mut().map(|it| &mut it.decision)
    {
        findings.retain(|finding| {
            let left = left.iter_mut().find(|(severity, left)| *severity == finding.severity && *left > 0);
            let left = left.map(|(_, left)| *left -= 1);
            *denials += usize::from(left.is_none() && finding.severity == Severity::Deny);
            *warnings += usize::from(left.is_none() && finding.severity == Severity::Warn);
            left.is_some()
        });
    }
}

/// The order of the inputs.
pub(crate) struct InputOrder(BTreeMap<*const Source, usize>);

impl InputOrder {
    pub(crate) fn of<'s>(sources: impl IntoIterator<Item = &'s Arc<Source>>) -> Self {
        Self(sources.into_iter().enumerate().map(|(number, source)| (Arc::as_ptr(source), number)).collect())
    }

    /// A key to sort by: the number of a source, and a place in it. State comes first, which is not among the inputs.
    pub(crate) fn place(&self, source: &Arc<Source>, start: usize) -> (Option<usize>, usize) {
        (self.0.get(&Arc::as_ptr(source)).copied(), start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::plan::Plan;
    use crate::files::load::load;
    use crate::files::place::report;

    const TEXT: &str = "\
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: redis}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
a: [
";

    #[test]
    fn reports_denied_passed_over_and_unreadable_documents() {
        let inputs = load(&Plan::of_text(TEXT)).expect("loads");
        let checked = check(inputs, Occasion::default());
        let report = report(&checked);
        assert_eq!(
            (report.files, report.objects.len(), report.denied, report.passed_over.len()),
            (1, 1, 1, 1)
        );
        assert_eq!(report.errors.len(), 1);
        let finding = report.findings.first().expect("one");
        assert_eq!(finding.finding.code_name(), "arkonis/redis-required");
        assert_eq!((finding.location.file, finding.location.line), ("<stdin>", 4));
        assert_eq!(finding.object_ref.title(), "ArkMemory team-a/notes");
    }

    const WORKLOAD: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine, namespace: team-a}
spec:
  template:
    metadata:
      annotations: {memgate.dev/orka-memory-context: x}
      labels: {orka.ai/task: t, orka.ai/task-type: ai}
    spec:
      automountServiceAccountToken: false
      containers:
        - name: worker
          env:
            - {name: ORKA_TASK_NAME, value: t}
            - {name: ORKA_TASK_NAMESPACE, value: team-a}
            - {name: ORKA_CONTROLLER_URL, value: http://orka.team-a.svc}
            - {name: ORKA_MEMORY_CONTEXT_LIMIT, value: many}
";

    #[test]
    fn names_fields_from_the_root_of_a_workload() {
        let inputs = load(&Plan::of_text(WORKLOAD)).expect("loads");
        let checked = check(inputs, Occasion::default());
        let messages: Vec<_> = checked
            .decided
            .iter()
            .flat_map(|decided| &decided.decision.findings)
            .map(Finding::message)
            .collect();
        let field = "spec.template.spec.containers[0].env[3].value: ";
        assert!(messages.iter().any(|message| message.starts_with(field)), "{messages:?}");
    }

    #[test]
    fn of_the_findings_about_many_templates_fifty_are_reported_denials_first() {
        let template = |label: &str| {
            let labels = serde_json::json!({"arkonis.dev/deployment": "a", "memgate.dev/inject": label});
            let spec = serde_json::json!({"containers": [{"name": "agent", "image": "a"}]});
            serde_json::json!({"template": {"metadata": {"labels": labels}, "spec": spec}})
        };
        let mut groups = vec![template("odd"); 60];
        groups.push(template("required"));
        let object = serde_json::json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "a", "namespace": "b"}, "spec": {"workerGroupSpecs": groups}});
        let text = format!(
            "{{apiVersion: arkonis.dev/v1alpha1, kind: ArkAgent, metadata: {{name: c, namespace: b}}, spec: {{}}}}\n---\n{object}\n"
        );
        let checked = check(load(&Plan::of_text(&text)).expect("loads"), Occasion::default());
        let report = report(&checked);
        let of_cluster: Vec<_> =
            report.findings.iter().filter(|it| &*it.object_ref.kind == "RayCluster").collect();
        assert_eq!(of_cluster.len(), MAX_REPORTED);
        assert_eq!(of_cluster.iter().filter(|it| it.finding.is_denial()).count(), 1);
        assert!(report.not_shown.iter().map(|(_, counts)| counts.warnings).sum::<usize>() >= 60);
    }

    #[test]
    fn reads_standard_input_once() {
        let plan = Plan { state: vec!["-".to_owned()], ..Plan::of_text("") };
        assert!(load(&plan).is_err());
    }
}
