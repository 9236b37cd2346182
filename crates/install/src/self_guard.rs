//! The guard on memgate's own account: in its two webhook configurations it may change only `caBundle`.
//!
//! RBAC cannot express that. Without the guard, an attacker with the account's token could redirect or stop all reviews.
//! The policy lists the fields one by one, since CEL has no "all but this one"; a test compares the list with the
//! apiserver's schema of both kinds.

use serde_json::{Value, json};

use crate::entry::condition;
use crate::install_plan::InstallPlan;
use crate::metadata::{NAME, SELF_GUARD, object, suffixed_metadata};

/// The policy for the default namespace.
const POLICY: &str = include_str!("../objects/self-guard.yaml");

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The policy and its binding, for the account in the namespace of the plan.
pub(super) fn policy(plan: &InstallPlan) -> impl Iterator<Item = Value> + use<> {
    let metadata = suffixed_metadata(&plan.name, SELF_GUARD);
    let mut policy: Value = object(POLICY);
    let account = format!("request.userInfo.username == 'system:serviceaccount:{}:{NAME}'", plan.namespace);
    if let Some(conditions) = policy.pointer_mut("/spec/matchConditions") {
        *conditions = json!([condition(("own-account", &account))]);
    }
    policy.sort_all_objects();
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let policy = json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": spec,
    });
    let binding = json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": metadata.name, "validationActions": ["Deny"]},
    });
    [policy, binding].into_iter()
}
