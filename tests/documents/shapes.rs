//! That the bundled definitions are those of the platforms: `tests/shapes` lists each node of the platforms' own
//! definitions, and `deploy/crds` has exactly these.
//!
//! A line is the kind with its version, the path, the type, and what the node asks:
//!
//! ```text
//! Memory/v1alpha1 spec.headers[].name string required minLength=1
//! ```
//!
//! The elements of a list are `a[]`, the values of a map `a{}`, the root is `.`. Rules in CEL and alternatives (`oneOf`
//! and others) count by number. A file `NAME.later` has what the bundle has in place of the lines of `NAME.shape` or
//! besides them, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use serde_json::Value;

/// The kinds that `deploy/crds` has without a list, by file.
const UNLISTED: [(&str, &str); 1] = [
    // Its platform has not released it.
    ("orka", "MemoryBackend"),
];

/// The files of `deploy/crds` without a list: memgate's own kinds, and kinds of which not all definitions could be read.
const NO_LIST: [&str; 2] = ["policy", "sympozium-sessions"];

/// The nodes of all definitions in a text, in order.
fn nodes(text: &str) -> BTreeSet<String> {
    nodes_by_group(text).into_values().flatten().collect()
}

/// The same by API group.
fn nodes_by_group(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    // Lines of a chart that only templates understand.
    let plain: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("{{")).collect();
    let mut errors = Vec::new();
    let documents = values(&Arc::new(Source::new("definitions", plain.join("\n"))), &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for document in &documents {
        let crd = document.value();
        for crd in crd["items"].as_array().map_or_else(|| std::slice::from_ref(crd), Vec::as_slice) {
            if crd["kind"] != "CustomResourceDefinition" {
                continue;
            }
            let kind = crd.pointer("/spec/names/kind").and_then(Value::as_str).expect("a kind");
            let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
            let lines = groups.entry(group.to_owned()).or_default();
            for version in list(crd.pointer("/spec/versions").expect("versions")) {
                let owner = format!("{kind}/{}", version["name"].as_str().expect("a version"));
                let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
                walk(&owner, "", schema, false, lines);
            }
        }
    }
    groups
}

fn walk(owner: &str, path: &str, schema: &Value, required: bool, lines: &mut BTreeSet<String>) {
    let shown = if path.is_empty() { "." } else { path };
    lines.insert(format!("{owner} {shown} {}", node(schema, required)));
    let needed = |name: &str| list(&schema["required"]).iter().any(|it| it == name);
    let child = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let fields = schema["properties"].as_object();
    for (name, field) in fields.into_iter().flatten() {
        walk(owner, &child(name), field, needed(name), lines);
    }
    for name in list(&schema["required"]).iter().filter_map(Value::as_str) {
        if schema["properties"].get(name).is_none() {
            lines.insert(format!("{owner} {} any required undeclared", child(name)));
        }
    }
    if schema["items"].is_object() {
        walk(owner, &format!("{path}[]"), &schema["items"], false, lines);
    }
    match &schema["additionalProperties"] {
        further @ Value::Object(_) => walk(owner, &format!("{path}{{}}"), further, false, lines),
        Value::Bool(true) => {
            lines.insert(format!("{owner} {path}{{}} any"));
        }
        _ => {}
    }
}

/// The type of a node and what it asks, as words of a line.
fn node(schema: &Value, required: bool) -> String {
    let int_or_string = schema["x-kubernetes-int-or-string"] == true;
    let types = if int_or_string { "int-or-string" } else { schema["type"].as_str().unwrap_or("any") };
    let mut words = vec![types.to_owned()];
    words.extend(required.then(|| "required".to_owned()));
    for (key, word, form) in WORDS {
        let value = &schema[key];
        if value.is_null() || key == "anyOf" && int_or_string {
            continue;
        }
        words.extend(match form {
            Form::Flag => (value == true).then(|| word.to_owned()),
            Form::There => Some(word.to_owned()),
            Form::Json => Some(format!("{word}={value}")),
            Form::Text => value.as_str().map(|text| format!("{word}={text}")),
            Form::Texts => {
                let texts: Vec<&str> = list(value).iter().filter_map(Value::as_str).collect();
                Some(format!("{word}={}", texts.join(",")))
            }
            Form::Sorted => {
                let mut allowed: Vec<String> = list(value).iter().map(Value::to_string).collect();
                allowed.sort();
                Some(format!("{word}=[{}]", allowed.join(",")))
            }
            Form::Count(unit) => Some(format!("{word}={}{unit}", list(value).len())),
        });
    }
    words.join(" ")
}

/// How a line shows the value of a keyword.
#[derive(Clone, Copy)]
enum Form {
    /// The word, if the value is `true`.
    Flag,
    /// The word, whatever the value is.
    There,
    Json,
    Text,
    Texts,
    /// The values in order.
    Sorted,
    /// How many there are.
    Count(&'static str),
}

/// The keywords in the order of a line.
const WORDS: [(&str, &str, Form); 27] = [
    ("nullable", "nullable", Form::Flag),
    ("enum", "enum", Form::Sorted),
    ("minLength", "minLength", Form::Json),
    ("maxLength", "maxLength", Form::Json),
    ("minItems", "minItems", Form::Json),
    ("maxItems", "maxItems", Form::Json),
    ("minProperties", "minProperties", Form::Json),
    ("maxProperties", "maxProperties", Form::Json),
    ("minimum", "minimum", Form::Json),
    ("maximum", "maximum", Form::Json),
    ("multipleOf", "multipleOf", Form::Json),
    ("exclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("exclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("uniqueItems", "uniqueItems", Form::Flag),
    ("pattern", "pattern", Form::Json),
    ("format", "format", Form::Text),
    ("default", "default", Form::Json),
    ("x-kubernetes-list-type", "listType", Form::Text),
    ("x-kubernetes-list-map-keys", "listMapKeys", Form::Texts),
    ("x-kubernetes-map-type", "mapType", Form::Text),
    ("x-kubernetes-preserve-unknown-fields", "preserve", Form::Flag),
    ("x-kubernetes-embedded-resource", "embedded", Form::Flag),
    ("oneOf", "oneOf", Form::Count("")),
    ("anyOf", "anyOf", Form::Count("")),
    ("allOf", "allOf", Form::Count("")),
    ("not", "not", Form::There),
    ("x-kubernetes-validations", "cel", Form::Count(" rules")),
];

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn list_of(name: &str) -> PathBuf {
    root().join(format!("tests/shapes/{name}.shape"))
}

/// The lines of a list, without its head.
fn listed(name: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(list_of(name)).expect(name);
    lines(&text).map(str::to_owned).collect()
}

/// The lines of a list with those that the bundle has in their place.
fn bundled(name: &str) -> BTreeSet<String> {
    let later = std::fs::read_to_string(list_of(name).with_extension("later")).unwrap_or_default();
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for line in listed(name).iter().map(String::as_str).chain(lines(&later)) {
        all.insert(place(line), line.to_owned());
    }
    all.into_values().collect()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

/// The kind and the path of a line.
fn place(line: &str) -> String {
    line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")
}

/// The kind of a line.
fn kind(line: &str) -> &str {
    line.split('/').next().unwrap_or_default()
}

#[test]
fn are_those_of_the_platforms_node_for_node() {
    let mut differing = String::new();
    let mut count = 0;
    for file in std::fs::read_dir(root().join("deploy/crds")).expect("the definitions") {
        let path = file.expect("a file").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if NO_LIST.contains(&name.as_str()) || path.extension().is_none_or(|it| it != "yaml") {
            continue;
        }
        let listed = bundled(&name);
        let mut ours = nodes(&std::fs::read_to_string(&path).expect("a file"));
        ours.retain(|line| !UNLISTED.contains(&(name.as_str(), kind(line))));
        count += listed.len();
        for line in ours.difference(&listed) {
            writeln!(differing, "{name}: only here:     {line}").expect("a String");
        }
        for line in listed.difference(&ours) {
            writeln!(differing, "{name}: only upstream: {line}").expect("a String");
        }
    }
    assert!(differing.is_empty(), "\n{differing}");
    assert!(count > 8900, "{count} nodes are listed");
}

/// What `just shape NAME FILE…` runs: writes the list anew from the platform's own definitions, as far as it has the
/// kinds. `git diff` then says what moved, and the test above what `deploy/crds` lacks.
#[test]
#[ignore = "it writes a list anew; see `just shape`"]
fn write_a_list() {
    let (Ok(name), Ok(files)) = (std::env::var("SHAPE_NAME"), std::env::var("SHAPE_FILES")) else { return };
    let listed = listed(&name);
    let kinds: BTreeSet<&str> = listed.iter().map(|line| kind(line)).collect();
    let read = |file: &str| nodes(&std::fs::read_to_string(file).expect(file));
    let mut lines: BTreeSet<String> = files.split_whitespace().flat_map(read).collect();
    lines.retain(|line| kinds.contains(kind(line)));
    let text = std::fs::read_to_string(list_of(&name)).expect("the list");
    let head: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    let body: Vec<&str> = lines.iter().map(String::as_str).collect();
    std::fs::write(list_of(&name), [head, body].concat().join("\n") + "\n").expect("written");
}

/// What differs between two sets of nodes: `-` for what only the bundle has, `+` for what only the other one has. A node
/// whose parent is missing on the same side is not shown.
fn differences(bundle: &BTreeSet<String>, other: &BTreeSet<String>) -> Vec<String> {
    let places = |lines: &BTreeSet<String>| lines.iter().map(|line| place(line)).collect::<BTreeSet<_>>();
    let (here, there) = (places(bundle), places(other));
    let is_below_missing = |line: &str, missing_in: &BTreeSet<String>| {
        let place = place(line);
        let is_parent = |at: usize| at > place.find(' ').unwrap_or_default() + 1;
        let ends = place.char_indices().filter(|(at, c)| ['.', '[', '{'].contains(c) && is_parent(*at));
        ends.filter_map(|(at, _)| place.get(..at)).any(|parent| !missing_in.contains(parent))
    };
    let shown = |from: &BTreeSet<String>, to: &BTreeSet<String>, places: &BTreeSet<String>, sign: char| {
        let only = from.difference(to).filter(|line| !is_below_missing(line, places));
        only.map(|line| (place(line), format!("{sign} {line}"))).collect::<Vec<_>>()
    };
    let mut all = shown(bundle, other, &there, '-');
    all.extend(shown(other, bundle, &here, '+'));
    all.sort();
    all.into_iter().map(|(_, line)| line).collect()
}

/// What `tools/upstream.sh` runs: prints in what the bundled definitions differ from others, of the kinds and versions
/// that both have.
#[test]
#[ignore = "it compares with other definitions; see tools/upstream.sh"]
fn show_differences() {
    let Ok(files) = std::env::var("UPSTREAM_FILES") else { return };
    let read = |path: &Path| nodes_by_group(&std::fs::read_to_string(path).expect("a text"));
    let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
    let merge = |all: &mut BTreeMap<String, BTreeSet<String>>, some: BTreeMap<String, BTreeSet<String>>| {
        for (group, lines) in some {
            all.entry(group).or_default().extend(lines);
        }
    };
    for file in std::fs::read_dir(root().join("deploy/crds")).expect("the definitions") {
        merge(&mut ours, read(&file.expect("a file").path()));
    }
    files.lines().for_each(|file| merge(&mut theirs, read(Path::new(file))));
    let versions = |lines: &BTreeSet<String>| -> BTreeSet<String> {
        lines.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    for (group, lines) in &ours {
        let Some(others) = theirs.get(group) else { continue };
        let both: BTreeSet<String> = versions(lines).intersection(&versions(others)).cloned().collect();
        let of_both = |lines: &BTreeSet<String>| -> BTreeSet<String> {
            let is_of_both = |line: &&String| line.split(' ').next().is_some_and(|it| both.contains(it));
            lines.iter().filter(is_of_both).cloned().collect()
        };
        let shown = differences(&of_both(lines), &of_both(others));
        let kinds: Vec<&str> = both.iter().map(String::as_str).collect();
        println!("{group}: {}; {} differ", kinds.join(", "), shown.len());
        for line in &shown {
            println!("  {line}");
        }
    }
}
