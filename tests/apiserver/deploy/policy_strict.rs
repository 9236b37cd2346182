//! The component `policy-strict`: where a namespace asks for it, nothing gets in unjudged while memgate is away, and
//! nowhere else is anything held up. Each request is asked about once.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    absent::Absent,
    lifecycle::{plain, pods_come, restricted},
};
use crate::{
    fixture::{Fixture, Trial},
    installed::exempt_client,
    request::{Answer, create},
    samples::{COMPLETE, agent, env_names, memory, pod, pod_spec},
    schema_parity::{definitions, maximal},
    support::{
        audit::Annotations,
        control_plane::ControlPlane,
        outage::{Outcomes, Resource, documented},
        wait,
    },
};

const COMPONENT: [&str; 2] = ["--component", "policy-strict"];

/// The label of namespaces that ask for it.
const LABEL: (&str, &str) = ("memgate.dev/policy", "strict");

/// What the apiserver notes of each mutating webhook that it calls.
const CALLED: &str = "mutation.webhook.admission.k8s.io/";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::alone("deploy::strict_namespaces_admit_nothing_while_memgate_is_away", away),
        Trial::alone("deploy::what_passes_while_memgate_is_away_is_what_the_table_says", table),
        Trial::alone("deploy::strict_namespaces_can_be_opened_while_memgate_is_away", opened),
        Trial::alone("deploy::strict_and_other_namespaces_are_asked_about_once", once),
    ]
}

fn away(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let (strict, open) = (cluster.labelled_namespace("strict", &[LABEL])?, cluster.fresh_namespace("open")?);
    let absent = Absent::new(cluster, &COMPONENT)?;
    until_strict(cluster, &strict)?;
    let resources = [("orka.advice", orka_agent()), ("defaults.ark.runs", query())];
    for (entry, object) in pods().into_iter().chain(resources) {
        let refused = rehearse(cluster, &strict, &object)?;
        let words = format!("failed calling webhook \"strict.{entry}.memgate.dev\"");
        ensure!(refused.message().contains(&words), "{entry}: {:?}", refused.body);
        let made = rehearse(cluster, &open, &object)?.object().with_context(|| entry.to_owned())?;
        ensure!(made["kind"] != "Pod" || env_names(&made) == ["AGENT_MODEL"], "{entry}: {made}");
    }
    // These fail closed everywhere.
    for namespace in [&strict, &open] {
        let refused = rehearse(cluster, namespace, &between())?;
        let words = "failed calling webhook \"required.pods.memgate.dev\"";
        ensure!(refused.message().contains(words), "{namespace}: {:?}", refused.body);
        let refused = rehearse(cluster, namespace, &memory("notes"))?;
        ensure!(refused.message().contains("failed calling webhook"), "{namespace}: {:?}", refused.body);
    }
    rehearse(cluster, &strict, &plain())?.object().context("a pod without an agent")?;
    spares_the_system(cluster, &absent)
}

/// The apiserver's own answer about an object of every kind, beside the table of docs/operate.md.
fn table(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let strict = cluster.labelled_namespace("strict", &[LABEL])?;
    let open = cluster.fresh_namespace("open")?;
    let _absent = Absent::new(cluster, &COMPONENT)?;
    until_strict(cluster, &strict)?;
    let mut measured: BTreeMap<Resource, Outcomes> = BTreeMap::new();
    for definition in definitions::all()? {
        let object = maximal::object(&definition);
        let (group, _) = definition.api_version.split_once('/').context("a group")?;
        let all = &memgate_platforms::ALL;
        let (family, kind) = memgate_platforms::validated(all, group, &definition.kind).context("a kind")?;
        let outcome = |namespace: &str| -> Result<String> {
            let answer = rehearse(cluster, namespace, &object)?;
            let is_missed = answer.message().contains("failed calling webhook");
            ensure!(answer.granted() || is_missed, "{object}: {:?}", answer.body);
            Ok(if is_missed { "refused" } else { "pass" }.to_owned())
        };
        let resource = (family.name.to_owned(), kind.plural.to_owned());
        measured.insert(resource, [outcome(&open)?, outcome(&strict)?]);
    }
    let mut table = documented();
    // A Namespace is not a kind of a platform: `opened` has one.
    table.retain(|(_, resource), _| resource != "namespaces");
    ensure!(measured == table, "{measured:#?}\n{table:#?}");
    Ok(())
}

/// Even who labels these cannot keep the control plane, and memgate itself, from coming up.
fn spares_the_system(cluster: &ControlPlane, absent: &Absent<'_>) -> Result<()> {
    let strict = format!("{}={}", LABEL.0, LABEL.1);
    for system in ["kube-system", "kube-public", "kube-node-lease", &absent.home] {
        cluster.kubectl(&["label", "namespace", system, &strict])?.ok()?;
        let answers: Result<Vec<_>> = pods()
            .into_iter()
            .map(|(entry, pod)| Ok((entry, rehearse(cluster, system, &restricted(pod))?)))
            .collect();
        // Other trials find it as it was, whatever came of this.
        cluster.kubectl(&["label", "namespace", system, &format!("{}-", LABEL.0)])?.ok()?;
        for (entry, answer) in answers? {
            answer.object().with_context(|| format!("{entry} in {system}"))?;
        }
    }
    pods_come(cluster, &absent.home, "app.kubernetes.io/name=memgate", 2)
}

/// What docs/emergencies.md tells users to do who are locked out.
fn opened(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let namespace = cluster.labelled_namespace("strict", &[LABEL])?;
    // The Namespace itself is one of those resources that fail closed then.
    let annotation = "memgate.dev/orka-memory-context-limit=4";
    cluster.kubectl(&["annotate", "namespace", &namespace, annotation])?.ok()?;
    let _absent = Absent::new(cluster, &COMPONENT)?;
    until_strict(cluster, &namespace)?;
    cluster.kubectl(&["label", "namespace", &namespace, "memgate.dev/policy-"])?.ok()?;
    wait::until("the namespace to be open", || {
        let answers = pods().into_iter().map(|(_, pod)| rehearse(cluster, &namespace, &pod));
        let answers = answers.collect::<Result<Vec<_>>>()?;
        Ok(answers.iter().all(Answer::granted).then_some(()))
    })
}

fn once(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let memgate = fixture.memgate()?;
    let (strict, open) = (cluster.labelled_namespace("strict", &[LABEL])?, cluster.fresh_namespace("open")?);
    for object in [memory("notes"), agent("scout", "notes")] {
        for namespace in [&strict, &open] {
            cluster.block_on(create(&exempt_client(cluster)?, namespace, &object, ""))?.object()?;
        }
    }
    let mut absent = Absent::new(cluster, &COMPONENT)?;
    absent.lead(&memgate.webhook.endpoint())?;
    let scout = pod("scout", "scout", &[]);
    for namespace in [&strict, &open] {
        wait::until("memgate to be asked", || {
            let answer = rehearse(cluster, namespace, &scout)?;
            Ok((answer.granted() && env_names(&answer.body) == COMPLETE).then_some(()))
        })?;
    }
    let between = between();
    let required = pod("scout", "scout", &[("memgate.dev/inject", "required")]);
    for (namespace, prefix) in [(&strict, "strict."), (&open, "")] {
        for (entry, object) in pods() {
            let answer = rehearse(cluster, namespace, &object)?;
            let called = called(&cluster.annotations(&answer.audit_id)?)?;
            ensure!(called == [format!("{prefix}{entry}.memgate.dev")], "{namespace}, {entry}: {called:?}");
        }
        for required in [&required, &between] {
            let answer = rehearse(cluster, namespace, required)?;
            let called = called(&cluster.annotations(&answer.audit_id)?)?;
            ensure!(called == ["required.pods.memgate.dev"], "{namespace}: {called:?}");
        }

        let answer = rehearse(cluster, namespace, &orka_agent())?;
        let annotations = cluster.annotations(&answer.audit_id)?;
        let reasons: Vec<_> = annotations.keys().filter(|key| key.ends_with(".memgate.dev/reason")).collect();
        ensure!(
            reasons == [&format!("{prefix}orka.advice.memgate.dev/reason")],
            "{namespace}: {annotations:?}"
        );
    }
    Ok(())
}

/// The mutating webhooks that were called about a request, by their names.
fn called(annotations: &Annotations) -> Result<Vec<String>> {
    let calls = annotations.iter().filter(|(key, _)| key.starts_with(CALLED));
    let name = |(_, value): (_, &String)| -> Result<String> {
        let call: Value = serde_json::from_str(value)?;
        Ok(call["webhook"].as_str().unwrap_or_default().to_owned())
    };
    calls.map(name).collect()
}

/// Waits until the apiserver knows the label of the namespace.
fn until_strict(cluster: &ControlPlane, namespace: &str) -> Result<()> {
    wait::until("the namespace to be strict", || {
        Ok((!rehearse(cluster, namespace, &pod("scout", "scout", &[]))?.granted()).then_some(()))
    })
}

fn rehearse(cluster: &ControlPlane, namespace: &str, object: &Value) -> Result<Answer> {
    cluster.block_on(create(&cluster.client(), namespace, object, "?dryRun=All"))
}

/// A pod of each platform, with the entry that is for it.
fn pods() -> Vec<(&'static str, Value)> {
    let of = |labels: Value, annotations: Value| {
        let metadata = json!({"name": "agent", "labels": labels, "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec()})
    };
    let none = || json!({});
    vec![
        ("arkonis.pods", of(json!({"arkonis.dev/deployment": "scout"}), none())),
        ("arkonis-kubeswarm.pods", of(json!({"kubeswarm/deployment": "scout"}), none())),
        ("arkonis-agentops.pods", of(json!({"agentops.io/deployment": "scout"}), none())),
        ("ark.pods", of(none(), json!({"memgate.dev/ark-memory": "notes"}))),
        ("orloj.pods", of(json!({"orloj.dev/component": "agent-job"}), none())),
        ("orka.pods", of(json!({"orka.ai/task": "any", "orka.ai/task-type": "ai"}), none())),
        (
            "sympozium.pods",
            of(json!({"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "any"}), none()),
        ),
    ]
}

/// A pod that requires the memory of its agent, with a mark of a platform that makes do without.
fn between() -> Value {
    pod("scout", "scout", &[("memgate.dev/inject", "required"), ("orka.ai/task", "any")])
}

fn query() -> Value {
    json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Query", "metadata": {"name": "question"},
        "spec": {"input": "why"},
    })
}

fn orka_agent() -> Value {
    json!({
        "apiVersion": "core.orka.ai/v1alpha1", "kind": "Agent", "metadata": {"name": "helper"},
        "spec": {"providerRef": {"name": "main"}, "systemPrompt": {"inline": "You help."}},
    })
}
