//! Reviews that are well-formed outside and hostile inside: depth, size, unusual keys and values.

use std::fmt::Write;

use memgate_core::state;
use memgate_model::settings::Settings;
use memgate_server::State;
use serde_json::json;

use crate::client::post;
use crate::memory::kib;
use crate::running::Running;

const POD: (&str, &str) = ("", "Pod");
const MEMORY: (&str, &str) = ("arkonis.dev", "ArkMemory");

/// The most that this program may ever have used, in KiB: the largest body is 20 MiB, and whatever
/// is made of it must stay within a small multiple.
const MEMORY_BOUND_KIB: u64 = 400 << 10;

/// What an object is answered with.
#[derive(Debug, PartialEq)]
enum Answered {
    /// 200, allowed and without a patch.
    LeftAlone,
    /// 200, allowed with a patch.
    Patched,
    /// 200, refused, with this code.
    Refused(&'static str),
    /// 200, refused since it cannot be read.
    Malformed,
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

fn many_keys(count: usize) -> String {
    let mut keys = String::new();
    for number in 0..count {
        write!(keys, r#""k{number}":0,"#).unwrap();
    }
    format!("{{{keys}\"last\":0}}")
}

fn pod(extra: &str) -> String {
    let labels = r#"{"arkonis.dev/deployment":"scout"}"#;
    format!(
        r#"{{"metadata":{{"name":"scout","labels":{labels}}},"spec":{{"containers":[{{"name":"agent"}}]{extra}}}}}"#
    )
}

fn memory(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"arkonis.dev/v1alpha1","kind":"ArkMemory","metadata":{{"name":"m"}},"spec":{spec}}}"#
    )
}

fn rows() -> Vec<(&'static str, (&'static str, &'static str), String, Answered)> {
    use Answered::{LeftAlone, Malformed, Patched, Refused};
    let keys = many_keys(700_000);
    let in_context = r#""backend":"in-context""#;
    vec![
        ("an agent pod", POD, pod(""), Patched),
        ("a pod 1,000 deep", POD, pod(&format!(r#","deep":{}"#, nested(1_000))), Patched),
        ("a pod 1,000,000 deep", POD, pod(&format!(r#","deep":{}"#, nested(1_000_000))), Patched),
        ("a pod of many keys", POD, pod(&format!(r#","many":{keys}"#)), Patched),
        ("a number beyond all bounds", POD, pod(r#","huge":1e999"#), Patched),
        ("a lone surrogate in an unread field", POD, pod(r#","odd":"\ud800""#), Patched),
        ("a lone surrogate in a name", POD, r#"{"metadata":{"name":"\ud800"}}"#.to_owned(), Malformed),
        ("an escaped key", POD, pod("").replace("containers", "\\u0063ontainers"), Patched),
        (
            "a field twice",
            POD,
            pod("").replace("\"spec\"", "\"spec\":{\"containers\":[]},\"spec\""),
            Malformed,
        ),
        (
            "a label twice",
            POD,
            pod("").replace("\"labels\":{", "\"labels\":{\"a\":\"b\",\"a\":\"c\","),
            Patched,
        ),
        ("a spec that is a list", POD, pod("").replace("\"spec\":{", "\"spec\":[],\"other\":{"), LeftAlone),
        ("containers that are not a list", POD, r#"{"spec":{"containers":"x"}}"#.to_owned(), LeftAlone),
        ("a pod that is a list", POD, "[]".to_owned(), LeftAlone),
        ("a pod that is a number", POD, "5".to_owned(), LeftAlone),
        ("a memory", MEMORY, memory(&format!("{{{in_context}}}")), LeftAlone),
        ("a memory whose spec is a list", MEMORY, memory("[]"), Refused("arkonis/backend-required")),
        // Of types, an apiserver judges by the definition of the kind.
        (
            "numbers as strings",
            MEMORY,
            memory(r#"{"backend":"redis","redis":{"secretRef":{"name":"s"},"ttlSeconds":"5"}}"#),
            LeftAlone,
        ),
        (
            "a memory 1,000 deep",
            MEMORY,
            memory(&format!(r#"{{{in_context},"x":{}}}"#, nested(1_000))),
            LeftAlone,
        ),
        (
            "depth where a section should be",
            MEMORY,
            memory(&format!(r#"{{{in_context},"redis":{}}}"#, nested(100_000))),
            LeftAlone,
        ),
        ("a memory of many keys", MEMORY, memory(&format!("{{{in_context},{}", &keys[1..])), LeftAlone),
        (
            "a memory whose last backend counts",
            MEMORY,
            memory(r#"{"backend":"redis","backend":"in-context"}"#),
            LeftAlone,
        ),
        ("a lone surrogate in a backend", MEMORY, memory(r#"{"backend":"\ud800"}"#), Malformed),
        ("a memory that is a list", MEMORY, "[]".to_owned(), Refused("arkonis/backend-required")),
        ("a memory that is a string", MEMORY, "\"x\"".to_owned(), Refused("arkonis/backend-required")),
    ]
}

fn body((group, kind): (&str, &str), object: &str) -> Vec<u8> {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u-1","operation":"CREATE","namespace":"team-a","kind":{{"group":"{group}","version":"v1","kind":"{kind}"}},"object":{object}}}}}"#
    )
    .into_bytes()
}

fn state() -> State {
    let mut snapshot = state::empty(Settings {
        namespace: Some("team-a".to_owned()),
        ..memgate_platforms::default_settings()
    });
    for (kind, name, spec) in [
        ("ArkAgent", "scout", json!({"memoryRef": {"name": "notes"}})),
        ("ArkMemory", "notes", json!({"backend": "in-context"})),
    ] {
        let object = json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
        state::add(&mut snapshot, &object).unwrap();
    }
    // As in a cluster, where an apiserver has checked the objects.
    snapshot.crds = None;
    State::Fixed(snapshot)
}

/// The peak of this program's resident memory, in KiB.
fn peak_kib() -> u64 {
    kib(std::process::id(), "VmHWM:").unwrap()
}

#[tokio::test]
async fn hostile_objects_get_an_answer_and_no_memory() {
    let server = Running::start_with(state(), |_| {});
    for (name, kind, object, expected) in rows() {
        let path = if kind == POD { "/mutate" } else { "/validate" };
        let answer = server.ask(&post(path, body(kind, &object))).await;
        let answered = match answer.status {
            200 if answer.review()["status"]["code"] == 400 => Answered::Malformed,
            200 => {
                let response = answer.review();
                let codes = response.pointer("/auditAnnotations/codes").and_then(|codes| codes.as_str());
                match (response["allowed"].as_bool(), response.get("patch"), codes) {
                    (Some(true), None, _) => Answered::LeftAlone,
                    (Some(true), Some(_), _) => Answered::Patched,
                    (_, _, Some("arkonis/backend-required")) => Answered::Refused("arkonis/backend-required"),
                    _ => panic!("{name}: {response}"),
                }
            }
            other => panic!("{name}: {other} {}", answer.text()),
        };
        assert_eq!(answered, expected, "{name}");
        assert!(answer.text().len() < 16 << 10, "{name}: the answer is {} bytes", answer.text().len());
    }
    assert_eq!(server.metric("memgate_panics_total").await.as_deref(), Some("0"));
    assert_eq!(server.health("/livez").await.status, 200);
    assert!(peak_kib() < MEMORY_BOUND_KIB, "the peak is {} KiB", peak_kib());
}
