//! Judges the stored objects that refer to a written one, by what they read from it.
//!
//! Each is judged twice, as it reads the object before the write and after it, and only what is new counts. The finding
//! is about the written object, at the field from which the value comes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::memory_view::{MemoryView, Role};
use memgate_model::policy::{Exemption, Policies, Policy, Question, Rule};
use memgate_model::policy_rule::{PolicyStatus, RuleResult};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_primitives::pointer::Pointer;

use super::verdict::{Follows, Verdict};
use super::{Judge, Judgement, Stored, Views};
use crate::exempt;
use crate::matching::Candidate;
use crate::places::ObjectPlaces;
use crate::selection::{Selection, Subject, select};
use crate::text::plain_name;

/// The object that is written.
#[derive(Debug, Clone, Copy)]
pub struct WrittenObject<'w> {
    /// Its kind.
    pub kind: &'static Kind,
    /// Its name.
    pub name: &'w str,
    /// Its JSON, as it would be stored.
    pub text: &'w str,
}

/// A stored object that refers to the written one, with its views after the write and before it.
#[derive(Debug)]
pub struct MemoryUser<'u> {
    /// The object.
    pub subject: Subject<'u>,
    /// Its views. The place of what it reads from the written object is there.
    pub views: Views<'u>,
}

impl WrittenObject<'_> {
    /// Whether this is its view.
    fn is(&self, memory: &MemoryView) -> bool {
        memory.kind == self.kind.kind && memory.name == self.name
    }
}

/// A user, and the policies that match it.
struct Asked<'u, 'p> {
    user: &'u MemoryUser<'u>,
    selection: Selection<'p>,
    /// The fields of the written object from which the user has values.
    fields: BTreeSet<Pointer>,
}

/// What is new by a rule for one user.
struct New<'p> {
    place: Pointer,
    message: String,
    follows: Follows,
    exemption: Option<&'p Exemption>,
    applies: Vec<String>,
}

/// The first new finding of a rule: whose it is, and how many users have one that is as strict.
struct FirstFinding<'p> {
    asked: usize,
    of_selection: usize,
    rule: usize,
    new: New<'p>,
    users: usize,
}

/// Why the users of an object are not judged whose views take too many steps.
pub const TOO_LARGE: &str = "the objects that use it are too large";

/// Judges all users, which come by kind and name. One finding a rule.
pub fn judge_users<'p>(
    users: &mut [MemoryUser<'_>],
    written: &WrittenObject<'_>,
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
) -> Judgement {
    let asked = ask(users, written, snapshot, state, Question::Resource);
    let mut firsts: BTreeMap<(&str, usize), FirstFinding<'p>> = BTreeMap::new();
    for (index, one) in asked.iter().enumerate() {
        one.judge(written, snapshot, state, |of_selection, rule, name, new| {
            let first = FirstFinding { asked: index, of_selection, rule, new, users: 1 };
            let first = match firsts.remove(&(name, rule)) {
                Some(known) if is_stricter(&first.new.follows, &known.new.follows) => first,
                Some(known) if !is_stricter(&known.new.follows, &first.new.follows) => {
                    FirstFinding { users: known.users + 1, ..known }
                }
                known => known.unwrap_or(first),
            };
            firsts.insert((name, rule), first);
        });
    }
    if state.budget().has_ended() {
        let reads = |rule: &Rule| asked.iter().find_map(|one| one.may_read(rule, written));
        return refuse(&asked, written, reads, &format!("cannot be judged: {TOO_LARGE}"));
    }
    let places = ObjectPlaces::of(written.text);
    let mut judgement = Judgement::default();
    for one in &asked {
        judgement.policies.extend(one.selection.policies.iter().map(|(policy, _)| policy.name.clone()));
    }
    for FirstFinding { asked: index, of_selection, rule, new, users } in firsts.into_values() {
        let one = asked.get(index);
        let found = one.and_then(|one| Some((one, one.selection.policies.get(of_selection)?)));
        let Some((one, (policy, matches))) = found else { continue };
        let Some(rule) = policy.rules.get(rule) else { continue };
        let candidate = one.selection.candidate(&one.user.subject);
        let verdict = Verdict::new(policy, rule, *matches, one.user.subject.occasion, &candidate);
        let New { place, message, follows, exemption, applies } = new;
        let more = if users > 1 { format!(" and {} more", users - 1) } else { String::new() };
        let user = format!(" ({} {})", one.user.subject.kind, plain_name(candidate.name));
        judgement.exemptions.extend(follows.about.exemption.as_ref().map(|exemption| exemption.name.clone()));
        if one.user.subject.occasion.counts_rules {
            let is_unknown = follows.about.status == PolicyStatus::Unknown;
            let result = if is_unknown { RuleResult::Unknown } else { RuleResult::Fired };
            judgement.rules.push((rule.about.clone(), result));
        }
        judgement.add(verdict.told(
            follows,
            &places.nearest(&place),
            (&(message + &user + &more), String::new()),
            exemption,
            &applies,
        ));
    }
    judgement
}

/// What is said where not all objects that refer to the written one are looked at, and why: by each policy that could match them,
/// the first of its strictest rules that may read a value from it. `some` are those that are looked at. Where the write leaves
/// alone what the object means, only rules about labels count.
pub fn refuse_many<'p>(
    some: &mut [MemoryUser<'_>],
    written: &WrittenObject<'_>,
    (why, changes): (&str, bool),
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
) -> Judgement {
    let asked = ask(some, written, snapshot, state, Question::Users);
    let reads = |rule: &Rule| {
        let is_about_labels =
            changes || ["labels", "tenancy", "fields", "anyOf"].contains(&rule.about.type_name);
        is_about_labels.then(|| asked.iter().find_map(|one| one.may_read(rule, written))).flatten()
    };
    refuse(&asked, written, reads, &format!("cannot be judged: {why}"))
}

fn refuse(
    asked: &[Asked<'_, '_>],
    written: &WrittenObject<'_>,
    reads: impl Fn(&Rule) -> Option<Pointer>,
    message: &str,
) -> Judgement {
    let places = ObjectPlaces::of(written.text);
    let mut strictest: BTreeMap<&str, Option<Finding>> = BTreeMap::new();
    for Asked { user, selection, .. } in asked {
        let candidate = selection.candidate(&user.subject);
        for (policy, matches) in &selection.policies {
            // It is the same for all users: which rules read what does not depend on one of them.
            if strictest.contains_key(&*policy.name) {
                continue;
            }
            let verdict = |rule| Verdict::new(policy, rule, *matches, user.subject.occasion, &candidate);
            let verdicts = policy.rules.iter().filter_map(|rule| Some((verdict(rule), reads(rule)?)));
            let found = verdicts.min_by_key(|(verdict, _)| Reverse(verdict.action));
            let finding =
                found.and_then(|(verdict, field)| verdict.finding(&places.nearest(&field), message, false));
            strictest.insert(&policy.name, finding);
        }
    }
    let mut judgement = Judgement::default();
    for (policy, finding) in strictest {
        judgement.policies.push(policy.to_owned());
        if let Some(finding) = finding {
            judgement.add(finding);
        }
    }
    judgement
}

/// The users for which policies match, with views whose places are in the written object.
fn ask<'u, 'p>(
    users: &'u mut [MemoryUser<'_>],
    written: &WrittenObject<'_>,
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
    question: Question,
) -> Vec<Asked<'u, 'p>> {
    let mut asked = Vec::new();
    for user in users {
        let Some(mut selection) = select(&user.subject, snapshot, state, question) else { continue };
        let mut fields = BTreeSet::new();
        for view in [Some(&mut user.views.new), user.views.old.as_mut()].into_iter().flatten() {
            selection.complete(&user.subject, view);
            fields.extend(view.place_in_origin(written.kind));
            for source in &mut view.sources {
                fields.extend(source.view.place_in_origin(written.kind));
            }
        }
        let homes = user.views.new.sources.iter().map(|source| source.view.namespace.as_str());
        selection.look_up(homes, state);
        asked.push(Asked { user, selection, fields });
    }
    asked
}

/// The field of the written object from which this view, or that of a memory which it uses, has what a rule judges;
/// `None` if the rule judges nothing of it.
fn read_from(rule: &Rule, view: &MemoryView, written: &WrittenObject<'_>) -> Option<Pointer> {
    if !rule.roles.contains(&view.role) {
        return None;
    }
    let paths = rule.paths();
    let field = |view: &MemoryView| {
        let is_read = |path: &&&str| written.is(view) || view.origins(path).any(|it| it == written.kind);
        paths.iter().find(is_read).map(|path| view.pointer(path))
    };
    let own = rule.own.contains(&view.role).then(|| field(view)).flatten();
    let is_by_sources = rule.by_sources.contains(&view.role);
    own.or_else(|| view.sources.iter().filter(|_| is_by_sources).find_map(|source| field(&source.view)))
}

impl<'p> Asked<'_, 'p> {
    /// The field of the written object that a rule may read by way of this user, whatever the role of others behind it is.
    fn may_read(&self, rule: &Rule, written: &WrittenObject<'_>) -> Option<Pointer> {
        let Views { new, old, .. } = &self.user.views;
        let all = || [Some(new), old.as_ref()].into_iter().flatten();
        let sources = all().flat_map(|view| view.sources.iter().map(|source| &source.view));
        let mut views = all().chain(sources);
        let is_asked =
            rule.own.contains(&Role::Memory) || !rule.by_sources.iter().all(|role| *role == Role::Pod);
        let paths = rule.check.paths();
        let field = |view: &MemoryView| {
            // What the view lacks now it may have had before.
            let lists = ["secrets", "inline"]
                .iter()
                .any(|list| paths.contains(list) && view.has_origin(written.kind));
            let is_read = |path: &&&str| written.is(view) || view.origins(path).any(|it| it == written.kind);
            let path = paths.iter().find(is_read).copied();
            path.or_else(|| lists.then_some("secrets")).map(|path| view.pointer(path))
        };
        is_asked.then(|| views.find_map(field)).flatten()
    }

    /// Finds what is new by each rule: given with the number of the policy, that of the rule, and the policy's name.
    fn judge(
        &self,
        written: &WrittenObject<'_>,
        snapshot: &'p Snapshot,
        state: &StateReader<'p>,
        mut add: impl FnMut(usize, usize, &'p str, New<'p>),
    ) {
        let Self { user: MemoryUser { subject, views }, selection, .. } = self;
        let budget = state.budget();
        let judge = Judge {
            subject,
            sent: Judge::sent(subject),
            snapshot,
            selection,
            views,
            budget,
            nearest: &Pointer::as_str,
            changes: &|| true,
            in_memory: true,
        };
        for (of_selection, (policy, matches)) in selection.policies.iter().enumerate() {
            let policy: &'p Policy = policy;
            for (index, rule) in policy.rules.iter().enumerate().take_while(|_| !budget.has_ended()) {
                let mut all = [Some(&views.new), views.old.as_ref()].into_iter().flatten();
                let brings = || rule.by_sources.contains(&views.new.role) && brings_sources(views);
                let field = all.find_map(|view| read_from(rule, view, written));
                let Some(field) = field.or_else(|| brings().then(|| Pointer::new("/spec"))) else {
                    continue;
                };
                let candidate = selection.candidate(subject);
                let verdict = Verdict::new(policy, rule, *matches, subject.occasion, &candidate);
                if !verdict.counts() {
                    continue;
                }
                if let Some(new) =
                    self.new_by((policy, rule), &verdict, (&judge, &snapshot.policies), (written, &field))
                {
                    add(of_selection, index, &policy.name, new);
                }
            }
        }
    }

    /// The strictest new finding of a rule, and of equals the first.
    fn new_by(
        &self,
        (policy, rule): (&Policy, &Rule),
        verdict: &Verdict<'_>,
        (judge, policies): (&Judge<'_>, &'p Policies),
        (written, field): (&WrittenObject<'_>, &Pointer),
    ) -> Option<New<'p>> {
        let stored = Stored::of(judge.stored(rule));
        let Subject { family, object, occasion, .. } = *judge.subject;
        let exemption = |candidate: &Candidate<'_>, labels: &BTreeMap<String, String>| {
            exempt::find(policies, (policy, rule), (candidate, labels), occasion.now, judge.budget)
        };
        let own = exemption(&judge.selection.candidate(judge.subject), object.labels());
        let mut strictest: Option<New<'p>> = None;
        for part in judge.outcomes(rule, &judge.views.new, judge.views.old.as_ref()) {
            let of_memory = part
                .memory
                .and_then(|memory| exemption(&Candidate::of_memory(memory, family.name), &memory.labels));
            let longest = own.into_iter().chain(of_memory).min_by(|one, other| exempt::order(one, other));
            let is_new = |memory: &MemoryView| !has_source(judge.views.old.as_ref(), memory);
            let is_written = part.memory.is_some_and(|memory| written.is(memory));
            let is_brought = part.memory.is_some_and(is_new);
            let is_read = |place: &Pointer| is_written || self.fields.contains(place);
            let counts = |place: &Pointer| rule.when.is_some() || is_brought || is_read(place);
            let violations = part.outcome.violations.into_iter().filter(|it| {
                let mut places = it.others.iter().chain([it]).map(|it| &it.pointer);
                places.any(counts) && !stored.has(it)
            });
            let mut found: Vec<_> = violations.map(|it| (it.told(), it.pointer, None)).collect();
            let unknowns = part.outcome.unknowns.into_iter();
            let unknowns = unknowns.filter(|it| counts(&it.pointer) && !stored.has_unknown(it));
            found.extend(
                unknowns.map(|it| (format!("cannot be judged: {}", it.why), it.pointer, Some(it.why))),
            );
            for (message, place, why) in found {
                let Some(follows) = verdict.follows(why.as_ref(), false, longest) else { continue };
                if strictest.as_ref().is_none_or(|known| is_stricter(&follows, &known.follows)) {
                    let place = if is_read(&place) { place } else { field.clone() };
                    let applies = part.outcome.applies.clone();
                    strictest = Some(New { place, message, follows, exemption: longest, applies });
                }
            }
        }
        strictest
    }
}

/// Whether a view is of a user of this memory.
fn has_source(view: Option<&MemoryView>, memory: &MemoryView) -> bool {
    let is_it = |it: &MemoryView| {
        (it.kind, &it.namespace, &it.name) == (memory.kind, &memory.namespace, &memory.name)
    };
    view.is_some_and(|view| view.sources.iter().any(|source| is_it(&source.view)))
}

/// Whether the user uses a memory after the write that it did not use before: the written object leads to it.
fn brings_sources(views: &Views<'_>) -> bool {
    views.new.sources.iter().any(|source| !has_source(views.old.as_ref(), &source.view))
}

/// Whether more follows from the one than from the other.
fn is_stricter(one: &Follows, other: &Follows) -> bool {
    one.severity > other.severity
}
