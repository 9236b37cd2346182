//! `immutable`: what an update may not change.

use serde_json::Value;

use memgate_model::finding::Cause;
use memgate_model::memory_view::{
    Element, EndpointSource, Holds, MemoryView, ViewPath, ViewValue, Why, below_endpoint,
};
use memgate_model::typed_rule::{JudgedView, RuleOutcome, TypedRule};
use memgate_model::view_table::ViewTable;
use memgate_primitives::plain_text::quoted_text;

use super::check::{address, is_ambiguous};
use super::fields::{known_paths, no_path};
use super::words::{MAX_CHARS, MAX_ENTRIES};
use crate::reader::Reader;
use crate::text::{name, value};

#[derive(Debug)]
struct Immutable(Vec<&'static str>);

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let known: Vec<&str> = known_paths(reader).into_iter().map(|row| row.path).collect();
    let (of_elements, mut all): (Vec<&str>, Vec<&str>) = known.into_iter().partition(|it| it.contains('['));
    all.sort_unstable();
    let wrong = |path: &str| match path.split_once("[]") {
        Some((list, _)) if of_elements.contains(&path) => {
            let message = format!("compares no elements of a list; name the list: {}", quoted_text(list));
            (Cause::Invalid, message)
        }
        _ => no_path(path, &all),
    };
    let paths = reader.each(MAX_ENTRIES, MAX_CHARS, |path| {
        all.iter().copied().find(|known| *known == path).ok_or_else(|| wrong(path))
    });
    (!paths.is_empty()).then(|| Box::new(Immutable(paths)) as Box<dyn TypedRule>)
}

impl TypedRule for Immutable {
    fn compares(&self) -> bool {
        true
    }

    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        let Some(old) = judged.old else { return };
        for path in &self.0 {
            let pointer = judged.view.pointer(path);
            if let Some(change) = change(judged, old, path) {
                // The value stays empty: it tells whether the stored object had the same violation, and a stored object
                // never has this one.
                outcome.add(pointer, format!("{path} cannot change{change}"), String::new());
            }
        }
    }

    fn paths(&self) -> Vec<&str> {
        self.0.clone()
    }

    fn applies(&self, judged: &JudgedView<'_>) -> bool {
        judged.old.is_some() && self.paths().iter().any(|path| judged.can_have(path))
    }

    fn reads_other_objects(&self) -> bool {
        true
    }
}

/// Whether the host is part of the value at a path.
fn path_names_host(path: &str) -> bool {
    below_endpoint(path).is_some_and(|below| matches!(below, "" | ".host" | ".url"))
}

/// The end of the message about a changed value: ` (was …, is …)`, or nothing if one of the two is a list or an object;
/// `None` without a change. A value that is not known is judged by where it comes from.
fn change(judged: &JudgedView<'_>, old: &MemoryView, path: &'static str) -> Option<String> {
    if judged.view.is_gone {
        return had(judged, old, path).then(|| ": the object has no memory any more".to_owned());
    }
    let is_certain = path_names_host(path) && is_ambiguous(judged.view, path) != is_ambiguous(old, path);
    let unknown = [old, judged.view].map(|view| view.why_unknown(path).filter(|_| !is_certain));
    if unknown != [None, None] {
        let is_changed = !is_same_source(old, judged.view, path, &unknown);
        let [_, why] = unknown;
        return is_changed.then(|| match why {
            Some(why) => moved(judged, path).unwrap_or_else(|| format!(": {why}")),
            None if matches!(ViewPath::known(path).holds, Holds::List | Holds::Object) => String::new(),
            None => format!(" (was unknown, is {})", shown(judged, judged.view.value(path).as_ref())),
        });
    }
    let row = ViewPath::known(path);
    let parts = |view| row.parts(view).filter_map(|part| part.value).collect::<Vec<ViewValue<'_>>>();
    // Every policy may compare labels, of which an object may have thousands: making JSON of them takes too long.
    if row.holds == Holds::Map {
        return (parts(old) != parts(judged.view)).then(String::new);
    }
    let (was, is) = (old.value(path), judged.view.value(path));
    // JSON has the first host.
    let is_same_host = match below_endpoint(path) {
        None => true,
        Some("") => {
            old.endpoint_at(path).map(|it| &it.hosts) == judged.view.endpoint_at(path).map(|it| &it.hosts)
        }
        Some(_) => parts(old) == parts(judged.view),
    };
    if was == is && is_same_host {
        return None;
    }
    let are_several =
        row.holds_several() && [old, judged.view].iter().any(|view| row.parts(view).nth(1).is_some());
    if are_several || [&was, &is].into_iter().flatten().any(|it| it.is_array() || it.is_object()) {
        return Some(String::new());
    }
    Some(format!(" (was {}, is {})", shown(judged, was.as_ref()), shown(judged, is.as_ref())))
}

/// Whether an object whose memory is gone had a value at the path, or a place for one.
fn had(judged: &JudgedView<'_>, old: &MemoryView, path: &str) -> bool {
    let is_its = |table: &&ViewTable| table.kinds.iter().any(|kind| kind.kind == old.kind);
    old.has_value(path) || judged.tables.iter().filter(is_its).any(|table| table.has(path))
}

/// Whether a value that is not known on one side, or on both, comes from the same place: it is the same text or reference.
/// An object that is there on one side only may be one that was written meanwhile.
fn is_same_source(old: &MemoryView, new: &MemoryView, path: &str, unknown: &[Option<Why>; 2]) -> bool {
    let written = |view: &MemoryView| address(view, path).map(|endpoint| (endpoint.from, endpoint.digest));
    let named = |view: &MemoryView| view.references.iter().map(Element::whole).collect::<Vec<_>>();
    let is_behind = |view: &MemoryView| view.origins(path).next().is_some();
    match unknown {
        [Some(was), Some(is)] => was == is && written(old) == written(new),
        [None, Some(Why::Object(_))] | [Some(Why::Object(_)), None] => {
            is_behind(old) && is_behind(new) && named(old) == named(new)
        }
        _ => false,
    }
}

/// The words for an address that is in another object now.
fn moved(judged: &JudgedView<'_>, path: &str) -> Option<String> {
    let endpoint = address(judged.view, path)?;
    let kind = if endpoint.from == EndpointSource::Secret { "Secret" } else { "ConfigMap" };
    Some(format!(": it comes from {kind} {} now", name(judged, endpoint.named.as_ref()?)))
}

fn shown(judged: &JudgedView<'_>, found: Option<&Value>) -> String {
    match found {
        None => "unset".to_owned(),
        Some(Value::String(text)) => value(judged, text),
        Some(other) => value(judged, &other.to_string()),
    }
}
