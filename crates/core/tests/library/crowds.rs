//! What a decision costs beside very many objects: counted in steps, so that the machine does not matter.
//!
//! For each platform a state has ten thousand objects of each of its kinds, which refer to the judged one and to each other
//! where they can: all alike in one namespace, all of one name in as many namespaces, nearly alike beside a missing name, and
//! each with references of its own. Each kind is judged by each operation, without policies and with a policy of each path.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test stops where something is wrong"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

use memgate_core::{admission, state};
use memgate_model::decision::Decision;
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::memory_view::{Holds, ViewPath};
use memgate_model::object::{Coverage, KindState, Object, Reference};
use memgate_model::reason::Reason;
use memgate_model::request::{Occasion, Operation, Point};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_uses::StateUses;
use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};

use super::cases::cases;

/// How many objects of each kind.
const CROWD: usize = 10_000;

/// How many users of an object are judged one by one.
const FEW: usize = 250;

/// How many paths of policies are asked of each, and of how many the time is measured.
const PATHS: usize = 2;
const PATHS_MEASURED: usize = 4;

/// How much time of the processor a review may take, and how much more each KB of it, in microseconds.
const MICROS: usize = 5_000;
const MICROS_PER_KB: usize = 40;

/// How many steps that is: one takes up to a quarter of a microsecond in a release build.
const STEPS: usize = MICROS * 4;
const STEPS_PER_KB: usize = MICROS_PER_KB * 4;

/// How the objects of a state are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Crowd {
    /// In one namespace, all with the same references.
    Equal,
    /// The same, and all are being deleted.
    Leaving,
    /// The same, and as many as are looked at one by one.
    Few,
    /// Under one name in as many namespaces.
    Everywhere,
    /// In one namespace, under long names that are nearly alike, one of which is missing.
    Near,
    /// In one namespace, each with references of its own.
    Unique,
}

/// The states, and whether they are a cluster's.
const STATES: [(Crowd, bool); 8] = [
    (Crowd::Few, true),
    (Crowd::Leaving, true),
    (Crowd::Equal, false),
    (Crowd::Equal, true),
    (Crowd::Everywhere, false),
    (Crowd::Near, false),
    (Crowd::Unique, false),
    (Crowd::Unique, true),
];

/// A name of the longest length.
fn near(number: usize) -> String {
    format!("{}{number:05}", "a".repeat(245))
}

impl Crowd {
    /// The name and the namespace of an object.
    fn place(self, number: usize) -> (String, String) {
        match self {
            Self::Equal | Self::Leaving | Self::Few | Self::Unique => {
                (format!("n{number}"), "team".to_owned())
            }
            Self::Everywhere => ("notes".to_owned(), format!("home{number}")),
            Self::Near => (near(number), "team".to_owned()),
        }
    }

    /// How many objects of a kind there are.
    fn size(self, family: &Family) -> usize {
        match self {
            Self::Few => FEW / kinds(family).len(),
            _ => CROWD,
        }
    }

    /// The name to which an object refers.
    fn target(self, number: usize) -> String {
        match self {
            Self::Equal | Self::Leaving | Self::Few | Self::Everywhere => "notes".to_owned(),
            Self::Near => near(0),
            Self::Unique => format!("n{number}"),
        }
    }

    /// The names of the judged object, and of that to which it refers.
    fn judged(self) -> (String, String) {
        match self {
            Self::Equal | Self::Leaving | Self::Few | Self::Everywhere => {
                ("notes".to_owned(), "notes".to_owned())
            }
            Self::Near => (near(0), near(CROWD)),
            Self::Unique => ("n0".to_owned(), "n0".to_owned()),
        }
    }
}

/// The objects of cases, by kind: those that show most of what the kind can hold.
fn bases() -> BTreeMap<&'static Kind, Value> {
    let mut bases: BTreeMap<&'static Kind, Value> = BTreeMap::new();
    for (_, case) in cases().expect("cases") {
        if case.expect.allowed == Some(false) {
            continue;
        }
        for object in case.state.into_iter().chain(case.object) {
            let (group, kind) = state::group_and_kind(&object);
            let families = memgate_platforms::ALL.iter();
            let kind = families.flat_map(|it| it.kinds.related()).find(|known| known.is(group, kind));
            let is_more = |known: &Value| places(&object) > places(known);
            let is_common = object.to_string().len() < 4_000;
            if let Some(kind) = kind.filter(|kind| is_common && bases.get(kind).is_none_or(is_more)) {
                bases.insert(kind, object);
            }
        }
    }
    bases
}

/// How many values there are.
fn places(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(places).sum::<usize>(),
        Value::Array(elements) => 1 + elements.iter().map(places).sum::<usize>(),
        _ => 1,
    }
}

/// The object under this name, which refers to another one wherever it can.
fn object(
    base: &Value,
    family: &Family,
    kind: &Kind,
    (namespace, name): (&str, &str),
    target: &str,
) -> Value {
    let mut object = base.clone();
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"]["name"] = json!(name);
    if kind.namespaced {
        object["metadata"]["namespace"] = json!(namespace);
    }
    for edge in family.edges.iter().filter(|edge| edge.from.contains(&kind)) {
        put(&mut object, edge.path.strip_prefix('/').unwrap_or_default(), target);
    }
    object
}

/// Writes a name at each place of a path, which is made where it can be.
fn put(value: &mut Value, path: &str, name: &str) {
    let (token, rest) = path.split_once('/').map_or((path, None), |(token, rest)| (token, Some(rest)));
    if token == "*" {
        if value.is_null() {
            *value = json!([null]);
        }
        for element in value.as_array_mut().into_iter().flatten() {
            match rest {
                Some(rest) => put(element, rest, name),
                None => *element = json!(name),
            }
        }
        return;
    }
    if value.is_null() {
        *value = json!({});
    }
    let Some(fields) = value.as_object_mut() else { return };
    let field = fields.entry(token.replace("~1", "/")).or_insert(Value::Null);
    match rest {
        Some(rest) => put(field, rest, name),
        None => *field = json!(name),
    }
}

/// The kinds of a family that a state holds.
fn kinds(family: &Family) -> BTreeSet<&'static Kind> {
    let in_files = family.kinds.in_files.iter().map(|(kind, _)| *kind);
    family.kinds.watched.iter().chain(family.kinds.fetched).copied().chain(in_files).collect()
}

/// A base of a kind, or an object with nothing.
fn base(bases: &BTreeMap<&'static Kind, Value>, kind: &'static Kind) -> Value {
    let empty = || json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {}, "spec": {}});
    bases.get(kind).cloned().unwrap_or_else(empty)
}

/// A state with a crowd of each kind.
fn crowded(
    family: &'static Family,
    bases: &BTreeMap<&'static Kind, Value>,
    crowd: Crowd,
    in_cluster: bool,
) -> Snapshot {
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    if in_cluster {
        snapshot.crds = None;
        for kind in memgate_platforms::state_kinds(&memgate_platforms::ALL) {
            let mut state = KindState::new(Coverage::Watched);
            state.is_installed = true;
            snapshot.set(kind, state);
        }
    }
    for kind in kinds(family) {
        let mut base = base(bases, kind);
        if crowd == Crowd::Leaving {
            base["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let mut first = None;
        let state = snapshot.kind_mut(kind);
        let is_alike = crowd != Crowd::Unique;
        for number in 0..crowd.size(family) {
            let (name, namespace) = crowd.place(number);
            let read = || {
                let object = object(&base, family, kind, (&namespace, &name), &crowd.target(number));
                Object::read(kind, &object).ok().flatten()
            };
            let Some(like) = first.get_or_insert_with(read).clone() else { break };
            let object = if is_alike { Some(like) } else { read() };
            let Some(mut object) = object else { break };
            object.name = name.into();
            object.namespace = if kind.namespaced { namespace.into() } else { "".into() };
            object.namespace_given = true;
            state.insert(object);
        }
        let (name, target) = crowd.judged();
        let judged = object(&base, family, kind, ("team", &name), &target);
        if let Ok(Some(object)) = Object::read(kind, &judged) {
            state.insert(object);
        }
    }
    if !in_cluster {
        // Some of them stand twice among the files.
        let all =
            kinds(family).into_iter().filter_map(|kind| snapshot.kind(kind)).flat_map(KindState::objects);
        let all = all.step_by(100).map(|it| Reference {
            kind: it.kind,
            namespace: it.namespace.to_string(),
            name: it.name.to_string(),
        });
        snapshot.uses = Some(Arc::new(StateUses::of(all)));
    }
    snapshot
}

fn case(operation: Operation, object: &Value, old: Option<&Value>) -> Case {
    let case = json!({"name": "it", "operation": operation.name(), "object": object, "oldObject": old, "expect": {"allowed": true}});
    memgate_workbench::files::casefile::read::read(&case).expect("a case").remove(0)
}

/// Each operation on an object.
fn operations(object: &Value) -> Vec<(&'static str, Case)> {
    let mut labelled = object.clone();
    labelled["metadata"]["labels"] = json!({"team": "owl"});
    let mut other = object.clone();
    change(other.get_mut("spec").unwrap_or(&mut Value::Null));
    vec![
        ("create", case(Operation::Create, object, None)),
        ("label", case(Operation::Update, &labelled, Some(object))),
        ("spec", case(Operation::Update, object, Some(&other))),
        ("delete", case(Operation::Delete, &Value::Null, Some(object))),
    ]
}

/// Changes texts and numbers.
fn change(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(change),
        Value::Array(elements) => elements.iter_mut().for_each(change),
        Value::Number(_) => *value = json!(7),
        Value::String(text) => text.push('x'),
        _ => {}
    }
}

/// A policy with a rule for a path and role.
fn policies() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let families = memgate_platforms::ALL;
    let rows = ViewPath::all(families.iter().filter_map(|family| family.views.own_namespace_path));
    for row in rows {
        for role in row.own.iter().chain(row.by_sources) {
            let path = match row.holds {
                Holds::Map => format!("{}[\"k\"]", row.path),
                _ => row.path.to_owned(),
            };
            let condition = match row.holds {
                Holds::Integer => json!({"path": path, "max": 3}),
                _ => json!({"path": path, "exists": true}),
            };
            let rules = json!([{"id": "it", "roles": [role.name()], "fields": [condition]}]);
            let spec = json!({"actions": {"admission": "deny"}, "rules": rules});
            let policy = json!({
                "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy",
                "metadata": {"name": "org"}, "spec": spec,
            });
            let (_, faults) = memgate_policy::read::policy(&policy, &families);
            if faults.is_empty() {
                all.push((format!("{} {path}", role.name()), policy));
            }
        }
    }
    all
}

/// What a review took.
struct Cost {
    /// What was judged, and with what.
    at: String,
    /// How large the review is.
    bytes: usize,
    decision: Decision,
    /// The time of the processor, in microseconds, where it was measured.
    micros: usize,
}

impl Cost {
    /// A bound for this size.
    const fn most(&self, most: usize, most_per_kb: usize) -> usize {
        most + self.bytes * most_per_kb / 1024
    }
}

/// A review to a webhook, after which what is made once for a state is there; and the time of more of them, in the middle.
fn cost(case: &Case, snapshot: &Snapshot, runs: usize, at: String) -> Cost {
    let body = request::review(case).to_string();
    let decide = || {
        let mut review = admission::parse(&body).expect("a review");
        let user = review.request.occasion.user;
        review.request.occasion = Occasion { user, point: Point::Admission, ..case.occasion };
        memgate_core::decide::decide(&review.request, snapshot)
    };
    let decision = decide();
    let micros = spent(|| (0..runs).for_each(|_| drop(decide()))) / runs.max(1);
    Cost { at, bytes: body.len(), decision, micros }
}

/// The time that the processor spends on something in this thread, in microseconds.
fn spent(run: impl FnOnce()) -> usize {
    let now = || {
        let text =
            std::fs::read_to_string("/proc/thread-self/schedstat").expect("a thread that is scheduled");
        text.split(' ').next().and_then(|text| text.parse::<usize>().ok()).expect("a number")
    };
    let start = now();
    run();
    (now() - start) / 1_000
}

/// The pods of a family in cases, of an agent of this name.
fn pods(family: &Family, name: &str) -> Vec<Value> {
    let prefix = format!("{}/", family.name);
    let of_family = cases().expect("cases").into_iter().filter(|(file, _)| file.starts_with(&prefix));
    let is_small = |pod: &Value| pod["kind"] == "Pod" && pod.to_string().len() < 6_000;
    let mut pods: Vec<Value> = of_family.filter_map(|(_, case)| case.object.filter(is_small)).collect();
    pods.sort_by_key(|pod| std::cmp::Reverse(places(pod)));
    pods.truncate(2);
    for pod in &mut pods {
        pod["metadata"]["namespace"] = json!("team");
        for edge in family.edges.iter().filter(|edge| edge.from.is_empty()) {
            let is_there = pod.pointer(edge.path).is_some();
            if is_there {
                put(pod, edge.path.strip_prefix('/').unwrap_or_default(), name);
            }
        }
    }
    pods
}

/// What is judged: the objects of the kinds by each operation, and pods.
fn judged(family: &Family, bases: &BTreeMap<&'static Kind, Value>, crowd: Crowd) -> Vec<(String, Case)> {
    let (name, target) = crowd.judged();
    let of_kind = |kind: &&'static Kind| {
        let object = object(&base(bases, kind), family, kind, ("team", &name), &target);
        operations(&object).into_iter().map(|(operation, case)| (format!("{} {operation}", kind.kind), case))
    };
    let pods = pods(family, &name).into_iter();
    let pods = pods.map(|pod| ("Pod".to_owned(), case(Operation::Create, &pod, None)));
    family.kinds.validated.iter().flat_map(of_kind).chain(pods).collect()
}

/// What reviews of a family take, with this many paths of policies and measured so often.
fn of_family(
    family: &'static Family,
    bases: &BTreeMap<&'static Kind, Value>,
    (paths, runs): (usize, usize),
) -> Vec<Cost> {
    let (policies, mut costs, mut next) = (policies(), Vec::new(), 0);
    let of_users = |(path, _): &&(String, Value)| path.ends_with(" users");
    for (crowd, in_cluster) in STATES {
        let snapshot = crowded(family, bases, crowd, in_cluster);
        for (what, case) in judged(family, bases, crowd) {
            // Every path is asked somewhere, and how many agents use a memory everywhere.
            let asked = policies.iter().cycle().skip(next).take(paths);
            next = (next + paths) % policies.len();
            for (path, policy) in policies.iter().filter(of_users).chain(asked) {
                let mut with = snapshot.clone();
                state::add(&mut with, policy).expect("a policy");
                let at = format!("{} {crowd:?} in_cluster={in_cluster} {what} {path}", family.name);
                costs.push(cost(&case, &with, runs, at));
            }
        }
    }
    costs
}

/// What reviews take, with a thread for each family.
fn costs(how: (usize, usize)) -> Vec<Cost> {
    let bases = &bases();
    let only = std::env::var("FAMILY").unwrap_or_default();
    thread::scope(|scope| {
        let families = memgate_platforms::ALL.into_iter().filter(|family| family.name.starts_with(&only));
        let run = |family| scope.spawn(move || of_family(family, bases, how));
        let started: Vec<_> = families.map(run).collect();
        started.into_iter().flat_map(|one| one.join().expect("no panic")).collect()
    })
}

#[test]
fn what_a_decision_costs_does_not_come_from_the_state() {
    let mut said = Vec::new();
    for cost in costs((PATHS, 0)) {
        let (took, most) = (cost.decision.steps as usize, cost.most(STEPS, STEPS_PER_KB));
        if took > most || cost.decision.reason == Reason::OverLimit {
            said.push(format!("{took} of {most} steps: {}", cost.at));
        }
    }
    assert!(said.is_empty(), "{} are above their steps:\n{}", said.len(), said.join("\n"));
}

/// The same in time of the processor: what a step takes depends on what it does. For a release build.
#[test]
#[ignore = "measures time"]
fn what_a_decision_costs_in_time_does_not_come_from_the_state() {
    let mut costs = costs((PATHS_MEASURED, 8));
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.micros * 1_000 / cost.most(MICROS, MICROS_PER_KB)));
    let line = |cost: &Cost| {
        let most = cost.most(MICROS, MICROS_PER_KB);
        format!("{} of {most} us, {} steps: {}", cost.micros, cost.decision.steps, cost.at)
    };
    let dearest: Vec<_> = costs.iter().take(40).map(line).collect();
    println!("{} reviews, the dearest of them:\n{}", costs.len(), dearest.join("\n"));
    let above = costs.iter().filter(|cost| cost.micros > cost.most(MICROS, MICROS_PER_KB)).count();
    assert_eq!(above, 0, "are above their time");
}
