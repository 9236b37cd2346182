//! What happens to a cluster while memgate is not there: before it comes, and when it goes.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    absent::{Absent, unserved},
    renamed::{manifests, text},
};
use crate::{
    fixture::{Fixture, Trial},
    installed::exempt_client,
    request::create,
    samples::{INJECTED, agent, env_names, memory, pod, pod_spec},
    support::{control_plane::ControlPlane, wait},
};

/// A label by which a peer leaves namespaces alone, as such webhooks commonly have one.
const PEER_LABEL: &str = "peer.example.com/ignore";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::alone("deploy::a_cluster_comes_up_without_memgate", cold_start),
        Trial::alone("deploy::two_webhooks_that_are_away_do_not_hold_up_each_other", peers),
        Trial::alone("deploy::it_goes_in_any_order", uninstall),
    ]
}

fn cold_start(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let memgate = fixture.memgate()?;
    let namespace = cluster.fresh_namespace("agents")?;
    // In the store from before: nothing of a family can be written while memgate is away.
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&exempt_client(cluster)?, &namespace, &object, ""))?.object()?;
    }
    let mut absent = Absent::new(cluster, &[])?;

    let labels = [
        ("arkonis.dev/deployment", "scout"),
        ("orloj.dev/component", "agent-job"),
        ("orka.ai/task", "any"),
        ("sympozium.ai/component", "agent-run"),
        ("memgate.dev/inject", "required"),
    ];
    for system in ["kube-system", "kube-public", "kube-node-lease", &absent.home] {
        let needed = restricted(pod(&format!("needed-{}", absent.home), "scout", &labels));
        let answer = cluster.block_on(create(&cluster.client(), system, &needed, "?dryRun=All"))?;
        let made = answer.object().with_context(|| format!("a pod in {system}"))?;
        ensure!(made["metadata"]["annotations"].is_null(), "{system}: {made}");
        ensure!(env_names(&made) == ["AGENT_MODEL"], "{system}: {made}");
    }
    for (what, object) in [
        ("a pod without labels", plain()),
        ("an agent's pod that does not insist", pod("agent", "scout", &[])),
    ] {
        let made = cluster.block_on(create(&cluster.client(), &namespace, &object, ""))?;
        let made = made.object().context(what)?;
        ensure!(made["metadata"]["annotations"].is_null() && env_names(&made) == ["AGENT_MODEL"], "{made}");
    }
    // memgate's own pods, and those of a workload, by their controllers.
    pods_come(cluster, &absent.home, "app.kubernetes.io/name=memgate", 2)?;
    deploy(cluster, &namespace, "web", &json!({"app": "web"}))?;
    pods_come(cluster, &namespace, "app=web", 1)?;

    let insisting =
        json!({"app": "insists", "arkonis.dev/deployment": "scout", "memgate.dev/inject": "required"});
    deploy(cluster, &namespace, "insists", &insisting)?;
    let reason = r#"--output=jsonpath={.status.conditions[?(@.type=="ReplicaFailure")].message}"#;
    let message = wait::until("the controller to be refused", || {
        let output = cluster.kubectl(&["get", "deployment", "insists", "-n", &namespace, reason])?.ok()?;
        Ok((!output.stdout.is_empty()).then_some(output.stdout))
    })?;
    ensure!(message.contains("required.pods.memgate.dev"), "{message}");
    ensure!(pods(cluster, &namespace, "app=insists")?.is_empty());

    absent.lead(&memgate.webhook.endpoint())?;
    pods_come(cluster, &namespace, "app=insists", 1)?;
    let made = pods(cluster, &namespace, "app=insists")?;
    let names = made.first().map(|pod| env_names(pod)).unwrap_or_default();
    ensure!(INJECTED.iter().all(|name| names.contains(name)), "{names:?}");
    Ok(())
}

/// A peer of memgate's whose entries fail closed, too, and which is away as well: the pods of both
/// come, for the namespaces of both are left alone by the other.
fn peers(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let absent = Absent::new(cluster, &[])?;
    let theirs = cluster.labelled_namespace("peer", &[(PEER_LABEL, "true")])?;
    let outside = cluster.fresh_namespace("outside")?;
    let peer = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": theirs},
        "webhooks": [{
            "name": "pods.peer.example.com", "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "clientConfig": unserved(cluster).client_config("/"),
            "namespaceSelector": {"matchExpressions": [
                {"key": PEER_LABEL, "operator": "NotIn", "values": ["true"]},
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [absent.home, theirs, outside]},
            ]},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
                "scope": "Namespaced",
            }],
        }],
    });
    cluster.admin().apply(&peer.to_string())?;
    let refused = |namespace: &str| -> Result<bool> {
        Ok(!cluster.block_on(create(&cluster.client(), namespace, &plain(), "?dryRun=All"))?.granted())
    };
    for namespace in [&outside, &absent.home] {
        wait::until("the peer to be missed", || Ok(refused(namespace)?.then_some(())))?;
    }
    deploy(cluster, &theirs, "peer", &json!({"app": "peer"}))?;
    pods_come(cluster, &theirs, "app=peer", 1)?;

    let label = format!("{PEER_LABEL}=true");
    cluster.kubectl(&["label", "namespace", &absent.home, &label])?.ok()?;
    wait::until("the label to count", || Ok((!refused(&absent.home)?).then_some(())))?;
    let delete = ["delete", "pods", "--all", "--grace-period=0", "--force", "-n", &absent.home];
    cluster.kubectl(&delete)?.ok()?;
    pods_come(cluster, &absent.home, "app.kubernetes.io/name=memgate", 2)?;
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", &theirs])?.ok()?;
    Ok(())
}

/// What is taken away at a time, and in which order.
const ORDERS: [&[&[&str]]; 6] = [
    &[&["webhooks"], &["workload"], &["policies", "rbac"], &["namespace"]],
    &[&["workload"], &["policies", "rbac"], &["namespace"], &["webhooks"]],
    &[&["policies", "rbac"], &["namespace"], &["webhooks"], &["workload"]],
    &[&["namespace"], &["webhooks"], &["workload"], &["policies", "rbac"]],
    &[&["namespace"], &["policies", "rbac"], &["workload"], &["webhooks"]],
    &[&["namespace", "rbac", "policies", "workload", "webhooks"]],
];

fn uninstall(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    for order in ORDERS {
        let absent = Absent::new(cluster, &[])?;
        let namespace = cluster.fresh_namespace("left")?;
        for parts in order {
            let flags: Vec<&str> = parts.iter().flat_map(|part| ["--only", part]).collect();
            let delete = ["delete", "--wait=false", "-f", "-"];
            let objects = text(&manifests(&absent.home, &flags)?);
            cluster.admin().run_with_input(&delete, &objects)?.ok()?;
            // Meanwhile pods without the label are not held up.
            for object in [pod("agent", "scout", &[]), plain()] {
                let answer =
                    cluster.block_on(create(&cluster.client(), &namespace, &object, "?dryRun=All"))?;
                ensure!(answer.granted(), "{order:?}, without {parts:?}: {}", answer.message());
            }
        }
        let left = "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,\
                    validatingadmissionpolicybindings,clusterroles,clusterrolebindings";
        let left = cluster.kubectl(&["get", left, "--output=name"])?.ok()?.stdout;
        let left: Vec<_> = left.lines().filter(|line| line.contains(&absent.home)).collect();
        ensure!(left.is_empty(), "{order:?} leaves {left:?}");
        // The admission chain learns of it by a watch.
        wait::until("all pods to be made", || Ok((!absent.refused(&namespace)?).then_some(())))?;
        let answer = cluster.block_on(create(&cluster.client(), &namespace, &memory("notes"), "?dryRun=All"));
        ensure!(answer?.granted(), "{order:?}: a memory is refused");
    }
    Ok(())
}

/// A pod that has nothing to do with memory.
pub(super) fn plain() -> Value {
    restricted(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": pod_spec(),
    }))
}

/// The pod as the strictest level of Pod Security wants it.
pub(super) fn restricted(mut pod: Value) -> Value {
    let spec = &mut pod["spec"];
    spec["securityContext"] = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    spec["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    pod
}

fn deploy(cluster: &ControlPlane, namespace: &str, name: &str, labels: &Value) -> Result<()> {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        },
    });
    cluster.block_on(create(&cluster.client(), namespace, &deployment, ""))?.object()?;
    Ok(())
}

pub(super) fn pods_come(cluster: &ControlPlane, namespace: &str, selector: &str, count: usize) -> Result<()> {
    let what = format!("{count} pods with {selector} in {namespace}");
    wait::until(&what, || Ok((pods(cluster, namespace, selector)?.len() == count).then_some(())))
}

fn pods(cluster: &ControlPlane, namespace: &str, selector: &str) -> Result<Vec<Value>> {
    let output = cluster.kubectl(&["get", "pods", "-n", namespace, "-l", selector, "--output=json"])?.ok()?;
    let list: Value = serde_json::from_str(&output.stdout)?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}
