//! Reports that cannot be written, or not yet.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::house::{House, PATIENCE, condition, durable, memories, policy, same};
use crate::{fixture::Fixture, support::wait};

/// Without definitions, with definitions in another version, with definitions that come later, and without the right
/// to read them: the status of policies is there all the same.
pub(super) fn definitions(_: &Fixture) -> Result<()> {
    let house = House::new()?;
    let namespace = house.cluster.fresh_namespace("team")?;
    house.fill(memories(&namespace, (0..5).map(|it| (format!("notes-{it}"), false))))?;
    house.apply(&policy("durable", &json!({}), &durable()))?;
    let violations = |count: usize| -> Result<Value> {
        let found = house.get(&["mempol", "durable"])?;
        same(&found["status"]["violations"], &json!(count))?;
        Ok(found)
    };
    let said = house.audit()?;
    ensure!(said.contains("no Report is written: openreports.io/v1alpha1 is not installed"), "{said}");
    violations(5)?;

    // In a version that memgate does not write.
    let other = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "reports.openreports.io"},
        "spec": {
            "group": "openreports.io", "scope": "Namespaced",
            "names": {"kind": "Report", "plural": "reports", "singular": "report", "listKind": "ReportList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    house.apply(&other)?;
    ensure!(house.audit()?.contains("no Report is written"), "it says nothing");
    house.kubectl(&["delete", "crd", "reports.openreports.io"])?;

    house.install_reports()?;
    house.audited(5)?;

    // An operator takes the rights away, and gives them back.
    let rules = house.kubectl(&["get", "clusterrole", "memgate-audit", "-o", "json"])?;
    let mut role: Value = serde_json::from_str(&rules)?;
    let whole = role.clone();
    if let Some(rules) = role["rules"].as_array_mut() {
        rules.retain(|rule| rule["apiGroups"][0] != "openreports.io");
    }
    let replace = |role: &Value| -> Result<()> {
        let patch = json!({"rules": role["rules"]}).to_string();
        house.kubectl(&["patch", "clusterrole", "memgate-audit", "--type=merge", "-p", &patch])?;
        Ok(())
    };
    replace(&role)?;
    house.fill(memories(&namespace, std::iter::once(("late".to_owned(), false))))?;
    let (code, said) = house.audit_with_code()?;
    let lacks = "you may not list reports.openreports.io: this right is needed";
    ensure!(code == Some(2) && said.contains(lacks), "{code:?}: {said}");
    let found = violations(6)?;
    ensure!(condition(&found, "Ready")["status"] == "True", "{found}");
    ensure!(house.reports("reports.openreports.io")?.len() == 5, "a report was written without the right to");
    replace(&whole)?;
    house.audited(6)?;
    Ok(())
}

/// Objects in a namespace that is about to go, in which nothing can be made: other reports come and go.
pub(super) fn ending(_: &Fixture) -> Result<()> {
    let house = House::with_reports()?;
    let (going, staying) =
        (house.cluster.fresh_namespace("a-going")?, house.cluster.fresh_namespace("staying")?);
    let mut held = memories(&going, (0..5).map(|it| (format!("held-{it}"), false)));
    for (_, object) in &mut held {
        object["metadata"]["finalizers"] = json!(["test.memgate.dev/held"]);
    }
    house.fill(held)?;
    house.fill(memories(&staying, (0..5).map(|it| (format!("notes-{it}"), false))))?;
    house.kubectl(&["delete", "namespace", &going, "--wait=false"])?;
    house.apply(&policy("durable", &json!({}), &durable()))?;
    house.audited(5)?;
    house.kubectl(&["-n", &staying, "delete", "arkmemory", "notes-0"])?;
    house.audited(4)?;
    Ok(())
}

/// An apiserver that refuses reports and statuses for a while.
pub(super) fn writes(_: &Fixture) -> Result<()> {
    let house = House::with_reports()?;
    let namespace = house.cluster.fresh_namespace("team")?;
    let refuses = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-reports"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["openreports.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]},
                {"apiGroups": ["policy.memgate.dev"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["*/status"]},
            ]},
            "validations": [{"expression": "false", "message": "not now"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-reports"}, "spec": {"policyName": "no-reports", "validationActions": ["Deny"]},
    });
    house.apply(&refuses)?;
    house.apply(&binding)?;
    let probe = json!({
        "apiVersion": "openreports.io/v1alpha1", "kind": "Report", "metadata": {"name": "probe", "namespace": namespace},
    });
    wait::until_within(PATIENCE, "reports are refused", || {
        let args = ["create", "--dry-run=server", "-f", "-"];
        let output = house.cluster.admin().run_with_input(&args, &probe.to_string())?;
        Ok(output.stderr.contains("not now").then_some(()))
    })?;
    house.fill(memories(&namespace, (0..50).map(|it| (format!("notes-{it}"), false))))?;
    house.apply(&policy("durable", &json!({}), &durable()))?;
    let (code, said) = house.audit_with_code()?;
    ensure!(code == Some(2) && said.contains("not now"), "{code:?}: {said}");
    ensure!(said.matches("not now").count() <= 10, "each report is a line of its own: {said}");
    house.kubectl(&["delete", "validatingadmissionpolicybinding", "no-reports"])?;
    wait::until_within(PATIENCE, "reports are not refused any more", || {
        Ok(house.audit_with_code()?.0.filter(|code| *code == 0))
    })?;
    house.audited(50)?;
    same(&house.get(&["mempol", "durable"])?["status"]["violations"], &json!(50))
}

/// Its account may not read a Secret, and memgate's own may write neither reports nor statuses.
pub(super) fn rights(_: &Fixture) -> Result<()> {
    let house = House::with_reports()?;
    let may = |account: &str, verb: &str, resource: &str| -> Result<bool> {
        let account = format!("--as=system:serviceaccount:{}:{account}", house.home);
        // Behind a slash kubectl expects a name.
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let part = format!("--subresource={part}");
        let asked =
            house.cluster.kubectl(&["auth", "can-i", verb, resource, "--all-namespaces", &part, &account])?;
        Ok(asked.stdout.trim() == "yes")
    };
    for (account, verb, resource, expected) in [
        ("memgate-audit", "list", "pods", true),
        ("memgate-audit", "watch", "pods", false),
        ("memgate-audit", "get", "secrets", false),
        ("memgate-audit", "list", "secrets", false),
        ("memgate-audit", "patch", "memorypolicies.policy.memgate.dev/status", true),
        ("memgate-audit", "patch", "memorypolicies.policy.memgate.dev", false),
        ("memgate", "list", "pods", false),
        ("memgate", "patch", "memorypolicies.policy.memgate.dev/status", false),
        ("memgate", "create", "reports.openreports.io", false),
    ] {
        ensure!(may(account, verb, resource)? == expected, "{account} {verb} {resource}: {}", !expected);
    }
    Ok(())
}
