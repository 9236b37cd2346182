//! A rule about the field at a line of a file: the object there passes, and the same object with another value is denied.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Value, json};

use super::samples::{State, Surroundings, donors};
use super::{MOST_TRIED, NewPolicy, PolicyWish, Refusal, RuleDraft, Sample, Trial, creation};
use crate::exempt::duration;
use crate::inputs::Inputs;
use crate::load::load;
use crate::objects::UndecidedObject;
use crate::plan::Plan;
use crate::view::{shown_text, view_object};
use memgate_model::memory_view::{MemoryView, Role, ViewPath, ViewValue, below_endpoint};
use memgate_model::request::Occasion;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::{cut, plain};
use memgate_primitives::pointer::Pointer;

/// The paths with a rule type of their own, which come before others at the same place.
const FIRST: [&str; 9] = [
    "backend", "provider", "endpoint.host", "ttlSeconds", "maxEntries", "storageBytes", "operations[]",
    "sharing.configs[].visibility", "secrets[].name",
];
/// The most fields that a message lists.
const MOST_LISTED: usize = 20;
/// A host that stands for another one.
const OTHER_HOST: &str = "other.example.com";

/// A field of an object that rules can read.
struct Field<'v> {
    view: &'v MemoryView,
    /// The path as policies write it.
    path: String,
    row: ViewPath,
    /// The key of a label or annotation.
    key: Option<String>,
    /// Its place in the object that is decided about.
    place: Pointer,
    /// Its line, and the columns from which and up to which it reaches there.
    line: usize,
    columns: (usize, usize),
    /// The values at the path in this view.
    values: Rc<[Value]>,
}

/// Makes the policy for a field at a line.
///
/// # Errors
/// When no object or no field that policies read is there, or none of the rules about it can be shown to work.
pub(super) fn new(
    wish: &PolicyWish<'_>,
    file: &str,
    (line, column): (usize, Option<usize>),
) -> Result<NewPolicy, Refusal> {
    let inputs = load_with(file, wish.paths)?;
    let here = objects_at(&inputs, file, line)?;
    let surroundings = Surroundings::of(&inputs);
    let (mut all, mut first) = (Vec::new(), None);
    for undecided in here {
        let Ok(viewed) = view_object(undecided, &inputs.snapshot, Occasion::default()) else { continue };
        let Some(sample) = surroundings.sample(undecided, State::Named) else { continue };
        let fields = fields(undecided, &viewed.views);
        let mut at_line: Vec<&Field<'_>> = fields.iter().filter(|field| field.line == line).collect();
        if let Some(column) = column {
            at_line = nearest_to(at_line, column);
        }
        if let Some(made) = tried(wish, &sample, &at_line)? {
            return Ok(made);
        }
        let object = sample.case.object.as_ref().unwrap_or(&Value::Null);
        let tried = at_line.iter().min_by_key(|field| field.rank(object)).map(|field| field.path.clone());
        first = first.or(tried);
        all.extend(fields.iter().map(|field| (field.line, field.rank(object), field.path.clone())));
    }
    Err(unfit(wish.about, first, line, all).into())
}

/// The inputs with FILE and the PATHs.
fn load_with(file: &str, paths: &[String]) -> Result<Inputs, Refusal> {
    if file == "-" {
        return Err("--for takes a file and a line, and standard input (-) is not a file".to_owned().into());
    }
    let paths = paths.iter().filter(|path| *path != file);
    let checked = std::iter::once(file.to_owned()).chain(paths.cloned()).collect();
    let inputs = load(&Plan { checked, ..Plan::default() })?;
    if inputs.errors.is_empty() { Ok(inputs) } else { Err(Refusal::Unread(inputs.errors)) }
}

/// The objects at a line: one, or the pods of a workload.
fn objects_at<'i>(inputs: &'i Inputs, file: &str, line: usize) -> Result<Vec<&'i UndecidedObject>, String> {
    let is_of_file = |it: &&UndecidedObject| !it.object.is_part && it.object.place.source().name() == file;
    let of_file: Vec<&UndecidedObject> = inputs.objects.iter().filter(is_of_file).collect();
    let lines = |it: &UndecidedObject| {
        let (span, source) = (it.object.place.span(), it.object.place.source());
        let text = source.slice(span).trim_end();
        (span.line, source.span(span.start + text.len().saturating_sub(1), span.end).line)
    };
    let (here, others): (Vec<_>, Vec<_>) = of_file.into_iter().partition(|it| {
        let (first, last) = lines(it);
        (first..=last).contains(&line)
    });
    if !here.is_empty() {
        return Ok(here);
    }
    let titles = others.iter().take(MOST_LISTED).map(|it| {
        let (first, last) = lines(it);
        format!("{} in lines {first} to {last}", it.object.object_ref.title())
    });
    let titles: Vec<String> = titles.collect();
    let has = match titles.as_slice() {
        [] => "it holds nothing that policies judge".to_owned(),
        _ => format!("it has {}{}", titles.join(", "), more(others.len().saturating_sub(MOST_LISTED))),
    };
    Err(format!("{file}:{line} is not a line of an object that policies judge; {has}"))
}

/// The fields that stand in the file, in the order of the paths.
fn fields<'v>(undecided: &UndecidedObject, views: &'v [MemoryView]) -> Vec<Field<'v>> {
    let own = views.iter().filter_map(|view| view.own_namespace.as_ref()).map(|(path, _)| *path);
    let rows = ViewPath::all(own.collect::<BTreeSet<_>>());
    let mut fields = Vec::new();
    for (view, row) in views.iter().flat_map(|view| rows.iter().map(move |row| (view, *row))) {
        let values: Rc<[Value]> =
            row.parts(view).filter_map(|part| part.value).filter_map(|value| plain_value(&value)).collect();
        let mut add = |path: String, key: Option<String>, place: Pointer, values: Rc<[Value]>| {
            let found = undecided.object.place.locate(&undecided.object.in_document(&place));
            let whole = found.whole();
            let source = undecided.object.place.source();
            let last = source.span(whole.end, whole.end);
            let end = if last.line == whole.line { last.column } else { usize::MAX };
            let is_of_spec = !matches!(place.as_str(), "" | "/spec" | "/kind");
            if found.exact && found.alias.is_none() && is_of_spec {
                let (line, columns) = (whole.line, (whole.column, end));
                fields.push(Field { view, path, row, key, place, line, columns, values });
            }
        };
        for part in row.parts(view).filter(|part| part.value.is_some()) {
            match part.value {
                Some(ViewValue::Map(map)) if !row.is_each() => {
                    for (key, value) in map {
                        let place = view.pointer(row.path).key(key);
                        let path = format!("{}[\"{key}\"]", row.path);
                        add(path, Some(key.clone()), place, [value.as_str().into()].into());
                    }
                }
                _ if row.path.rsplit('.').next() == Some("field") => {}
                _ => {
                    let place = part.element.map_or_else(|| view.pointer(row.path), |it| row.place(it));
                    add(row.path.to_owned(), None, place, Rc::clone(&values));
                }
            }
        }
    }
    fields
}

fn plain_value(value: &ViewValue<'_>) -> Option<Value> {
    match value {
        ViewValue::Text(text) | ViewValue::Bytes(_, text) => Some(Value::from(&**text)),
        ViewValue::Integer(number) => Some((*number).into()),
        ViewValue::Flag(flag) => Some((*flag).into()),
        _ => None,
    }
}

/// The fields at a column, or all if none is there.
fn nearest_to<'f, 'v>(fields: Vec<&'f Field<'v>>, column: usize) -> Vec<&'f Field<'v>> {
    let is_there = |field: &&&Field<'_>| field.columns.0 <= column && column <= field.columns.1;
    // Of those that contain each other the innermost begins last.
    let Some(start) = fields.iter().filter(is_there).map(|field| field.columns.0).max() else {
        return fields;
    };
    fields.into_iter().filter(|field| field.columns.0 == start).collect()
}

/// The first rule about one of the fields that denies the same object with another value, and nothing else does.
fn tried(wish: &PolicyWish<'_>, sample: &Sample, fields: &[&Field<'_>]) -> Result<Option<NewPolicy>, String> {
    let Some(object) = sample.case.object.as_ref() else { return Ok(None) };
    let mut fields = fields.to_vec();
    fields.sort_by_key(|field| field.rank(object));
    for field in fields.into_iter().take(MOST_TRIED) {
        let others = field.others(object);
        for typed in field.rules() {
            let Some(trial) = Trial::new(wish.name, field.draft(typed)) else { continue };
            let without_state = creation(object.clone(), Vec::new());
            let passing = [&sample.case, &without_state];
            let passing = passing.into_iter().find_map(|case| Some((case, trial.codes_if_passed(case)?)));
            let Some((case, codes)) = passing else {
                if let Some(message) = denied_already(wish, &trial, sample) {
                    return Err(message);
                }
                continue;
            };
            // Another value may also mend what was reported before.
            let expected: BTreeSet<String> = codes.into_iter().chain([trial.code.clone()]).collect();
            let mut denied = others.iter().map(|other| {
                let copies = other.copies(&case.state, &field.place);
                creation(other.object.clone(), case.state.iter().cloned().chain(copies).collect())
            });
            let denied = denied
                .find(|case| trial.codes_if_denied(case).is_some_and(|codes| codes.is_subset(&expected)));
            let Some(denied) = denied else { continue };
            let denied = Sample { case: denied, about: format!("The same with another {}", field.words()) };
            let passes = Sample { case: case.clone(), about: sample.about.clone() };
            if let Some(made) = trial.into_texts(wish, &passes, &denied) {
                return Ok(Some(made));
            }
        }
    }
    Ok(None)
}

/// Why the object at the line cannot pass, if that is not because of the new rule.
fn denied_already(wish: &PolicyWish<'_>, trial: &Trial, sample: &Sample) -> Option<String> {
    let codes = trial.outcome(&sample.case)?.codes?;
    let is_ours = codes.contains(&trial.code);
    (!is_ours).then(|| {
        format!("{}: {} is denied already by {}; mend it first", wish.about, sample.about, codes.join(", "))
    })
}

/// The line of a field, its rank there, and its path.
type Listed = (usize, (bool, usize), String);

/// Why none of the fields serves, and which could.
fn unfit(about: &str, tried: Option<String>, line: usize, mut all: Vec<Listed>) -> String {
    all.sort();
    all.dedup_by_key(|(line, ..)| *line);
    let others: Vec<Listed> = all.into_iter().filter(|(at, ..)| *at != line).collect();
    let why = match tried {
        Some(path) => {
            format!("no other value of {path} makes an object that only a rule about it denies")
        }
        None => "policies do not read the field at this line".to_owned(),
    };
    let listed: Vec<String> =
        others.iter().take(MOST_LISTED).map(|(line, _, path)| format!("{path} in line {line}")).collect();
    if listed.is_empty() {
        return format!("{about}: {why}, and no other field of this object");
    }
    let rest = more(others.len().saturating_sub(MOST_LISTED));
    format!("{about}: {why}; of this object they read {}{rest}", listed.join(", "))
}

/// An object with another value in the place of a field, and the old and the new text if both are.
struct Other {
    object: Value,
    texts: Option<(String, String)>,
}

impl Other {
    /// Copies of the objects of a state that follow: those with the old name, or in the old namespace of the object.
    fn copies(&self, state: &[Value], place: &Pointer) -> Vec<Value> {
        let Some((old, new)) = &self.texts else { return Vec::new() };
        let key = if place.as_str() == "/metadata/namespace" { "namespace" } else { "name" };
        let is_it = |it: &&Value| it.pointer("/metadata").and_then(|it| it.get(key)?.as_str()) == Some(old);
        let copies = state.iter().filter(is_it).cloned().map(|mut copy| {
            if let Some(value) = copy.pointer_mut("/metadata").and_then(|it| it.get_mut(key)) {
                *value = new.as_str().into();
            }
            copy
        });
        copies.collect()
    }
}

impl Field<'_> {
    /// The order in which the fields of a line are tried: first those whose value stands there as it is in the view.
    fn rank(&self, object: &Value) -> (bool, usize) {
        let raw = object.pointer(self.place.as_str());
        let is_same = raw.is_some_and(|raw| raw.is_string() && self.values.contains(raw));
        let is_url = below_endpoint(self.row.path) == Some(".url");
        let first = FIRST.iter().position(|path| *path == self.row.path).unwrap_or(FIRST.len());
        (!is_same || is_url, first)
    }

    /// The rules about the field that the value passes: one of a type of its own, then a generic one.
    fn rules(&self) -> Vec<(&'static str, Value)> {
        let all = json!(*self.values);
        let first = self.values.first();
        let number = first.and_then(Value::as_i64).filter(|number| *number > 0);
        let typed = match (self.row.path, first, number) {
            ("backend", ..) => Some(("backends", json!({"allow": all}))),
            ("provider", ..) => Some(("providers", json!({"allow": all}))),
            ("endpoint.host", ..) => Some(("endpoint", json!({"hosts": all}))),
            ("operations[]", ..) => Some(("operations", json!({"allow": all}))),
            ("secrets[].name", ..) => Some(("secrets", json!({"names": all}))),
            ("sharing.configs[].visibility", ..) => Some(("sharing", json!({"visibility": all}))),
            ("storageBytes", Some(size), _) => Some(("capacity", json!({"storage": {"max": size}}))),
            ("maxEntries", _, Some(number)) => Some(("capacity", json!({"maxEntries": {"max": number}}))),
            ("ttlSeconds", _, Some(seconds)) => {
                Some(("retention", json!({"max": duration(i128::from(seconds) * 1_000_000_000)})))
            }
            ("labels", Some(value), _) => {
                let key = self.key.as_deref().unwrap_or_default();
                let with_value = value.as_str().is_some_and(|value| !value.is_empty());
                let values = if with_value { json!({key: [value]}) } else { json!({}) };
                Some(("labels", json!({"required": [key], "values": values})))
            }
            _ => None,
        };
        let path = &self.path;
        let entry = match first {
            Some(Value::Bool(flag)) => json!({"path": path, "equals": flag}),
            Some(Value::Number(_)) if number.is_some() => json!({"path": path, "max": first}),
            Some(_) if self.row.path == "storageBytes" => json!({"path": path, "max": first}),
            Some(_) => json!({"path": path, "in": deduplicated(&self.values)}),
            None => json!({"path": path, "exists": true}),
        };
        let mut entries = vec![entry];
        if self.key.is_some() {
            entries.push(json!({"path": path, "exists": true}));
        }
        typed.into_iter().chain([("fields", json!(entries))]).collect()
    }

    /// The field in words: its path, or `label KEY`.
    fn words(&self) -> String {
        match &self.key {
            Some(key) => format!("{} {key}", self.row.path.trim_end_matches('s')),
            None => self.path.clone(),
        }
    }

    fn draft(&self, typed: (&'static str, Value)) -> RuleDraft {
        let view = self.view;
        let shown: Vec<String> = self.values.iter().map(shown_value).collect();
        let shown = cut(&shown.join(", "), 100).into_owned();
        let words = self.words();
        let path = cut(&words, 64);
        let (message, hint) = match self.values.first() {
            None => (format!("{path} is required"), format!("write {path}")),
            Some(_) => {
                (format!("{path} is not as agreed"), format!("use {shown}, or ask the owner of this policy"))
            }
        };
        RuleDraft {
            id: kebab(&words),
            typed,
            roles: if view.role == Role::Memory { Value::Null } else { json!([view.role.name()]) },
            when: Value::Null,
            matching: json!({"families": [view.family], "kinds": [view.kind]}),
            message: plain(&message).into_owned(),
            hint: plain(&hint).into_owned(),
        }
    }

    /// The object with other values in this place, the plainest first: a larger number, another word, a value from an
    /// example of the platform, none, and the whole spec of such an example.
    fn others(&self, object: &Value) -> Vec<Other> {
        let Some(old) = object.pointer(self.place.as_str()) else { return Vec::new() };
        let donors = donors(self.view.family, object);
        let hosts = self.values.iter().filter_map(Value::as_str);
        let host = hosts.filter(|_| below_endpoint(self.row.path) == Some(".host")).find_map(|host| {
            let text = old.as_str().filter(|text| text.contains(host))?;
            Some(Value::from(text.replacen(host, OTHER_HOST, 1)))
        });
        let of_donors = donors.iter().filter_map(|donor| donor.pointer(self.place.as_str()).cloned());
        let values = host.into_iter().chain(other_values(old)).chain(of_donors).filter(|new| new != old);
        let replaced = values.filter_map(|new| {
            let mut other = object.clone();
            let texts = old.as_str().zip(new.as_str()).map(|(old, new)| (old.to_owned(), new.to_owned()));
            *other.pointer_mut(self.place.as_str())? = new;
            Some(Other { object: other, texts })
        });
        let specs = donors.iter().filter_map(|donor| {
            let mut other = object.clone();
            *other.get_mut("spec")? = donor.get("spec")?.clone();
            Some(Other { object: other, texts: None })
        });
        let removed = removed(object, &self.place).map(|object| Other { object, texts: None });
        replaced.chain(removed).chain(specs).collect()
    }
}

/// The value as a hint shows it.
fn shown_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), shown_text)
}

fn deduplicated(values: &[Value]) -> Vec<&Value> {
    let mut seen = BTreeSet::new();
    values.iter().filter(|value| seen.insert(value.to_string())).collect()
}

/// Other values of the type of this one.
fn other_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(flag) => vec![(!flag).into()],
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            vec![number.saturating_mul(2).saturating_add(1).into(), 0.into()]
        }
        Value::String(text) => {
            let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, unit) = text.split_at(digits);
            let larger =
                number.parse::<u32>().ok().map(|number| format!("{}{unit}", u64::from(number) * 2 + 1));
            larger.into_iter().chain([format!("other-{text}")]).map(Value::from).collect()
        }
        _ => Vec::new(),
    }
}

/// The object without the value at a place.
fn removed(object: &Value, place: &Pointer) -> Option<Value> {
    let mut object = object.clone();
    let parent = object.pointer_mut(place.parent()?.as_str())?;
    let key = place.tokens().last()?.into_owned();
    match parent {
        Value::Object(map) => drop(map.shift_remove(&key)?),
        Value::Array(list) => {
            let index = key.parse().ok().filter(|index| *index < list.len())?;
            list.remove(index);
        }
        _ => return None,
    }
    Some(object)
}

/// A path as the id of a rule: small letters, digits and single dashes, at most 40.
fn kebab(path: &str) -> String {
    let mut id = String::new();
    for letter in path.chars() {
        if letter.is_ascii_uppercase() && !id.ends_with('-') {
            id.push('-');
        }
        if letter.is_ascii_alphanumeric() {
            id.push(letter.to_ascii_lowercase());
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    let id: String = id.trim_start_matches('-').chars().take(40).collect();
    id.trim_end_matches('-').to_owned()
}
