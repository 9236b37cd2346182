//! Each typed rule at a real apiserver: the failing example of its page is denied there with the field and the text
//! that the command says.

use anyhow::{Context, Result, ensure};
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::finding::Severity;
use memgate_model::request::{Occasion, Point};
use memgate_policy::rules::{RuleType, TYPES};
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::judge::{Decided, check};
use memgate_workbench::files::load::load;
use serde_json::{Value, json};
use std::sync::Arc;

use super::refusal_of;
use crate::{
    fixture::{Fixture, Trial},
    support::{control_plane::ControlPlane, wait},
};

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |kind: &'static RuleType| {
        Trial::new(format!("policies::rule_{}", kind.name), move |fixture| denied(fixture, kind))
    };
    TYPES.iter().map(trial).collect()
}

/// What the page of a rule shows.
struct Example {
    policy: Value,
    /// The objects that exist before.
    state: Vec<Value>,
    object: Value,
    is_update: bool,
}

fn denied(fixture: &Fixture, kind: &'static RuleType) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("typed", &[])?;
    let example = example(kind, &namespace)?;
    for object in &example.state {
        if object["kind"] == "Namespace" {
            let labels = object["metadata"]["labels"].as_object().context("a Namespace without labels")?;
            for (key, value) in labels {
                let label = format!("{key}={}", value.as_str().unwrap_or_default());
                cluster.kubectl(&["label", "namespace", &namespace, &label])?.ok()?;
            }
        } else {
            cluster.admin().run_with_input(&["create", "-f", "-"], &object.to_string())?.ok()?;
        }
    }
    cluster.admin().run_with_input(&["apply", "-f", "-"], &example.policy.to_string())?.ok()?;
    let (field, words) = said_offline(&example)?;
    until_denied(cluster, &example, &field, &words)?;
    cluster.kubectl(&["delete", "memorypolicy", &namespace])?.ok()?;
    Ok(())
}

fn until_denied(cluster: &ControlPlane, example: &Example, field: &str, words: &str) -> Result<()> {
    let verb = if example.is_update { "replace" } else { "create" };
    let arguments = [verb, "--dry-run=server", "-f", "-"];
    wait::until(words, || {
        let output = cluster.admin().run_with_input(&arguments, &example.object.to_string())?;
        let refusal = refusal_of(output).unwrap_or_default();
        Ok((refusal.contains(words) && refusal.contains(field)).then_some(()))
    })
}

/// Field and text of the first denial, as a command says them; an update says what it says of the stored object.
fn said_offline(example: &Example) -> Result<(String, String)> {
    if example.is_update {
        let namespace = example.policy["metadata"]["name"].as_str().unwrap_or_default();
        return Ok((
            "spec.backend".to_owned(),
            format!("cannot change (was \"in-context\", is \"redis\") (memgate policy {namespace}/it)"),
        ));
    }
    let all = [&example.policy].into_iter().chain(&example.state).chain([&example.object]);
    let text = all.map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    let inputs = load(&Plan::of_text(&text))?;
    let checked = check(inputs, Occasion { point: Point::Admission, ..Occasion::default() });
    let findings = checked.decided.iter().flat_map(Decided::findings);
    let denial = findings.filter(|it| it.policy.is_some()).find(|it| it.severity == Severity::Deny);
    let denial = denial.context("nothing is denied offline")?;
    let field = denial.pointer.field();
    let message = denial.message();
    let words = message.strip_prefix(&format!("{field}: ")).unwrap_or(&message);
    Ok((field, words.to_owned()))
}

/// The failing example of a page in a namespace, with the policy for that namespace alone, which denies.
fn example(kind: &RuleType, namespace: &str) -> Result<Example> {
    let (_, policy) = block(kind.page.text(), "## Example policy")?;
    let (language, failing) = block(kind.page.text(), "## Failing example")?;
    let mut policy = documents(&policy).into_iter().next().context("a page has a policy")?;
    let (mut objects, is_update) = match language.as_str() {
        "case" => {
            let case = documents(&failing).into_iter().next().context("a page has a case")?[0].clone();
            policy["spec"]["rules"] = case["state"][0]["spec"]["rules"].clone();
            (vec![case["oldObject"].clone(), case["object"].clone()], true)
        }
        _ => (documents(&failing), false),
    };
    policy["metadata"]["name"] = json!(namespace);
    policy["spec"]["match"] = json!({"namespaces": [namespace]});
    policy["spec"]["actions"] = json!({"admission": "deny"});
    for rule in policy["spec"]["rules"].as_array_mut().into_iter().flatten() {
        rule.as_object_mut().context("a rule is a map")?.remove("action");
    }
    for object in &mut objects {
        let field = if object["kind"] == "Namespace" { "name" } else { "namespace" };
        object["metadata"][field] = json!(namespace);
    }
    ensure!(!objects.is_empty(), "{} has no example", kind.name);
    let at = if is_update { 1 } else { failing_object(&policy, &objects)? };
    let object = objects.remove(at);
    Ok(Example { policy, state: objects, object, is_update })
}

/// Which of the objects a command denies for the policy.
fn failing_object(policy: &Value, objects: &[Value]) -> Result<usize> {
    let text = [policy].into_iter().chain(objects).map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    let inputs = load(&Plan::of_text(&text))?;
    let checked = check(inputs, Occasion { point: Point::Admission, ..Occasion::default() });
    let is_denied = |decided: &&Decided| {
        decided.findings().any(|it| it.policy.is_some() && it.severity == Severity::Deny)
    };
    let denied = checked.decided.iter().find(is_denied).context("nothing is denied offline")?;
    let named = &denied.object.object_ref;
    let is_it = |object: &Value| object["kind"] == *named.kind && object["metadata"]["name"] == *named.name;
    objects.iter().position(is_it).context("the denied object is in the example")
}

/// The language and the text of the first block under a heading.
fn block(page: &str, heading: &str) -> Result<(String, String)> {
    let (_, section) = page.split_once(heading).with_context(|| format!("there is no {heading}"))?;
    let (_, fenced) = section.split_once("```").context("there is no block")?;
    let (language, rest) = fenced.split_once('\n').context("a block has lines")?;
    let (text, _) = rest.split_once("```").context("a block ends")?;
    Ok((language.to_owned(), text.to_owned()))
}

fn documents(text: &str) -> Vec<Value> {
    let mut faults = Vec::new();
    let documents = values(&Arc::new(Source::new("page.md", text)), &mut faults);
    documents.iter().map(|document| document.value().clone()).collect()
}
