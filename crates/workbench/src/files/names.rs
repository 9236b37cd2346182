//! The names that a build follows and that lead nowhere: the target of a patch or of a replacement, a path of Flux or Argo CD.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use crate::build::kustomization::{Selector, is_kustomization, items};
use crate::build::layout::{Tool, shown};
use crate::build::object_name::object_ref;
use crate::build::origins::Origins;
use crate::build::origins::files::Files;
use crate::build::origins::search::SpotsOf;
use crate::build::plan::Plan;
use crate::build::units::{UnitTexts, Units};
use crate::files::notices::Notice;
use crate::paths::{normal, root_around};
use memgate_manifest::document::{Document, objects, parse_parts};
use memgate_manifest::later::is_filled_in_later;
use memgate_manifest::source::Source;
use memgate_model::finding::Finding;
use memgate_model::recurring_texts::RecurringTexts;
use memgate_platforms::common::KUSTOMIZATION_INVALID;
use memgate_primitives::plain_text::quoted_text;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{did_you_mean, nearest};

/// The fields of objects that name a directory of a repository: group, kind and field.
const PATHS: [(&str, &str, &str); 4] = [
    ("kustomize.toolkit.fluxcd.io", "Kustomization", "/spec/path"),
    ("helm.toolkit.fluxcd.io", "HelmRelease", "/spec/chart/spec/chart"),
    ("argoproj.io", "Application", "/spec/source/path"),
    ("argoproj.io", "Application", "/spec/sources/0/path"),
];

/// The findings about names that lead nowhere in what was built, and in these plain manifests.
pub(crate) fn notices(units: &Units, sources: &[Arc<Source>], plan: &Plan) -> Vec<Notice> {
    let mut files = plan.files();
    let mut notices = Vec::new();
    let mut seen = BTreeSet::new();
    for of_unit in units.all.iter().filter(|it| it.unit.tool == Some(Tool::Kustomize)) {
        for notice in of_targets(of_unit, &mut files) {
            let place = (notice.source.name().to_owned(), notice.span.start);
            // Another overlay may have what this one lacks.
            notices.extend(seen.insert(place).then_some(notice));
        }
    }
    let mut origins = Origins::default();
    let rendered = units.all.iter().flat_map(|it| &it.rendered);
    origins.rendered.extend(rendered.map(|it| (it.source.name().to_owned(), Arc::clone(it))));
    let texts = sources.iter().chain(units.all.iter().flat_map(|it| &it.sources));
    let mut seen = BTreeSet::new();
    let may_have = |source: &&Arc<Source>| PATHS.iter().any(|(group, ..)| source.text().contains(group));
    for document in texts.filter(may_have).flat_map(parse_parts).flat_map(|parsed| parsed.documents) {
        let spots = &mut SpotsOf { origins: &origins, files: &mut files };
        if let Some(notice) = of_path(&document, spots)
            && seen.insert((notice.source.name().to_owned(), notice.span.start))
        {
            notices.push(notice);
        }
    }
    notices
}

/// The targets of patches and replacements in the kustomizations of a unit that select no object of it.
fn of_targets(of_unit: &UnitTexts, files: &mut Files) -> Vec<Notice> {
    let unit = &of_unit.unit;
    let named = |value: &Value| {
        ["/kind", "/metadata/name"]
            .map(|field| value.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned())
    };
    let printed = of_unit.rendered.iter().flat_map(|rendered| rendered.objects()).map(named);
    let mut known: BTreeSet<[String; 2]> = printed.collect();
    let (mut renames, mut kustomizations) = (false, Vec::new());
    for (file, text) in unit.files.iter().filter_map(|file| Some((file, files.get(Path::new(&shown(file)))?)))
    {
        if is_kustomization(file) {
            renames |= ["namePrefix", "nameSuffix"].iter().any(|field| text.source.text().contains(field));
            kustomizations.push(text);
        } else {
            // A patch may remove or rename what it selects.
            known.extend(objects(&text.values).iter().map(|document| named(document.value())));
        }
    }
    let mut notices = Vec::new();
    for document in kustomizations.iter().flat_map(|text| &text.values) {
        for (at, selector) in targets(document.value()) {
            if !known.iter().any(selects(&selector, renames)) {
                notices.push(of_target(document, &at, &selector, &known));
            }
        }
    }
    notices
}

/// The selectors in a kustomization that select objects for what it changes in them.
fn targets(kustomization: &Value) -> Vec<(Pointer, Selector)> {
    let mut found = Vec::new();
    for field in ["patches", "patchesJson6902"] {
        for (index, patch) in items(kustomization, field).enumerate() {
            let at = Pointer::root().key(field).index(index).key("target");
            found.extend(patch.get("target").map(|target| (at, Selector::of(target))));
        }
    }
    for (index, replacement) in items(kustomization, "replacements").enumerate() {
        for (number, target) in items(replacement, "targets").enumerate() {
            let at =
                Pointer::root().key("replacements").index(index).key("targets").index(number).key("select");
            found.extend(target.get("select").map(|select| (at, Selector::of(select))));
        }
    }
    found
}

/// Tells whether a selector may select an object, by its kind and name: it had the name that it says, or has it with a prefix
/// or suffix.
fn selects(selector: &Selector, renames: bool) -> impl Fn(&[String; 2]) -> bool {
    // What is no regular expression here may be one of Go.
    let matches = |pattern: &Option<String>| {
        let regex = pattern.as_ref().map(|pattern| Regex::new(&format!("^(?:{pattern})$")));
        move |text: &str| !matches!(&regex, Some(Ok(regex)) if !regex.is_match(text))
    };
    let (fits_kind, fits_name) = (matches(&selector.kind), matches(&selector.name));
    let own = selector.name.clone();
    move |[kind, name]| {
        // A generator adds a hash.
        let has_hash = |it: &str| name.strip_prefix(it).is_some_and(|rest| rest.starts_with('-'));
        let may_be = |it: &String| has_hash(it) || renames && name.contains(it.as_str());
        fits_kind(kind) && (fits_name(name) || own.as_ref().is_some_and(may_be))
    }
}

fn of_target(
    document: &Document,
    at: &Pointer,
    selector: &Selector,
    known: &BTreeSet<[String; 2]>,
) -> Notice {
    let kinds = || known.iter().map(|[kind, _]| kind.as_str());
    let of_kind = known.iter().filter(|[own, _]| selector.kind.as_ref().is_none_or(|kind| kind == own));
    let names: Vec<&str> = of_kind.map(|[_, name]| name.as_str()).collect();
    let (field, text, all) = match (&selector.name, &selector.kind) {
        (Some(name), kind) if kind.is_none() || !names.is_empty() => ("name", name.as_str(), names),
        (_, kind) => ("kind", kind.as_deref().unwrap_or_default(), kinds().collect()),
    };
    let meant = did_you_mean(nearest(text, all));
    let message =
        format!("no object here has the {field} {}, so this changes nothing{meant}", quoted_text(text));
    let pointer = at.key(field);
    let finding = Finding::warn(&KUSTOMIZATION_INVALID, pointer.clone(), message);
    let span = document.locate(&pointer).carets(false).0;
    Notice::new(document.source(), span, finding)
}

/// The path of an object of Flux or Argo CD that leads nowhere. One that begins with no directory here is one of another
/// repository.
fn of_path(document: &Document, spots: &mut SpotsOf<'_>) -> Option<Notice> {
    let is_it = |row: &&(&str, &str, &str)| (row.0, row.1) == (document.group(), document.kind());
    let is_there = |row: &&(&str, &str, &str)| document.value().pointer(row.2).is_some();
    let at = Pointer::new(PATHS.iter().filter(is_it).find(is_there)?.2);
    let path = document.value().pointer(at.as_str())?.as_str()?;
    let root = root_around(&spots.file(document.source()));
    let below = path.trim_start_matches("./").trim_start_matches('/');
    let whole = normal(&root.join(below));
    let is_elsewhere = || {
        let source = document.value().pointer("/spec/chart/spec/sourceRef/kind");
        let first = Path::new(below).components().next().map(|first| root.join(first));
        source.is_some_and(|kind| kind == "HelmRepository") || !first.is_some_and(|first| first.is_dir())
    };
    if below.is_empty() || is_filled_in_later(path) || path.contains('*') || whole.exists() || is_elsewhere()
    {
        return None;
    }
    let message = format!("{} leads nowhere: this repository has no such directory", quoted_text(path));
    let finding = Finding::warn(&KUSTOMIZATION_INVALID, at.clone(), message);
    let spot = spots.of(document, &at);
    let object_ref = object_ref(document, None, &mut RecurringTexts::default());
    Some(Notice { object_ref, ..Notice::new(spot.source(), spot.caret(), finding) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_regular_expressions() {
        let object = ["Memory", "prod-notes"].map(str::to_owned);
        for (kind, name, expected) in [
            (None, None, true),
            (Some("Memory"), Some("notes"), true),
            (Some("Mem.*"), Some("prod-.*"), true),
            (Some("Memory"), Some("nodes"), false),
            (Some("Agent"), None, false),
            (None, Some("a|prod-notes"), true),
        ] {
            let selector = Selector {
                kind: kind.map(str::to_owned),
                name: name.map(str::to_owned),
                ..Selector::default()
            };
            assert_eq!(selects(&selector, true)(&object), expected, "{selector:?}");
        }
    }
}
