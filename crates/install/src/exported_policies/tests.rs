//! Every typed rule over every family has an export or a reason.

use serde_json::{Value, json};

use super::*;
use memgate_policy::rules::TYPES;

/// Policies with this specification, exported.
fn exported(spec: &Value) -> Exported {
    let manifest = json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy",
        "metadata": {"name": "some"}, "spec": spec,
    });
    let (policy, faults) = memgate_policy::read::policy(&manifest, &memgate_platforms::ALL);
    assert!(faults.is_empty(), "{faults:?}");
    let mut policies = Policies::default();
    policies.insert(policy);
    let excluded = ["memgate-system".to_owned()];
    let now = Timestamp::from_second(1_800_000_000).unwrap_or_default();
    export(
        &policies,
        &ExportOptions { families: &memgate_platforms::ALL, excluded_namespaces: &excluded, now },
    )
}

/// A rule of each type that asks for all it can.
fn rules() -> Vec<Value> {
    vec![
        json!({"id": "backends", "backends": {"allow": ["redis"], "deny": ["http"], "durable": true}}),
        json!({"id": "providers", "providers": {"allow": ["qdrant"]}}),
        json!({"id": "endpoint", "endpoint": {"schemes": ["https"], "tls": "require", "fromSecret": true}}),
        json!({"id": "secrets", "secrets": {
            "inline": "forbid", "required": true, "names": ["a-*"], "namespaces": "same",
        }}),
        json!({"id": "retention", "retention": {"min": "1h", "max": "30d"}}),
        json!({"id": "capacity", "capacity": {"maxEntries": {"max": 10}, "storage": {"max": "1Gi"}}}),
        json!({"id": "tenancy", "tenancy": {
            "from": {"namespaceLabel": "team"}, "names": ["{tenant}-*", "shared-*"], "collection": "{tenant}-*",
            "secrets": "{tenant}-*",
            "endpointHosts": "{tenant}.*",
        }}),
        json!({"id": "references", "references": {"mustExist": ["Memory"], "crossNamespace": "forbid"}}),
        json!({"id": "images", "images": {"digest": "require"}}),
        json!({"id": "limits", "limits": {"required": ["memory"]}}),
        json!({"id": "operations", "operations": {"allow": ["read"]}}),
        json!({"id": "sharing", "sharing": {"visibility": ["trusted"], "maxWriters": 1}}),
        json!({"id": "immutable", "immutable": ["backend", "endpoint", "secrets"]}),
        json!({"id": "labels", "labels": {"required": ["team"]}}),
        json!({"id": "environment", "environment": {"overrides": "forbid"}}),
        json!({"id": "fields", "fields": [
            {"path": "backend", "in": ["redis"]}, {"path": "ttlSeconds", "exists": true},
            {"path": "storageBytes", "max": "1Gi"}, {"path": "labels[\"team\"]", "matches": ["a-*"]},
            {"path": "endpoint.host", "matches": ["**.svc"]}, {"path": "secrets[].name", "matches": ["a-*"]},
        ]}),
        json!({"id": "any-of", "anyOf": [
            {"backends": {"allow": ["redis"]}}, {"fields": [{"path": "ttlSeconds", "max": 60}]},
            {"labels": {"required": ["team"]}},
        ]}),
    ]
}

#[test]
fn every_rule_is_exported_or_has_a_reason() {
    assert_eq!(rules().len(), TYPES.len());
    for rule in rules() {
        for family in memgate_platforms::ALL {
            let spec = json!({"match": {"families": [family.name]}, "rules": [rule]});
            let exported = exported(&spec);
            let is_silent = exported.policies.is_empty() && exported.left_out.is_empty();
            assert!(!is_silent, "{} of {}", rule["id"], family.name);
        }
    }
}

#[test]
fn every_kind_with_a_view_has_one_in_cel() {
    for family in memgate_platforms::ALL {
        for (kind, role) in family.views.kinds {
            let tables = family.in_cel.views.iter().filter(|view| view.kinds.contains(kind));
            let of_role = tables.filter(|view| view.role == *role).count();
            assert_eq!(of_role, 1, "{} {}", family.name, kind.kind);
        }
    }
}

#[test]
fn reports_what_a_policy_of_the_apiserver_cannot_do() {
    let exported = exported(&json!({
        "match": {"families": ["ark", "arkonis"]},
        "promote": {"at": "2999-01-15T00:00:00Z", "to": "deny"},
        "exemptions": {"namespaces": ["granting"], "maxAge": "30d"},
        "defaults": [{"family": "arkonis", "kind": "ArkMemory", "field": "/spec/redis/maxEntries", "value": 1}],
        "rules": [
            {"id": "lasts", "backends": {"durable": true}},
            {"id": "used", "backends": {"durable": true}, "roles": ["referrer"], "action": {"admission": "deny"}},
            {"id": "silent", "backends": {"durable": true}, "action": {"admission": "none"}},
            {"id": "dated", "backends": {"durable": true}, "during": {"until": "2999-01-15T00:00:00Z"}},
            {"id": "encrypted", "endpoint": {"tls": "require"}},
        ],
    }));
    let told: Vec<String> = exported.left_out.iter().map(ToString::to_string).collect();
    for words in [
        "policy/some/lasts: its promotion: not exported: a ValidatingAdmissionPolicy knows no date",
        "policy/some/lasts: exemptions from it: not exported",
        "policy/some/used: of ",
        "policy/some/silent: not exported: its action at admission is none",
        "policy/some/dated: not exported: a ValidatingAdmissionPolicy knows no date",
        "policy/some/encrypted: endpoint of arkonis ArkMemory",
        "policy/some: default of /spec/redis/maxEntries of arkonis ArkMemory: not exported",
    ] {
        assert!(told.iter().any(|line| line.starts_with(words)), "{words}: {told:#?}");
    }
    let names: Vec<_> = exported.policies.iter().map(|[policy, _]| &policy["metadata"]["name"]).collect();
    assert_eq!(names, ["memgate-policy-some-arkonis-warn"]);
    let text = exported.render().unwrap_or_default();
    assert!(text.contains("(memgate policy some/lasts, denied from 2999-01-15)"), "{text}");
}

#[test]
fn where_the_source_of_an_endpoint_is_read_its_text_is_compared() {
    let views: Vec<_> = memgate_platforms::ALL.iter().flat_map(|family| family.in_cel.views).collect();
    let with = |path: &str| -> Vec<&str> {
        views.iter().filter(|it| it.paths.iter().any(|it| it.path == path)).map(|it| it.name).collect()
    };
    assert_eq!(with("endpoint.from"), with("endpoint.compared"));
    assert!(!with("endpoint.from").is_empty());
}

#[test]
fn a_denial_has_a_warning_beside_it_for_what_is_stored() {
    let rules = json!([{"id": "lasts", "backends": {"durable": true}}]);
    let spec = |existing: &str| {
        json!({
            "match": {"families": ["arkonis"]}, "actions": {"admission": "deny"}, "existing": existing, "rules": rules,
        })
    };
    let actions = |exported: &Exported| -> Vec<String> {
        let actions = exported.policies.iter().map(|[_, binding]| &binding["spec"]["validationActions"][0]);
        actions.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    assert_eq!(actions(&exported(&spec("ratchet"))), ["Warn", "Deny"]);
    assert_eq!(actions(&exported(&spec("enforce"))), ["Deny"]);
}

#[test]
fn several_rules_with_a_number_are_exported_only_where_nothing_ratchets() {
    let numbers = json!([{"retention": {"max": "30d"}}, {"labels": {"required": ["team"]}}]);
    let others = json!([{"backends": {"allow": ["redis"]}}, {"labels": {"required": ["team", "tier"]}}]);
    for (rules, action, existing, is_exported) in [
        (&numbers, "deny", "ratchet", false),
        (&numbers, "deny", "enforce", true),
        (&numbers, "warn", "ratchet", true),
        (&others, "deny", "ratchet", true),
    ] {
        let exported = exported(&json!({
            "match": {"families": ["arkonis"]}, "actions": {"admission": action}, "existing": existing,
            "rules": [{"id": "it", "roles": ["memory"], "anyOf": rules}],
        }));
        let told: Vec<String> = exported.left_out.iter().map(ToString::to_string).collect();
        assert_eq!(!exported.policies.is_empty(), is_exported, "{action} {existing}: {told:?}");
        assert_eq!(told.is_empty(), is_exported, "{action} {existing}: {told:?}");
    }
}
