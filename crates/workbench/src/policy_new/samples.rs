//! The objects that cases are made of: those of files, and the examples of the pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Sample, creation};
use crate::casefile::read::read;
use crate::inputs::Inputs;
use crate::load::{self, load};
use crate::objects::{UndecidedObject, is_checked};
use crate::plan::Plan;
use memgate_manifest::document::{parse_parts, values};
use memgate_manifest::mask::shown_value;
use memgate_manifest::source::Source;
use memgate_model::finding::Code;
use memgate_policy::resource;
use memgate_policy::written::LAST_APPLIED;

/// The fields of metadata that only an apiserver writes.
const OF_APISERVER: [&str; 6] =
    ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"];
/// The names of objects that platforms use although no field names them.
const IMPLIED: [&str; 2] = ["default", "memory"];
/// The most objects in the state of a case.
const MOST_IN_STATE: usize = 64;
/// How many references in a row are followed from an object.
const MOST_STEPS: usize = 3;

/// Which example of a page.
#[derive(Clone, Copy)]
pub(super) enum Example {
    Failing,
    Passing,
}

/// Which of the other documents are the state of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Those whose names stand in the object, or in one of these.
    Named,
    /// All, if they are few.
    Whole,
}

/// The documents of files, from which the state of a case is taken.
pub(super) struct Surroundings(Vec<Value>);

impl Surroundings {
    /// The documents of all inputs.
    pub(super) fn of(inputs: &Inputs) -> Self {
        let documents = inputs.sources.iter().flat_map(parse_parts).flat_map(|parsed| parsed.documents);
        let is_state = |value: &Value| {
            let (group, kind) = group_and_kind(value);
            let is_policy = resource::kind(group, kind).is_some();
            !is_policy && (is_checked(group, kind) || ["Service", "ConfigMap"].contains(&kind))
        };
        Self(documents.map(|it| it.value().clone()).filter(is_state).collect())
    }

    /// The state around an object. Secrets stay out: memgate reads none, and nothing is known of those that it does not see.
    fn around(&self, object: &Value, state: State) -> Vec<Value> {
        let identity = |it: &Value| {
            ["/kind", "/metadata/name", "/metadata/namespace"].map(|place| it.pointer(place).cloned())
        };
        let own = identity(object);
        let mut rest: Vec<&Value> = self.0.iter().filter(|it| identity(it) != own).collect();
        if state == State::Whole {
            return rest.into_iter().take(MOST_IN_STATE).map(tidy).collect();
        }
        let mut names: BTreeSet<String> = IMPLIED.map(str::to_owned).into();
        add_texts(object, &mut names);
        let mut found = Vec::new();
        for _ in 0..MOST_STEPS {
            let name = |it: &Value| it.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
            let is_named = |it: &&Value| name(it).is_some_and(|name| names.contains(&name));
            let (met, others): (Vec<&Value>, Vec<&Value>) = rest.into_iter().partition(is_named);
            rest = others;
            for document in &met {
                add_texts(document, &mut names);
            }
            found.extend(met);
        }
        found.into_iter().take(MOST_IN_STATE).map(tidy).collect()
    }

    /// A case about an object of the inputs, of a workload about its pod; `None` if it cannot be read.
    pub(super) fn sample(&self, undecided: &UndecidedObject, state: State) -> Option<Sample> {
        let object = subject(undecided)?;
        let (source, line) = undecided.object.file_and_line();
        let about = format!("{} ({}:{line})", undecided.object.object_ref.title(), source.name());
        let state = self.around(&object, state);
        Some(Sample { case: creation(object, state), about })
    }
}

/// The object that is decided about, with its name and namespace.
fn subject(undecided: &UndecidedObject) -> Option<Value> {
    let mut object = tidy(&serde_json::from_str(undecided.request().object?).ok()?);
    if undecided.object.is_workload() {
        let object_ref = &undecided.object.object_ref;
        let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(|| json!({}));
        let metadata = metadata.as_object_mut()?;
        metadata.insert("name".to_owned(), (&*object_ref.name).into());
        metadata.insert("namespace".to_owned(), (&*object_ref.namespace).into());
    }
    Some(object)
}

/// The object without what only a cluster adds, and with another text in the place of each credential.
fn tidy(object: &Value) -> Value {
    let mut object = without_credentials(object, &shown_value(object));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !OF_APISERVER.contains(&key.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.shift_remove(LAST_APPLIED);
        }
    }
    object
}

/// The value with words in the place of masked credentials: clients do not read an address with asterisks. The recursion is
/// bounded by the depth of a document.
fn without_credentials(value: &Value, masked: &Value) -> Value {
    match (value, masked) {
        (Value::Object(map), Value::Object(shown)) => map
            .iter()
            .map(|(key, value)| (key.clone(), without_credentials(value, shown.get(key).unwrap_or(value))))
            .collect(),
        (Value::Array(list), Value::Array(shown)) => {
            list.iter().zip(shown).map(|(value, shown)| without_credentials(value, shown)).collect()
        }
        (Value::String(text), Value::String(shown)) if text != shown => {
            let user = text.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
            let word =
                if user.is_some_and(|(user, _)| user.contains(':')) { "example:example" } else { "example" };
            let mut stars = shown.split('*').peekable();
            let mut changed = stars.next().unwrap_or_default().to_owned();
            while let Some(rest) = stars.next() {
                // Of a run of asterisks the last one counts.
                if !rest.is_empty() || stars.peek().is_none() {
                    changed.extend([word, rest]);
                }
            }
            changed.into()
        }
        _ => masked.clone(),
    }
}

/// Adds all texts in a value, and the parts of those with a slash. The recursion is bounded by the depth of a document.
fn add_texts(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => texts.extend(text.split('/').chain([text.as_str()]).map(str::to_owned)),
        Value::Array(list) => list.iter().for_each(|it| add_texts(it, texts)),
        Value::Object(map) => map.values().for_each(|it| add_texts(it, texts)),
        _ => {}
    }
}

/// The API group and the kind of an object.
pub(super) fn group_and_kind(object: &Value) -> (&str, &str) {
    let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    (text("apiVersion").split_once('/').map_or("", |(group, _)| group), text("kind"))
}

/// The samples in an example of a code's page.
///
/// # Errors
/// When the example cannot be loaded.
pub(super) fn of_page(code: &Code, example: Example) -> Result<Vec<Sample>, load::Error> {
    let (heading, words) = match example {
        Example::Failing => ("## Failing example", "failing"),
        Example::Passing => ("## Passing example", "passing"),
    };
    let about = || format!("The {words} example of `memgate explain {}`", code.name);
    match block(code.page.text(), heading) {
        Some(("case", text)) => {
            let documents = values(&Arc::new(Source::new("", text)), &mut Vec::new());
            let cases = documents.iter().filter_map(|document| read(document.value()).ok()).flatten();
            Ok(cases.map(|case| Sample { case, about: about() }).collect())
        }
        Some((_, text)) => {
            let inputs = load(&Plan::of_text(text))?;
            let surroundings = Surroundings::of(&inputs);
            let samples = inputs.objects.iter().filter_map(|it| surroundings.sample(it, State::Whole));
            Ok(samples.map(|sample| Sample { about: about(), ..sample }).collect())
        }
        None => Ok(Vec::new()),
    }
}

/// The objects of this kind in the passing examples of a platform.
pub(super) fn donors(family: &str, like: &Value) -> Vec<Value> {
    let codes = memgate_core::decide::codes::all(&memgate_platforms::ALL);
    let of_family = codes.filter(|code| code.name.split('/').next() == Some(family));
    let texts = of_family.filter_map(|code| block(code.page.text(), "## Passing example"));
    let sources =
        texts.filter(|(language, _)| *language == "yaml").map(|(_, text)| Arc::new(Source::new("", text)));
    let documents = sources.flat_map(|source| values(&source, &mut Vec::new()));
    let is_like = |it: &Value| group_and_kind(it) == group_and_kind(like);
    let mut donors = Vec::new();
    for donor in documents.map(|document| document.value().clone()).filter(is_like) {
        if !donors.contains(&donor) {
            donors.push(donor);
        }
    }
    donors
}

/// The first fenced block under a heading of a page: its language and its text.
fn block(page: &'static str, heading: &str) -> Option<(&'static str, &'static str)> {
    let (_, section) = page.split_once(heading)?;
    let section = section.split("\n## ").next()?;
    section.split("```").nth(1)?.split_once('\n')
}
