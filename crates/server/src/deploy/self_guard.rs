//! The guard on memgate's own account: of its two webhook configurations it may change `caBundle` and `service.path`
//! only, and the latter only to a path of the form that memgate serves.
//!
//! RBAC cannot say that. A thief of the account could otherwise send all reviews elsewhere, or have none
//! sent at all. The policy lists the fields one by one, since CEL has no "all but this one"; a test
//! compares the list with what the apiserver knows of both kinds.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
    Validation,
};

use crate::deploy::install_plan::InstallPlan;
use crate::deploy::metadata::{CONFIGURATIONS, NAME, SELF_GUARD, suffixed_metadata, suffixed_name};
use crate::review_path::TOKEN_PATTERN;

/// What is compared of the metadata; the apiserver itself writes the rest.
const METADATA_FIELDS: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];
/// What is compared of each entry. The name comes first, so that an entry that is added or removed is reported as such.
const ENTRY_FIELDS: [&str; 15] = [
    "name",
    "rules",
    "clientConfig.url",
    "clientConfig.service.name",
    "clientConfig.service.namespace",
    "clientConfig.service.port",
    "failurePolicy",
    "matchPolicy",
    "namespaceSelector",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "reinvocationPolicy",
    "matchConditions",
];

/// The policy.
pub(super) fn policy(plan: &InstallPlan) -> ValidatingAdmissionPolicy {
    let account = format!("system:serviceaccount:{}:{NAME}", plan.namespace);
    let metadata_fields = METADATA_FIELDS.into_iter().map(|field| {
        let of = |object: &str| format!("{object}.metadata.?{field}");
        validation(&format!("metadata.{field}"), &unchanged(&of("object"), &of("oldObject")))
    });
    let entry_fields = ENTRY_FIELDS.into_iter().map(|field| {
        // `dyn`, since the type check would refuse reinvocationPolicy, which the second kind lacks.
        let path = field.replace('.', ".?");
        let of = |object: &str| format!("dyn({object}).?webhooks.orValue([]).map(entry, entry.?{path})");
        validation(&format!("webhooks[*].{field}"), &unchanged(&of("object"), &of("oldObject")))
    });
    let mut validations = vec![only_updates()];
    validations.extend(metadata_fields.chain(entry_fields));
    validations.push(path_of_its_form());
    ValidatingAdmissionPolicy {
        metadata: suffixed_metadata(&plan.name, SELF_GUARD),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".to_owned()),
            match_constraints: Some(MatchResources {
                resource_rules: Some(vec![both_configurations()]),
                ..MatchResources::default()
            }),
            match_conditions: Some(vec![MatchCondition {
                name: "own-account".to_owned(),
                expression: format!("request.userInfo.username == '{account}'"),
            }]),
            validations: Some(validations),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        ..ValidatingAdmissionPolicy::default()
    }
}

/// The binding without which the policy does nothing.
pub(super) fn binding(plan: &InstallPlan) -> ValidatingAdmissionPolicyBinding {
    ValidatingAdmissionPolicyBinding {
        metadata: suffixed_metadata(&plan.name, SELF_GUARD),
        spec: ValidatingAdmissionPolicyBindingSpec {
            policy_name: suffixed_name(&plan.name, SELF_GUARD),
            validation_actions: vec!["Deny".to_owned()],
            ..ValidatingAdmissionPolicyBindingSpec::default()
        },
    }
}

fn both_configurations() -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        api_groups: Some(vec!["admissionregistration.k8s.io".to_owned()]),
        api_versions: Some(vec!["v1".to_owned()]),
        operations: Some(["CREATE", "UPDATE", "DELETE"].map(str::to_owned).to_vec()),
        resources: Some(CONFIGURATIONS.map(str::to_owned).to_vec()),
        scope: Some("Cluster".to_owned()),
        resource_names: None,
    }
}

/// All other expressions are true of requests that are not updates, so that the message is this one.
fn only_updates() -> Validation {
    Validation {
        expression: "request.operation == 'UPDATE'".to_owned(),
        message: Some("memgate neither makes nor removes webhook configurations".to_owned()),
        ..Validation::default()
    }
}

/// A path that memgate does not serve would end all calls as surely as a foreign Service.
fn path_of_its_form() -> Validation {
    let paths = |object: &str| {
        format!("dyn({object}).?webhooks.orValue([]).map(entry, entry.?clientConfig.?service.?path)")
    };
    let call = "(request.resource.resource == 'mutatingwebhookconfigurations' ? 'mutate' : 'validate')";
    let has_form = format!(
        "dyn(object).?webhooks.orValue([]).all(entry, !entry.?clientConfig.?service.hasValue() || \
         entry.clientConfig.service.?path.orValue('').matches('^/' + {call} + '/{TOKEN_PATTERN}$'))"
    );
    let unchanged = unchanged(&paths("object"), &paths("oldObject"));
    Validation {
        expression: format!("{unchanged} || {has_form}"),
        message: Some("memgate may change service.path only to /mutate/TOKEN or /validate/TOKEN".to_owned()),
        ..Validation::default()
    }
}

fn unchanged(new: &str, old: &str) -> String {
    format!("request.operation != 'UPDATE' || {new} == {old}")
}

fn validation(field: &str, expression: &str) -> Validation {
    Validation {
        expression: expression.to_owned(),
        message: Some(format!("memgate may change caBundle and service.path alone, not {field}")),
        ..Validation::default()
    }
}
