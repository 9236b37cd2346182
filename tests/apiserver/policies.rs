//! What an apiserver makes of policies and exemptions by their definitions alone. Which it refuses, and in which
//! words, stands in the files of `policies`; `in_force` has what they do once memgate judges by them,
//! `typed_rules` each of their rules, `replicas` how soon a change counts, `got_in` the effect of unchecked ones, `lookups` of what no watch has shown,
//! `exported` what the apiserver makes of them by itself. `asked` is how they ask a replica itself.

mod asked;
mod got_in;
mod in_force;
mod lookups;
mod replicas;
mod typed_rules;

use std::{fmt::Write as _, sync::Arc};

use anyhow::{Context, Result, ensure};
use memgate_manifest::{document::values, source::Source};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{documents, memgate},
    support::{control_plane::ControlPlane, kubectl::Output},
};

const GOOD: &str = include_str!("policies/good.yaml");
const BAD_RULES: &str = include_str!("policies/rules.yaml");
const BAD_POLICIES: &str = include_str!("policies/policies.yaml");
const BAD_EXEMPTIONS: &str = include_str!("policies/exemptions.yaml");

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::new("policies::good_ones_are_accepted", good_ones),
        Trial::new("policies::bad_rules_are_refused", bad_rules),
        Trial::new("policies::bad_policies_are_refused", bad_policies),
        Trial::new("policies::bad_exemptions_are_refused", bad_exemptions),
        Trial::new("policies::what_is_too_large_is_refused", too_large),
        Trial::new("policies::the_largest_ones_can_be_judged", largest),
        Trial::new("policies::actions_are_written_out_and_nothing_else", actions),
    ];
    trials.extend(in_force::trials());
    trials.extend(typed_rules::trials());
    trials.extend(replicas::trials());
    trials.extend(got_in::trials());
    trials.extend(lookups::trials());
    trials
}

fn policy(spec: &Value) -> Value {
    object("MemoryPolicy", &json!({"name": "some-policy"}), spec)
}

fn exemption(spec: &Value) -> Value {
    object("MemoryPolicyExemption", &json!({"name": "some-exemption", "namespace": "default"}), spec)
}

fn object(kind: &str, metadata: &Value, spec: &Value) -> Value {
    json!({"apiVersion": "policy.memgate.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// The specification of a good policy.
fn policy_spec() -> Value {
    json!({"rules": [{"id": "a", "labels": {"required": ["a"]}}]})
}

/// The specification of a good exemption.
fn exemption_spec() -> Value {
    json!({
        "policy": "some-policy", "rules": ["a"], "target": {"namespaces": ["lab"]},
        "reason": "moves to redis with the March release", "from": "2026-12-15T00:00:00Z",
        "expiresAt": "2027-03-01T00:00:00Z",
    })
}

/// The cluster of all trials, with the definitions.
fn cluster(fixture: &Fixture) -> Result<&ControlPlane> {
    let cluster = fixture.cluster()?;
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    cluster.admin().run_with_input(&apply, &memgate(&["manifests", "--only", "crds"])?)?.ok()?;
    let names = ["crd/memorypolicies.policy.memgate.dev", "crd/memorypolicyexemptions.policy.memgate.dev"];
    cluster.kubectl(&[&["wait", "--for=condition=Established"], &names[..]].concat())?.ok()?;
    Ok(cluster)
}

/// What kubectl says when this is made, as a rehearsal: a policy counts for the namespaces of all trials.
fn rehearse(cluster: &ControlPlane, manifest: &Value) -> Result<Output> {
    let arguments = ["create", "--dry-run=server", "--validate=false", "--output=json", "-f", "-"];
    cluster.admin().run_with_input(&arguments, &manifest.to_string())
}

/// The words of a refusal, if it is one.
fn refusal_of(output: Output) -> Option<String> {
    (!output.status.success()).then_some(output.stderr)
}

/// The entries of a file: what is to be refused, and in which words.
fn entries(file: &str) -> Result<Vec<(Value, Vec<String>)>> {
    let entry = |entry: &Value| {
        let words = entry["words"].as_array().context("an entry has no words")?;
        let words = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Ok((entry["refused"].clone(), words))
    };
    entries_of(file)?.iter().map(entry).collect()
}

/// The list in a file.
fn entries_of(file: &str) -> Result<Vec<Value>> {
    let list = values(&Arc::new(Source::new("entries", file)), &mut Vec::new());
    let list = list.into_iter().next().context("the file cannot be read")?;
    Ok(list.value().as_array().context("the file is not a list")?.clone())
}

/// Requires that each manifest is refused with all of its words, and names every manifest that is not.
fn all_refused(fixture: &Fixture, entries: impl IntoIterator<Item = (Value, Vec<String>)>) -> Result<()> {
    let (cluster, mut faults) = (cluster(fixture)?, String::new());
    for (manifest, words) in entries {
        match rehearse(cluster, &manifest)?.refusal() {
            Err(error) => writeln!(faults, "{manifest}\n  {error:#}")?,
            Ok(refusal) => {
                for word in words.iter().filter(|word| !refusal.contains(word.as_str())) {
                    writeln!(faults, "{manifest}\n  is refused without \"{word}\": {refusal}")?;
                }
            }
        }
    }
    ensure!(faults.is_empty(), "{faults}");
    Ok(())
}

fn good_ones(fixture: &Fixture) -> Result<()> {
    let cluster = cluster(fixture)?;
    for manifest in documents(GOOD) {
        rehearse(cluster, &manifest)?.ok().with_context(|| manifest["metadata"].to_string())?;
    }
    Ok(())
}

fn bad_rules(fixture: &Fixture) -> Result<()> {
    let entries = entries(BAD_RULES)?;
    all_refused(fixture, entries.into_iter().map(|(rule, words)| (policy(&json!({"rules": [rule]})), words)))
}

fn bad_policies(fixture: &Fixture) -> Result<()> {
    all_refused(fixture, entries(BAD_POLICIES)?.into_iter().map(|(spec, words)| (policy(&spec), words)))
}

fn bad_exemptions(fixture: &Fixture) -> Result<()> {
    let laid_over = |(fields, words): (Value, Vec<String>)| {
        let mut spec = exemption_spec();
        for (field, value) in fields.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        (exemption(&spec), words)
    };
    all_refused(fixture, entries(BAD_EXEMPTIONS)?.into_iter().map(laid_over))
}

fn too_large(fixture: &Fixture) -> Result<()> {
    let rule = |field: &str, length: usize| {
        let mut spec = policy_spec();
        spec["rules"][0][field] = json!("x".repeat(length));
        policy(&spec)
    };
    let mut rules = policy_spec();
    rules["rules"] = json!(vec![rules["rules"][0].clone(); 65]);
    let mut named = policy(&policy_spec());
    named["metadata"]["name"] = json!("a".repeat(64));
    let mut reason = exemption_spec();
    reason["reason"] = json!("a".repeat(501));
    let mut ticket = exemption_spec();
    ticket["ticket"] = json!("a".repeat(101));
    let table = [
        (rule("message", 201), "spec.rules[0].message: Too long"),
        (rule("hint", 301), "spec.rules[0].hint: Too long"),
        (rule("id", 41), "spec.rules[0].id: Too long"),
        (policy(&rules), "spec.rules: Too many"),
        (named, "metadata.name must have at most 63 characters"),
        (exemption(&reason), "spec.reason: Too long"),
        (exemption(&ticket), "spec.ticket: Too long"),
    ];
    all_refused(fixture, table.map(|(manifest, words)| (manifest, vec![words.to_owned()])))
}

/// The budget that an apiserver has for rules in CEL is more than the bounds allow.
fn largest(fixture: &Fixture) -> Result<()> {
    let cluster = cluster(fixture)?;
    let many =
        |start: &str, count: usize| (0..count).map(|index| format!("{start}-{index}")).collect::<Vec<_>>();
    let requirement = |key: &String| json!({"key": key, "operator": "In", "values": ["a"]});
    let requirements: Vec<Value> = many("key", 256).iter().map(requirement).collect();
    let selector = json!({"matchExpressions": requirements});
    let rule = |id: &String| {
        json!({
            "id": id, "message": "m".repeat(200), "docs": format!("https://{}", "d".repeat(490)),
            "retention": {"min": format!("{}1h", "0".repeat(60)), "max": "30d"},
        })
    };
    let spec = json!({
        "match": {"namespaceSelector": selector, "objectSelector": selector, "names": many("name", 256)},
        "rules": many("rule", 64).iter().map(rule).collect::<Vec<_>>(),
        "exemptions": {"namespaces": many("namespace", 256), "maxAge": "90d"},
    });
    rehearse(cluster, &policy(&spec))?.ok()?;
    let mut spec = exemption_spec();
    spec["rules"] = json!(many("rule", 64));
    spec["target"] = json!({"namespaces": many("namespace", 256), "selector": selector});
    spec["reason"] = json!("a ".repeat(250));
    rehearse(cluster, &exemption(&spec))?.ok()?;
    Ok(())
}

/// What is stored is what was written, so that tools that apply it again find no difference.
fn actions(fixture: &Fixture) -> Result<()> {
    let cluster = cluster(fixture)?;
    for actions in [Value::Null, json!({}), json!({"ci": "deny"})] {
        let mut spec = policy_spec();
        spec["actions"] = actions;
        let output = rehearse(cluster, &policy(&spec))?.ok()?;
        let stored: Value = serde_json::from_str(&output.stdout)?;
        spec["actions"] = json!({"admission": "warn", "ci": "deny", "audit": "report"});
        ensure!(stored["spec"] == spec, "{}", stored["spec"]);
    }
    Ok(())
}
