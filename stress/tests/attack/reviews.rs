//! Envelopes that are wrong, unusual names, pods that are full or unusual.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::client::{Answer, post};
use crate::running::{Setup, Victim, scene};

fn pod() -> Value {
    json!({
        "metadata": {"name": "scout-1", "labels": {"arkonis.dev/deployment": "scout"}},
        "spec": {"containers": [{"name": "agent"}]},
    })
}

/// A review, with changes at these pointers of its request; `null` takes away.
pub(crate) fn review(changes: &[(&str, Value)]) -> Value {
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "namespace": "team",
            "name": "scout-1",
            "object": pod(),
        },
    });
    for (key, value) in changes {
        let request = review["request"].as_object_mut().unwrap();
        if value.is_null() {
            request.remove(*key)
        } else {
            request.insert((*key).to_owned(), value.clone())
        };
    }
    review
}

fn memory_review(metadata: &Value, spec: &Value) -> Value {
    let kind = json!({"group": "arkonis.dev", "version": "v1alpha1", "kind": "ArkMemory"});
    review(&[("kind", kind), ("object", json!({"metadata": metadata, "spec": spec}))])
}

/// The object with the patch of the answer applied; the object itself when there is none.
fn patched(answer: &Answer, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(patch) = answer.review()["patch"].as_str() {
        let patch: json_patch::Patch =
            serde_json::from_slice(&BASE64_STANDARD.decode(patch).unwrap()).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
    }
    object
}

/// S7 of stress/ATTACKS.md.
#[tokio::test]
async fn wrong_envelopes_get_400_or_an_answer_without_a_patch() {
    let victim = Victim::start(&[]).await;
    let v1 = "admission.k8s.io/v1";
    let good = review(&[])["request"].clone();
    let whole = |version: &str, kind: &str, rest: Value| {
        let mut whole = json!({"apiVersion": version, "kind": kind});
        whole.as_object_mut().unwrap().append(&mut rest.as_object().unwrap().clone());
        whole
    };
    let request = || json!({"request": good});
    for (what, path, sent, status) in [
        ("nothing in it", "/mutate", json!({}), 400),
        ("a list", "/mutate", json!([review(&[])]), 400),
        ("no request", "/mutate", whole(v1, "AdmissionReview", json!({})), 400),
        (
            "only a response",
            "/mutate",
            whole(v1, "AdmissionReview", json!({"response": {"uid": "u-1", "allowed": true}})),
            400,
        ),
        (
            "a request that is a list",
            "/mutate",
            whole(v1, "AdmissionReview", json!({"request": [good]})),
            400,
        ),
        ("v1beta1", "/mutate", whole("admission.k8s.io/v1beta1", "AdmissionReview", request()), 400),
        ("another kind", "/mutate", whole(v1, "ConversionReview", request()), 400),
        ("no version", "/mutate", json!({"kind": "AdmissionReview", "request": good}), 400),
        ("no uid", "/mutate", review(&[("uid", Value::Null)]), 400),
        ("an empty uid", "/mutate", review(&[("uid", json!(""))]), 400),
        ("a uid that is a number", "/mutate", review(&[("uid", json!(7))]), 400),
        ("no kind", "/mutate", review(&[("kind", Value::Null)]), 400),
        ("no operation", "/mutate", review(&[("operation", Value::Null)]), 400),
        ("an unknown operation", "/mutate", review(&[("operation", json!("PATCH"))]), 400),
        ("an operation in small letters", "/mutate", review(&[("operation", json!("create"))]), 400),
        ("no object to create", "/mutate", review(&[("object", Value::Null)]), 400),
        (
            "a response beside the request",
            "/validate",
            whole(v1, "AdmissionReview", json!({"request": good, "response": {"allowed": false}})),
            200,
        ),
        (
            "nothing to delete",
            "/validate",
            review(&[("operation", json!("DELETE")), ("object", Value::Null)]),
            200,
        ),
        (
            "nothing to delete, for the other call",
            "/mutate",
            review(&[("operation", json!("DELETE")), ("object", Value::Null)]),
            200,
        ),
        (
            "CONNECT",
            "/mutate",
            review(&[("operation", json!("CONNECT")), ("subResource", json!("exec"))]),
            200,
        ),
        ("a subresource", "/mutate", review(&[("subResource", json!("status"))]), 200),
        (
            "an update of a pod",
            "/mutate",
            review(&[("operation", json!("UPDATE")), ("oldObject", pod())]),
            200,
        ),
        (
            "an unknown kind",
            "/mutate",
            review(&[("kind", json!({"group": "example.dev", "version": "v1", "kind": "Pod"}))]),
            200,
        ),
    ] {
        let answer = victim.review(path, &sent).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        if status == 200 {
            let response = answer.review();
            assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(true)), "{what}");
            assert!(
                response.get("patch").is_none() && response.get("patchType").is_none(),
                "{what}: {response}"
            );
        }
    }
    victim.is_well().await;
}

/// All texts in a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(map) => {
            map.iter().flat_map(|(key, value)| [vec![key.as_str()], texts(value)].concat()).collect()
        }
        _ => Vec::new(),
    }
}

/// Text that must not come out as it went in.
const HOSTILE: [&str; 9] = [
    "a~b/c%2F",
    "",
    "x\r\nSet-Cookie: a=b",
    "\u{1b}[31mred\u{1b}[0m",
    "a\u{0}b\u{7f}\u{85}\u{2028}",
    "b\u{430}ckend",
    "in-context\u{202e}txetnoc",
    "{\"level\":\"ERROR\"}\n{\"fake\":1}",
    "${jndi:ldap://127.0.0.1}%n%s{{.}}",
];

/// S8 of stress/ATTACKS.md.
#[tokio::test]
async fn hostile_names_stay_in_their_place() {
    let victim = Victim::start(&[]).await;
    let long: Vec<String> = [253, 254, 100_000].map(|length| "n".repeat(length)).to_vec();
    let hostile = HOSTILE.iter().copied().chain(long.iter().map(String::as_str));
    for text in hostile {
        let shown = text.chars().take(20).collect::<String>();
        let annotations = json!({text: text, "memgate.dev/inject": text, "memgate.dev/injected": text});
        for (what, path, sent) in [
            (
                "a name",
                "/validate",
                memory_review(
                    &json!({"name": text}),
                    &json!({"backend": "redis", "redis": {"secretRef": {"name": text}}}),
                ),
            ),
            ("a value", "/validate", memory_review(&json!({"name": "m"}), &json!({"backend": text}))),
            (
                "a key",
                "/validate",
                memory_review(
                    &json!({"name": "m"}),
                    &json!({"backend": "none", text: text, "backen": {text: 1}}),
                ),
            ),
            (
                "annotations",
                "/validate",
                memory_review(
                    &json!({"name": "m", "annotations": annotations, "labels": annotations}),
                    &json!({"backend": "none"}),
                ),
            ),
            (
                "of a pod",
                "/mutate",
                review(&[(
                    "object",
                    json!({"metadata": {"labels": {"arkonis.dev/deployment": text, "memgate.dev/inject": text}, "annotations": annotations}, "spec": {"containers": [{"name": text, "env": [{"name": text, "value": text}]}]}}),
                )]),
            ),
            (
                "of the request",
                "/mutate",
                review(&[
                    ("name", json!(text)),
                    ("namespace", json!(text)),
                    // A longer one is refused.
                    ("uid", json!(format!("u{text}").chars().take(100).collect::<String>())),
                ]),
            ),
        ] {
            let answer = victim.review(path, &sent).await;
            let mut response = answer.review();
            assert_eq!(response["uid"], sent["request"]["uid"], "{what} {shown:?}");
            for key in ["uid", "patch"] {
                response.as_object_mut().unwrap().remove(key);
            }
            for text in texts(&response) {
                let control = |c: char| c.is_control() && c != '\n';
                assert!(!text.contains(control), "{what} {shown:?}: {text:?}");
            }
            let warnings = response["warnings"].as_array().cloned().unwrap_or_default();
            let length: usize = texts(&json!(warnings)).iter().map(|text| text.len()).sum();
            assert!(length <= 4096, "{what} {shown:?}: {length} bytes of warnings");
            assert!(
                warnings.iter().all(|warning| !warning.as_str().unwrap().contains('\n')),
                "{what} {shown:?}"
            );
        }
    }
    for line in victim.lines() {
        assert!(line["message"] != "fake" && line.get("fake").is_none(), "{line}");
        assert!(line.to_string().len() < 4096, "a line of {} bytes", line.to_string().len());
    }
    victim.is_well().await;
}

/// S8 of stress/ATTACKS.md.
#[tokio::test]
async fn pointers_escape_what_must_be_escaped() {
    let victim = Victim::start(&[]).await;
    for key in ["a~b", "a/b", "~1", "~0~1/", "/", "a%2Fb"] {
        let mut object = pod();
        object["metadata"]["annotations"] = json!({key: "kept"});
        object["metadata"]["labels"][key] = json!("kept");
        let answer = victim.review("/mutate", &review(&[("object", object.clone())])).await;
        let after = patched(&answer, &object);
        assert!(after["metadata"]["annotations"]["memgate.dev/injected"].is_string(), "{key}: {after}");
        assert_eq!(
            (&after["metadata"]["annotations"][key], &after["metadata"]["labels"][key]),
            (&json!("kept"), &json!("kept"))
        );
    }
}

fn env_of(container: &Value) -> Vec<&str> {
    container["env"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|variable| variable["name"].as_str())
        .collect()
}

/// S9 of stress/ATTACKS.md.
#[tokio::test]
async fn full_pods_are_served_and_keep_what_they_have() {
    let mut state = scene();
    state["items"][1]["spec"] =
        json!({"backend": "redis", "redis": {"secretRef": {"name": "redis"}, "ttlSeconds": 60}});
    let victim = Victim::start_with(Setup { state, ..Setup::default() }).await;
    let many: Vec<Value> =
        (0..5_000).map(|number| json!({"name": format!("V{number}"), "value": "x"})).collect();
    let names = ["AGENT_MEMORY_BACKEND", "AGENT_MEMORY_REDIS_TTL", "AGENT_MEMORY_REDIS_URL"];
    for (what, container, added) in [
        ("no env", json!({"name": "agent"}), 3),
        ("env that is null", json!({"name": "agent", "env": null}), 3),
        ("env that is empty", json!({"name": "agent", "env": []}), 3),
        ("one name taken", json!({"name": "agent", "env": [{"name": names[0], "value": "mine"}]}), 0),
        ("5,000 others", json!({"name": "agent", "env": many}), 3),
        (
            "all names taken a thousand times",
            json!({"name": "agent", "env": names.repeat(1_000).iter().map(|name| json!({"name": name, "value": "mine"})).collect::<Vec<_>>()}),
            0,
        ),
    ] {
        let mut object = pod();
        object["spec"]["containers"][0] = container.clone();
        let answer = victim.review("/mutate", &review(&[("object", object.clone())])).await;
        let after = patched(&answer, &object)["spec"]["containers"][0].take();
        let (before, after_names) = (env_of(&container), env_of(&after));
        assert_eq!(after_names.len(), before.len() + added, "{what}");
        let kept: Vec<_> = after["env"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|variable| variable["value"] == "mine" || variable["value"] == "x")
            .collect();
        assert_eq!(kept.len(), before.len(), "{what}: nothing is overridden");
        assert_eq!(answer.review().get("warnings").is_some(), added < 3, "{what}: {}", answer.text());
        assert!(answer.text().len() < 32 << 10, "{what}: {} bytes", answer.text().len());
    }
    victim.is_well().await;
}

/// S9 of stress/ATTACKS.md.
#[tokio::test]
async fn a_thousand_containers_and_volumes_are_served() {
    let victim = Victim::start(&[]).await;
    let mut object = pod();
    let numbered = |prefix: &str| {
        (0..1_000).map(|number| json!({"name": format!("{prefix}{number}")})).collect::<Vec<_>>()
    };
    let mut containers = numbered("c");
    containers[999] = json!({"name": "agent"});
    object["spec"] =
        json!({"containers": containers, "initContainers": numbered("i"), "volumes": numbered("v")});
    let answer = victim.review("/mutate", &review(&[("object", object.clone())])).await;
    let after = patched(&answer, &object);
    let with_env = after["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|container| !env_of(container).is_empty());
    assert_eq!(with_env.map(|container| container["name"].as_str().unwrap()).collect::<Vec<_>>(), ["agent"]);
    for list in ["containers", "initContainers", "volumes"] {
        let names = |object: &Value| {
            object["spec"][list]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["name"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&after), names(&object), "{list}");
    }
    victim.is_well().await;
}

/// As many mistakes as find room in one object.
/// S9 of stress/ATTACKS.md.
#[tokio::test]
async fn a_hundred_thousand_mistakes_get_a_short_answer() {
    let victim = Victim::start(&[]).await;
    let mut wrong = String::new();
    for number in 0..100_000 {
        write!(wrong, r#""backen{number}":1,"Redis{number}":{{}},"#).unwrap();
    }
    let spec = format!(r#"{{{wrong}"backend":"none"}}"#);
    let text = memory_review(&json!({"name": "m"}), &json!("SPEC")).to_string().replace("\"SPEC\"", &spec);
    let answer = victim.ask(&post("/validate", text.as_bytes())).await;
    assert_eq!(answer.review()["allowed"], false);
    assert!(answer.text().len() < 64 << 10, "{} bytes", answer.text().len());
    assert!(victim.peak_mib() < 192, "{} MiB", victim.peak_mib());
    assert!(victim.log().lines().all(|line| line.len() < 4096));
    victim.is_well().await;
}

/// S10 of stress/ATTACKS.md.
#[tokio::test]
async fn unusual_pods_get_the_same_patch_or_a_reason() {
    let victim = Victim::start(&[]).await;
    let plain = victim.review("/mutate", &review(&[])).await.review();
    assert!(plain["patch"].is_string());
    let with = |pointer: &str, key: &str, value: Value| {
        let mut object = pod();
        object.pointer_mut(pointer).unwrap()[key] = value;
        review(&[("object", object)])
    };
    let mut generated = pod();
    generated["metadata"] = json!({"generateName": "scout-", "labels": generated["metadata"]["labels"]});
    for (what, sent, same) in [
        ("host network", with("/spec", "hostNetwork", json!(true)), true),
        ("Windows", with("/spec", "os", json!({"name": "windows"})), true),
        (
            "a debug container",
            with("/spec", "ephemeralContainers", json!([{"name": "debug", "targetContainerName": "agent"}])),
            true,
        ),
        ("a node's own", with("/metadata", "ownerReferences", json!([{"kind": "Node", "name": "n"}])), true),
        ("a generated name", review(&[("object", generated), ("name", json!(""))]), true),
        ("a dry run", review(&[("dryRun", json!(true))]), true),
        ("a mirror", with("/metadata", "annotations", json!({"kubernetes.io/config.mirror": "x"})), false),
        (
            "debugging",
            review(&[
                ("operation", json!("UPDATE")),
                ("subResource", json!("ephemeralcontainers")),
                ("oldObject", pod()),
            ]),
            false,
        ),
    ] {
        let response = victim.review("/mutate", &sent).await.review();
        assert_eq!(response["allowed"], true, "{what}");
        if same {
            assert_eq!(response["patch"], plain["patch"], "{what}");
        } else {
            assert!(response.get("patch").is_none(), "{what}: {response}");
            assert!(response["auditAnnotations"]["reason"].is_string(), "{what}: {response}");
        }
    }
    victim.is_well().await;
}
