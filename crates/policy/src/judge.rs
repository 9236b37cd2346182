//! Judges an object by policies.
//!
//! Policies come in the order of their names, rules in the order of their policy. All of them judge, also after a
//! denial.

pub mod behind;
mod verdict;

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::codes::INVALID;
use memgate_model::decision::NotShown;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::Kind;
use memgate_model::memory_view::{MemoryView, Role, SourceView, Why};
use memgate_model::policy::{Action, Exemption, Policy, Question, Rule};
use memgate_model::policy_rule::{Counts, ExemptBy, PolicyFinding, PolicyRule, RuleResult};
use memgate_model::request::Point;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::typed_rule::{Applies, JudgedView, RuleOutcome, RuleViolation, Sent, Unknown};
use memgate_model::view_table::ViewTable;
use memgate_primitives::budget::{Budget, Stop};
use memgate_primitives::members::Members;
use memgate_primitives::pointer::Pointer;

pub use self::verdict::promotion;
use self::verdict::{Follows, Verdict};
use super::exempt;
use super::matching::{self, Candidate, Matches};
use super::places::{Nearest, ObjectPlaces};
use super::selection::{Selection, Subject, select};
use super::text::plain_name;
use super::written::{SentFields, Written};

/// How many findings of each severity are kept: more than are reported, since a decision selects from those of all
/// policies in document order.
const MAX_KEPT: usize = 200;

/// The views of an object, and of the stored one.
#[derive(Debug)]
pub struct Views<'e> {
    /// Of the object.
    pub new: MemoryView,
    /// Of the stored one.
    pub old: Option<MemoryView>,
    /// The object after mutation, where findings stand in that and it is not what was sent.
    pub stored: Option<&'e str>,
}

/// The result of judging an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The findings by policy and rule; of very many, the first of each severity.
    pub findings: Vec<Finding>,
    /// How many findings were left out.
    pub not_shown: NotShown,
    /// The names of the policies that judged it.
    pub policies: Vec<String>,
    /// The exemptions that counted, as `namespace/name`.
    pub exemptions: BTreeSet<String>,
    /// What the rules made of the object; empty unless the occasion asks for it.
    pub rules: Vec<(Arc<PolicyRule>, RuleResult)>,
    /// The number of findings of each policy by its name, with those that were left out.
    pub counts: BTreeMap<String, Counts>,
    /// How many findings there are of each severity.
    found: BTreeMap<Severity, usize>,
}

impl Judgement {
    /// Adds those of another family about the same pod.
    pub fn add_all(&mut self, other: Self) {
        self.findings.extend(other.findings);
        self.not_shown = self.not_shown.and(other.not_shown);
        self.policies.extend(other.policies);
        self.policies.sort();
        self.policies.dedup();
        self.exemptions.extend(other.exemptions);
        self.rules.extend(other.rules);
        for (policy, counts) in other.counts {
            self.counts.entry(policy).or_default().add(counts);
        }
    }

    /// Adds a finding.
    fn add(&mut self, finding: Finding) {
        let keeps = self.keeps(finding.severity);
        self.count(finding.severity, finding.policy.as_deref());
        self.findings.extend(keeps.then_some(finding));
    }

    /// Whether one more finding is kept. A rule may have ten thousand findings about one object: of each severity, only
    /// the first are kept.
    fn keeps(&self, severity: Severity) -> bool {
        self.found.get(&severity).is_none_or(|found| *found < MAX_KEPT)
    }

    /// Counts a finding, kept or not.
    fn count(&mut self, severity: Severity, about: Option<&PolicyFinding>) {
        if let Some(about) = about {
            match self.counts.get_mut(&about.rule.policy) {
                Some(counts) => counts.count(severity, about),
                None => self.counts.entry(about.rule.policy.clone()).or_default().count(severity, about),
            }
        }
        let found = self.found.entry(severity).or_default();
        *found += 1;
        match severity {
            _ if *found <= MAX_KEPT => {}
            Severity::Deny => self.not_shown.denials += 1,
            Severity::Warn => self.not_shown.warnings += 1,
            Severity::Note => {}
        }
    }
}

/// Judges an object by the policies of a snapshot. `views` makes the object's views, once a policy may match; it returns
/// `None` for an object that has nothing to do with memory. Where the budget ends, every policy that may judge a resource
/// says that it cannot; a pod is left to [`refuse_unread`].
pub fn judge<'p, 'e>(
    subject: &Subject<'_>,
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
    views: impl FnOnce(&mut StateReader<'p>) -> Option<Views<'e>>,
) -> Judgement {
    let is_pod = subject.kind == "Pod";
    let question = if is_pod { subject.family.question_of_pods() } else { Question::Resource };
    let Some(mut selection) = select(subject, snapshot, state, question) else {
        return Judgement::default();
    };
    let reads_others = selection.policies.iter().any(|(policy, _)| reads_other_objects(policy));
    let views = if reads_others { views(state) } else { state.quietly(views) };
    let budget = state.budget();
    if let Some(stop) = budget.stopped() {
        return not_judged(subject, &selection, &stop);
    }
    let Some(mut views) = views else { return Judgement::default() };
    selection.complete(subject, &mut views.new);
    if let Some(later) = subject.occasion.later {
        views.new.set_later(later);
    }
    if let (Some(view), Some(old)) = (&mut views.old, subject.old) {
        old.complete(view);
    }
    let sources = views.new.sources.iter().map(|source| source.view.namespace.as_str());
    selection.look_up(sources, state);
    let places = LazyCell::new(|| ObjectPlaces::of(views.stored.unwrap_or(subject.object.text)));
    let finder = LazyCell::new(|| Nearest::of(&places));
    let family = subject.family;
    let differs = |old: &Written<'_>| family.meaning_changed(subject.kind, subject.object.text, old.text);
    let changes = LazyCell::new(|| subject.old.is_some_and(differs));
    let judge = Judge {
        subject,
        sent: Judge::sent(subject),
        snapshot,
        selection: &selection,
        views: &views,
        budget,
        nearest: &|pointer| finder.find(pointer),
        changes: &|| *changes,
        in_memory: false,
    };
    let judgement = judge.all();
    budget.stopped().map_or(judgement, |stop| not_judged(subject, &selection, &stop))
}

/// What the policies say of a resource whose judging ended early: of each the strictest of its rules. An update that
/// changes nothing but metadata ratchets.
fn not_judged(subject: &Subject<'_>, selection: &Selection<'_>, stop: &Stop) -> Judgement {
    let Stop::OverLimit(over) = stop else { return Judgement::default() };
    if subject.kind == "Pod" {
        return Judgement::default();
    }
    let is_stored = subject
        .old
        .is_some_and(|old| !subject.family.meaning_changed(subject.kind, subject.object.text, old.text));
    let counts = |rule: &Rule| rule.roles.iter().any(|it| *it != Role::Pod);
    strictest_of_each(subject, selection, counts, |verdict| {
        let is_stored = is_stored && verdict.ratchets(subject.operation);
        verdict.finding(&over.pointer, "cannot be judged: the object is too large", is_stored)
    })
}

/// Refuses a pod that is too large to be judged, by each denying policy that has a rule for pods. `is_known` says
/// whether a pod with these labels may belong to the family.
pub fn refuse_unread<'p>(
    subject: &Subject<'_>,
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
    pointer: &Pointer,
    is_known: impl Fn(&BTreeMap<String, String>) -> bool,
) -> Judgement {
    let selection = select(subject, snapshot, state, subject.family.question_of_pods());
    let Some(selection) = selection.filter(|_| is_known(subject.object.labels())) else {
        return Judgement::default();
    };
    let counts = |rule: &Rule| rule.roles.contains(&Role::Pod);
    strictest_of_each(subject, &selection, counts, |verdict| {
        let refuses = verdict.action == Action::Deny;
        refuses.then(|| verdict.finding(pointer, "cannot be judged: the pod is too large", false)).flatten()
    })
}

/// Of each policy the finding of its strictest rule that counts.
fn strictest_of_each(
    subject: &Subject<'_>,
    selection: &Selection<'_>,
    counts: fn(&Rule) -> bool,
    finding: impl Fn(Verdict<'_>) -> Option<Finding>,
) -> Judgement {
    let mut judgement = Judgement::default();
    let candidate = selection.candidate(subject);
    for (policy, matches) in &selection.policies {
        judgement.policies.push(policy.name.clone());
        let verdict = |rule| Verdict::new(policy, rule, *matches, subject.occasion, &candidate);
        let verdicts = policy.rules.iter().filter(|rule| counts(rule)).map(verdict);
        let strictest = verdicts.min_by_key(|verdict| Reverse(verdict.action));
        if let Some(finding) = strictest.and_then(&finding) {
            judgement.add(finding);
        }
    }
    judgement
}

/// Whether a rule of the policy depends on other objects than the judged one. Otherwise nothing is looked up.
fn reads_other_objects(policy: &Policy) -> bool {
    let reads = |rule: &Rule| {
        !rule.by_sources.is_empty()
            || rule.check.reads_other_objects()
            || rule.when.as_ref().is_some_and(|when| when.read_other_objects())
    };
    policy.rules.iter().any(reads)
}

/// One object with everything that rules need.
struct Judge<'j> {
    subject: &'j Subject<'j>,
    /// The object as it was sent, and the stored one.
    sent: [Option<SentFields<'j>>; 2],
    snapshot: &'j Snapshot,
    selection: &'j Selection<'j>,
    views: &'j Views<'j>,
    budget: &'j Budget<'j>,
    /// The place of a finding: an existing field, or its nearest existing parent.
    nearest: &'j dyn Fn(&Pointer) -> &str,
    /// Whether an update changes the spec, or metadata that means something to the platform.
    changes: &'j dyn Fn() -> bool,
    /// Whether what is found of the memory that the object uses stands in that memory itself.
    in_memory: bool,
}

impl<'j> Judge<'j> {
    fn sent(subject: &Subject<'j>) -> [Option<SentFields<'j>>; 2] {
        [Some(subject.object), subject.old].map(|written| written.map(SentFields::of))
    }
}

impl Judge<'_> {
    fn all(&self) -> Judgement {
        let mut judgement = Judgement::default();
        for (policy, matches) in &self.selection.policies {
            judgement.policies.push(policy.name.clone());
            if let Some(fault) = &policy.invalid {
                judgement.add(not_in_force(&policy.name, fault));
                continue;
            }
            for rule in &policy.rules {
                if self.budget.has_ended() {
                    return judgement;
                }
                self.rule(policy, rule, *matches, &mut judgement);
            }
        }
        judgement
    }

    fn rule(&self, policy: &Policy, rule: &Rule, matches: Matches, judgement: &mut Judgement) {
        let view = &self.views.new;
        let candidate = self.selection.candidate(self.subject);
        let verdict = Verdict::new(policy, rule, matches, self.subject.occasion, &candidate);
        let is_asked = !view.is_gone || rule.check.compares();
        if !(rule.roles.contains(&view.role) || self.judges_unseen(rule, view))
            || !verdict.counts()
            || !is_asked
        {
            return;
        }
        let mut parts = self.outcomes(rule, view, self.views.old.as_ref());
        if let Some(later) = self.subject.occasion.later {
            for part in &mut parts {
                part.set_later(later);
            }
        }
        if self.subject.occasion.counts_rules {
            let result = self.result(rule, view, &parts);
            judgement.rules.extend(result.map(|result| (Arc::clone(&rule.about), result)));
        }
        if parts.is_empty() {
            return;
        }
        let policies = &self.snapshot.policies;
        let own = verdict.exemption(policies, &candidate, self.subject.object.labels(), self.budget);
        // Ten thousand parts may be about one memory.
        let mut of_memories = BTreeMap::new();
        let ratchets = own.is_none() && verdict.ratchets(self.subject.operation);
        let stored = if ratchets { self.stored(rule) } else { RuleOutcome::default() };
        // Compared before the pointers are cut to existing fields: two missing labels have two pointers.
        let stored = Stored::of(stored);
        let mut unknowns = Vec::new();
        let expected = parts.iter().map(|part| part.outcome.violations.len()).sum::<usize>().min(MAX_KEPT);
        let (told, kept) = (Members::with_capacity(expected), Members::with_capacity(expected));
        let mut findings =
            Findings { nearest: self.nearest, verdict: &verdict, follows: None, told, kept, judgement };
        for OutcomePart { outcome, memory } in &parts {
            let of_memory = memory.and_then(|memory| {
                *of_memories.entry((memory.kind, &memory.namespace, &memory.name)).or_insert_with(|| {
                    let candidate = Candidate::of_memory(memory, self.subject.family.name);
                    verdict.exemption(policies, &candidate, &memory.labels, self.budget)
                })
            });
            let longest = own.into_iter().chain(of_memory).min_by(|one, other| exempt::order(one, other));
            // An exemption of memory does not reach what a pod sets itself.
            let of_pod = |pointer: &Pointer| outcome.is_of_pod || is_in_container(pointer);
            let exemption = |pointer: &Pointer| if of_pod(pointer) { own } else { longest };
            let is_of_memory = memory.is_some();
            let passes = |it: &Pointer| !self.is_new_by_change(rule, it, is_of_memory);
            let found = |pointer, distinction, why, is_stored, excess| {
                let (exemption, applies) = (exemption(pointer), &*outcome.applies);
                FoundViolation { pointer, distinction, why, is_stored, excess, exemption, applies }
            };
            for it in &outcome.violations {
                let is_stored = stored.has(it) && places_of(it).all(passes);
                let found = found(&it.pointer, it.distinction(), None, is_stored, it.excess);
                findings.add(&found, || (it.told(), it.values()));
            }
            unknowns.extend(outcome.unknowns.iter().map(|it| {
                let is_stored = stored.has_unknown(it) && passes(&it.pointer);
                (it, found(&it.pointer, ([""; 3], 0), Some(&it.why), is_stored, 0))
            }));
        }
        // The first one is reported: an exempt one only if there is no other, and of the others a new one.
        let first = unknowns.into_iter().min_by_key(|(_, it)| (it.exemption.is_some(), it.is_stored));
        if let Some((Unknown { why, of, digest, .. }, found)) = first {
            let texts = || (format!("cannot be judged: {why}{of}"), format!("{digest:x} {why}{of}"));
            findings.add(&found, texts);
        }
    }

    /// What a rule made of the object; `None` if it does not apply.
    fn result(&self, rule: &Rule, view: &MemoryView, parts: &[OutcomePart<'_>]) -> Option<RuleResult> {
        if parts.iter().any(|part| !part.outcome.violations.is_empty()) {
            Some(RuleResult::Fired)
        } else if !parts.is_empty() {
            Some(RuleResult::Unknown)
        } else {
            self.applies(rule, view).then_some(RuleResult::Passed)
        }
    }

    /// Whether a rule that finds nothing applies to the object, or to a memory that the object uses.
    fn applies(&self, rule: &Rule, view: &MemoryView) -> bool {
        let (tables, budget) = (self.subject.family.views.tables, &Budget::default());
        let user = JudgedView { tables, budget, ..self.judged(view, self.views.old.as_ref()) };
        let applies = |judged: &JudgedView<'_>| {
            let holds = rule.when.as_ref().is_none_or(|when| when.hold(judged) != Applies::No);
            holds && rule.check.applies(judged)
        };
        let by_source = |source: &SourceView| {
            let of_source = self.judged(&source.view, None);
            applies(&JudgedView { user: Some(&user), tables, budget, sent: None, ..of_source })
        };
        let is_by_sources = rule.by_sources.contains(&view.role) || self.judges_unseen(rule, view);
        rule.own.contains(&view.role) && applies(&user) || is_by_sources && view.sources.iter().any(by_source)
    }

    /// The outcome of a rule for the stored object, compared with itself: it has no changes.
    fn stored(&self, rule: &Rule) -> RuleOutcome {
        let mut all = RuleOutcome::default();
        let Some(old) = self.views.old.as_ref() else { return all };
        for OutcomePart { outcome, .. } in self.outcomes(rule, old, Some(old)) {
            all.violations.extend(outcome.violations);
            all.unknowns.extend(outcome.unknowns);
        }
        all
    }

    /// The outcome of a rule for a view, or for each memory that the object uses, where there is any.
    fn outcomes<'v>(
        &'v self,
        rule: &Rule,
        view: &'v MemoryView,
        old: Option<&'v MemoryView>,
    ) -> Vec<OutcomePart<'v>> {
        // They are read when they are needed first.
        let asks = matches!(rule.about.type_name, "fields" | "anyOf" | "immutable") || rule.when.is_some();
        let tables: &'static [ViewTable] = if asks { self.subject.family.views.tables } else { &[] };
        let user = JudgedView { tables, ..self.judged(view, old) };
        let own = rule.own.contains(&view.role).then(|| outcome(&user, rule));
        let own = own.flatten().map(|outcome| OutcomePart { outcome, memory: None });
        let is_by_sources = rule.by_sources.contains(&view.role);
        if !is_by_sources && !self.judges_unseen(rule, view) {
            return own.into_iter().collect();
        }
        let of_source = |SourceView { view, field }: &'v SourceView| {
            let judged = JudgedView { user: Some(&user), tables, sent: None, ..self.judged(view, None) };
            let RuleOutcome { mut violations, mut unknowns, is_of_pod, applies } = outcome(&judged, rule)?;
            if !is_by_sources {
                violations.retain(|it| places_of(it).any(|place| self.is_unseen(view, place)));
                unknowns.retain(|it| self.is_unseen(view, &it.pointer));
            }
            let is_declared = !view.is_undeclared();
            let of = is_declared.then(|| format!(" ({} {})", view.kind, plain_name(&view.path())));
            let of = of.unwrap_or_default();
            let is_of_subject = |own: &Pointer| self.in_memory || is_in_container(own) || is_opt_in(own);
            let place = |own: Pointer| if is_of_subject(&own) { own } else { field.clone() };
            let of_source = |it: RuleViolation| RuleViolation {
                pointer: place(it.pointer),
                remark: if self.in_memory { it.remark } else { it.remark + &of },
                value: it.value + &of,
                ..it
            };
            let violation = |mut it: RuleViolation| {
                it.others = std::mem::take(&mut it.others).into_iter().map(of_source).collect();
                of_source(it)
            };
            let violations = violations.into_iter().map(violation).collect();
            let unknown = |Unknown { pointer, why, digest, .. }| {
                let why = if judged.is_foreign() { without_names(why, &view.namespace) } else { why };
                Unknown { pointer: place(pointer), why, of: of.clone(), digest }
            };
            let unknowns = unknowns.into_iter().map(unknown).collect();
            Some(OutcomePart {
                outcome: RuleOutcome { violations, unknowns, is_of_pod, applies },
                memory: is_declared.then_some(view),
            })
        };
        let sources = view.sources.iter().take_while(|_| !self.budget.has_ended());
        own.into_iter().chain(sources.filter_map(of_source)).collect()
    }

    /// Whether a rule on memory is also asked about the memory that an object or pod uses: for values that memory has from
    /// objects which no apiserver sends, so that a change of these is never judged.
    fn judges_unseen(&self, rule: &Rule, view: &MemoryView) -> bool {
        let is_admission = self.subject.occasion.point == Point::Admission;
        let has_unseen = |source: &SourceView| {
            let mut paths = rule.paths().into_iter();
            paths.any(|path| source.view.origins(path).any(|kind| self.is_unseen_kind(kind)))
        };
        is_admission
            && !self.in_memory
            && view.role != Role::Memory
            && rule.own.contains(&Role::Memory)
            && view.sources.iter().any(has_unseen)
    }

    /// Whether a value at this place of a memory is from an object that no apiserver sends.
    fn is_unseen(&self, memory: &MemoryView, place: &Pointer) -> bool {
        memory.read_at(place).any(|kind| self.is_unseen_kind(kind))
    }

    fn is_unseen_kind(&self, kind: &Kind) -> bool {
        self.subject.family.kinds.validated.iter().all(|validated| *validated != kind)
    }

    /// Whether the stored object proves nothing about a finding at this place: the value is from another object, and the
    /// update changes what this one says.
    fn is_new_by_change(&self, rule: &Rule, place: &Pointer, is_of_memory: bool) -> bool {
        let view = &self.views.new;
        // Whether memory lasts is decided by what the address names, which is the object's own text.
        let reads_others = || {
            rule.check.paths().iter().any(|path| *path != "durable" && view.origins(path).next().is_some())
        };
        (is_of_memory || view.read_at(place).next().is_some() && reads_others()) && (self.changes)()
    }

    fn judged<'v>(&'v self, view: &'v MemoryView, old: Option<&'v MemoryView>) -> JudgedView<'v> {
        let own = matching::namespace_of(view.kind, &view.namespace, &view.name);
        let own_labels = (own != view.namespace || own.is_empty()).then_some(&*view.labels);
        let namespace_labels = self.selection.namespaces.labels(own, own_labels);
        let subject_namespace = &self.views.new.namespace;
        let labels = if view.is_undeclared() { &self.views.new.labels } else { &view.labels };
        let budget = self.budget;
        let [new, stored] = &self.sent;
        let is_stored = self.views.old.as_ref().is_some_and(|old| std::ptr::eq(old, view));
        let sent = if is_stored { stored } else { new };
        let sent = sent.as_ref().map(|sent| sent as &dyn Sent);
        JudgedView {
            view,
            user: None,
            tables: &[],
            old,
            namespace_labels,
            budget,
            subject_namespace,
            labels,
            sent,
        }
    }
}

/// A finding of a rule before its texts are made: of very many only the first are kept.
struct FoundViolation<'f> {
    pointer: &'f Pointer,
    /// What tells it from others at its place.
    distinction: Distinction<'f>,
    why: Option<&'f Why>,
    is_stored: bool,
    excess: i128,
    exemption: Option<&'f Exemption>,
    applies: &'f [String],
}

/// What [`RuleViolation::distinction`] returns.
type Distinction<'f> = ([&'f str; 3], i128);

/// The severity and the exemption of a finding.
type Effect<'f> = (Severity, Option<(&'f str, &'f str)>);

/// Makes findings of one rule. One that several parts of an object share is reported once.
struct Findings<'f, 'j> {
    nearest: &'f dyn Fn(&Pointer) -> &str,
    verdict: &'f Verdict<'f>,
    /// What followed the last time, and from what.
    follows: Option<(Because<'f>, Option<Follows>)>,
    /// Their places with what tells them apart there.
    told: Members<(&'f str, Distinction<'f>, Effect<'f>)>,
    /// The places and messages of those that are kept.
    kept: Members<(&'f str, String, Effect<'f>)>,
    judgement: &'j mut Judgement,
}

/// What decides what follows from a finding of a rule.
type Because<'f> = (Option<&'f Why>, bool, Option<&'f Exemption>);

impl<'f> Findings<'f, '_> {
    /// Adds one. Its texts, the message and the values that were judged, are made only if it is kept.
    fn add(&mut self, found: &FoundViolation<'f>, texts: impl FnOnce() -> (String, String)) {
        let FoundViolation { pointer, distinction, why, is_stored, excess, exemption, applies } = *found;
        let name = |by: Option<&'f Exemption>| by.map(|it| (&*it.namespace, &*it.name));
        let is_same =
            |(of, stored, by): &Because<'f>| (*of, *stored, name(*by)) == (why, is_stored, name(exemption));
        if !self.follows.as_ref().is_some_and(|(because, _)| is_same(because)) {
            let follows = self.verdict.follows(why, is_stored, exemption);
            self.follows = Some(((why, is_stored, exemption), follows));
        }
        let Some((_, Some(follows))) = &mut self.follows else { return };
        let (place, effect) = ((self.nearest)(pointer), (follows.severity, name(exemption)));
        if !self.told.insert((place, distinction, effect)) {
            return;
        }
        let texts = self.judgement.keeps(follows.severity).then(texts);
        if let Some((message, _)) = &texts
            && !self.kept.insert((place, message.clone(), effect))
        {
            return;
        }
        follows.about.excess = excess;
        if let Some(ExemptBy { name, .. }) = &follows.about.exemption
            && !self.judgement.exemptions.contains(name)
        {
            self.judgement.exemptions.insert(name.clone());
        }
        self.judgement.count(follows.severity, Some(&follows.about));
        if let Some((message, value)) = texts {
            let (follows, place) = (follows.clone(), Pointer::new(place));
            let finding = self.verdict.told(follows, &place, (&message, value), exemption, applies);
            self.judgement.findings.push(finding);
        }
    }
}

/// The outcome of a rule for one view.
struct OutcomePart<'v> {
    outcome: RuleOutcome,
    /// The memory that the object uses, if the rule judges that.
    memory: Option<&'v MemoryView>,
}

impl OutcomePart<'_> {
    /// Makes violations by values unknown that a later step fills in.
    fn set_later(&mut self, places: &BTreeSet<Pointer>) {
        let is_later = |it: &mut RuleViolation| places.contains(&it.pointer);
        let unknown = |RuleViolation { pointer, .. }| {
            let (why, of) = (Why::FilledInLater, String::new());
            Unknown { pointer, why, of, digest: 0 }
        };
        let RuleOutcome { violations, unknowns, .. } = &mut self.outcome;
        unknowns.extend(violations.extract_if(.., is_later).map(unknown));
    }
}

/// What a rule finds of the stored object. Fields are compared without the indexes of lists.
#[derive(Default)]
struct Stored {
    /// The violations: field and value, each with the greatest excess.
    violations: BTreeMap<(Pointer, String), i128>,
    unknowns: BTreeSet<(Pointer, Why, String, u64)>,
}

impl Stored {
    fn of(outcome: RuleOutcome) -> Self {
        let mut stored = Self::default();
        for mut violation in outcome.violations {
            for RuleViolation { pointer, value, excess, .. } in
                std::mem::take(&mut violation.others).into_iter().chain([violation])
            {
                let known = stored.violations.entry((pointer.without_indexes(), value)).or_insert(excess);
                *known = excess.max(*known);
            }
        }
        let unknown =
            |Unknown { pointer, why, of, digest }: Unknown| (pointer.without_indexes(), why, of, digest);
        stored.unknowns = outcome.unknowns.into_iter().map(unknown).collect();
        stored
    }

    /// Whether the stored object has this violation too, or a worse one.
    fn has(&self, violation: &RuleViolation) -> bool {
        let known = |RuleViolation { pointer, value, excess, .. }: &RuleViolation| {
            let stored = self.violations.get(&(pointer.without_indexes(), value.clone()));
            stored.is_some_and(|stored| excess <= stored)
        };
        !self.violations.is_empty() && known(violation) && violation.others.iter().all(known)
    }

    fn has_unknown(&self, Unknown { pointer, why, of, digest }: &Unknown) -> bool {
        let known = || (pointer.without_indexes(), why.clone(), of.clone(), *digest);
        !self.unknowns.is_empty() && self.unknowns.contains(&known())
    }
}

/// The places of a violation, and of those that count together with it.
fn places_of(violation: &RuleViolation) -> impl Iterator<Item = &Pointer> {
    violation.others.iter().chain([violation]).map(|it| &it.pointer)
}

/// Whether a place in the view of a pod's memory is a variable in the pod. Memory resources have no such place.
pub(super) fn is_in_container(pointer: &Pointer) -> bool {
    ["/spec/containers/", "/spec/initContainers/"].iter().any(|list| pointer.as_str().starts_with(list))
}

/// Whether a place in the view of a pod's memory is the annotation by which the pod names that memory.
fn is_opt_in(pointer: &Pointer) -> bool {
    pointer.as_str().starts_with("/metadata/annotations/memgate.dev~1")
}

/// The reason for an unknown value without the names of objects in another namespace. The namespace itself is part of
/// the message anyway.
fn without_names(why: Why, namespace: &str) -> Why {
    match why {
        Why::Service(_) => Why::Service("…".to_owned()),
        Why::Workload(_) => Why::Workload("…".to_owned()),
        Why::Backend(kind, _) => Why::Backend(kind, "…".to_owned()),
        Why::Object(name) => {
            let kind = name.split(' ').next().unwrap_or_default();
            Why::Object(format!("{kind} \"…\""))
        }
        Why::Namespace(name) if name != namespace => Why::Namespace("…".to_owned()),
        why => why,
    }
}

/// What a rule finds, if it applies, with the message of the policy if it has one. Each rule counts for each view.
fn outcome(judged: &JudgedView<'_>, rule: &Rule) -> Option<RuleOutcome> {
    let mut outcome = RuleOutcome::default();
    let words = ["backend", "provider"].iter().filter_map(|path| judged.view.text(path));
    let words = words.map(str::len).sum::<usize>();
    if !(judged.budget.step() && judged.budget.bytes(words + judged.view.entries())) {
        return None;
    }
    let hold = |judged: &_| rule.when.as_ref().map_or(Applies::Yes(Vec::new()), |when| when.hold(judged));
    let mut applies = hold(judged);
    // As with selectors, either object may meet them.
    if let (Some(view), Applies::No | Applies::Unknown(_), true) =
        (judged.old, &applies, rule.check.compares())
    {
        let before = hold(&JudgedView { view, ..*judged });
        if applies == Applies::No || matches!(before, Applies::Yes(_)) {
            applies = before;
        }
    }
    if applies == Applies::No {
        return None;
    }
    rule.check.judge(judged, &mut outcome);
    match applies {
        Applies::Yes(words) => outcome.applies = words,
        // Of a rule that would fire it is not known whether it applies.
        Applies::Unknown(why) if outcome.fires() => {
            outcome =
                RuleOutcome { unknowns: vec![*why], is_of_pod: outcome.is_of_pod, ..Default::default() };
        }
        Applies::Unknown(_) | Applies::No => {}
    }
    for _ in &outcome.violations {
        judged.budget.finding();
    }
    if let Some(message) = &rule.message {
        for violation in &mut outcome.violations {
            violation.message = message.clone().into();
            violation.remark.clear();
        }
    }
    outcome.fires().then_some(outcome)
}

/// The note on every object that a policy with faults would judge.
fn not_in_force(policy: &str, fault: &str) -> Finding {
    let message = format!("policy {} is not in force: {fault}", plain_name(policy));
    Finding { severity: Severity::Note, ..Finding::warn(&INVALID, Pointer::root(), message) }
        .help("mend the policy; until then this object is not judged by it")
}
