//! Decides about every object of the inputs, as both webhook calls would.

pub(crate) mod cause;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use crate::errors::fault_of;
use crate::in_order;
use crate::inputs::{Inputs, Unfilled};
use crate::judged_by::Standing;
use crate::judged_documents::JudgedDocuments;
use crate::notices::Notice;
use crate::objects::{CheckedObject, UndecidedObject, open_state};
use crate::ours::Ours;
use crate::passed_over::{PassedOver, Why};
use crate::places::Places;
use crate::policy_files::leftovers;
use crate::report::map::MemoryMap;
use crate::report::{ObjectRef, counted};
use crate::rules::{Rules, change};
use memgate_core::admission::{self, Admitted, admit};
use memgate_core::decide::{MAX_REPORTED, form, later};
use memgate_core::state;
use memgate_manifest::error::Error;
use memgate_manifest::later::is_filled_in_later;
use memgate_manifest::source::{Source, Span};
use memgate_model::decision::NotShown;
use memgate_model::family::{DepartedLine, Family};
use memgate_model::finding::{Cause, Code, Finding, Severity};
use memgate_model::object::Reference;
use memgate_model::policy::Policies;
use memgate_model::reason::Reason;
use memgate_model::request::{Occasion, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::workload;
use memgate_platforms::common::{OBJECT_REPEATED, STATE_UNREADABLE, VALUE_UNKNOWN};
use memgate_policy::codes;
use memgate_policy::counts::RuleCounts;
use memgate_policy::leftover::Used;
use memgate_primitives::fix::Fix;
use memgate_primitives::pointer::Pointer;
use serde_json::Value;

/// The codes of findings that something had no effect. What has an effect on other files has one.
pub(crate) const WITHOUT_EFFECT: [&Code; 2] = [&codes::UNUSED, &codes::EXEMPTION_UNUSED];

/// The inputs with the decisions about their objects.
#[derive(Debug)]
pub struct Checked {
    /// What was read, without the objects and the state.
    pub inputs: Inputs,
    /// The objects that were judged or have findings, in document order.
    pub decided: Vec<Decided>,
    /// The names of the policies.
    pub policies: BTreeSet<String>,
    /// The codes of their rules.
    pub codes_of_policies: BTreeSet<String>,
    /// How many objects each rule of the policies judged; empty if no policy took part.
    pub rule_counts: RuleCounts,
    /// How many findings have [ignored codes](crate::ignored_codes::IgnoredCodes) and were left out.
    pub left_out: usize,
    /// With units, the places of the objects of each.
    pub places_of_units: BTreeMap<String, Places>,
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
    /// The decision of both webhook calls together, without the objects that it did not know. Objects share equal ones.
    pub admitted: Arc<Admitted>,
    /// The objects that the decision needed and that are not known.
    pub unknown: Box<[Reference]>,
    /// The findings of an apiserver about a pod and its workload, made before it calls memgate; pointers are those in the
    /// document.
    pub of_form: Vec<Finding>,
    /// Whether this counts as checked: an enabled family or a policy judged it, or it was denied.
    pub is_judged: bool,
    /// The users of a denied memory resource, in words, which its first denial names.
    pub(crate) users: Option<Box<str>>,
}

impl Decided {
    /// Whether no finding denies it, shown or not. A denial that became a note does not count.
    pub fn allowed(&self) -> bool {
        self.admitted.allowed()
            && self.admitted.decision.not_shown.denials == 0
            && self.of_form.iter().all(|finding| finding.severity != Severity::Deny)
    }

    /// The findings that are shown.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.admitted.decision.findings.iter().chain(&self.of_form)
    }

    /// The findings with their places in the document.
    pub(crate) fn located_findings(&self) -> impl Iterator<Item = (&Finding, Pointer)> {
        let of_object = self.admitted.decision.findings.iter();
        let of_object = of_object.map(|finding| (finding, self.object.in_document(&finding.pointer)));
        of_object.chain(self.of_form.iter().map(|finding| (finding, finding.pointer.clone())))
    }
}

/// A core decides about at least so many objects: with fewer, another thread costs more than it saves.
const OBJECTS_OF_A_CORE: usize = 32;

/// What was made of an object.
enum Judged {
    /// A decision, and whether it is about a pod.
    Decided(Result<Decided, Error>, bool),
    /// memgate is never asked about it.
    Exempt(Box<CheckedObject>),
}

/// Adds the notices about objects that a decision has read or looked for.
fn note_of_read(inputs: &mut Inputs, all: &[Decided], snapshot: &Snapshot) {
    let of_read = std::mem::take(&mut inputs.of_read);
    if all.is_empty() {
        inputs.notices.retain(|notice| notice.finding.code != &STATE_UNREADABLE);
    }
    if of_read.is_empty() {
        return;
    }
    let missing = all.iter().flat_map(Decided::findings).flat_map(|finding| &finding.missing);
    let lacking: BTreeSet<&Reference> = all.iter().flat_map(|it| &it.unknown).chain(missing).collect();
    let is_counted = |object: &Reference| {
        lacking.contains(object) || snapshot.uses.as_ref().is_some_and(|it| it.has_read(object))
    };
    let counted = of_read.into_iter().filter(|(object, _)| is_counted(object));
    inputs.notices.extend(counted.map(|(_, notice)| notice));
}

/// Notes what may make the objects of which nothing is known.
fn note_makers(inputs: &mut Inputs, all: &[Decided], snapshot: &Snapshot) {
    let unknown = all.iter().flat_map(|decided| &decided.unknown);
    let made = unknown.filter_map(|it| Some((it, snapshot.maker_of(it.kind, &it.namespace, &it.name)?)));
    inputs.makers.extend(made.map(|(object, maker)| (object.clone(), Arc::clone(maker))));
}

/// The policies that are in force.
fn in_force(policies: &Arc<Policies>) -> Arc<Policies> {
    let mut in_force = Arc::clone(policies);
    for policy in policies.iter().filter(|policy| policy.invalid.is_some()) {
        Arc::make_mut(&mut in_force).remove(&policy.name);
    }
    in_force
}

/// Notes the policies, exemptions and kinds of a decision.
fn note_used(used: &mut Used, decided: &Decided, is_pod: bool) {
    let decision = &decided.admitted.decision;
    used.policies.extend(decision.policies.iter().cloned());
    used.exemptions.extend(decision.exemptions.iter().cloned());
    let kind = if is_pod { "Pod" } else { &decided.object.object_ref.kind };
    used.kinds.extend(decision.families.iter().map(|share| (share.family.name, kind.to_owned())));
}

/// Decides about every object. One that cannot be decided becomes an error and does not hide the others; one that
/// no enabled family judges is passed over.
pub fn check(mut inputs: Inputs, occasion: Occasion<'static>) -> Checked {
    let occasion = Occasion { counts_rules: true, ..occasion };
    let settings = inputs.snapshot.settings.clone();
    let mut snapshot = std::mem::replace(&mut inputs.snapshot, Snapshot::new(settings));
    let policies = Arc::clone(&snapshot.policies);
    // What is wrong with the others is said at their own places, and not of each object.
    snapshot.policies = in_force(&policies);
    let states = States::new(&snapshot, std::mem::take(&mut inputs.unfilled));
    let (mut used, mut known, mut counts) =
        (Used::default(), KnownDecisions::default(), RuleCounts::default());
    let mut all = Vec::with_capacity(inputs.objects.len());
    let work = |undecided: UndecidedObject| {
        if undecided.is_exempt() {
            return Judged::Exempt(undecided.into_object());
        }
        let is_pod = undecided.request().is_pod();
        Judged::Decided(decide(undecided, &states, occasion), is_pod)
    };
    let take = |judged| {
        let (decided, is_pod) = match judged {
            Judged::Decided(decided, is_pod) => (decided, is_pod),
            Judged::Exempt(object) => {
                let CheckedObject { place, object_ref, .. } = *object;
                inputs.passed_over.push(PassedOver::object(&place, object_ref, Why::SystemNamespace));
                return Ok(());
            }
        };
        match decided {
            Ok(mut decided) => {
                note_used(&mut used, &decided, is_pod);
                if !decided.is_judged {
                    let Decided { object, admitted, .. } = &decided;
                    let workload = workload::find(object.object_ref.group(), &object.object_ref.kind);
                    let why = Why::of(admitted.decision.reason, is_pod || workload.is_some());
                    let passed_over = PassedOver::object(&object.place, object.object_ref.clone(), why);
                    // Several templates of an object may be passed over.
                    if inputs.passed_over.last().is_none_or(|last| !last.is_same(&passed_over)) {
                        inputs.passed_over.push(passed_over);
                    }
                }
                if !decided.admitted.decision.rules.is_empty() {
                    counts.add(&std::mem::take(&mut Arc::make_mut(&mut decided.admitted).decision.rules));
                }
                if decided.is_judged || decided.findings().next().is_some() {
                    known.share(&mut decided.admitted);
                    all.push(decided);
                }
            }
            Err(error) => inputs.errors.push(error),
        }
        Ok::<_, Infallible>(())
    };
    let objects = std::mem::take(&mut inputs.objects);
    let Ok(()) = in_order::each(objects, OBJECTS_OF_A_CORE, work, take);
    // Policies judge none of their own kinds.
    if !used.kinds.is_empty() {
        counts.add_rules(&snapshot.policies);
    }
    snapshot.policies = policies;
    for of_object in all.chunk_by_mut(is_one_object).filter(|of_object| of_object.len() > 1) {
        keep_first(of_object);
    }
    cause::name_users(&mut all, &snapshot);
    drop_repeated_others(&mut inputs, &all);
    note_of_read(&mut inputs, &all, &snapshot);
    note_makers(&mut inputs, &all, &snapshot);
    let mut leftovers = leftovers(&inputs.policies, &snapshot, &used, occasion.now, &inputs.places);
    // What has no effect on some files may have one on the others.
    let of_others: &[&Code] = match &inputs {
        inputs if inputs.is_partial => &WITHOUT_EFFECT,
        inputs if inputs.is_narrow => &[&codes::EXEMPTION_UNUSED],
        _ => &[],
    };
    leftovers.retain(|notice| !of_others.contains(&notice.finding.code));
    inputs.notices.extend(leftovers);
    let departed = departed_notes(&placed(&all, &inputs.passed_over), &snapshot);
    inputs.notices.extend(departed);
    let order = InputOrder::of(&inputs.sources);
    inputs.passed_over.sort_by_cached_key(|it| order.place(&it.source, it.span.start));
    let policies = snapshot.policies.iter().map(|policy| policy.name.clone()).collect();
    let rules = snapshot.policies.iter().flat_map(|policy| &policy.rules);
    let codes_of_policies = rules.map(|rule| rule.about.code.clone()).collect();
    let (places_of_units, rules) = (BTreeMap::new(), Rules::default());
    Checked {
        inputs,
        decided: all,
        policies,
        codes_of_policies,
        rule_counts: counts,
        left_out: 0,
        places_of_units,
        rules,
        map: None,
        judged: JudgedDocuments::default(),
        standings: BTreeMap::new(),
    }
}

/// Whether two decisions are about pods of one object.
fn is_one_object(one: &Decided, other: &Decided) -> bool {
    Arc::ptr_eq(&one.object.place, &other.object.place)
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
    for Decided { admitted, of_form, .. } in of_object {
        let NotShown { mut denials, mut warnings } = admitted.decision.not_shown;
        let mut is_kept = |finding: &Finding| {
            let left = left.iter_mut().find(|(severity, left)| *severity == finding.severity && *left > 0);
            let left = left.map(|(_, left)| *left -= 1);
            denials += usize::from(left.is_none() && finding.severity == Severity::Deny);
            warnings += usize::from(left.is_none() && finding.severity == Severity::Warn);
            left.is_some()
        };
        let decision = &mut Arc::make_mut(admitted).decision;
        decision.findings.retain(&mut is_kept);
        of_form.retain(is_kept);
        decision.not_shown = NotShown { denials, warnings };
    }
}

/// The objects of the inputs, judged or not, with their places.
fn placed<'i>(judged: &'i [Decided], passed_over: &'i [PassedOver]) -> Vec<Placed<'i>> {
    let judged = judged
        .iter()
        .map(|Decided { object, .. }| (&object.object_ref, object.place.source(), object.place.span()));
    let others = passed_over.iter().filter_map(|it| Some((it.object_ref.as_ref()?, &it.source, it.span)));
    judged.chain(others).collect()
}

/// Whether a notice is about a line of a platform that ends, of which there is one for all units.
pub(crate) fn is_departed_note(notice: &Notice) -> bool {
    let departed = memgate_platforms::ALL.iter().filter_map(|family| family.definitions.departed.as_ref());
    notice.finding.severity == Severity::Note
        && departed.map(|line| line.code).any(|code| code == notice.finding.code)
}

/// An object of the inputs, with its place.
type Placed<'i> = (&'i ObjectRef, &'i Arc<Source>, Span);

/// The notes about lines of platforms that end, where the inputs or the cluster have the next line, each at the first
/// object of its line.
fn departed_notes(objects: &[Placed<'_>], state: &Snapshot) -> Vec<Notice> {
    let families = &state.settings.families;
    let lines = families.iter().filter_map(|family| Some((*family, family.definitions.departed.as_ref()?)));
    lines.filter_map(|(family, line)| departed_note(family, line, objects, state)).collect()
}

fn departed_note(
    family: &'static Family,
    line: &DepartedLine,
    objects: &[Placed<'_>],
    state: &Snapshot,
) -> Option<Notice> {
    let mut next = line.next.iter().filter_map(|kind| state.kind(kind));
    if !next.any(|kind| kind.is_installed || !kind.is_empty()) {
        return None;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut first = None;
    for (object, source, span) in objects.iter().filter(|(object, ..)| is_of(family, line, object)) {
        *counts.entry(&object.kind).or_default() += 1;
        first.get_or_insert((source, span));
    }
    let (source, span) = first?;
    let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
    let finding =
        Finding::warn(line.code, Pointer::root(), format!("{}: {}", line.message, counts.join(", ")));
    Some(Notice::new(source, *span, Finding { severity: Severity::Note, ..finding }))
}

/// Whether an object is of the line. One of a version that moved to another group is not.
fn is_of(family: &'static Family, line: &DepartedLine, object: &ObjectRef) -> bool {
    let Some((group, version)) = object.api_version.split_once('/') else { return false };
    let is_moved = memgate_platforms::validated(&[family], group, &object.kind)
        .is_some_and(|(family, kind)| (family.definitions.stand_in.moved)(kind, version).is_some());
    group == line.group && line.kinds.contains(&&*object.kind) && !is_moved
}

/// Drops warnings about repeated pods and workloads that do not run an agent.
fn drop_repeated_others(inputs: &mut Inputs, judged: &[Decided]) {
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

/// Decisions that were made lately.
#[derive(Default)]
struct KnownDecisions(BTreeMap<u64, Arc<Admitted>>);

impl KnownDecisions {
    /// Replaces a decision by an equal one. Those that refer to places elsewhere stay apart, since each has its own.
    fn share(&mut self, admitted: &mut Arc<Admitted>) {
        /// Many objects have one of few decisions, and others one of their own.
        const MOST: usize = 1024;
        let findings = &admitted.decision.findings;
        if findings.iter().any(|finding| !finding.elsewhere.is_empty()) {
            return;
        }
        let mut hasher = DefaultHasher::new();
        for finding in findings {
            (finding.code_name(), finding.pointer.as_str(), finding.message()).hash(&mut hasher);
        }
        let hash = hasher.finish();
        match self.0.get(&hash) {
            Some(known) if known == admitted => *admitted = Arc::clone(known),
            _ => {
                if self.0.len() >= MOST {
                    self.0.clear();
                }
                self.0.insert(hash, Arc::clone(admitted));
            }
        }
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

/// The state by which objects are decided, and what is made of it for single decisions.
struct States<'s> {
    whole: &'s Snapshot,
    /// Kinds of which the inputs hold no object are unknown.
    open: Snapshot,
    /// Without what a later step fills in, if there is any.
    bare: Option<Snapshot>,
    /// The places in its objects that a later step fills in.
    later: BTreeMap<Reference, BTreeSet<Pointer>>,
    /// All that is in namespaces is unknown.
    without_namespaced: OnceLock<Snapshot>,
}

impl<'s> States<'s> {
    fn new(whole: &'s Snapshot, unfilled: Vec<Unfilled>) -> Self {
        let mut bare = (!unfilled.is_empty()).then(|| whole.clone());
        let mut of_objects: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for Unfilled { bare: object, later } in unfilled {
            if let Some(reference) = state::reference(&whole.settings, &object) {
                of_objects.entry(reference).or_default().extend(later);
            }
            // What cannot be added was not there before.
            if let Some(bare) = &mut bare {
                drop(state::add(bare, &object));
            }
        }
        Self { whole, open: open_state(whole), bare, later: of_objects, without_namespaced: OnceLock::new() }
    }

    /// That for an object: with the text of what is filled in later, and without it.
    fn of(&self, undecided: &UndecidedObject) -> [&Snapshot; 2] {
        if undecided.hides_namespace() {
            return [self.without_namespaced.get_or_init(|| self.whole.without_namespaced()); 2];
        }
        [self.whole, self.bare.as_ref().unwrap_or(self.whole)]
    }
}

fn decide(
    undecided: UndecidedObject,
    states: &States<'_>,
    occasion: Occasion<'static>,
) -> Result<Decided, Error> {
    let object = &undecided.object;
    let request = undecided.request_at(occasion);
    let [snapshot, bare_snapshot] = states.of(&undecided);
    let mut admitted = admit(&request, snapshot).map_err(|fault| fault_of(object, &fault))?;
    if admitted.decision.findings.iter().any(is_not_found) {
        let open = admit(&request, &states.open).map_err(|fault| fault_of(object, &fault))?;
        note_not_found(&mut admitted.decision.findings, &open.decision.findings);
    }
    let literal = literal_findings(&undecided, occasion, bare_snapshot, &admitted.decision.findings);
    let says_nothing = admitted.decision.findings.is_empty() && admitted.edits.is_empty();
    if !says_nothing && (object.later.is_some() || !std::ptr::eq(snapshot, bare_snapshot)) {
        let bare = undecided.without_later().map_err(|_| admission::Error::Unreadable);
        let without = bare.and_then(|bare| admit(&bare.request_at(occasion), bare_snapshot));
        let without = without.map_err(|fault| fault_of(object, &fault))?;
        let Admitted { decision, edits, .. } = &mut admitted;
        later::keep_known(&request, &states.later, (decision, edits), (&without.decision, &without.edits));
        admitted.edits.retain(|edit| !object.is_put_in(&object.in_document(&edit.pointer)));
    }
    admitted.decision.findings.extend(literal);
    if !admitted.decision.allowed() && admitted.decision.reason == Reason::Valid {
        admitted.decision.reason = Reason::Invalid;
    }
    // A whole kind has no name: why it is not known, another note says.
    let is_hidden = |it: &Reference| [&it.namespace, &it.name].into_iter().any(|it| is_filled_in_later(it));
    let is_known = |it: &Reference| !it.name.is_empty() && !is_hidden(it);
    admitted.decision.unknown.retain(is_known);
    let manifest = Manifest::of(&undecided);
    let settle = |mut finding: Finding| {
        let place = object.in_document(&finding.pointer);
        finding.settle_at(&place);
        manifest.pin(&mut finding, &place);
        object.with_put_in(if is_taken(&finding, &request, snapshot) { finding.fix(None) } else { finding })
    };
    let findings = std::mem::take(&mut admitted.decision.findings);
    admitted.decision.findings = findings.into_iter().map(settle).collect();
    admitted.decision.findings.shrink_to_fit();
    // Edits are made in the user's own text, so the stored object is not needed.
    admitted.object = None;
    let mut of_form = of_form(&undecided);
    for finding in &mut of_form {
        let place = finding.pointer.clone();
        manifest.pin(finding, &place);
    }
    let unknown = std::mem::take(&mut admitted.decision.unknown).into();
    let (object, admitted) = (undecided.into_object(), Arc::new(admitted));
    let mut decided = Decided { object, admitted, unknown, of_form, is_judged: true, users: None };
    let decision = &decided.admitted.decision;
    // Nor is it known whether it opts out.
    let is_label = |it: &Pointer| it.as_str().ends_with("/labels/memgate.dev~1inject");
    let is_later = decided.object.later.as_ref().is_some_and(|later| later.unknown.iter().any(is_label));
    let is_judged = is_later || !decision.families.is_empty() || !decision.policies.is_empty();
    decided.is_judged = is_judged || decision.reason == Reason::Valid || !decided.allowed();
    Ok(decided)
}

/// Whether another object has the name that a finding would write: the two would become one.
fn is_taken(finding: &Finding, request: &Request<'_>, snapshot: &Snapshot) -> bool {
    let details = finding.details();
    let Some(Fix::Text(name)) = details.fix.as_ref().filter(|_| finding.pointer.as_str() == "/metadata/name")
    else {
        return false;
    };
    let kind = memgate_platforms::state_kind(&snapshot.settings.families, &request.group, &request.kind);
    kind.and_then(|kind| snapshot.kind(kind)?.object(&request.namespace, name)).is_some()
}

/// The findings about URLs of which a later step fills in parts, whatever it fills in: about a literal password, host or scheme.
/// They read as those about the text itself, if there are such.
fn literal_findings(
    undecided: &UndecidedObject,
    occasion: Occasion<'static>,
    snapshot: &Snapshot,
    written: &[Finding],
) -> Vec<Finding> {
    const WORDS: [[&str; 3]; 4] = [
        ["", "unknown", "http"],
        ["unknown", "unknown", "https"],
        ["1", "1.1.1.1", "postgres"],
        ["1.1.1", "unknown.example.com", "redis"],
    ];
    let is_same = |one: &Finding, other: &Finding| one.code == other.code && one.pointer == other.pointer;
    let mut judged: Vec<Vec<Finding>> = Vec::new();
    for words in WORDS.into_iter().filter(|_| undecided.object.later.is_some()) {
        let Some((filled, places)) = undecided.with_parts_filled(words) else { return Vec::new() };
        let mut request = filled.request_at(occasion);
        let others = request.occasion.later.map(|later| later.difference(&places).cloned().collect());
        request.occasion.later = others.as_ref();
        // A Service may be that of the words.
        let is_of_text = |it: &Finding| {
            let is_of_core = it.elsewhere.iter().any(|other| other.object.kind.group.is_empty());
            places.contains(&it.pointer) && it.missing.is_empty() && !is_of_core && it.policy.is_none()
        };
        let found = admit(&request, snapshot).map(|admitted| admitted.decision.findings).unwrap_or_default();
        judged.push(found.into_iter().filter(is_of_text).collect());
    }
    // What is denied with some words says nothing of the rest of it.
    let is_in = |it: &Finding, found: &Vec<Finding>| {
        let hides = |other: &Finding| other.is_denial() && !it.is_denial() && other.pointer == it.pointer;
        found.iter().any(|other| is_same(it, other) || hides(other))
    };
    let mut common: Vec<Finding> = Vec::new();
    for it in judged.iter().flatten() {
        if judged.iter().all(|found| is_in(it, found)) && !common.iter().any(|known| is_same(known, it)) {
            common.push(it.clone());
        }
    }
    let as_written = |it: Finding| written.iter().find(|own| is_same(own, &it)).cloned().unwrap_or(it);
    common.into_iter().map(as_written).collect()
}

/// The values of an object, or of one of several templates in it, read when a finding needs one.
pub(crate) struct Manifest<'o> {
    json: &'o str,
    /// Where it is in the document.
    within: Pointer,
    value: OnceCell<Value>,
}

impl<'o> Manifest<'o> {
    fn of(undecided: &'o UndecidedObject) -> Self {
        let (within, json) = undecided.judged_part();
        Self { within, ..Self::whole(json) }
    }

    /// The values of an object in JSON.
    pub(crate) const fn whole(json: &'o str) -> Self {
        Self { json, within: Pointer::root(), value: OnceCell::new() }
    }

    /// Gives a finding the value that was judged, if it does not say it: what is missing, or the value at its place. Of an
    /// absent value, and of what holds others, nothing is compared.
    pub(crate) fn pin(&self, finding: &mut Finding, place: &Pointer) {
        if !finding.fingerprint_value.is_empty() || finding.policy.is_some() || finding.at_key {
            return;
        }
        let name = |it: &Reference| format!("{} {}/{}", it.kind.kind, it.namespace, it.name);
        let missing = finding.missing.first().map(name);
        finding.fingerprint_value = missing.or_else(|| self.at(finding.cause, place)).unwrap_or_default();
    }

    fn at(&self, cause: Cause, place: &Pointer) -> Option<String> {
        let value = self.value.get_or_init(|| serde_json::from_str(self.json).unwrap_or_default());
        let is_single = |value: &Value| !value.is_object() && !value.is_array();
        match value.pointer(place.as_str().strip_prefix(self.within.as_str())?)? {
            Value::String(text) => Some(text.clone()),
            Value::Object(entries) if cause != Cause::Required && place.tokens().nth(1).is_some() => {
                let text = canonical(entries);
                (entries.values().all(is_single) || text.len() <= MAX_NESTED_BYTES).then_some(text)
            }
            Value::Object(_) | Value::Array(_) | Value::Null => None,
            value => Some(value.to_string()),
        }
    }
}

/// How long a value with others inside may be that is compared whole. A longer one is a section rather than a value.
const MAX_NESTED_BYTES: usize = 1024;

/// An object as JSON, with its fields in order.
fn canonical(entries: &serde_json::Map<String, Value>) -> String {
    let sorted: BTreeMap<_, _> = entries.iter().collect();
    let fields = sorted.into_iter().map(|(name, value)| match value {
        Value::Object(entries) => format!("{}:{}", Value::from(name.as_str()), canonical(entries)),
        value => format!("{}:{value}", Value::from(name.as_str())),
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Whether a finding warns about an object that was not found.
fn is_not_found(finding: &Finding) -> bool {
    finding.severity == Severity::Warn && finding.cause == Cause::NotFound
}

/// Why it is not known whether an object is missing.
pub(crate) const NO_OBJECT_OF_KIND: &str = "the inputs hold no object of this kind";

/// Turns warnings about objects that were not found into notes, unless `open` has them too. A file often holds an agent
/// whose memory is elsewhere.
fn note_not_found(findings: &mut [Finding], open: &[Finding]) {
    let stay: BTreeSet<_> =
        open.iter().map(|finding| (finding.code_name(), finding.pointer.as_str())).collect();
    for finding in findings.iter_mut().filter(|finding| is_not_found(finding)) {
        if !stay.contains(&(finding.code_name(), finding.pointer.as_str())) {
            change(finding, Severity::Note, NO_OBJECT_OF_KIND);
        }
    }
}

/// The findings about the form of a pod, and of the workload that makes it. Where nothing of ours is, there are none.
fn of_form(undecided: &UndecidedObject) -> Vec<Finding> {
    let in_document = |mut finding: Finding| {
        let pointer = undecided.object.in_document(&finding.pointer);
        finding.settle_at(&pointer);
        Finding { pointer, ..finding }
    };
    let request = undecided.request();
    let mut findings = match undecided.workload_request() {
        None => form::findings(&request),
        Some(workload) => {
            let of_pod = form::findings_of_template(&request).into_iter().map(in_document);
            form::findings(&workload).into_iter().chain(of_pod).collect()
        }
    };
    let is_workload = request.is_pod() || workload::find(&request.group, &request.kind).is_some();
    if !findings.is_empty() && is_workload && !undecided.is_of_agent() {
        // A label of the wrong type may be the one that makes it an agent.
        let is_ours = Ours::new(&memgate_platforms::default_settings()).is_in(undecided.manifest());
        findings.retain(|finding| is_ours && finding.pointer.as_str() != "/metadata/name");
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load;
    use crate::place::report;
    use crate::plan::Plan;

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
            .flat_map(|decided| &decided.admitted.decision.findings)
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
