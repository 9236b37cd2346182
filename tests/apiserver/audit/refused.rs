//! Reports that cannot be written, or not yet.

use anyhow::{Result, ensure};
use serde_json::json;

use super::house::{House, PATIENCE, condition, durable, memories, pass_twice, passes, policy};
use crate::{fixture::Fixture, support::wait};

/// Without definitions, with definitions in another version, with definitions that come later, and without the right
/// to read them: the status of policies is there all the same.
pub(super) fn definitions(_: &Fixture) -> Result<()> {
    let house = House::new()?;
    let namespace = house.cluster.fresh_namespace("team")?;
    house.fill(memories(&namespace, (0..5).map(|it| (format!("notes-{it}"), false))))?;
    house.apply(&policy("durable", &json!({}), &durable()))?;
    let replica = house.replica(&[])?;
    house.until(&["mempol", "durable"], |it| it["status"]["violations"] == 5)?;
    pass_twice(&replica)?;
    let logged = || replica.log().matches("audits write no Report:").count();
    ensure!(logged() == 1, "it is logged {} times", logged());

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
    pass_twice(&replica)?;
    ensure!(logged() == 1, "it is logged {} times", logged());
    house.kubectl(&["delete", "crd", "reports.openreports.io"])?;

    house.install_reports()?;
    house.until_reports(5)?;

    // An operator takes the rights away, and gives them back.
    let rules = house.kubectl(&["get", "clusterrole", "memgate", "-o", "json"])?;
    let mut role: serde_json::Value = serde_json::from_str(&rules)?;
    let whole = role.clone();
    if let Some(rules) = role["rules"].as_array_mut() {
        rules.retain(|rule| rule["apiGroups"][0] != "openreports.io");
    }
    let replace = |role: &serde_json::Value| -> Result<()> {
        let patch = json!({"rules": role["rules"]}).to_string();
        house.kubectl(&["patch", "clusterrole", "memgate", "--type=merge", "-p", &patch])?;
        Ok(())
    };
    replace(&role)?;
    house.fill(memories(&namespace, std::iter::once(("late".to_owned(), false))))?;
    let found = house.until(&["mempol", "durable"], |it| it["status"]["violations"] == 6)?;
    ensure!(condition(&found, "Ready")["status"] == "True", "{found}");
    ensure!(house.reports("reports.openreports.io")?.len() == 5, "a report was written without the right to");
    replace(&whole)?;
    house.until_reports(6)?;
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
    let replica = house.replica(&[])?;
    house.until_reports(5)?;
    house.kubectl(&["-n", &staying, "delete", "arkmemory", "notes-0"])?;
    house.until_reports(4)?;
    pass_twice(&replica)
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
    let replica = house.replica(&[])?;
    wait::until_within(PATIENCE, "it says so", || {
        let log = replica.log();
        let is_logged =
            log.contains("a report could not be written") && log.contains("a status could not be written");
        Ok(is_logged.then_some(()))
    })?;
    ensure!(passes(&replica)? < 0.5, "an audit that could not write anything counts as good");
    let lines = replica.log().matches("a report could not be written").count();
    ensure!(lines <= 3, "each report is a line of its own: {lines}");
    house.kubectl(&["delete", "validatingadmissionpolicybinding", "no-reports"])?;
    house.until_reports(50)?;
    house.until(&["mempol", "durable"], |it| it["status"]["violations"] == 50)?;
    Ok(())
}
