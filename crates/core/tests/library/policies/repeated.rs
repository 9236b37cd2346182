//! The second time: the same answer in the same bytes, no further edit, and no update that changes nothing is refused.

use memgate_core::admission::{self, Admitted};
use memgate_model::request::Operation;
use memgate_workbench::files::casefile::{Case, request};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::properties::anything;
use super::super::views::{cases, state_of};
use super::every::strict_policy;
use super::{admitted, case, denying, policy, reported};

/// Fills each field that policies may fill.
fn defaults() -> Value {
    let default = |family: &str, kind: &str, field: &str, value: Value| json!({"family": family, "kind": kind, "field": field, "value": value});
    let all = json!([
        default("arkonis", "ArkMemory", "/spec/redis/maxEntries", json!(100)),
        default("arkonis", "ArkMemory", "/spec/vectorStore/ttlSeconds", json!(60)),
        default("ark", "Query", "/spec/memory", json!({"name": "notes"})),
        default("orloj", "Memory", "/spec/embedding_model", json!("small")),
        default("orloj", "Memory", "/spec/auth", json!({"secretRef": "key"})),
    ]);
    policy("defaults", &json!({"defaults": all}))
}

fn state(view: &Value, existing: &str) -> Vec<Value> {
    let mut strict = strict_policy(&json!({"admission": "deny"}));
    strict["spec"]["existing"] = json!(existing);
    let mut state = state_of(view);
    state.extend([strict, defaults()]);
    state
}

/// The case again with what came of it.
fn again(case: &Case, first: &Admitted) -> Case {
    let object = first.object.as_deref().map(|text| serde_json::from_str(text).expect("JSON"));
    Case { object, ..case.clone() }
}

/// An update of what came of the case to the same.
fn unchanged(case: &Case, first: &Admitted) -> Case {
    let case = again(case, first);
    Case { operation: Operation::Update, old_object: case.object.clone(), ..case }
}

fn bytes(case: &Case) -> Vec<u8> {
    let snapshot = request::state(case).expect("a state");
    let body = request::review(case).to_string();
    let review = admission::parse(&body).expect("a review");
    admission::review(&review, &snapshot).expect("an answer")
}

/// What must be true of any object.
fn check(case: &Case) -> bool {
    let Some(first) = admitted(case) else { return false };
    assert_eq!(bytes(case), bytes(case), "{}", case.name);
    let second = admitted(&again(case, &first)).expect("can be read");
    assert!(second.edits.is_empty(), "a second pass changes something: {:?}", second.edits);
    let updated = unchanged(case, &first);
    // A family refuses some of what is stored, too; policies add nothing to that.
    let without = Case { state: families_alone(&updated.state), ..updated.clone() };
    let (updated, without) = (admitted(&updated), admitted(&without));
    if let (Some(updated), Some(without)) = (updated, without) {
        let of_policy = super::of_policies(updated.decision.findings);
        assert!(!of_policy.iter().any(super::denies), "{of_policy:#?}");
        assert!(
            updated.edits.is_empty() || !without.allowed() || !without.edits.is_empty(),
            "{:?}",
            updated.edits
        );
    }
    !first.edits.is_empty()
}

fn families_alone(state: &[Value]) -> Vec<Value> {
    state.iter().filter(|object| object["kind"] != "MemoryPolicy").cloned().collect()
}

#[test]
fn objects_of_all_families() {
    let mut edited = 0;
    for (_, cases) in cases() {
        for view in cases {
            edited += usize::from(check(&case(&state(&view, "ratchet"), &view["object"], &json!({}))));
        }
    }
    assert!(edited > 10, "{edited} objects with edits are too few to say anything");
}

/// Of two policies of one name the later one counts, as in a cluster, where there can be but one. Commands refuse the
/// second one, so a case cannot have both.
#[test]
fn two_policies_of_one_name() {
    let first = denying(&json!([{"id": "durable", "backends": {"durable": true}}]));
    let second = denying(&json!([{"id": "none", "backends": {"deny": ["none-such"]}}]));
    let memory = super::memory("in-context");
    assert_eq!(reported(&[second.clone(), first.clone()], &memory).len(), 1);
    assert!(reported(&[first, second], &memory).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_spec(
        (version, kind) in prop::sample::select(vec![
            ("arkonis.dev/v1alpha1", "ArkMemory"),
            ("ark.mckinsey.com/v1alpha1", "Memory"),
            ("orloj.dev/v1", "Memory"),
            ("orloj.dev/v1", "Agent"),
            ("core.orka.ai/v1alpha1", "Task"),
            ("sympozium.ai/v1alpha1", "Agent"),
        ]),
        spec in anything(),
        labels in anything(),
    ) {
        let value = |text: String| serde_json::from_str::<Value>(&text).unwrap_or_default();
        let mut object = super::object(version, kind, &value(spec.text()));
        object["metadata"]["labels"] = value(labels.text());
        check(&case(&state(&json!({}), "ratchet"), &object, &json!({})));
    }
}
