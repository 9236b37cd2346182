//! Valid objects with one fault or two.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{metadata, random::Random, seeds::Seed};

/// The most objects with one fault below `spec` that come from one valid object, so that the kinds with the
/// most fields leave room for the others.
const BELOW_SPEC: usize = 400;

/// The same for metadata, which is the same for all kinds.
const OF_METADATA: usize = 60;

/// An object, and how it was made.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    pub(super) json: String,
    /// The stored object that it updates.
    pub(super) old: Option<String>,
    pub(super) kind: String,
    /// The `apiVersion` under which its kind is served.
    pub(super) served: String,
    /// Whether it names another version.
    pub(super) is_unserved: bool,
    /// Whether the apiserver makes its name.
    pub(super) has_generated_name: bool,
    /// What was done to a valid object, in words.
    pub(super) done: Vec<String>,
}

/// One thing that is done to an object.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Where.
    pub(super) pointer: String,
    /// The new value; `None` takes the old one away.
    pub(super) value: Option<Value>,
}

impl Mutant {
    /// A valid object.
    pub(super) fn unchanged(seed: &Seed) -> Self {
        Self::of(seed, &[])
    }

    /// A valid object with these changes.
    pub(super) fn of(seed: &Seed, changes: &[&Change]) -> Self {
        let mut object = seed.object.clone();
        for change in changes {
            change.apply(&mut object);
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        Self {
            json: object.to_string(),
            old: seed.is_stored.then(|| seed.object.to_string()),
            kind: text(&object["kind"]),
            served: text(&seed.object["apiVersion"]),
            is_unserved: object["apiVersion"] != seed.object["apiVersion"],
            has_generated_name: text(&metadata["name"]).is_empty() && metadata["generateName"].is_string(),
            done: changes.iter().map(|change| change.in_words()).collect(),
        }
    }
}

impl Change {
    fn apply(&self, object: &mut Value) {
        match &self.value {
            Some(value) => set(object, &self.pointer, value),
            None => remove(object, &self.pointer),
        }
    }

    fn in_words(&self) -> String {
        match &self.value {
            None => format!("{} taken away", self.pointer),
            Some(value) => {
                let text = value.to_string();
                let shown: String = text.chars().take(80).collect();
                let more = if shown.len() < text.len() { "…" } else { "" };
                format!("{} = {shown}{more}", self.pointer)
            }
        }
    }
}

/// So many objects, all different, in the same order for the same seed.
pub(super) fn mutants(seeds: &[Seed], seed: u64, count: usize) -> Vec<Mutant> {
    let mut random = Random::new(seed);
    let all: Vec<(&Seed, Vec<Change>)> =
        seeds.iter().map(|seed| (seed, changes(seed, &mut random))).collect();
    let one = all.iter().flat_map(|(seed, changes)| changes.iter().map(|change| Mutant::of(seed, &[change])));
    let mut mutants: Vec<Mutant> = one.collect();
    random.shuffle(&mut mutants);
    // At least a quarter has two faults.
    mutants.truncate(count / 4 * 3);
    let mut made: BTreeSet<String> = BTreeSet::new();
    mutants.retain(|mutant| made.insert(mutant.json.clone()));
    // Nearly each try is a new object, so this is far from where it gives up.
    for _ in 0..count.saturating_mul(3) {
        let (seed, changes) = random.pick(&all);
        let mutant = Mutant::of(seed, &[random.pick(changes), random.pick(changes)]);
        if mutants.len() < count && made.insert(mutant.json.clone()) {
            mutants.push(mutant);
        }
    }
    mutants
}

/// Single changes of an object, in no order.
fn changes(seed: &Seed, random: &mut Random) -> Vec<Change> {
    let mut below = Vec::new();
    for field in ["spec", "status"] {
        let value = seed.object.get(field).cloned().unwrap_or_default();
        walk(&format!("/{field}"), &value, &seed.schema["properties"][field], &mut below);
    }
    let mut changes = if seed.is_stored { Vec::new() } else { metadata::changes() };
    for (changes, most) in [(&mut below, BELOW_SPEC), (&mut changes, OF_METADATA)] {
        random.shuffle(changes);
        changes.truncate(most);
    }
    if seed.is_stored {
        return below;
    }
    let version = seed.object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split('/').next().unwrap_or_default();
    changes.push(Change { pointer: "/apiVersion".to_owned(), value: Some(json!(format!("{group}/v9"))) });
    changes.push(Change { pointer: "/unheardOf".to_owned(), value: Some(json!({"of": 1})) });
    changes.append(&mut below);
    changes
}

fn walk(pointer: &str, value: &Value, schema: &Value, changes: &mut Vec<Change>) {
    let values = others(value, schema).into_iter().map(Some).chain([None]);
    changes.extend(values.map(|value| Change { pointer: pointer.to_owned(), value }));
    match value {
        Value::Object(fields) => {
            let new = [("unheardOf", json!("x")), ("", json!("x")), ("a/b~c", json!(1))];
            changes.extend(new.into_iter().map(|(name, value)| Change {
                pointer: format!("{pointer}/{}", escaped(name)),
                value: Some(value),
            }));
            for (name, value) in fields {
                let known = schema["properties"].get(name);
                let schema = known.unwrap_or_else(|| &schema["additionalProperties"]);
                walk(&format!("{pointer}/{}", escaped(name)), value, schema, changes);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().take(2) {
                walk(&format!("{pointer}/{index}"), item, &schema["items"], changes);
            }
        }
        _ => {}
    }
}

/// Values to put in the place of one.
fn others(value: &Value, schema: &Value) -> Vec<Value> {
    let mut others = vec![
        Value::Null,
        json!(true),
        json!("text"),
        json!(""),
        json!([]),
        json!({}),
        json!(["x", "x"]),
        json!([{"name": "x"}, {"name": "x"}]),
        json!([null]),
        json!({"name": 1}),
        json!(7),
        json!(1.5),
    ];
    match value {
        Value::String(text) => others.extend(texts(text)),
        Value::Number(_) => others.extend(numbers()),
        Value::Array(items) => others.extend(lists(items)),
        _ => {}
    }
    for bound in ["minimum", "maximum"] {
        let bound = schema[bound].as_i64().into_iter();
        others.extend(bound.flat_map(|bound| [json!(bound - 1), json!(bound), json!(bound + 1)]));
    }
    for bound in ["minLength", "maxLength"] {
        let bound = schema[bound].as_u64().and_then(|bound| usize::try_from(bound).ok()).into_iter();
        let lengths = bound.flat_map(|bound| [bound.saturating_sub(1), bound, bound + 1]);
        // Characters count, not bytes.
        others.extend(lengths.flat_map(|length| [json!("a".repeat(length)), json!("ä".repeat(length))]));
    }
    if let Some(allowed) = schema["enum"].as_array() {
        others.extend(allowed.iter().cloned());
    }
    others.retain(|other| other != value);
    others
}

fn texts(text: &str) -> Vec<Value> {
    let shorter = text.chars().skip(1).collect::<String>();
    let upper = text.to_uppercase();
    let texts =
        [shorter, upper, format!("{text} "), format!(" {text}"), format!("{text}\n"), "a/b".to_owned()];
    let more =
        ["-1", "1Gi", "1.5Gi", "5m", "true", "null", "ümläut", "https://example.com/a?b", "with space"];
    let long = [64, 254, 2049].map(|length| json!("a".repeat(length)));
    texts.into_iter().map(Value::from).chain(more.map(Value::from)).chain(long).collect()
}

fn numbers() -> Vec<Value> {
    let whole = [-1_i64, 0, 1, 2, 11, 51, 1 << 31, (1 << 31) - 1, -(1 << 31) - 1, i64::MAX, i64::MIN];
    let other = [3.0, 0.5, 1e3, 1e19, -1e19, 1e300];
    let large = [json!(u64::MAX), json!("7"), json!("1e3")];
    whole.map(Value::from).into_iter().chain(other.map(Value::from)).chain(large).collect()
}

fn lists(items: &[Value]) -> Vec<Value> {
    let doubled = [items, items].concat();
    let with = |value: Value| Value::Array([items, &[value]].concat());
    vec![
        doubled.into(),
        with(Value::Null),
        with(json!(1)),
        with(json!("x")),
        with(json!({})),
        with(json!([])),
    ]
}

/// Puts a value where a pointer leads; nothing when there is no place for it.
pub(super) fn set(object: &mut Value, pointer: &str, value: &Value) {
    if let Some(old) = object.pointer_mut(pointer) {
        *old = value.clone();
    } else if let Some((parent, last)) = pointer.rsplit_once('/')
        && let Some(fields) = object.pointer_mut(parent).and_then(Value::as_object_mut)
    {
        fields.insert(last.replace("~1", "/").replace("~0", "~"), value.clone());
    }
}

/// Takes away what a pointer leads to.
pub(super) fn remove(object: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.shift_remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(index) = last.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
