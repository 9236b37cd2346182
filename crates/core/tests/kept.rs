//! What is kept of objects whose lists and maps are full of next to nothing: at most 4 times their JSON, by what the state
//! counts and by what the process takes. So too where objects share texts, and most of them go again. Alone in its process,
//! since it reads the memory of all of it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test stops where something is wrong, and says what it saw"
)]

#[path = "../../../tests/support/memory.rs"]
mod memory;
#[path = "../../../tests/support/needs.rs"]
mod needs;

use memory::kib;

use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::object::{Coverage, KindState, Object};
use memgate_model::schema::Schema;
use serde_json::{Map, Value, json};

/// How many elements a list has.
const ELEMENTS: usize = 9_900;

/// How many objects there are of each form.
const OBJECTS: usize = 2;

/// What the process may take beside the objects, in KiB.
const BESIDE_KIB: usize = 24 << 10;

/// The paths to all lists and maps that are read; an element is the empty text.
fn paths(schema: &Schema, here: &mut Vec<&'static str>, all: &mut Vec<(Vec<&'static str>, Schema)>) {
    match schema {
        Schema::List(element) => {
            all.push((here.clone(), *schema));
            here.push("");
            paths(element, here, all);
            here.pop();
        }
        Schema::Texts | Schema::Keys => all.push((here.clone(), *schema)),
        _ => {
            for field in schema.fields() {
                here.push(field.name);
                paths(&field.schema, here, all);
                here.pop();
            }
        }
    }
}

/// The value at the end of a path, with all above it.
fn at(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |value, name| match *name {
        "" => json!([value]),
        name => json!({name: value}),
    })
}

/// What a list or map is filled with, in many ways.
fn fillings(schema: &Schema) -> Vec<Value> {
    let texts: [fn(usize) -> String; 5] = [
        |_| String::new(),
        |_| "a".to_owned(),
        |number| {
            char::from_u32(97 + u32::try_from(number % 26).expect("small"))
                .map(String::from)
                .expect("a letter")
        },
        |number| format!("{number:x}"),
        |number| format!("{number:070}"),
    ];
    if !matches!(schema, Schema::List(_)) {
        let entries = |text: &fn(usize) -> String| {
            (0..ELEMENTS).map(|number| (format!("{number:x}"), text(number).into())).collect::<Map<_, _>>()
        };
        return texts.iter().map(|text| Value::Object(entries(text))).collect();
    }
    let mut elements: Vec<fn(usize) -> Value> = vec![
        |_| json!({}),
        |_| json!(null),
        |_| json!(0),
        |_| json!(true),
        |_| json!([]),
        |_| json!({"": 1}),
    ];
    elements.push(|number| json!({"name": format!("{number:x}"), "value": ""}));
    let of = |element: &dyn Fn(usize) -> Value| (0..ELEMENTS).map(element).collect::<Value>();
    let plain = elements.iter().map(|element| of(element));
    plain.chain(texts.iter().map(|text| of(&|number| text(number).into()))).collect()
}

fn resident() -> usize {
    kib(std::process::id(), "VmRSS:").and_then(|kib| kib.try_into().ok()).expect("its memory")
}

fn stored(kind: &'static Kind, path: &[&'static str], filling: &Value, name: &str) -> String {
    let mut object = at(path, filling.clone());
    let metadata = json!({
        "name": name, "namespace": "team", "uid": "0c2a5b7e-6393-11e8-b7cc-000000000000", "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1",
    });
    let mut metadata = metadata.as_object().expect("an object").clone();
    metadata.extend(object["metadata"].as_object().cloned().unwrap_or_default());
    object["metadata"] = metadata.into();
    object["kind"] = kind.kind.into();
    object.to_string()
}

/// How many objects have the same labels, whether the last of them stays or the first, and how many labels each has.
const SHARED: [(usize, bool, usize); 3] = [(18, true, 900), (18, false, 900), (18, true, 1_900)];

/// How many labels those that stay have.
const LABELS: usize = 135_000;

/// Writes objects with the same labels, round after round with other labels, and deletes all but one of each round.
/// Returns how many KiB are counted, and how many more the process takes.
fn sharing((objects, last_stays, labels): (usize, bool, usize), state: &mut KindState) -> [usize; 2] {
    let kind = memgate_platforms::state_kind(&memgate_platforms::ALL, "arkonis.dev", "ArkAgent")
        .expect("is watched");
    let before = resident();
    let mut counted = 0;
    for round in 0..LABELS / labels {
        let label = |number| (format!("{number:x}"), format!("{round:030}{number:030}").into());
        let text =
            stored(kind, &["metadata", "labels"], &Value::Object((0..labels).map(label).collect()), "NAME");
        let names: Vec<_> = (0..objects).map(|number| format!("s{labels}-{round}-{number}")).collect();
        for name in &names {
            let object = Object::read_to_keep(kind, ("team", name), &text.replace("NAME", name));
            let (kept, _) = state.put(object.expect("JSON").expect("a name"));
            assert!(kept.held);
        }
        let stays = if last_stays { objects - 1 } else { 0 };
        for (_, name) in names.iter().enumerate().filter(|(number, _)| *number != stays) {
            state.remove("team", name);
        }
        counted += state.kept_of("team", &names[stays]).expect("is there").bytes();
    }
    [counted >> 10, resident().saturating_sub(before)]
}

/// A part of what each list is filled with, another one for the next.
#[test]
fn takes_at_most_four_times_the_json_whatever_is_in_the_lists() {
    takes_little_with_one_filling_of(8);
}

#[test]
#[ignore = "needs minutes"]
fn takes_at_most_four_times_the_json_with_every_filling() {
    takes_little_with_one_filling_of(1);
}

fn takes_little_with_one_filling_of(every: usize) {
    let mut shared_states = Vec::new();
    let watched =
        memgate_platforms::ALL.iter().flat_map(|family| family.kinds.watched).copied().chain([&NAMESPACE]);
    let (mut states, mut json_bytes, mut forms) = (Vec::new(), 0, 0);
    for shared in SHARED.into_iter().step_by(every) {
        let mut state = KindState::new(Coverage::Watched);
        let [counted, grown] = sharing(shared, &mut state);
        println!("{shared:?}: {counted} KiB counted, {grown} KiB resident");
        assert!(grown <= counted + counted / 4 + (8 << 10), "{shared:?}: {grown} KiB, {counted} counted");
        shared_states.push(state);
    }
    let before = resident();
    for kind in watched {
        let mut all = Vec::new();
        paths(&kind.schema, &mut Vec::new(), &mut all);
        let mut state = KindState::new(Coverage::Watched);
        for (number, (path, schema)) in all.into_iter().enumerate() {
            for filling in fillings(&schema).into_iter().skip(number % every).step_by(every) {
                forms += 1;
                for number in 0..OBJECTS {
                    let name = format!("n{forms}-{number}");
                    let text = stored(kind, &path, &filling, &name);
                    let object = Object::read_to_keep(kind, ("team", &name), &text);
                    state.insert(object.expect("JSON").expect("a name"));
                    let kept = state.kept_of("team", &name).expect("is there");
                    assert!(kept.bytes() <= 4 * text.len(), "{} {path:?}: {}", kind.kind, kept.bytes());
                    assert!(kept.bytes() > 0 && (kept.held || state.object("team", &name).is_none()));
                    json_bytes += text.len();
                }
            }
        }
        states.push(state);
    }
    let counted: usize = states.iter().flat_map(KindState::kept).map(|object| object.bytes()).sum();
    let (counted, grown, json) = (counted >> 10, resident().saturating_sub(before), json_bytes >> 10);
    println!("{forms} forms, {json} KiB of JSON: {counted} KiB counted, {grown} KiB resident");
    assert!(forms > 700 / every, "{forms}");
    assert!(grown <= counted + counted / 4 + BESIDE_KIB, "{grown} KiB, of which {counted} were counted");
    assert!(grown <= 4 * json, "{grown} KiB of {json}");
}
