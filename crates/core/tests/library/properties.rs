//! What must hold for any input: nothing that a user wrote is lost, no patch is invalid, a second
//! pass changes nothing, and nothing panics.
//!
//! Pods are made as text, with shuffled and repeated keys, odd values and unknown fields; the
//! `json_patch` crate is the oracle for patches.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test that cannot go on must stop")]

use memgate_core::admission;
use memgate_core::decide::decide;
use memgate_core::patch::{
    Patch, PatchError,
    apply::{apply, check},
};
use memgate_model::decision::Decision;
use memgate_model::edit::{Edit, Op, Origin, Value as New};
use memgate_model::kind::{NAMESPACE, SECRET};
use memgate_model::object::{Coverage, KindState, Object};
use memgate_model::request::{Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::review_path::Phase;
use proptest::prelude::*;
use serde_json::{Value, json};

/// JSON that keeps the order and the repeats of its keys.
#[derive(Debug, Clone)]
pub(super) enum Json {
    Raw(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Json {
    pub(super) fn text(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(",");
        match self {
            Self::Raw(text) => text.clone(),
            Self::List(items) => format!("[{}]", joined(items.iter().map(Self::text).collect())),
            Self::Object(members) => {
                let member =
                    |(key, value): &(String, Self)| format!("{}:{}", Value::from(key.as_str()), value.text());
                format!("{{{}}}", joined(members.iter().map(member).collect()))
            }
        }
    }
}

fn string(text: &str) -> Json {
    Json::Raw(Value::from(text).to_string())
}

/// Any small JSON value, repeated keys included.
pub(super) fn anything() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just("null"),
        Just("true"),
        Just("-1.5e3"),
        Just("12345678901234567890"),
        Just(r#""a\u0000\"é""#),
        Just(r#""""#),
    ]
    .prop_map(|text| Json::Raw(text.to_owned()));
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
            prop::collection::vec(("[a-c~/]{0,2}", inner), 0..4).prop_map(Json::Object),
        ]
    })
}

/// An object with these members, some unknown ones among them, in any order.
fn object(members: Vec<(&'static str, BoxedStrategy<Json>)>) -> BoxedStrategy<Json> {
    let known: Vec<_> = members.into_iter().map(|(key, value)| (Just(key.to_owned()), value)).collect();
    let unknown = prop::collection::vec(("[a-z]{1,3}", anything()), 0..3);
    (known, unknown)
        .prop_map(|(known, unknown)| known.into_iter().chain(unknown).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_map(Json::Object)
        .boxed()
}

fn one_of(texts: &'static [&'static str]) -> BoxedStrategy<Json> {
    prop::sample::select(texts).prop_map(string).boxed()
}

fn env_var() -> BoxedStrategy<Json> {
    let names = &[
        "AGENT_MEMORY_BACKEND",
        "AGENT_MEMORY_REDIS_URL",
        "AGENT_MEMORY_REDIS_TTL",
        "AGENT_MEMORY_VECTOR_STORE_ENDPOINT",
        "AGENT_MODEL",
        "PATH",
    ];
    let value = one_of(&["redis", "in-context", "3600", "", "x"]);
    let reference = Just(Json::Raw(r#"{"secretKeyRef":{"name":"s","key":"REDIS_URL"}}"#.to_owned())).boxed();
    prop_oneof![
        object(vec![("name", one_of(names)), ("value", value.clone())]),
        object(vec![("name", one_of(names)), ("valueFrom", reference)]),
        object(vec![("name", one_of(names)), ("name", one_of(names)), ("value", value)]),
        object(vec![]),
    ]
    .boxed()
}

fn list_of(element: BoxedStrategy<Json>) -> BoxedStrategy<Json> {
    prop_oneof![
        4 => prop::collection::vec(element, 0..6).prop_map(Json::List),
        1 => Just(Json::Raw("null".to_owned())),
    ]
    .boxed()
}

fn pod() -> BoxedStrategy<Json> {
    let container = |with_env: bool| {
        let mut members = vec![("name", one_of(&["agent", "side"]))];
        if with_env {
            members.push(("env", list_of(env_var())));
        }
        object(members)
    };
    let labels = prop_oneof![
        object(vec![(
            "arkonis.dev/deployment",
            one_of(&["redis", "vector", "context", "bad", "none", "ghost"])
        )]),
        object(vec![
            ("arkonis.dev/deployment", one_of(&["redis", "vector"])),
            ("arkonis.dev/deployment", one_of(&["vector", "late"])),
            ("memgate.dev/inject", one_of(&["required", "disabled", "maybe"])),
        ]),
    ]
    .prop_map(without_odd_values)
    .boxed();
    let annotations = prop_oneof![
        Just(Json::Raw("null".to_owned())),
        object(vec![]).prop_map(without_odd_values),
        object(vec![("memgate.dev/injected", one_of(&["{}", "forged"]))]).prop_map(without_odd_values),
    ]
    .boxed();
    let metadata = prop_oneof![
        object(vec![("labels", labels.clone())]),
        object(vec![("labels", labels), ("annotations", annotations)]),
    ]
    .boxed();
    let containers = list_of(prop_oneof![container(true), container(false)].boxed());
    object(vec![("metadata", metadata), ("spec", object(vec![("containers", containers)]))])
}

/// Labels and annotations are strings; anything else is a malformed pod, which is left alone.
fn without_odd_values(json: Json) -> Json {
    match json {
        Json::Object(members) => Json::Object(
            members
                .into_iter()
                .map(|(key, value)| match value {
                    Json::Raw(text) if text.starts_with('"') => (key, Json::Raw(text)),
                    _ => (key, string("odd")),
                })
                .collect(),
        ),
        other => other,
    }
}

/// A review that asks for a new pod, its fields in any order and some of them twice.
fn review_of(pod: BoxedStrategy<Json>) -> BoxedStrategy<Json> {
    let kind = |name: &str| format!(r#"{{"group":"","version":"v1","kind":"{name}"}}"#);
    let kinds = [kind("Pod"), kind("Pod"), kind("Job")].map(Json::Raw);
    let before = vec![
        ("uid", one_of(&["u"])),
        ("kind", prop::sample::select(kinds.to_vec()).boxed()),
        ("operation", one_of(&["CREATE"])),
    ];
    let behind =
        vec![("oldObject", anything().boxed()), ("dryRun", Just(Json::Raw("false".to_owned())).boxed())];
    let fields = |members: Vec<_>| {
        object(members).prop_map(|json| match json {
            Json::Object(members) => members,
            Json::Raw(_) | Json::List(_) => Vec::new(),
        })
    };
    let shuffled = object(
        [before.clone(), vec![("object", pod.clone()), ("object", pod.clone())], behind.clone()].concat(),
    );
    let usual = (fields(before), pod, fields(behind), 0..2_usize).prop_map(|(mut all, pod, behind, some)| {
        all.push(("object".to_owned(), pod));
        all.extend(behind.into_iter().take(some * 9));
        Json::Object(all)
    });
    let request = prop_oneof![3 => usual, 1 => shuffled].boxed();
    let version = one_of(&["admission.k8s.io/v1"]);
    object(vec![("apiVersion", version), ("kind", one_of(&["AdmissionReview"])), ("request", request)])
}

/// One agent for each way a memory can be.
fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
    for kind in snapshot.settings.families.clone().into_iter().flat_map(|family| family.kinds.watched) {
        snapshot.set(kind, KindState::new(Coverage::Complete));
    }
    for kind in [&SECRET, &NAMESPACE] {
        snapshot.set(kind, KindState::new(Coverage::PerNamespace));
    }
    let store = |endpoint: &str| json!({"provider": "qdrant", "endpoint": endpoint, "collection": ""});
    let memories = [
        ("redis", json!({"backend": "redis", "redis": {"secretRef": {"name": "s"}}})),
        ("vector", json!({"backend": "vector-store", "vectorStore": store("http://q:6333")})),
        ("late", json!({"backend": "vector-store", "vectorStore": store("http://$(HOST):6333")})),
        ("context", json!({"backend": "in-context"})),
        ("bad", json!({"backend": "redis"})),
    ];
    for (name, spec) in memories {
        put(&mut snapshot, "ArkMemory", name, &spec);
        put(
            &mut snapshot,
            "ArkAgent",
            name,
            &json!({"memoryRef": {"name": name}, "configRef": {"name": "set"}}),
        );
    }
    put(&mut snapshot, "ArkAgent", "none", &json!({}));
    put(&mut snapshot, "ArkSettings", "set", &json!({"memoryBackend": "in-context"}));
    snapshot
}

fn put(snapshot: &mut Snapshot, kind: &str, name: &str, spec: &Value) {
    let kind = memgate_platforms::state_kind(&memgate_platforms::ALL, "arkonis.dev", kind)
        .expect("a kind of the family");
    let object = json!({"metadata": {"name": name, "namespace": "team-a"}, "spec": spec});
    let object = Object::read(kind, &object).expect("JSON").expect("a name");
    snapshot.kind_mut(kind).insert(object);
}

fn request<'a>(kind: &'static str, group: &'static str, object: &'a str) -> Request<'a> {
    Request { group: group.into(), kind: kind.into(), ..Request::to_create_pod("team-a", "one", object) }
}

fn decide_pod(text: &str) -> Decision {
    decide(&request("Pod", "", text), &snapshot())
}

fn patched(object: &Value, edits: &[Edit]) -> Result<Value, String> {
    let patch = serde_json::to_value(Patch(edits)).map_err(|error| error.to_string())?;
    let patch: json_patch::Patch = serde_json::from_value(patch).map_err(|error| error.to_string())?;
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).map_err(|error| error.to_string())?;
    Ok(object)
}

/// Takes the edits back, the last one first: `add` by removing, `replace` and `remove` by the old value.
fn taken_back(object: &Value, original: &Value, edits: &[Edit]) -> Value {
    let mut object = object.clone();
    for (number, edit) in edits.iter().enumerate().rev() {
        let before = patched(original, &edits[..number]).expect("a prefix of a good patch");
        let path = edit.pointer.as_str();
        let old = before.pointer(path);
        let inserted = edit.op == Op::Add && before.pointer(parent(path)).is_some_and(Value::is_array);
        let undo = match old {
            Some(old) if edit.op == Op::Remove => json!([{"op": "add", "path": path, "value": old}]),
            Some(old) if !inserted => json!([{"op": "replace", "path": path, "value": old}]),
            _ => json!([{"op": "remove", "path": path}]),
        };
        let undo: json_patch::Patch = serde_json::from_value(undo).expect("a patch");
        json_patch::patch(&mut object, &undo).expect("an undo applies");
    }
    object
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').expect("no edit of the whole object").0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keeps_every_leaf_that_no_edit_names(pod in pod()) {
        let text = pod.text();
        let object: Value = serde_json::from_str(&text).expect("JSON");
        let decision = decide_pod(&text);
        let after = patched(&object, &decision.edits).expect("the patch applies");
        prop_assert_eq!(taken_back(&after, &object, &decision.edits), object);
    }

    #[test]
    fn applies_as_the_oracle_does(pod in pod()) {
        let text = pod.text();
        let edits = decide_pod(&text).edits;
        prop_assert_eq!(check(&text, &edits), Ok(()));
        let after = apply(&text, &edits).expect("applies");
        let after: Value = serde_json::from_str(&after).expect("JSON");
        let object: Value = serde_json::from_str(&text).expect("JSON");
        prop_assert_eq!(after, patched(&object, &edits).expect("applies"));
    }

    #[test]
    fn changes_nothing_the_second_time(pod in pod()) {
        let text = pod.text();
        let first = decide_pod(&text);
        let after = apply(&text, &first.edits).expect("applies");
        let second = decide_pod(&after);
        prop_assert!(second.edits.is_empty(), "{:?}", second.edits);
        prop_assert_eq!(first.allowed(), second.allowed());
    }

    #[test]
    fn decides_the_same_every_time(pod in pod()) {
        let text = pod.text();
        prop_assert_eq!(decide_pod(&text), decide_pod(&text));
    }

    /// The pod of a review is the one that was sent, however the fields of the review are ordered and repeated.
    #[test]
    fn reads_the_pod_of_a_review(review in review_of(pod())) {
        let body = review.text();
        // An unknown field may have a name that is known.
        let Ok(review) = admission::parse(&body) else { return Ok(()) };
        let sent: Value = serde_json::from_str(&body).expect("JSON");
        let object: Value = serde_json::from_str(review.request.object.expect("an object")).expect("JSON");
        prop_assert_eq!(&object, &sent["request"]["object"]);
    }

    /// Pointers that no family makes: the check must agree with the oracle on all of them, except
    /// where it refuses an edit inside a list behind an insert into it, and `-` for a list's end,
    /// which memgate never writes.
    #[test]
    fn checks_odd_pointers_as_the_oracle_does(pod in pod(), edits in odd_edits()) {
        let text = pod.text();
        let object: Value = serde_json::from_str(&text).expect("JSON");
        let oracle = patched(&object, &edits);
        match check(&text, &edits) {
            Ok(()) => prop_assert!(oracle.is_ok(), "{oracle:?}"),
            Err(PatchError::At(at)) if edits.len() > 1 || at.tokens().any(|token| token == "-") => {}
            Err(misfit) => prop_assert!(oracle.is_err(), "{misfit}"),
        }
        if let (Ok(oracle), Ok(after)) = (oracle, apply(&text, &edits)) {
            prop_assert_eq!(serde_json::from_str::<Value>(&after).expect("JSON"), oracle);
        }
    }

    #[test]
    fn survives_any_object_of_a_family(
        kind in prop::sample::select(vec!["ArkMemory", "ArkAgent", "ArkSettings"]),
        spec in anything(),
        old in anything(),
    ) {
        let text = format!(r#"{{"metadata":{{"name":"one"}},"spec":{}}}"#, spec.text());
        let old = format!(r#"{{"metadata":{{"name":"one"}},"spec":{}}}"#, old.text());
        let create = request(kind, "arkonis.dev", &text);
        let admitted = admission::admit(&create, &snapshot());
        prop_assert!(admitted.is_ok());
        let update = Request { operation: Operation::Update, old_object: Some(&old), ..create };
        prop_assert!(admission::admit(&update, &snapshot()).is_ok());
    }

    /// Any damage to a good review gives an error or an answer whose patch applies.
    #[test]
    fn survives_damaged_reviews(
        pod in pod(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        keep in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let body = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"CREATE","kind":{{"version":"v1","kind":"Pod"}},"namespace":"team-a","object":{}}}}}"#,
            pod.text()
        );
        let mut bytes = body.into_bytes();
        let index = at.index(bytes.len());
        bytes[index] = byte;
        if cut {
            bytes.truncate(keep.index(bytes.len()));
        }
        let Ok(body) = std::str::from_utf8(&bytes) else { return Ok(()) };
        let Ok(review) = admission::parse(body) else { return Ok(()) };
        let decision = decide(&review.request, &snapshot());
        match admission::respond(Phase::Mutate, &review, &decision) {
            Ok(response) => prop_assert!(serde_json::from_slice::<Value>(&response).is_ok()),
            Err(fault) => prop_assert!(matches!(fault, admission::Error::Unreadable), "{fault}"),
        }
    }
}

fn odd_edits() -> impl Strategy<Value = Vec<Edit>> {
    let token = prop::sample::select(vec![
        "metadata", "annotations", "spec", "containers", "env", "0", "1", "01", "+1", "-", "a~1b", "",
    ]);
    let pointer = prop::collection::vec(token, 1..5).prop_map(|tokens| format!("/{}", tokens.join("/")));
    let edit = (pointer, any::<bool>()).prop_map(|(pointer, add)| Edit {
        op: if add { Op::Add } else { Op::Replace },
        pointer: Pointer::new(pointer),
        value: New::Text("new".to_owned()),
        origins: vec![Origin { resource: "".into(), field: "".into(), rule: "" }],
    });
    prop::collection::vec(edit, 1..3)
}
