//! Policies and exemptions enter and leave a snapshot.

use serde_json::Value;

use memgate_model::family::Family;
use memgate_model::finding::Finding;
use memgate_model::kind::{Kind, MEMORY_POLICY, MEMORY_POLICY_EXEMPTION};
use memgate_model::policy::Policies;

use super::read;

/// Adds a policy or exemption, or replaces the one of its name, and returns its faults; it may name the platforms of
/// `families`. A policy with faults is added without its rules, an exemption with faults is not added. An object of
/// another kind changes nothing.
pub fn put(
    policies: &mut Policies,
    families: &[&'static Family],
    kind: &Kind,
    manifest: &Value,
) -> Vec<Finding> {
    if *kind == MEMORY_POLICY {
        let (policy, faults) = read::policy(manifest, families);
        policies.insert(policy);
        return faults;
    }
    if *kind == MEMORY_POLICY_EXEMPTION {
        let (exemption, faults) = read::exemption(manifest, families);
        match exemption {
            Some(exemption) => policies.insert_exemption(exemption),
            None => {
                let text = |pointer| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                policies.remove_exemption(text("/metadata/namespace"), text("/metadata/name"));
            }
        }
        return faults;
    }
    Vec::new()
}

/// Takes a policy or exemption out.
pub fn take(policies: &mut Policies, kind: &Kind, namespace: &str, name: &str) {
    if *kind == MEMORY_POLICY {
        policies.remove(name);
    } else if *kind == MEMORY_POLICY_EXEMPTION {
        policies.remove_exemption(namespace, name);
    }
}
