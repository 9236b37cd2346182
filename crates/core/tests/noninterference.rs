//! Noninterference: no object of another namespace changes a byte of an answer, or appears in one.
//!
//! Each case of `tests/cases` and of the library of policies is decided with its state, and with a copy of each namespaced
//! object of the state in a foreign namespace: as it is, and with every annotation and label by which an object can refer
//! to others, pointing to the namespaces of the case. Decision and response must be the same, and must not name the
//! foreign namespace. So must those in a cluster where only the foreign namespace has the objects, and where none has: what
//! is missing must not be looked for there. `tests/laws.yaml` lists the cases that may differ, by the fact that allows it.

#![allow(clippy::indexing_slicing, reason = "a test stops where something is wrong")]

#[path = "../../../tests/support/cases.rs"]
mod cases;
#[path = "../../../tests/support/laws.rs"]
mod laws;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::thread;

use anyhow::{Context, Result, ensure};
use memgate_core::state::group_and_kind;
use memgate_core::{admission, state};
use memgate_model::kind::{Kind, SECRET};
use memgate_model::object::{Coverage, DEFAULT_NAMESPACE, KindState, Reference};
use memgate_model::request::{Occasion, Point};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};

/// The namespaces of the copies: one before and one behind those of the cases, none of which names them.
const FOREIGN: [&str; 2] = ["0-law-one", "zz-law-one"];

/// The parts of the metadata by which one object can refer to another.
const CLAIMS: [&str; 2] = ["annotations", "labels"];

#[test]
fn no_object_of_another_namespace_changes_an_answer() -> Result<()> {
    let all = [cases::cases()?, cases::library_cases()?].concat();
    let workers = thread::available_parallelism()?.get();
    let part = all.len().div_ceil(workers);
    let broken: Result<Vec<_>> = thread::scope(|scope| {
        let started: Vec<_> = all.chunks(part).map(|part| scope.spawn(|| broken(part))).collect();
        let ended = started.into_iter().map(|part| part.join().map_err(|_| anyhow::anyhow!("a panic"))?);
        ended.collect()
    });
    let broken: BTreeSet<String> = broken?.into_iter().flatten().collect();
    let excepted = laws::exceptions("noninterference")?;
    let unexpected: Vec<_> = broken.difference(&excepted).collect();
    let kept: Vec<_> = excepted.difference(&broken).collect();
    ensure!(unexpected.is_empty(), "objects of another namespace change these: {unexpected:#?}");
    ensure!(kept.is_empty(), "these are excepted in tests/laws.yaml and keep the law: {kept:#?}");
    Ok(())
}

/// The cases that break the law, as `file: case`.
fn broken(cases: &[(String, Case)]) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for (file, case) in cases {
        let name = format!("{file}: {}", case.name);
        if breaks(case).with_context(|| name.clone())? {
            broken.push(name);
        }
    }
    Ok(broken)
}

/// Whether the answer to a case changes with copies of its state in the foreign namespace, or names it.
fn breaks(case: &Case) -> Result<bool> {
    let namespaced: Vec<&Value> = case.state.iter().filter(|object| is_namespaced(object)).collect();
    if namespaced.is_empty() {
        return Ok(false);
    }
    let homes = namespaces(case);
    let others: Vec<Value> = case.state.iter().filter(|object| !is_namespaced(object)).cloned().collect();
    let questions: [(Read, &[Value], &str); 3] = [
        (of_files, &case.state, FOREIGN[0]),
        (of_files, &case.state, FOREIGN[1]),
        (of_cluster, &others, FOREIGN[0]),
    ];
    for (read, base, foreign) in questions {
        let expected = answer(case, read(base)?)?;
        let as_they_are = namespaced.iter().map(|object| copy(object, foreign)).collect();
        let claiming = homes.iter().map(|home| {
            namespaced.iter().map(|object| claim(copy(object, foreign), home)).collect::<Vec<Value>>()
        });
        for copies in std::iter::once(as_they_are).chain(claiming) {
            let given = answer(case, read(&[base, &copies].concat())?)?;
            if given != expected || given.contains(foreign) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A way to read a state.
type Read = fn(&[Value]) -> Result<Snapshot>;

/// The state of files.
fn of_files(objects: &[Value]) -> Result<Snapshot> {
    added(state::empty(memgate_platforms::default_settings()), objects)
}

/// The state of a cluster that has all kinds and these objects. Of Secrets nothing is known.
fn of_cluster(objects: &[Value]) -> Result<Snapshot> {
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    snapshot.crds = None;
    for kind in memgate_platforms::state_kinds(&memgate_platforms::ALL).filter(|kind| **kind != SECRET) {
        let mut state = KindState::new(Coverage::Watched);
        state.is_installed = true;
        snapshot.set(kind, state);
    }
    let known = objects.iter().filter(|object| object["kind"] != SECRET.kind);
    added(snapshot, &known.cloned().collect::<Vec<_>>())
}

fn added(mut snapshot: Snapshot, objects: &[Value]) -> Result<Snapshot> {
    for object in objects {
        state::add(&mut snapshot, object)?;
    }
    Ok(snapshot)
}

/// How often a decision in a cluster is made again, with what it did not know.
const ROUNDS: usize = 5;

/// The decision and the response as text. In a cluster, what is looked up does not exist.
fn answer(case: &Case, mut snapshot: Snapshot) -> Result<String> {
    let body = request::review(case).to_string();
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    let in_cluster = snapshot.crds.is_none();
    let point = if in_cluster { Point::Admission } else { case.occasion.point };
    review.request.occasion = Occasion { user, point, ..case.occasion };
    let mut decision = admission::admit(&review.request, &snapshot)?.decision;
    for _ in 0..ROUNDS {
        let is_asked = |it: &&Reference| *it.kind != SECRET && !it.name.is_empty();
        let absent: Vec<Reference> = decision.unknown.iter().filter(is_asked).cloned().collect();
        if !in_cluster || absent.is_empty() {
            break;
        }
        snapshot = snapshot.overlaid(absent.into_iter().map(|reference| (reference, Ok(None))));
        decision = admission::admit(&review.request, &snapshot)?.decision;
    }
    let response = admission::review(&review, &snapshot)?;
    // How many objects were looked at is no part of an answer.
    decision.steps = 0;
    Ok(format!("{decision:?}\n{}", String::from_utf8(response)?))
}

/// Whether an object of the state is in a namespace.
fn is_namespaced(object: &Value) -> bool {
    let (group, kind) = group_and_kind(object);
    let known = memgate_platforms::state_kind(&memgate_platforms::ALL, group, kind);
    known.map_or_else(|| object["metadata"].get("namespace").is_some(), |kind| kind.namespaced)
}

/// The namespaces of a case: that of its object, and those of its state.
fn namespaces(case: &Case) -> BTreeSet<String> {
    let named = case.state.iter().chain(&case.object).chain(&case.old_object);
    let named = named.filter_map(|object| object["metadata"]["namespace"].as_str());
    let given = case.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    named.chain([given]).map(str::to_owned).collect()
}

/// The object in a foreign namespace.
fn copy(object: &Value, foreign: &str) -> Value {
    let mut copy = object.clone();
    copy["metadata"]["namespace"] = foreign.into();
    copy
}

/// The object with each annotation and label by which its kind can refer to others. Each says a namespace.
fn claim(mut object: Value, home: &str) -> Value {
    let (group, kind) = group_and_kind(&object);
    let kind = memgate_platforms::state_kind(&memgate_platforms::ALL, group, kind);
    for (part, key) in kind.into_iter().flat_map(claims) {
        let metadata = &mut object["metadata"];
        if !metadata[part].is_object() {
            metadata[part] = json!({});
        }
        metadata[part][&key] = home.into();
    }
    object
}

/// The annotations and labels of a kind by which its objects refer to others: those that its schema names, and those of
/// the tables of references and of pods.
fn claims(kind: &Kind) -> BTreeSet<(&'static str, String)> {
    let of_schema = CLAIMS.into_iter().flat_map(|part| {
        let metadata = kind.schema.field("metadata").map(|metadata| metadata.schema);
        let fields = metadata.and_then(|it| it.field(part)).map_or(&[][..], |it| it.schema.fields());
        fields.iter().map(move |field| (part, field.name.to_owned()))
    });
    let of_edges = memgate_platforms::ALL.iter().flat_map(|family| family.edges).filter_map(|edge| {
        let tokens: Vec<String> = Pointer::new(edge.path).tokens().map(Cow::into_owned).collect();
        let part = tokens.get(1).and_then(|part| CLAIMS.into_iter().find(|known| known == part));
        part.zip(tokens.get(2).cloned())
    });
    let selectors = memgate_platforms::ALL.iter().flat_map(|family| family.pods.selectors);
    let of_pods = selectors.flat_map(|selector| {
        let labels = selector.labels.iter().map(|(key, _)| ("labels", (*key).to_owned()));
        labels.chain(selector.annotation.map(|key| ("annotations", key.to_owned())))
    });
    of_schema.chain(of_edges).chain(of_pods).collect()
}
