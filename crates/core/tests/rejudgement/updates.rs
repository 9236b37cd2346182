//! Two updates of one object: where one update from A to B is refused by a rule, the two from A to any M and from there to B
//! are not both admitted.
//!
//! The objects are those of `tests/views`, and each with every field in turn dropped, emptied, replaced or put in another
//! order. The rules are `immutable` for every path of views, and every rule of every policy of the case files. What
//! `tests/laws.yaml` leaves out stands there with the fact that allows it.

#![allow(clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use anyhow::{Result, ensure};
use memgate_core::{admission, state};
use memgate_model::memory_view::ViewPath;
use memgate_model::snapshot::Snapshot;
use memgate_policy::rules::TYPES;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};

use super::{cases, laws, policies};

/// The rules that are left out, by their names in `tests/laws.yaml`.
type IsOpen = fn(&Value) -> bool;

const EXCEPTIONS: [(&str, IsOpen); 2] =
    [("any-of", |rule| rule.get("anyOf").is_some()), ("users", |rule| rule["immutable"] == json!(["users"]))];

/// The types of rules that no update breaks: pods are judged when they are made.
const OF_PODS: [&str; 3] = ["images", "limits", "environment"];

/// How many objects of one kind stand for all, and how many of them are the last ones of sequences with a changed one.
const MAX_SAMPLES: usize = 10;
const MAX_LAST: usize = 5;

/// Objects of one kind, as if they were one, with what they refer to.
#[derive(Default)]
struct Samples {
    objects: Vec<Value>,
    state: Vec<Value>,
}

/// The objects of the views of every family. Some kinds count under one name only.
fn samples() -> Result<BTreeMap<String, Samples>> {
    let mut all = BTreeMap::<String, Samples>::new();
    for (_, document) in cases::documents_of("crates/core/tests/views")? {
        for case in document.as_array().into_iter().flatten() {
            let (mut object, state) = (case["object"].clone(), &case["state"]);
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (group, kind) = state::group_and_kind(&object);
            if memgate_platforms::validated(&memgate_platforms::ALL, group, kind).is_none() {
                continue;
            }
            let (kind, name) =
                (format!("{group} {kind} {}", text("/metadata/namespace")), text("/metadata/name"));
            let is_fixed = ["memory", "default"].contains(&name);
            let key = if is_fixed { format!("{kind} {name}") } else { kind };
            if !is_fixed
                && let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut)
            {
                metadata.insert("name".to_owned(), "it".into());
            }
            let samples = all.entry(key).or_default();
            if !samples.objects.contains(&object) {
                samples.objects.push(object);
                samples.state.extend(state.as_array().into_iter().flatten().cloned());
            }
        }
    }
    ensure!(all.len() > 20, "only {} kinds", all.len());
    Ok(all)
}

/// The object with each field in turn as it may stand between two values.
fn between(object: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let mut pointers =
        vec![Pointer::new("/spec"), Pointer::new("/metadata/labels"), Pointer::new("/metadata/annotations")];
    while let Some(pointer) = pointers.pop() {
        let Some(value) = object.pointer(pointer.as_str()) else { continue };
        let mut others = vec![None, Some(Value::Null)];
        match value {
            Value::Object(fields) => {
                pointers.extend(fields.keys().map(|key| pointer.key(key)));
                others.push(Some(json!({})));
            }
            Value::Array(list) => {
                pointers.extend((0..list.len()).map(|index| pointer.index(index)));
                others.push(Some(json!([])));
                others.push(Some(list.iter().rev().cloned().collect()));
                others.push(Some(list.iter().take(1).cloned().collect()));
                others.push(Some(list.iter().chain(list).cloned().collect()));
            }
            Value::String(text) => {
                others.extend(["", "$(VALUE)"].map(|text| Some(text.into())));
                others.push(Some(text.to_uppercase().into()));
                others.push(Some(json!(7)));
            }
            Value::Number(_) => others.extend(["7", "$(VALUE)"].map(|text| Some(text.into()))),
            Value::Bool(flag) => others.push(Some((!flag).into())),
            Value::Null => {}
        }
        for other in others {
            let (Some(parent), Some(key)) = (pointer.parent(), pointer.tokens().last()) else { continue };
            let mut changed = object.clone();
            match (changed.pointer_mut(parent.as_str()), other) {
                (Some(Value::Object(fields)), Some(other)) => _ = fields.insert(key.into_owned(), other),
                (Some(Value::Object(fields)), None) => _ = fields.remove(&*key),
                (Some(Value::Array(list)), Some(other)) => {
                    let index: usize = key.parse().unwrap_or_default();
                    list.splice(index..=index, [other]);
                }
                _ => continue,
            }
            if changed != *object {
                all.push(changed);
            }
        }
    }
    all
}

/// Each rule in a policy of its own, which is named by its number.
pub(super) fn with_rules(state: &[Value], rules: &[Value], existing: &str) -> Result<Snapshot> {
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    let mut known = BTreeSet::new();
    for object in state {
        let id = ["/kind", "/metadata/namespace", "/metadata/name"].map(|part| object.pointer(part).cloned());
        if known.insert(format!("{id:?}")) {
            state::add(&mut snapshot, object)?;
        }
    }
    for (index, rule) in rules.iter().enumerate() {
        let spec = json!({"existing": existing, "actions": {"admission": "deny"}, "rules": [rule]});
        let metadata = json!({"name": index.to_string()});
        let policy = json!({
            "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "metadata": metadata, "spec": spec,
        });
        state::add(&mut snapshot, &policy)?;
    }
    snapshot.crds = None;
    Ok(snapshot)
}

/// What refuses an update: the numbers of rules, and whether something else does.
type Refusal = (BTreeSet<usize>, bool);

fn refusal(old: &Value, new: &Value, snapshot: &Snapshot) -> Result<Refusal> {
    let case: Case = serde_json::from_value(json!({"operation": "UPDATE", "object": new, "oldObject": old}))?;
    let body = request::review(&case).to_string();
    let review = admission::parse(&body)?;
    let decision = admission::admit(&review.request, snapshot)?.decision;
    let by_rules = decision.counts.iter().filter(|(_, counts)| counts.denials > 0);
    let is_other = |it: &&memgate_model::finding::Finding| it.is_denial() && it.policy.is_none();
    let other = decision.findings.iter().any(|it| is_other(&it));
    Ok((by_rules.filter_map(|(name, _)| name.parse().ok()).collect(), other))
}

/// What is open for one kind: the rule with the three objects; and the rules that refuse an update.
type OpenRules = (Vec<(usize, String)>, BTreeSet<usize>);

fn open(samples: &Samples, rules: &[Value], existing: &str, changes: bool) -> Result<OpenRules> {
    let (mut found, mut refused) = (Vec::new(), BTreeSet::new());
    for known in [&samples.state[..], &[]] {
        let snapshot = with_rules(known, rules, existing)?;
        let step = samples.objects.len().div_ceil(MAX_SAMPLES);
        let objects: Vec<&Value> = samples.objects.iter().step_by(step).collect();
        let mut direct = BTreeMap::new();
        for (from, old) in objects.iter().enumerate() {
            for (to, new) in objects.iter().enumerate().filter(|(to, _)| *to != from) {
                let refusal = refusal(old, new, &snapshot)?;
                refused.extend(&refusal.0);
                direct.insert((from, to), refusal);
            }
        }
        let mut judge = |(from, to): (usize, usize), first: &Refusal, second: &Refusal, between: &Value| {
            let Some((by_rules, false)) = direct.get(&(from, to)) else { return };
            if first.1 || second.1 {
                return;
            }
            for rule in by_rules.iter().filter(|rule| !first.0.contains(rule) && !second.0.contains(rule)) {
                found.push((*rule, format!("{}\n  {}\n  {}", objects[from], between, objects[to])));
            }
        };
        for (from, to) in direct.keys() {
            for (index, between) in objects.iter().enumerate() {
                if let (Some(first), Some(second)) = (direct.get(&(*from, index)), direct.get(&(index, *to)))
                {
                    judge((*from, *to), first, second, between);
                }
            }
        }
        for (from, old) in objects.iter().enumerate().filter(|_| changes) {
            for between in between(old) {
                let first = refusal(old, &between, &snapshot)?;
                refused.extend(&first.0);
                for (to, new) in objects.iter().enumerate().step_by(objects.len().div_ceil(MAX_LAST)) {
                    if direct
                        .get(&(from, to))
                        .is_some_and(|(rules, other)| !other && !rules.is_subset(&first.0))
                    {
                        judge((from, to), &first, &refusal(&between, new, &snapshot)?, &between);
                    }
                }
            }
        }
    }
    Ok((found, refused))
}

/// Asks all kinds. Returns the rules that refused an update.
fn ask(rules: &[Value], existing: &str, changes: bool) -> Result<BTreeSet<usize>> {
    let all: Vec<(String, Samples)> = samples()?.into_iter().collect();
    let workers = thread::available_parallelism()?.get();
    let parts: Result<Vec<_>> = thread::scope(|scope| {
        let all = &all;
        let part = move |worker: usize| {
            let mine = all.iter().skip(worker).step_by(workers);
            mine.map(|(kind, samples)| Ok((kind, open(samples, rules, existing, changes)?)))
                .collect::<Result<Vec<_>>>()
        };
        let started: Vec<_> = (0..workers).map(|worker| scope.spawn(move || part(worker))).collect();
        started.into_iter().map(|part| part.join().map_err(|_| anyhow::anyhow!("a panic"))?).collect()
    });
    let (mut open, mut refused) = (Vec::new(), BTreeSet::new());
    for (kind, (found, of_kind)) in parts?.into_iter().flatten() {
        refused.extend(of_kind);
        for (rule, objects) in found {
            if EXCEPTIONS.iter().all(|(_, is_open)| !is_open(&rules[rule])) {
                open.push(format!("{kind}: {}\n  {objects}", rules[rule]));
            }
        }
    }
    let shown: Vec<_> = open.iter().step_by(open.len().div_ceil(20).max(1)).collect();
    ensure!(open.is_empty(), "{} sequences are admitted, such as {shown:#?}", open.len());
    Ok(refused)
}

#[test]
fn no_two_updates_change_what_one_may_not() -> Result<()> {
    let own = memgate_platforms::ALL.iter().filter_map(|family| family.views.own_namespace_path);
    let paths: Vec<&str> =
        ViewPath::all(own).iter().map(|row| row.path).filter(|path| !path.contains('[')).collect();
    let rules: Vec<Value> = paths.iter().map(|path| json!({"id": "it", "immutable": [path]})).collect();
    let refused = ask(&rules, "ratchet", true)?;
    let never: Vec<_> =
        paths.iter().enumerate().filter(|(rule, _)| !refused.contains(rule)).map(|(_, path)| path).collect();
    ensure!(never.is_empty(), "no update changes {never:?}: give objects with other values in tests/views");
    Ok(())
}

#[test]
fn no_two_updates_pass_a_rule_that_refuses_one() -> Result<()> {
    let listed = laws::facts("updates")?;
    let known: Vec<&str> = EXCEPTIONS.iter().map(|(name, _)| *name).collect();
    ensure!(listed == known, "tests/laws.yaml lists {listed:?}, and here are {known:?}");
    let mut rules = BTreeMap::new();
    for (_, case) in cases::cases()?.into_iter().chain(cases::library_cases()?) {
        for rule in policies(&case).filter_map(|policy| policy.pointer("/spec/rules")?.as_array()).flatten() {
            let Some(fields) = rule.as_object() else { continue };
            let judges = ["roles", "when", "onUnknown"];
            let is_type = |key: &String| TYPES.iter().any(|it| it.name == key);
            let kept = fields.iter().filter(|(key, _)| is_type(key) || judges.contains(&key.as_str()));
            let mut rule: serde_json::Map<_, _> =
                kept.map(|(key, value)| (key.clone(), value.clone())).collect();
            rule.insert("id".to_owned(), "it".into());
            rules.insert(Value::Object(rule.clone()).to_string(), Value::Object(rule));
        }
    }
    let rules: Vec<Value> = rules.into_values().collect();
    let snapshot = with_rules(&[], &rules, "ratchet")?;
    let is_valid = |index: &usize| {
        snapshot.policies.get(&index.to_string()).is_some_and(|policy| policy.invalid.is_none())
    };
    let rules: Vec<Value> =
        rules.iter().enumerate().filter(|(index, _)| is_valid(index)).map(|(_, rule)| rule.clone()).collect();
    let mut refused = ask(&rules, "ratchet", false)?;
    refused.extend(ask(&rules, "enforce", false)?);
    let has_one = |name: &str| refused.iter().any(|rule| rules[*rule].get(name).is_some());
    let never: Vec<_> = TYPES.iter().map(|it| it.name).filter(|name| !has_one(name)).collect();
    ensure!(
        never == OF_PODS,
        "no case has a rule {never:?} that refuses an update of an object in tests/views"
    );
    Ok(())
}
