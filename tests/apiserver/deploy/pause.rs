//! Pauses, by `memgate pause` on the real apiserver: while no replica answers a namespace, a platform or the cluster is
//! lifted, by those alone who may give the right, and nothing else is. A replica that is back ends what has ended.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use memgate_model::pause::{LABEL, PAUSED, REASON, UNTIL};
use serde_json::{Value, json};

use super::{absent::Absent, renamed::text};
use crate::{
    fixture::{Fixture, Trial},
    installed::{MEMGATE, install_account},
    request::{Answer, create, send},
    samples::{memory, pod},
    support::{control_plane::ControlPlane, wait, webhook::Serve},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::alone("deploy::a_pause_lifts_one_namespace_while_memgate_is_away", one_namespace),
        Trial::alone("deploy::a_pause_lifts_one_platform_or_the_whole_cluster", platform_and_cluster),
        Trial::alone("deploy::wide_rights_are_not_a_pause", wide_rights),
        Trial::new("deploy::a_replica_ends_what_has_ended", ends),
        Trial::new("deploy::a_replica_that_returns_ends_what_has_ended", ends_on_return),
        Trial::soak("deploy::what_the_condition_of_pauses_costs", costs),
    ]
}

/// `memgate pause` with these arguments, as this user.
fn pause(kubeconfig: &Path, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(MEMGATE);
    command.arg("pause").args(arguments).arg("--kubeconfig").arg(kubeconfig).env_clear();
    command.output().context("memgate does not start")
}

/// The same as the administrator, who may.
fn pauses(cluster: &ControlPlane, arguments: &[&str]) -> Result<String> {
    let output = pause(cluster.admin_kubeconfig(), arguments)?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// What fails, with its exit code and what it says.
fn fails(kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
    let output = pause(kubeconfig, arguments)?;
    ensure!(output.status.code() == Some(2), "{arguments:?}: {output:?}");
    Ok(String::from_utf8(output.stderr)?)
}

/// What `memgate pause list` prints.
fn listed(cluster: &ControlPlane) -> Result<Vec<Value>> {
    let list: Value = serde_json::from_str(&pauses(cluster, &["list", "-o", "json"])?)?;
    list.as_array().cloned().context("a list")
}

fn rehearse(cluster: &ControlPlane, namespace: &str, object: &Value) -> Result<Answer> {
    cluster.block_on(create(&cluster.client(), namespace, object, "?dryRun=All"))
}

/// Bindings reach the authorizer by a watch.
fn until(cluster: &ControlPlane, namespace: &str, object: &Value, granted: bool) -> Result<()> {
    wait::until(&format!("{} in {namespace}: {granted}", object["kind"]), || {
        Ok((rehearse(cluster, namespace, object)?.granted() == granted).then_some(()))
    })
}

/// That it is refused for want of an answer, and not for a condition.
fn is_missed(cluster: &ControlPlane, namespace: &str, object: &Value) -> Result<()> {
    let answer = rehearse(cluster, namespace, object)?;
    ensure!(answer.message().contains("failed calling webhook"), "{namespace}: {object}: {:?}", answer.body);
    Ok(())
}

/// The role for people on call, as the page has it.
fn role_of_page() -> Result<String> {
    let page = include_str!("../../../docs/operate.md");
    let blocks = page.split("```yaml\n").filter_map(|behind| Some(behind.split_once("```")?.0));
    let mut roles = blocks.filter(|block| block.contains("name: memgate-pauser"));
    let role = roles.next().context("docs/operate.md has no role memgate-pauser")?;
    Ok(role.lines().map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned() + "\n").collect())
}

fn ark_memory() -> Value {
    json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": {"name": "notes"},
        "spec": {"address": {"value": "http://memory.example.com"}},
    })
}

fn ark_config() -> Value {
    json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "ArkConfig", "metadata": {"name": "default"},
        "spec": {"queryTTL": "720h"},
    })
}

fn required() -> Value {
    pod("scout", "scout", &[("memgate.dev/inject", "required")])
}

fn one_namespace(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let strict = [("memgate.dev/policy", "strict")];
    let (paused, open) =
        (cluster.labelled_namespace("paused", &strict)?, cluster.labelled_namespace("open", &strict)?);
    let absent = Absent::new(cluster, &["--component=policy-strict"])?;
    let home = absent.home.clone();
    let all = [memory("notes"), required(), pod("scout", "scout", &[]), ark_memory()];
    for object in &all {
        for namespace in [&paused, &open] {
            until(cluster, namespace, object, false)?;
        }
    }
    let applied = || -> Result<String> { Ok(cluster.admin().apply(&text(&absent.objects))?.stdout) };
    applied()?;
    let before = applied()?;

    let of_home = ["--memgate-namespace", &home];
    let start = |namespace: &str, length: &str| -> Vec<String> {
        let why = ["--for", length, "--reason", "memgate is down"];
        ["-n", namespace].into_iter().chain(of_home).chain(why).map(str::to_owned).collect()
    };
    // Its owner has every right in it that `admin` gives, and may bind what he has.
    cluster
        .kubectl(&["create", "rolebinding", "owner", "--clusterrole=admin", "--user=owner", "-n", &paused])?
        .ok()?;
    let owner = cluster.user_kubeconfig("owner", &[])?;
    let said = wait::until("the owner to be one", || {
        let said = fails(&owner, &texts(&start(&paused, "1h")))?;
        Ok(said.contains("attempting to grant").then_some(said))
    })?;
    ensure!(said.contains("`skip`") && said.contains("owner may not pause"), "{said}");
    ensure!(said.contains("the ClusterRole memgate-pauser of docs/operate.md, under Pause"), "{said}");
    let said = fails(cluster.admin_kubeconfig(), &texts(&start("no-such", "1h")))?;
    ensure!(said.contains("found no namespace no-such"), "{said}");

    pauses(cluster, &texts(&start(&paused, "1h")))?;
    for object in &all {
        until(cluster, &paused, object, true)?;
        ensure!(!rehearse(cluster, &open, object)?.granted(), "{object} in {open}");
    }
    let first = listed(cluster)?;
    let [one] = &first[..] else { anyhow::bail!("{first:?}") };
    ensure!(
        one["namespace"] == *paused && one["family"] == "*" && one["reason"] == "memgate is down",
        "{one}"
    );
    ensure!(one["by"].as_str().is_some_and(|by| !by.is_empty()), "{one}");
    // It is not among what was installed, so that nothing there differs.
    let after = applied()?;
    ensure!(before == after, "{before}\n{after}");
    ensure!(rehearse(cluster, &paused, &memory("notes"))?.granted());
    is_missed(cluster, "", &ark_config())?;

    // Who has the role of the page and nothing else can do the same.
    cluster.admin().apply(&role_of_page()?)?;
    let bind =
        ["create", "clusterrolebinding", "memgate-pauser", "--clusterrole=memgate-pauser", "--user=on-call"];
    cluster.kubectl(&bind)?.ok()?;
    let on_call = cluster.user_kubeconfig("on-call", &[])?;
    wait::until("the user on call to pause", || {
        Ok(pause(&on_call, &texts(&start(&paused, "2h")))?.status.success().then_some(()))
    })?;
    let second = listed(cluster)?;
    ensure!(second.len() == 1 && second[0]["until"] != one["until"], "{second:?}");
    let end = pause(&on_call, &["end", "-n", &paused])?;
    ensure!(end.status.success(), "{end:?}");
    for object in &all {
        until(cluster, &paused, object, false)?;
    }
    // There is none any more.
    pauses(cluster, &["end", "-n", &paused])?;
    ensure!(listed(cluster)?.is_empty());
    Ok(())
}

fn platform_and_cluster(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let namespace = cluster.fresh_namespace("paused")?;
    let absent = Absent::new(cluster, &[])?;
    let why = ["--for", "1h", "--reason", "why", "--memgate-namespace", &absent.home];
    let both =
        pod("scout", "scout", &[("memgate.dev/inject", "required"), ("orloj.dev/component", "agent-job")]);
    for object in [memory("notes"), ark_memory(), required(), both.clone()] {
        is_missed(cluster, &namespace, &object)?;
    }
    pauses(cluster, &[&["-n", &namespace, "--family", "arkonis"][..], &why].concat())?;
    until(cluster, &namespace, &memory("notes"), true)?;
    until(cluster, &namespace, &required(), true)?;
    for object in [ark_memory(), both] {
        is_missed(cluster, &namespace, &object)?;
    }
    ensure!(listed(cluster)?[0]["family"] == "arkonis");

    pauses(cluster, &[&["--all"][..], &why].concat())?;
    for (namespace, object) in [(&*namespace, ark_memory()), ("default", ark_memory()), ("", ark_config())] {
        until(cluster, namespace, &object, true)?;
    }
    let places: Vec<_> =
        listed(cluster)?.iter().map(|one| (one["namespace"].clone(), one["family"].clone())).collect();
    ensure!(places == [(json!("*"), json!("*")), (json!(namespace), json!("arkonis"))], "{places:?}");
    pauses(cluster, &["end", "--all"])?;
    for (namespace, object) in [(&*namespace, memory("notes")), ("", ark_config())] {
        until(cluster, namespace, &object, false)?;
        is_missed(cluster, namespace, &object)?;
    }
    Ok(())
}

/// In old clusters every service account is an administrator.
fn wide_rights(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let namespace = cluster.fresh_namespace("wide")?;
    let absent = Absent::new(cluster, &[])?;
    let account = format!("system:serviceaccount:{}:{PAUSED}", absent.home);
    let may_skip = || -> Result<bool> {
        let can = ["auth", "can-i", "skip", "webhooks.memgate.dev", "-n", &namespace, "--as", &account];
        let group = format!("--as-group=system:serviceaccounts:{}", absent.home);
        let groups = ["--as-group=system:serviceaccounts", &group];
        Ok(cluster.kubectl(&[&can[..], &groups].concat())?.stdout.trim() == "yes")
    };
    ensure!(!may_skip()?);
    let binding = format!("wide-{namespace}");
    let wide = ["--clusterrole=cluster-admin", "--group=system:serviceaccounts"];
    cluster.kubectl(&[&["create", "clusterrolebinding", &binding][..], &wide].concat())?.ok()?;
    let why = ["-n", &namespace, "--for", "1h", "--reason", "why", "--memgate-namespace", &absent.home];
    let held = wait::until("the account to have every right", || Ok(may_skip()?.then_some(())))
        .and_then(|()| is_missed(cluster, &namespace, &memory("notes")))
        .and_then(|()| fails(cluster.admin_kubeconfig(), &why));
    cluster.kubectl(&["delete", "clusterrolebinding", &binding])?.ok()?;
    let said = held?;
    ensure!(said.contains("has rights to everything"), "{said}");
    Ok(())
}

/// How many pauses a namespace has.
fn bindings(cluster: &ControlPlane, namespace: &str) -> Result<usize> {
    let path = format!(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings?labelSelector={}",
        LABEL.replace('/', "%2F")
    );
    let list = cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()?;
    Ok(list["items"].as_array().map_or(0, Vec::len))
}

/// What the Events of a namespace with a reason say.
fn notes(cluster: &ControlPlane, namespace: &str, reason: &str) -> Result<Vec<String>> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let list = cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()?;
    let events = list["items"].as_array().into_iter().flatten().filter(|event| event["reason"] == reason);
    Ok(events.filter_map(|event| event["note"].as_str().map(str::to_owned)).collect())
}

/// Its Event is written while no replica runs, and not again by the replica that returns.
fn ends_on_return(_: &Fixture) -> Result<()> {
    let cluster = &ControlPlane::start()?;
    let account = install_account(cluster)?;
    let [ended, lasting, lifted] = ["ended", "lasting", "lifted"].map(|name| cluster.fresh_namespace(name));
    let (ended, lasting, lifted) = (ended?, lasting?, lifted?);
    for (namespace, length) in [(&ended, "1s"), (&lasting, "1d"), (&lifted, "1h")] {
        pauses(cluster, &["-n", namespace, "--for", length, "--reason", "INC-123"])?;
        let [note] = &notes(cluster, namespace, "MemgatePaused")?[..] else { anyhow::bail!("not one Event") };
        ensure!(note.contains("INC-123"), "{note}");
    }
    pauses(cluster, &["end", "-n", &lifted])?;
    ensure!(notes(cluster, &lifted, "MemgatePauseEnded")?.len() == 1);
    let other = pauses(cluster, &["list", "-n", &lifted])?;
    ensure!(other.contains("has no pause of its own"), "{other}");
    // By the apiserver's clock.
    let said = wait::until("its end", || {
        let said = pauses(cluster, &["list", "-n", &ended])?;
        Ok(said.contains("to be removed by a replica").then_some(said))
    })?;
    ensure!(said.lines().count() == 1 && bindings(cluster, &ended)? == 1, "{said}");
    let _replica = Serve::new(MEMGATE).arg("--audit-interval").arg("0").kubeconfig(&account).ready()?;
    wait::until("the pause to be removed", || Ok((bindings(cluster, &ended)? == 0).then_some(())))?;
    // In a round it writes the Events of what begins before these.
    wait::until("the Event of its end", || {
        Ok((!notes(cluster, &ended, "MemgatePauseEnded")?.is_empty()).then_some(()))
    })?;
    for namespace in [&ended, &lasting, &lifted] {
        ensure!(notes(cluster, namespace, "MemgatePaused")?.len() == 1, "{namespace}");
    }
    ensure!(bindings(cluster, &lasting)? == 1);
    Ok(())
}

fn ends(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let memgate = fixture.memgate()?;
    let names = ["ended", "lasting", "unreadable"].map(|name| cluster.fresh_namespace(name));
    let [ended, lasting, unreadable] = names;
    let (ended, lasting, unreadable) = (ended?, lasting?, unreadable?);
    for (namespace, length) in [(&ended, "1s"), (&lasting, "1h"), (&unreadable, "1h")] {
        pauses(cluster, &["-n", namespace, "--for", length, "--reason", "INC-123"])?;
    }
    let annotation = format!("{UNTIL}=tomorrow");
    cluster
        .kubectl(&["annotate", "rolebinding", PAUSED, "-n", &unreadable, &annotation, "--overwrite"])?
        .ok()?;
    let bindings = |namespace: &str| bindings(cluster, namespace);
    wait::until("the pause to be removed", || Ok((bindings(&ended)? == 0).then_some(())))?;
    ensure!(bindings(&lasting)? == 1 && bindings(&unreadable)? == 1);
    let series = |namespace: &str| format!("memgate_paused{{namespace=\"{namespace}\",family=\"*\"}} 1");
    wait::until("the metric", || {
        let metrics = memgate.webhook.metrics()?;
        let [ended, lasting] = [&ended, &lasting].map(|namespace| metrics.contains(&series(namespace)));
        Ok((lasting && !ended).then_some(()))
    })?;
    for (namespace, reason, note) in
        [(&ended, "MemgatePauseEnded", "no longer paused"), (&lasting, "MemgatePaused", "INC-123")]
    {
        wait::until(&format!("the Event {reason}"), || {
            let notes = notes(cluster, namespace, reason)?;
            Ok(notes.iter().any(|text| text.contains(note)).then_some(()))
        })?;
    }
    // Its account can remove pauses, and nothing else of that kind.
    let own = cluster.kubectl_as(memgate.kubeconfig.clone());
    cluster
        .kubectl(&["create", "rolebinding", "other", "--clusterrole=view", "--user=any", "-n", &lasting])?
        .ok()?;
    for arguments in [
        &["delete", "rolebinding", "other", "-n", &lasting][..],
        &["create", "rolebinding", PAUSED, "--clusterrole=view", "--user=any", "-n", &ended],
        &["get", "rolebindings", "--all-namespaces"],
    ] {
        let refusal = own.run(arguments)?.refusal()?;
        ensure!(refusal.contains("forbidden"), "{arguments:?}: {refusal}");
    }
    for namespace in [&lasting, &unreadable] {
        pauses(cluster, &["end", "-n", namespace])?;
    }
    let of_others = |binding: &Value| binding["metadata"]["annotations"][REASON] == "INC-123";
    ensure!(!listed(cluster)?.iter().any(of_others));
    Ok(())
}

/// How long the apiserver takes for creations that meet the condition, and for the same without it.
fn costs(_: &Fixture) -> Result<()> {
    const CREATES: u32 = 500;
    let cluster = &ControlPlane::start()?;
    let namespace = cluster.fresh_namespace("costs")?;
    let manifests = crate::installed::memgate(&["manifests", "--only", "webhooks"])?;
    let manifests = crate::installed::documents(&manifests);
    let condition = |entry: &str| -> Result<Value> {
        let entries = manifests.iter().filter_map(|object| object["webhooks"].as_array()).flatten();
        let entry = entries.clone().find(|it| it["name"] == entry).context("an entry")?;
        let conditions = entry["matchConditions"].as_array().into_iter().flatten();
        conditions.clone().find(|it| it["name"] == "not-paused").cloned().context("a condition")
    };
    let never = json!({"name": "never", "expression": "object == null"});
    let configure = |conditions: &[Value]| -> Result<()> {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "costs"},
            "webhooks": [{
                "name": "costs.memgate.test", "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
                }],
                "matchConditions": conditions, "failurePolicy": "Ignore", "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        });
        cluster.admin().apply(&configuration.to_string())?;
        std::thread::sleep(std::time::Duration::from_secs(3));
        Ok(())
    };
    let measure = |what: &str| -> Result<()> {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let start = std::time::Instant::now();
            for number in 0..CREATES {
                let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{number}")}});
                let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
                ensure!(
                    cluster.block_on(send(&cluster.client(), Method::POST, &path, Some(&object)))?.granted()
                );
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{what}: {:.0} µs for each of {CREATES} creates", best * 1e6 / f64::from(CREATES));
        Ok(())
    };
    for more in [0, 2000] {
        for number in 0..more {
            let binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("more-{number}")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                "subjects": [{"kind": "ServiceAccount", "name": format!("any-{number}"), "namespace": "any"}],
            });
            let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
            cluster.block_on(send(&cluster.client(), Method::POST, path, Some(&binding)))?.object()?;
        }
        configure(std::slice::from_ref(&never))?;
        measure(&format!("{more} further ClusterRoleBindings, without the condition"))?;
        for entry in ["resources.memgate.dev", "required.pods.memgate.dev", "arkonis.pods.memgate.dev"] {
            configure(&[never.clone(), condition(entry)?])?;
            measure(&format!("{more} further ClusterRoleBindings, with that of {entry}"))?;
        }
    }
    Ok(())
}

fn texts(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
