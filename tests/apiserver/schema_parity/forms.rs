//! Pods and workloads of agents; of others a check says nothing. Of their rules it knows only the form and the metadata, so it
//! may allow what an apiserver refuses; what it refuses itself, no apiserver takes.

use std::{fmt::Write as _, sync::Arc};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{fixture::Fixture, support::release::Release};

use super::{
    mutation::{self, Change, Mutant},
    seeds::Seed,
    verdict::{self, Verdicts},
};

/// How many mutated objects are tried.
const OBJECTS: usize = 2_000;

/// Which ones.
const SEED: u64 = 12;

/// How many of them a check has to refuse: were there fewer, little would be shown.
const AT_LEAST: usize = 200;

/// From which Kubernetes on an apiserver looks at all of a StatefulSet's template; 1.33 takes `null` for a container, of
/// which no pod comes, and 1.36 does not.
const STATEFUL_SETS_SINCE: (u32, u32) = (1, 36);

/// What is put into a valid object, or taken away, of which both judge alike.
struct Row {
    kind: &'static str,
    pointer: &'static str,
    value: Option<Value>,
    refused: bool,
}

fn refused(kind: &'static str, pointer: &'static str, value: Value) -> Row {
    Row { kind, pointer, value: Some(value), refused: true }
}

fn taken(kind: &'static str, pointer: &'static str, value: Value) -> Row {
    Row { refused: false, ..refused(kind, pointer, value) }
}

fn missing(kind: &'static str, pointer: &'static str) -> Row {
    Row { kind, pointer, value: None, refused: true }
}

fn rows() -> Vec<Row> {
    [rows_of_pods(), rows_of_metadata(), rows_of_workloads()].into_iter().flatten().collect()
}

fn rows_of_pods() -> Vec<Row> {
    const CONTAINER: &str = "/spec/containers/0";
    vec![
        missing("Pod", "/spec"),
        refused("Pod", "/spec", json!("text")),
        refused("Pod", "/spec", json!([])),
        refused("Pod", "/spec/containers", json!({"name": "main"})),
        refused("Pod", "/spec/containers", json!([null])),
        refused("Pod", "/spec/containers", json!(["main"])),
        refused("Pod", CONTAINER, json!({"name": "main", "image": 5})),
        refused("Pod", CONTAINER, json!({"name": "main", "image": "i", "tty": "yes"})),
        refused("Pod", "/spec/containers/0/env/0/value", json!(true)),
        refused("Pod", "/spec/containers/0/env/0/value", json!(1)),
        refused("Pod", "/spec/containers/0/env", json!({"A": "1"})),
        refused("Pod", "/spec/containers/0/ports/0/containerPort", json!("80")),
        refused("Pod", "/spec/containers/0/ports/0/containerPort", json!(80.5)),
        refused("Pod", "/spec/hostNetwork", json!("true")),
        refused("Pod", "/spec/volumes", json!([{"name": "v", "emptyDir": "x"}])),
        refused("Pod", "/spec/nodeSelector", json!({"a": true})),
        taken("Pod", "/spec/containers/0/env/0/value", Value::Null),
        taken("Pod", "/spec/containers/0/env", Value::Null),
        taken("Pod", "/spec/containers/0/unheardOf", json!(1)),
        taken("Pod", "/spec/volumes", Value::Null),
        taken("Pod", "/spec/nodeSelector", json!({"a": null})),
        taken("Pod", "/spec/priority", Value::Null),
    ]
}

fn rows_of_metadata() -> Vec<Row> {
    vec![
        missing("Pod", "/metadata/name"),
        missing("Deployment", "/metadata/name"),
        refused("Pod", "/metadata/name", json!("Upper")),
        refused("Pod", "/metadata/name", json!("under_score")),
        refused("Deployment", "/metadata/name", json!(5)),
        refused("Pod", "/metadata/labels/app", json!(5)),
        refused("Pod", "/metadata/labels/a b", json!("x")),
        refused("Pod", "/metadata/labels/app", json!("not a value")),
        refused("Pod", "/metadata/annotations", json!({"on": true})),
        refused("Pod", "/metadata/annotations", json!({"/a": "x"})),
        taken("Pod", "/metadata", json!({"generateName": "form-"})),
        taken("Pod", "/metadata/labels", Value::Null),
        taken("Pod", "/metadata/labels", json!({"app": null})),
        taken("Pod", "/metadata/creationTimestamp", Value::Null),
        taken("Pod", "/metadata/unheardOf", json!({"a": 1})),
    ]
}

fn rows_of_workloads() -> Vec<Row> {
    vec![
        missing("Deployment", "/spec/template/spec"),
        missing("CronJob", "/spec/jobTemplate/spec/template/spec"),
        refused("DaemonSet", "/spec/template/spec", json!("text")),
        refused("Deployment", "/spec/template/metadata/labels/more", json!(5)),
        refused("Deployment", "/spec/template/metadata/labels/more", json!("not a value")),
        refused("Deployment", "/spec/template/metadata/annotations", json!({"/a": "x"})),
        refused("Job", "/spec/template/metadata/annotations", json!({"on": true})),
        refused("StatefulSet", "/spec/template/spec/containers/0/env/0/value", json!(1)),
        refused("CronJob", "/spec/jobTemplate/spec/template/spec/containers", json!({})),
        taken("Deployment", "/spec/template/metadata/name", json!("my_app")),
        taken("Deployment", "/spec/template/metadata/namespace", json!("Not_A_Name")),
        taken("Deployment", "/spec/template/metadata/creationTimestamp", Value::Null),
        taken("Job", "/spec/template/spec/unheardOf", json!(1)),
    ]
}

/// The valid objects: a pod, and workloads that make such pods.
fn seeds() -> Vec<Seed> {
    let container = json!({
        "name": "main", "image": "example.com/main:1",
        "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}],
    });
    let spec = json!({"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]});
    // The pods are agents' by the label of memgate, which gives them nothing.
    let labels = json!({"app": "form", "memgate.dev/inject": "disabled"});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let chosen = json!({"selector": {"matchLabels": labels}, "template": template});
    let mut ends = json!({"template": template});
    ends["template"]["spec"]["restartPolicy"] = json!("Never");
    let mut named = chosen.clone();
    named["serviceName"] = json!("form");
    let jobs = json!({"schedule": "0 0 * * *", "jobTemplate": {"spec": ends}});
    let seed = |api_version: &str, kind: &str, spec: &Value| Seed {
        object: json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": "form", "labels": labels}, "spec": spec,
        }),
        schema: Arc::new(Value::Null),
        is_stored: false,
    };
    vec![
        seed("v1", "Pod", &spec),
        seed("apps/v1", "Deployment", &chosen),
        seed("apps/v1", "DaemonSet", &chosen),
        seed("apps/v1", "StatefulSet", &named),
        seed("batch/v1", "Job", &ends),
        seed("batch/v1", "CronJob", &jobs),
    ]
}

/// That both judge the listed objects alike.
pub(super) fn listed(fixture: &Fixture) -> Result<()> {
    let (seeds, rows) = (seeds(), rows());
    let mut expected: Vec<bool> = seeds.iter().map(|_| false).collect();
    let mut objects: Vec<Mutant> = seeds.iter().map(Mutant::unchanged).collect();
    for Row { kind, pointer, value, refused } in rows {
        let change = Change { pointer: pointer.to_owned(), value };
        let of_kind = seeds.iter().filter(|seed| seed.object["kind"] == kind);
        objects.extend(of_kind.map(|seed| Mutant::of(seed, &[&change])));
        expected.push(refused);
    }
    ensure!(objects.len() == expected.len(), "a row has no object of its kind");
    let verdicts = verdict::of_all(fixture, objects)?;
    let differ = |(verdicts, refused): &(&Verdicts, bool)| {
        verdicts.check.denied_by_form != *refused || verdicts.apiserver.allowed == *refused
    };
    let different = verdicts.iter().zip(expected).filter(differ).map(|(verdicts, _)| verdicts);
    tell(&different.collect::<Vec<_>>())
}

/// That an apiserver refuses everything that a check refuses for its form.
pub(super) fn mutated(fixture: &Fixture) -> Result<()> {
    let objects = mutation::mutants(&seeds(), SEED, OBJECTS);
    ensure!(objects.len() == OBJECTS, "there are {} objects", objects.len());
    let verdicts = verdict::of_all(fixture, objects)?;
    let denied: Vec<&Verdicts> = verdicts.iter().filter(|verdicts| verdicts.check.denied_by_form).collect();
    println!("{} of {OBJECTS} pods and workloads are refused for their form", denied.len());
    ensure!(denied.len() >= AT_LEAST, "only {} are refused", denied.len());
    let judges_stateful_sets = Release::from_environment()?.number() >= STATEFUL_SETS_SINCE;
    let is_judged = |verdicts: &Verdicts| judges_stateful_sets || verdicts.mutant.kind != "StatefulSet";
    let taken = denied.into_iter().filter(|verdicts| verdicts.apiserver.allowed && is_judged(verdicts));
    tell(&taken.collect::<Vec<_>>())
}

fn tell(different: &[&Verdicts]) -> Result<()> {
    let mut text = String::new();
    for verdicts in different.iter().take(super::SHOWN) {
        let _ = write!(text, "\n\n{}", verdicts.in_words());
    }
    ensure!(different.is_empty(), "{} objects are judged differently{text}", different.len());
    Ok(())
}
