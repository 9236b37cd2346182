//! `fields`: conditions on any path of the view.

use std::collections::BTreeSet;

use memgate_model::finding::Cause;
use memgate_model::memory_view::{Holds, USERS, ViewPath};
use memgate_model::typed_rule::TypedRule;
use memgate_primitives::credential::is_credential_name;
use memgate_primitives::glob::Glob;
use memgate_primitives::plain_text::{cut, quoted_key, quoted_text};
use memgate_primitives::suggest::{did_you_mean, nearest};

use super::bounds::quantity;
use super::check::{AnyGlob, Bound, Check, Condition, FIELD, Says, Scalar, Shows, Zero};
use super::checks::Checks;
use super::host_glob::HostGlob;
use super::words::MAX_ENTRIES;
use crate::names::wrong_label_key;
use crate::reader::{Fields, Reader, one_of};
use crate::text::{a_or_b, use_one_of};
use crate::written::is_in_view;

/// The most characters of a path, of a value and of a pattern.
const MAX_CHARS: usize = 512;
const MAX_VALUE_CHARS: usize = 256;

/// The paths whose values are counted or follow from others, so that they stand in no object.
const NOT_WRITTEN: [&str; 6] =
    ["family", "role", "durable", USERS, "references[].found", "containers[].added"];

/// The conditions, in the order of the documentation.
const CONDITIONS: [&str; 9] =
    ["in", "notIn", "matches", "notMatches", "min", "max", "equals", "exists", "written"];

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let known = known_paths(reader);
    let elements = reader.list(1, MAX_ENTRIES);
    let entries = elements.iter().filter_map(|element| entry(element, &known));
    // What the author of another object wrote is not known.
    let own_only = |check: Check| match check.condition {
        Condition::Written(_) => Check { path: check.path.own_only(), ..check },
        _ => check,
    };
    let all: Vec<Check> = entries.map(own_only).collect();
    if all.is_empty() {
        return None;
    }
    let rule = Checks { all, is_generic: true };
    if rule.shared().possible().next().is_none() {
        let fields: BTreeSet<&str> = rule.all.iter().map(Check::written_path).collect();
        let paths = one_of(&fields.into_iter().collect::<Vec<_>>());
        let message = format!("no object has {paths} together; give each of them a rule of its own");
        reader.fault(Cause::Invalid, &message);
    }
    Some(Box::new(rule))
}

/// The paths that a policy can name, with those of its platforms.
pub(super) fn known_paths(reader: &Reader<'_>) -> Vec<ViewPath> {
    ViewPath::all(reader.families().iter().filter_map(|family| family.views.own_namespace_path))
}

/// The most paths that a message names, and the most characters of one.
const MAX_NEAR: usize = 8;
const MAX_SHOWN: usize = 64;

/// The fault of a path that no view has: with the nearest one, or those that have a word in common with it.
pub(super) fn no_path(path: &str, known: &[&str]) -> (Cause, String) {
    // No path is as long as what is shown.
    let shown = cut(path, MAX_SHOWN);
    let path = &*shown;
    let has_word = |known: &&&str| {
        let mut words = path.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
        words.any(|word| known.to_lowercase().contains(&word.to_lowercase()))
    };
    let near: Vec<&str> = known.iter().filter(has_word).copied().take(MAX_NEAR).collect();
    let hint = match nearest(path, known.iter().copied()) {
        None if near.is_empty() => "; `memgate view` prints the paths of an object".to_owned(),
        None => format!("; near it are {}", near.join(", ")),
        nearest => did_you_mean(nearest),
    };
    let shown = quoted_text(path);
    (Cause::NotSupported, format!("there is no path {shown} in a view{hint}"))
}

/// Reads a condition on one of the known paths.
pub(super) fn entry(reader: &Reader<'_>, known: &[ViewPath]) -> Option<Check> {
    let names: Vec<&str> = ["path"].into_iter().chain(CONDITIONS).collect();
    let fields = reader.fields(&names)?;
    let given: Vec<&'static str> = CONDITIONS.into_iter().filter(|name| fields.has(name)).collect();
    let first = given.first().copied().unwrap_or_default();
    let path = fields.required("path").and_then(|it| path(&it, known, first));
    let [name] = *given.as_slice() else {
        if given.is_empty() {
            fields.fault_here(Cause::Required, &format!("needs a condition; use {}", one_of(&CONDITIONS)));
        }
        for other in given.iter().skip(1) {
            let message = "an entry has one condition; give this one an entry of its own";
            fields.fault(other, Cause::Invalid, message);
        }
        return None;
    };
    let (path, key) = path?;
    let holds = if key.is_some() { Holds::Text } else { path.holds };
    let written = fields.text("path", MAX_CHARS)?;
    let (described, fitting) = of_type(holds);
    if !fitting.contains(&name) {
        let message = format!("{written} is {described}; use {}", one_of(fitting));
        fields.fault(name, Cause::Invalid, &message);
        return None;
    }
    if name == "written" && NOT_WRITTEN.contains(&path.path) {
        let message = format!("{written} stands in no object, so no author writes it; ask for its value");
        fields.fault(name, Cause::Invalid, &message);
        return None;
    }
    let (condition, shows, behind) = condition(name, &fields, holds, path.path)?;
    let is_hidden = shows == Shows::Value && key.as_deref().is_some_and(is_credential_name);
    let shows = if is_hidden { Shows::Hidden } else { shows };
    // That a list must not be there is about each of its elements.
    let each = format!("{}[]", path.path);
    let is_forbidden = path.holds == Holds::List && matches!(condition, Condition::Exists(false));
    let path = known.iter().copied().find(|row| is_forbidden && row.path.starts_with(&each)).unwrap_or(path);
    let space = if shows == Shows::Nothing { "" } else { " " };
    let says = Says { before: format!("{written}{space}").into(), shows, behind: behind.into() };
    Some(Check { path, key, field: format!("{FIELD}{written}"), name, condition, says })
}

/// The path of this text, for this condition, and the key of a map. Of a list of texts each element is meant.
fn path(reader: &Reader<'_>, known: &[ViewPath], condition: &str) -> Option<(ViewPath, Option<String>)> {
    let text = reader.text(MAX_CHARS)?;
    let exact = |text: &str| known.iter().copied().find(|row| row.path == text);
    let list = text.strip_suffix("[]").unwrap_or(text);
    if let Some(row) = exact(list) {
        let elements = || exact(&format!("{list}[]")).filter(|_| !["exists", "written"].contains(&condition));
        return Some((elements().unwrap_or(row), None));
    }
    let keyed = text.strip_suffix("\"]").and_then(|text| text.split_once("[\""));
    let map = keyed.and_then(|(map, key)| Some((exact(map).filter(|row| row.holds == Holds::Map)?, key)));
    if let Some((row, key)) = map {
        if let Some(wrong) = wrong_label_key(key) {
            reader.fault(Cause::Invalid, &wrong);
            return None;
        }
        if row.path == "annotations" && !is_in_view(key) {
            reader.fault(Cause::Invalid, &format!("a view leaves out the annotation {}", quoted_key(key)));
            return None;
        }
        return Some((row, Some(key.to_owned())));
    }
    let map = known.iter().filter(|row| row.holds == Holds::Map && !row.is_each());
    let below = map
        .clone()
        .map(|row| row.path)
        .find(|map| text.strip_prefix(map).is_some_and(|rest| rest.starts_with(['.', '['])));
    let (cause, message) = match below {
        Some(map) => (Cause::Invalid, format!("write a key of {map} as {map}[\"key\"]")),
        None => {
            let keyed = map.map(|row| format!("{}[\"key\"]", row.path));
            let all: Vec<String> = known.iter().map(|row| row.path.to_owned()).chain(keyed).collect();
            let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
            all.sort_unstable();
            no_path(text, &all)
        }
    };
    reader.fault(cause, &message);
    None
}

/// A type in words, and the conditions for it.
const fn of_type(holds: Holds) -> (&'static str, &'static [&'static str]) {
    const TEXT: &[&str] = &["in", "notIn", "matches", "notMatches", "equals", "exists", "written"];
    const NUMBER: &[&str] = &["in", "notIn", "min", "max", "equals", "exists", "written"];
    match holds {
        Holds::Text => ("a text", TEXT),
        Holds::Texts => ("a list of texts", TEXT),
        Holds::Integer => ("an integer", NUMBER),
        Holds::Quantity => ("a quantity", NUMBER),
        Holds::Flag => ("true or false", &["equals", "exists", "written"]),
        Holds::List => ("a list", &["exists", "written"]),
        Holds::Map => ("a map", &["exists", "written"]),
        Holds::Object => ("an object", &["exists", "written"]),
    }
}

/// A condition, and how the message shows the value and ends.
fn condition(
    name: &str,
    fields: &Fields<'_>,
    holds: Holds,
    path: &str,
) -> Option<(Condition, Shows, String)> {
    let reader = fields.get(name)?;
    let wanted = !name.starts_with("not");
    Some(match name {
        "in" | "notIn" => {
            let (values, written) = scalars(&reader, holds)?;
            let instead = use_one_of(Some(&written).filter(|_| wanted).map(Vec::as_slice));
            let condition = Condition::In { values, written, wanted };
            (condition, Shows::Value, format!(" is not allowed{instead}"))
        }
        "equals" => {
            let (value, written) = scalar(&reader, holds)?;
            let (shows, behind) = match value {
                Scalar::Flag(flag) => (Shows::Nothing, format!(" must be {flag}")),
                _ => (Shows::Value, format!(" must be \"{written}\"")),
            };
            (Condition::In { values: [value].into(), written: vec![written], wanted }, shows, behind)
        }
        "matches" | "notMatches" => {
            let (globs, written) = patterns(&reader, path)?;
            let not = if wanted { "" } else { "not " };
            let behind = format!(" must {not}match {}", a_or_b(&written));
            (Condition::Fits { globs, written, wanted }, Shows::Value, behind)
        }
        "min" | "max" => {
            let (value, written) = scalar(&reader, holds)?;
            let Scalar::Number(value) = value else { return None };
            let (of, side): (fn(Bound) -> Condition, _) =
                if name == "min" { (Condition::AtLeast, "below") } else { (Condition::AtMost, "above") };
            let behind = format!(" is {side} {written}");
            (of(Bound { value, written, zero: Zero::Number }), Shows::Number, behind)
        }
        "written" => {
            let wanted = reader.flag()?;
            let behind = if wanted { " must be written" } else { " must not be written" };
            (Condition::Written(wanted), Shows::Nothing, behind.to_owned())
        }
        _ => {
            let exists = reader.flag()?;
            let behind = if exists { " is required" } else { " must not be set" };
            (Condition::Exists(exists), Shows::Nothing, behind.to_owned())
        }
    })
}

fn scalars(reader: &Reader<'_>, holds: Holds) -> Option<(BTreeSet<Scalar<'static>>, Vec<String>)> {
    let (mut values, mut all) = (BTreeSet::new(), Vec::new());
    for element in reader.list(1, MAX_ENTRIES) {
        let Some((value, written)) = scalar(&element, holds) else { continue };
        if values.insert(value) {
            all.push(written);
        } else {
            element.fault(Cause::Duplicate, &format!("{} stands here twice", quoted_text(&written)));
        }
    }
    (!all.is_empty()).then_some((values, all))
}

/// A value of a policy, and how it is written.
fn scalar(reader: &Reader<'_>, holds: Holds) -> Option<(Scalar<'static>, String)> {
    Some(match holds {
        Holds::Integer => {
            let number = reader.integer(i64::MIN, i64::MAX)?;
            (Scalar::Number(number.into()), number.to_string())
        }
        Holds::Quantity => {
            let quantity = quantity(reader)?;
            (Scalar::Number(quantity.billionths), quantity.text)
        }
        Holds::Flag => {
            let flag = reader.flag()?;
            (Scalar::Flag(flag), flag.to_string())
        }
        _ => {
            let text = reader.text(MAX_VALUE_CHARS)?;
            (Scalar::Text(text.to_owned().into()), text.to_owned())
        }
    })
}

fn patterns(reader: &Reader<'_>, path: &str) -> Option<(Vec<AnyGlob>, Vec<String>)> {
    let patterns = reader.each(MAX_ENTRIES, MAX_VALUE_CHARS, |text| {
        let glob = match path {
            "endpoint.host" | "embedding.endpoint.host" => AnyGlob::Host(HostGlob::read(text)?),
            "containers[].repository" => AnyGlob::Text(Glob::within(text, '/')),
            _ => AnyGlob::Text(Glob::new(text)),
        };
        Ok((glob, text.to_owned()))
    });
    (!patterns.is_empty()).then(|| patterns.into_iter().unzip())
}
