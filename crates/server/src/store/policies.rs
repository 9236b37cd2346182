//! Changes of policies and exemptions. They are compiled when they arrive, and the state keeps only the compiled form.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::metrics::policies::Found;
use crate::store::apply_event::StoreChange;
use memgate_model::kind::{Kind, MEMORY_POLICY, MEMORY_POLICY_EXEMPTION, NAMESPACE};
use memgate_model::object::Object;
use memgate_model::policy::Policies;
use memgate_model::snapshot::Snapshot;
use memgate_model::tree::Tree;

/// The kinds that are watched for policies. Their selectors read Namespaces.
pub(super) const WATCHED: [&Kind; 3] = [&MEMORY_POLICY, &MEMORY_POLICY_EXEMPTION, &NAMESPACE];

/// Whether objects of this kind are compiled rather than kept.
pub(super) fn is_compiled(kind: &Kind) -> bool {
    *kind == MEMORY_POLICY || *kind == MEMORY_POLICY_EXEMPTION
}

/// Applies a change of a kind that is compiled.
pub(super) fn apply(snapshot: &mut Snapshot, kind: &Kind, change: &StoreChange) {
    let policies = Arc::make_mut(&mut snapshot.policies);
    match change {
        StoreChange::Replace(state) => {
            if *kind == MEMORY_POLICY {
                policies.clear();
            } else {
                policies.clear_exemptions();
            }
            for object in state.objects() {
                put(policies, kind, object);
            }
        }
        StoreChange::Insert(object) => put(policies, kind, object),
        StoreChange::Remove { namespace, name } => memgate_policy::take(policies, kind, namespace, name),
        StoreChange::Begin | StoreChange::Listed(_) | StoreChange::End => {}
    }
}

/// Notes what the statuses of policies say.
pub(super) fn note_found(all: &mut BTreeMap<String, Found>, kind: &Kind, change: &StoreChange) {
    if *kind != MEMORY_POLICY {
        return;
    }
    match change {
        StoreChange::Replace(state) => {
            *all = state.objects().map(|object| (object.name.to_string(), found(object))).collect();
        }
        StoreChange::Insert(object) => drop(all.insert(object.name.to_string(), found(object))),
        StoreChange::Remove { name, .. } => drop(all.remove(name)),
        StoreChange::Begin | StoreChange::Listed(_) | StoreChange::End => {}
    }
}

fn found(object: &Object) -> Found {
    let status = object.tree().get("status").and_then(Tree::whole).unwrap_or_default();
    let has = |it: &Value, key: &str, text: &str| it.get(key).is_some_and(|value| value == text);
    let is_risk = |it: &Value| has(it, "type", "PromotionAtRisk") && has(it, "status", "True");
    let conditions = status.get("conditions").and_then(Value::as_array);
    Found {
        violations: status.get("violations").and_then(Value::as_i64).unwrap_or_default(),
        is_at_risk: conditions.into_iter().flatten().any(is_risk),
    }
}

/// Adds a policy. One with faults is not in force, and every object that it would judge gets a finding about it.
fn put(policies: &mut Policies, kind: &Kind, object: &Object) {
    let faults = memgate_policy::put(policies, &memgate_platforms::ALL, kind, &manifest(kind, object));
    if let Some(first) = faults.first() {
        let (namespace, name) = (&object.namespace, &object.name);
        let fault = first.message();
        tracing::warn!(
            kind = kind.kind,
            namespace = &**namespace,
            name = &**name,
            fault = &*fault,
            "it is not in force"
        );
    }
}

/// The manifest of an object, with its name and its spec.
fn manifest(kind: &Kind, object: &Object) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), (*object.name).into());
    if kind.namespaced {
        metadata.insert("namespace".to_owned(), (*object.namespace).into());
    }
    let spec = object.tree().get("spec").and_then(Tree::whole);
    json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec})
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use memgate_model::object::{Coverage, KindState};

    use crate::store::Store;

    fn object(kind: &'static Kind, name: &str, spec: &Value) -> Object {
        let namespace = kind.namespaced.then_some("ex");
        let value = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec}).to_string();
        let mut deserializer = serde_json::Deserializer::from_str(&value);
        Object::read(kind, &mut deserializer).expect("an object").expect("has a name")
    }

    fn policy(name: &str, rule: &Value) -> Object {
        object(&MEMORY_POLICY, name, &json!({"rules": [rule]}))
    }

    fn in_force(store: &Store) -> Vec<String> {
        let snapshot = store.snapshot();
        let in_force = snapshot.policies.iter().filter(|policy| policy.invalid.is_none());
        in_force.map(|policy| policy.name.clone()).collect()
    }

    fn list(objects: Vec<Object>) -> StoreChange {
        let mut state = KindState::new(Coverage::Watched);
        for object in objects {
            state.insert(object);
        }
        StoreChange::Replace(Box::new(state))
    }

    #[test]
    fn what_is_stored_is_in_force_and_what_is_gone_is_not() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        let good = json!({"id": "durable", "backends": {"durable": true}});
        store.apply(&MEMORY_POLICY, list(vec![policy("a", &good), policy("b", &good)]));
        assert_eq!(in_force(&store), ["a", "b"]);
        assert!(store.snapshot().kind(&MEMORY_POLICY).is_none(), "only what is compiled is kept");
        store.apply(&MEMORY_POLICY, StoreChange::Insert(policy("b", &json!({"id": "durable"}))));
        assert_eq!(in_force(&store), ["a"]);
        assert!(store.snapshot().policies.get("b").is_some_and(|policy| policy.invalid.is_some()));
        let (namespace, name) = (String::new(), "a".to_owned());
        store.apply(&MEMORY_POLICY, StoreChange::Remove { namespace, name });
        assert!(in_force(&store).is_empty());
        store.apply(&MEMORY_POLICY, list(vec![policy("c", &good)]));
        assert_eq!(in_force(&store), ["c"]);
    }

    #[test]
    fn what_audits_found_is_what_statuses_say() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        let with = |violations: Value, risk: &str| {
            let conditions =
                json!([{"type": "Ready", "status": "True"}, {"type": "PromotionAtRisk", "status": risk}]);
            let status = json!({"violations": violations, "conditions": conditions});
            let value = json!({"metadata": {"name": "a"}, "spec": {}, "status": status});
            Object::read(&MEMORY_POLICY, value).expect("an object").expect("has a name")
        };
        let found = || store.found().get("a").map(|it| (it.violations, it.is_at_risk));
        for (violations, risk, expected) in [
            (json!(3), "True", (3, true)),
            (json!(2), "False", (2, false)),
            (json!("many"), "Unknown", (0, false)),
        ] {
            store.apply(&MEMORY_POLICY, StoreChange::Insert(with(violations, risk)));
            assert_eq!(found(), Some(expected));
        }
        store.apply(&MEMORY_POLICY, list(vec![with(json!(7), "True")]));
        assert_eq!(found(), Some((7, true)));
        store.apply(&MEMORY_POLICY, list(Vec::new()));
        assert_eq!(found(), None);
    }

    #[test]
    fn exemptions_come_and_go() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        let spec = json!({
            "policy": "a", "rules": ["durable"], "target": {"namespaces": ["lab"]}, "reason": "until it moves",
            "from": "2026-12-15T00:00:00Z", "expiresAt": "2027-03-01T00:00:00Z",
        });
        let exemption = || object(&MEMORY_POLICY_EXEMPTION, "x", &spec);
        let count = || store.snapshot().policies.exemptions_of("a").len();
        store.apply(&MEMORY_POLICY_EXEMPTION, StoreChange::Insert(exemption()));
        store.apply(&MEMORY_POLICY_EXEMPTION, StoreChange::Insert(exemption()));
        assert_eq!(count(), 1);
        let faulty = object(&MEMORY_POLICY_EXEMPTION, "x", &json!({"policy": "a"}));
        store.apply(&MEMORY_POLICY_EXEMPTION, StoreChange::Insert(faulty));
        assert_eq!(count(), 0);
        store.apply(&MEMORY_POLICY_EXEMPTION, list(vec![exemption()]));
        assert_eq!(count(), 1);
        store.apply(&MEMORY_POLICY_EXEMPTION, list(Vec::new()));
        assert_eq!(count(), 0);
    }

    #[test]
    fn policies_are_known_when_both_kinds_are_listed() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        assert!(!store.has_policies());
        store.apply(&MEMORY_POLICY, list(Vec::new()));
        assert!(!store.has_policies());
        store.apply(&MEMORY_POLICY_EXEMPTION, list(Vec::new()));
        assert!(store.has_policies());
        assert!(Store::watching(memgate_platforms::default_settings(), Duration::ZERO, false).has_policies());
    }
}
