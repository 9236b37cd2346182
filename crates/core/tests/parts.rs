//! A part of an object has no finding that the whole object does not have: for the object of every case, each value alone,
//! and each section alone.

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "../../../tests/support/cases.rs"]
mod cases;

use std::collections::BTreeSet;
use std::iter::successors;

use memgate_core::admission;
use memgate_core::decide::{MAX_REPORTED, decide, form, part};
use memgate_model::finding::Finding;
use memgate_model::request::{Occasion, Operation};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::request;
use serde_json::{Map, Value};

/// The values below a place, each where it is: those of all depths.
fn places(value: &Value, at: &Pointer, places: &mut Vec<Pointer>) {
    places.push(at.clone());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, below)| self::places(below, &at.key(key), places));
        }
        Value::Array(elements) => {
            elements
                .iter()
                .enumerate()
                .for_each(|(index, below)| self::places(below, &at.index(index), places));
        }
        _ => {}
    }
}

/// The object with nothing but one value, and what tells its kind.
fn part_at(object: &Value, at: &Pointer) -> Option<Value> {
    let tokens: Vec<_> = at.tokens().collect();
    let mut value = object.pointer(at.as_str())?.clone();
    for (depth, token) in tokens.iter().enumerate().rev() {
        let holder = tokens.iter().take(depth).fold(Pointer::root(), |at, token| at.key(token));
        value = match object.pointer(holder.as_str())? {
            Value::Array(_) => {
                let mut list = vec![Value::Null; token.parse::<usize>().ok()?];
                list.push(value);
                Value::Array(list)
            }
            _ => Value::Object(Map::from_iter([(token.to_string(), value)])),
        };
    }
    let fields = value.as_object_mut()?;
    for field in ["apiVersion", "kind"] {
        fields.insert(field.to_owned(), object.get(field)?.clone());
    }
    Some(value)
}

/// The findings of a part that the whole does not have, and how many findings parts have.
fn more(case: &Case) -> (Vec<String>, usize) {
    let (Some(object), Operation::Create) = (&case.object, case.operation) else { return (Vec::new(), 0) };
    let Ok(mut snapshot) = request::state(case) else { return (Vec::new(), 0) };
    let body = request::review(case).to_string();
    let review = admission::parse(&body).expect("a review");
    let whole: Vec<Finding> = decide(&review.request, &snapshot)
        .findings
        .into_iter()
        .chain(form::findings(&review.request))
        .collect();
    if whole.len() >= MAX_REPORTED {
        return (Vec::new(), 0);
    }
    // Another rule of the whole may say it, at the same place or above.
    let places: BTreeSet<_> =
        whole.iter().map(|it| it.pointer.as_str()).filter(|it| !it.is_empty()).collect();
    let is_known = |it: &Finding| {
        let mut up = successors(Some(it.pointer.as_str()), |at| Some(at.rsplit_once('/')?.0));
        up.any(|at| places.contains(at))
    };
    let crds = snapshot.crds.take();
    snapshot = Snapshot::new(snapshot.settings.clone());
    snapshot.crds = crds;
    let (mut all, mut count) = (Vec::new(), 0);
    self::places(object, &Pointer::root(), &mut all);
    let mut more = Vec::new();
    for at in all.iter().filter(|at| **at != Pointer::root()) {
        let Some(value) = part_at(object, at) else { continue };
        let text = value.to_string();
        let mut request = review.request.clone();
        request.object = Some(&text);
        request.occasion = Occasion { is_part: true, ..Occasion::default() };
        let Some((findings, _)) = part::findings(&request, &value, &snapshot) else { return (more, 0) };
        count += findings.len();
        let news = findings.iter().filter(|it| !is_known(it));
        more.extend(news.map(|it| format!("{} at {}: {}", it.code.name, it.pointer, it.message())));
    }
    (more, count)
}

#[test]
fn a_part_has_no_finding_of_its_own() {
    let (mut wrong, mut found, mut families) = (Vec::new(), 0, BTreeSet::new());
    for (file, case) in cases::cases().expect("cases") {
        let (more, count) = more(&case);
        if count > 0 {
            families.extend(file.split('/').next().map(str::to_owned));
        }
        found += count;
        wrong.extend(more.into_iter().map(|it| format!("{file}: {}: {it}", case.name)));
    }
    assert!(wrong.is_empty(), "{} of {found}:\n{}", wrong.len(), wrong.join("\n"));
    for family in memgate_platforms::ALL {
        assert!(families.contains(family.name), "{families:?}");
    }
    assert!(found > 1_000, "{found}");
}
