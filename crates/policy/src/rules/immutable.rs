//! `immutable`: what an update may not change.

use serde_json::Value;

use memgate_model::cel_view::{CelFault, CelSide, InCel, MessagePart, Sayable};
use memgate_model::finding::Cause;
use memgate_model::memory_view::{EndpointView, MemoryView, PATHS, Why};
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};
use memgate_primitives::plain_text::quoted;
use memgate_primitives::suggest::{did_you_mean, nearest};

use super::super::in_cel::{VALUE, shown_in_cel, text};
use super::super::reader::Reader;
use super::super::text::value;
use super::words::{MAX_CHARS, MAX_ENTRIES};

#[derive(Debug)]
struct Immutable(Vec<&'static str>);

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let of_families = reader.families().iter().filter_map(|family| family.views.own_namespace_path);
    let mut all: Vec<&str> = PATHS.into_iter().chain(of_families).collect();
    all.sort_unstable();
    let paths = reader.each(MAX_ENTRIES, MAX_CHARS, |path| {
        all.iter().copied().find(|known| *known == path).ok_or_else(|| {
            let hint = match nearest(path, all.iter().copied()) {
                None => format!("; the paths are {}", all.join(", ")),
                near => did_you_mean(near),
            };
            (Cause::NotSupported, format!("there is no path {} in a view{hint}", quoted(path)))
        })
    });
    (!paths.is_empty()).then(|| Box::new(Immutable(paths)) as Box<dyn TypedRule>)
}

impl TypedRule for Immutable {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let Some(old) = judged.old else { return };
        for path in &self.0 {
            let pointer = judged.view.pointer(path);
            let is_certain = path_names_host(path) && is_ambiguous(judged.view) != is_ambiguous(old);
            let why = unknown(judged.view, path).or_else(|| unknown(old, path));
            if let Some(why) = why.filter(|_| !is_certain) {
                let digest = judged.view.endpoint.as_ref().map_or(0, |endpoint| endpoint.digest);
                outcome.add_unknown_of(pointer, why, digest);
                continue;
            }
            if let Some(change) = change(judged, old, path) {
                // The value stays empty: it tells whether the stored object had the same violation, and a stored object
                // never has this one.
                outcome.add(pointer, format!("{path} cannot change{change}"), String::new());
            }
        }
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        /// What no update of an object changes.
        const FIXED: [&str; 5] = ["family", "kind", "name", "namespace", "role"];
        /// What is one value.
        const SCALARS: [&str; 7] =
            ["backend", "collection", "durable", "endpoint.from", "maxEntries", "provider", "ttlSeconds"];
        for path in self.0.iter().copied().filter(|path| !FIXED.contains(path)) {
            if path == "labels" || !SCALARS.contains(&path) && side.at(path) != Sayable::Absent {
                let why = match side.at(path) {
                    Sayable::Unsaid(reason) => reason,
                    Sayable::Entries(_) | Sayable::Absent => "only single values are compared in CEL",
                };
                said.leave_out(format!("immutable {path}"), why);
                continue;
            }
            let Some(is) = said.entries(side, path, &format!("immutable {path}")) else { continue };
            let Sayable::Entries(was) = side.before().at(path) else { continue };
            let values = |entries: &str| format!("{entries}.map(it, {VALUE})");
            let shown = |entries: &str| {
                let value = shown_in_cel(&format!("{entries}[0].split(' ', 2)[1]"));
                format!("(size({entries}) == 0 ? 'unset' : '\"' + {value} + '\"')")
            };
            let mut changed = format!("oldObject != null && {} != {}", values(&is), values(&was));
            // Where other objects say what an absent value means, only values that are there are compared.
            if let Some(reason) = side.default_unsaid(path) {
                said.leave_out(format!("immutable {path} where it is absent"), reason);
                changed = format!("size({is}) > 0 && size({was}) > 0 && {changed}");
            }
            let place = format!("({is} + {was})[0].split(' ', 2)[0]");
            let fault = format!("{place} + ' (was ' + {} + ', is ' + {} + ')'", shown(&was), shown(&is));
            said.faults.push(CelFault {
                list: format!("{changed} ? [{fault}] : []"),
                words: 2,
                message: vec![text(format!("{path} cannot change ")), MessagePart::Plain(1)],
                transition: true,
            });
        }
    }

    fn reads_other_objects(&self) -> bool {
        true
    }
}

/// Whether the host is part of the value at a path.
fn path_names_host(path: &str) -> bool {
    matches!(path, "endpoint" | "endpoint.host" | "endpoint.url")
}

/// Whether clients read the host in different ways. Then it differs from every host that they agree on.
fn is_ambiguous(view: &MemoryView) -> bool {
    view.endpoint.as_ref().is_some_and(EndpointView::is_ambiguous)
}

/// Why the value at a path cannot be known, though there is one.
fn unknown(view: &MemoryView, path: &str) -> Option<Why> {
    if let Some(why) = view.unknown_at(path) {
        return Some(why.clone());
    }
    let below = path.strip_prefix("endpoint").filter(|below| *below != ".from")?;
    let endpoint = view.endpoint.as_ref()?;
    let of_port = || endpoint.port_unknown.clone().filter(|_| matches!(below, "" | ".port" | ".url"));
    endpoint.unknown.clone().or_else(of_port)
}

/// The end of the message about a changed value: ` (was …, is …)`, or nothing if one of the two is a list or an object;
/// `None` without a change.
fn change(judged: &Judged<'_>, old: &MemoryView, path: &str) -> Option<String> {
    // Every policy may compare them, and an object may have thousands: making JSON of them takes too long.
    if path == "labels" {
        return (old.labels != judged.view.labels).then(String::new);
    }
    let (was, is) = (old.value(path), judged.view.value(path));
    if was == is {
        return None;
    }
    if [&was, &is].into_iter().flatten().any(|it| it.is_array() || it.is_object()) {
        return Some(String::new());
    }
    Some(format!(" (was {}, is {})", shown(judged, was.as_ref()), shown(judged, is.as_ref())))
}

fn shown(judged: &Judged<'_>, found: Option<&Value>) -> String {
    match found {
        None => "unset".to_owned(),
        Some(Value::String(text)) => value(judged, text),
        Some(other) => value(judged, &other.to_string()),
    }
}
