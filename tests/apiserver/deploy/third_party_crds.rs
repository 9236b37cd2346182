//! Kinds of others that components use, as small as the real ones are strict.

use std::sync::OnceLock;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use crate::support::control_plane::ControlPlane;

/// Installs them, once.
pub(super) fn install(cluster: &ControlPlane) -> Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let install = || apply(cluster).map_err(|error| format!("{error:#}"));
    DONE.get_or_init(install).clone().map_err(|error| anyhow!("{error}"))
}

fn apply(cluster: &ControlPlane) -> Result<()> {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let texts_by_key = json!({"type": "object", "additionalProperties": text});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let issuer_ref = object(json!({"group": text, "kind": text, "name": text}));
    let key = object(
        json!({"algorithm": text, "size": {"type": "integer"}, "rotationPolicy": {"enum": ["Always", "Never"], "type": "string"}}),
    );
    let kinds = [
        (
            "cert-manager.io/v1 Issuer issuers",
            object(json!({"selfSigned": object(json!({})), "ca": object(json!({"secretName": text}))})),
        ),
        (
            "cert-manager.io/v1 Certificate certificates",
            object(json!({
                "isCA": {"type": "boolean"}, "commonName": text, "secretName": text, "duration": text,
                "renewBefore": text,
                "dnsNames": texts, "usages": texts, "issuerRef": issuer_ref, "privateKey": key,
            })),
        ),
        (
            "monitoring.coreos.com/v1 ServiceMonitor servicemonitors",
            object(json!({
                "selector": object(json!({"matchLabels": texts_by_key})),
                "endpoints": {"type": "array", "items": object(json!({"port": text, "path": text, "honorLabels": {"type": "boolean"}}))},
            })),
        ),
        (
            "monitoring.coreos.com/v1 PrometheusRule prometheusrules",
            object(json!({
                "groups": {"type": "array", "items": object(json!({
                    "name": text,
                    "rules": {"type": "array", "items": object(json!({
                        "alert": text, "record": text, "expr": text, "for": text, "labels": texts_by_key,
                        "annotations": texts_by_key,
                    }))},
                }))},
            })),
        ),
    ];
    let kubectl = cluster.admin();
    for (kind, spec) in kinds {
        kubectl.apply(&definition(kind, &spec).to_string())?;
    }
    kubectl.run(&["wait", "--for=condition=Established", "crd", "--all"])?.ok()?;
    Ok(())
}

/// From `group/version Kind plural` and the schema of the specification.
fn definition(kind: &str, spec: &Value) -> Value {
    let mut words = kind.split(['/', ' ']);
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (group, version, kind, plural) = (word(), word(), word(), word());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}
