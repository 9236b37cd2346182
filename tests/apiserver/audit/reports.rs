//! What is reported of what is stored.

use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use super::house::{House, condition, durable, memories, policy, same, versions};
use crate::fixture::Fixture;

/// How many objects there are, and how many of them violate a policy.
const OBJECTS: usize = 10_000;
const FAILING: usize = 500;

/// Ten thousand objects, of which five hundred fail.
pub(super) fn follow(_: &Fixture) -> Result<()> {
    let house = House::with_reports()?;
    let mut namespaces = Vec::new();
    for index in 0..10 {
        let namespace = house.cluster.fresh_namespace("team")?;
        let every = OBJECTS / FAILING;
        let names = (0..OBJECTS / 10).map(|it| (format!("notes-{index}-{it}"), it % every != 0));
        house.fill(memories(&namespace, names))?;
        namespaces.push(namespace);
    }
    house.apply(&policy("durable", &json!({"actions": {"admission": "deny"}}), &durable()))?;
    let reports = house.audited(FAILING)?;
    let report = &reports["notes-3-20"];
    let namespace = namespaces[3].as_str();
    let memory = house.get(&["-n", namespace, "arkmemory", "notes-3-20"])?;
    let uid = memory["metadata"]["uid"].as_str().unwrap_or_default();
    let owner = json!([{"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "name": "notes-3-20", "uid": uid}]);
    same(&report["metadata"]["ownerReferences"], &owner)?;
    same(&report["metadata"]["name"], &json!(format!("memgate-arkmemory-{uid}")))?;
    same(&report["source"], &json!("memgate"))?;
    same(&report["summary"], &json!({"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0}))?;
    let result = json!([{
        "policy": "durable", "rule": "durable", "category": "memory", "severity": "high", "result": "fail",
        "message": "spec.backend: backend \"in-context\" loses its memory with its process (memgate policy durable/durable)",
        "properties": {"code": "policy/durable/durable", "pointer": "/spec/backend"},
    }]);
    same(&report["results"], &result)?;

    // Another one writes nothing.
    let stored = house.get(&["mempol", "durable"])?;
    same(&stored["status"]["matched"], &json!(OBJECTS))?;
    same(&stored["status"]["violations"], &json!(FAILING))?;
    let again = house.audited(FAILING)?;
    ensure!(versions(&again) == versions(&reports), "reports that say the same were written again");
    same(&house.get(&["mempol", "durable"])?, &stored)?;

    // A user edits one and deletes another: memgate restores both.
    let (edited, deleted) = (&reports["notes-3-20"], &reports["notes-3-40"]);
    let name = |report: &Value| report["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let patch = r#"{"results": [], "summary": {"fail": 0}}"#;
    house.kubectl(&["-n", namespace, "patch", "report", &name(edited), "--type=merge", "-p", patch])?;
    house.kubectl(&["-n", namespace, "delete", "report", &name(deleted)])?;
    let mended = house.audited(FAILING)?;
    for name in ["notes-3-20", "notes-3-40"] {
        same(&mended[name]["results"], &result)?;
    }

    // One goes, one gets another name, one is mended.
    house.kubectl(&["-n", namespace, "delete", "arkmemory", "notes-3-20", "notes-3-40"])?;
    house.fill(memories(namespace, std::iter::once(("renamed".to_owned(), false))))?;
    let spec = r#"{"spec": {"backend": "redis", "redis": {"secretRef": {"name": "redis"}}}}"#;
    house.kubectl(&["-n", namespace, "patch", "arkmemory", "notes-3-60", "--type=merge", "-p", spec])?;
    let reports = house.audited(FAILING - 2)?;
    ensure!(reports.contains_key("renamed"), "the object of a new name has no report");
    for gone in ["notes-3-20", "notes-3-40", "notes-3-60"] {
        ensure!(!reports.contains_key(gone), "{gone} still has a report");
    }

    // The rule goes, and all reports with it.
    let labels = json!([{"id": "labels", "labels": {"required": ["team"]}, "action": {"audit": "none"}}]);
    let off = json!({"actions": {"admission": "deny", "audit": "off"}});
    house.apply(&policy("durable", &off, &labels))?;
    house.audited(0)?;
    Ok(())
}

/// The status of a policy that is about to deny, and of exemptions that count, ended and are not accepted.
pub(super) fn statuses(_: &Fixture) -> Result<()> {
    let house = House::new()?;
    let namespace = house.cluster.fresh_namespace("team")?;
    house.fill(memories(&namespace, (0..30).map(|it| (format!("notes-{it:02}"), it >= 25))))?;
    let now = Timestamp::now();
    let soon = (now + 24.hours()).to_string();
    let more = json!({
        "promote": {"at": soon, "to": "deny"}, "exemptions": {"namespaces": [namespace], "maxAge": "30d"},
    });
    house.apply(&policy("durable", &more, &durable()))?;
    let exemption = |name: &str, policy: &str, hours: (i64, i64)| {
        json!({
            "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicyExemption",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "policy": policy, "rules": ["durable"], "target": {"namespaces": [namespace], "names": ["notes-0?"]},
                "reason": "they move to redis soon", "from": (now + hours.0.hours()).to_string(),
                "expiresAt": (now + hours.1.hours()).to_string(),
            },
        })
    };
    house.apply(&exemption("counts", "durable", (-1, 1)))?;
    house.apply(&exemption("ended", "durable", (-2, -1)))?;
    house.apply(&exemption("rejected", "other", (-1, 1)))?;
    house.audit()?;
    let found = house.get(&["mempol", "durable"])?;
    let status = &found["status"];
    same(&status["violations"], &json!(15))?;
    same(&status["matched"], &json!(30))?;
    same(&status["exempted"], &json!(10))?;
    same(&status["observedGeneration"], &found["metadata"]["generation"])?;
    same(&condition(&found, "Ready")["status"], &json!("True"))?;
    same(&condition(&found, "Promoted")["status"], &json!("False"))?;
    same(&condition(&found, "PromotionAtRisk")["status"], &json!("True"))?;
    let first = json!({
        "rule": "durable", "kind": "ArkMemory", "namespace": namespace, "name": "notes-10", "field": "/spec/backend",
        "message": "spec.backend: backend \"in-context\" loses its memory with its process (memgate policy durable/durable)",
    });
    same(&status["firstViolations"][0], &first)?;
    ensure!(status["lastAudit"].is_string(), "{status}");
    let of = |name: &str| house.get(&["-n", &namespace, "mempolex", name]);
    let counts = of("counts")?;
    same(&counts["status"]["matches"], &json!(10))?;
    ensure!(counts["status"]["lastMatched"].is_string(), "{counts}");
    for (name, expected) in [
        ("counts", ["True", "False", "False"]),
        ("ended", ["False", "True", "False"]),
        ("rejected", ["False", "False", "True"]),
    ] {
        let exemption = of(name)?;
        for (type_name, status) in ["Active", "Expired", "Rejected"].into_iter().zip(expected) {
            let found = condition(&exemption, type_name);
            ensure!(found["status"] == status, "{name}: {found}");
        }
    }

    // Nothing violates it any more: the status moves, and says since when nothing is at risk.
    house.kubectl(&["-n", &namespace, "delete", "arkmemory", "--all"])?;
    house.audit()?;
    let found = house.get(&["mempol", "durable"])?;
    same(&found["status"]["matched"], &json!(0))?;
    same(&condition(&found, "PromotionAtRisk")["status"], &json!("False"))?;
    let before = json!({"status": status});
    let since = |object: &Value| condition(object, "Ready")["lastTransitionTime"].clone();
    same(&since(&found), &since(&before))
}

/// Agents of Orloj and Orka, of which the state holds a part, backends that nothing watches, and a Namespace, whose
/// report is one of the cluster.
pub(super) fn kinds(_: &Fixture) -> Result<()> {
    let house = House::with_reports()?;
    let namespace = house.cluster.fresh_namespace("team")?;
    for object in [
        json!({"apiVersion": "orloj.dev/v1", "kind": "Agent", "metadata": {"name": "orloj", "namespace": namespace},
            "spec": {"model_ref": "m", "prompt": "p", "memory": {"ref": "notes", "allow": ["read"]}}}),
        json!({"apiVersion": "core.orka.ai/v1alpha1", "kind": "Agent", "metadata": {"name": "orka", "namespace": namespace},
            "spec": {"model": {"provider": "openai", "name": "m"}}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace,
            "annotations": {"memgate.dev/orka-memory-context": "true"}}}),
    ] {
        house.apply(&object)?;
    }
    let rules = json!([{"id": "team", "labels": {"required": ["team"]}}]);
    house.apply(&policy("team", &json!({"match": {"namespaces": [namespace]}}), &rules))?;
    let reports = house.audited(2)?;
    ensure!(reports.contains_key("orloj") && reports.contains_key("orka"), "{:?}", reports.keys());
    same(&reports["orka"]["results"][0]["result"], &json!("warn"))?;
    ensure!(house.reports("clusterreports.openreports.io")?.contains_key(&namespace), "no ClusterReport");
    Ok(())
}

/// More violations than an object's report has results.
pub(super) fn caps(_: &Fixture) -> Result<()> {
    let house = House::with_reports()?;
    let namespace = house.cluster.fresh_namespace("team")?;
    house.fill(memories(&namespace, (0..20).map(|it| (format!("notes-{it:02}"), false))))?;
    for policy_index in 0..3 {
        let rule = |index: usize| json!({"id": format!("label-{index}"), "labels": {"required": [format!("l{index}")]}});
        let rules: Vec<_> = (0..50).map(rule).collect();
        house.apply(&policy(&format!("labels-{policy_index}"), &json!({}), &json!(rules)))?;
    }
    let reports = house.audited(20)?;
    for report in reports.values() {
        ensure!(report["results"].as_array().is_some_and(|results| results.len() == 100), "{report}");
        same(&report["summary"]["warn"], &json!(150))?;
    }
    let found = house.get(&["mempol", "labels-0"])?;
    same(&found["status"]["violations"], &json!(20 * 50))?;
    ensure!(found["status"]["firstViolations"].as_array().is_some_and(|first| first.len() == 20), "{found}");
    Ok(())
}

/// Two audits at once write the same, and a third one nothing.
pub(super) fn both(_: &Fixture) -> Result<()> {
    let house = House::with_reports()?;
    let namespace = house.cluster.fresh_namespace("team")?;
    house.fill(memories(&namespace, (0..200).map(|it| (format!("notes-{it}"), false))))?;
    house.apply(&policy("durable", &json!({}), &durable()))?;
    let outputs: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..2).map(|_| scope.spawn(|| house.audit())).collect();
        running.into_iter().map(|one| one.join().map_err(|_| anyhow!("it panics"))?).collect()
    });
    for output in outputs {
        output?;
    }
    let (reports, stored) = (house.reports("reports.openreports.io")?, house.get(&["mempol", "durable"])?);
    same(&stored["status"]["violations"], &json!(200))?;
    ensure!(versions(&house.audited(200)?) == versions(&reports), "reports were written again");
    same(&house.get(&["mempol", "durable"])?, &stored)
}

/// docs/policy.md: what it says of the cluster, command by command.
pub(super) fn documented(_: &Fixture) -> Result<()> {
    let house = House::with_reports()?;
    let kubectl = house.cluster.admin();
    for file in ["00-namespace", "memory-in-context", "memory-redis", "memory-vector-store", "agent"] {
        kubectl.run(&["apply", "-f", &format!("{ROOT}/examples/arkonis/{file}.yaml")])?.ok()?;
    }
    let text = include_str!("../../../docs/policy.md");
    let mut commands = 0;
    for block in text.split("```console\n$ kubectl ").skip(1) {
        let block = block.split("\n```").next().unwrap_or_default();
        let (command, shown) = block.split_once('\n').context("a command without output")?;
        let here = |word: &str| {
            if word.starts_with("examples/") { format!("{ROOT}/{word}") } else { word.to_owned() }
        };
        let words: Vec<String> = command.split(' ').map(here).collect();
        let args: Vec<&str> = words.iter().map(String::as_str).collect();
        let shown: Vec<_> = shown.lines().collect();
        house.audit()?;
        let printed = kubectl.run(&args)?.stdout;
        ensure!(is_shown(&shown, &printed), "{command} prints\n{printed}");
        commands += 1;
    }
    ensure!(commands >= 4, "{commands} commands");
    Ok(())
}

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Whether lines are those that a document shows; `…` ends a line of which the rest does not matter.
fn is_shown(shown: &[&str], printed: &str) -> bool {
    let printed: Vec<_> = printed.lines().collect();
    let is_same = |(shown, printed): (&&str, &&str)| match shown.split_once('…') {
        Some((start, _)) => printed.starts_with(start),
        None => printed.trim_end() == *shown,
    };
    shown.len() == printed.len() && shown.iter().zip(&printed).all(is_same)
}
