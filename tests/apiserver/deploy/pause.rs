//! The off switch on the real apiserver: while no replica answers, a Role in memgate's namespace lifts memgate off a namespace,
//! a platform in it or the cluster, and no right of a tenant does.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use super::{absent::Absent, renamed::text};
use crate::{
    fixture::{Fixture, Trial},
    request::{Answer, create, send},
    samples::{memory, pod},
    shell,
    support::{control_plane::ControlPlane, wait},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::alone("deploy::the_off_switch_lifts_one_namespace_while_memgate_is_away", one_namespace),
        Trial::alone("deploy::the_off_switch_lifts_one_platform_or_the_whole_cluster", platform_and_cluster),
        Trial::alone("deploy::rights_of_others_and_wide_rights_lift_nothing", other_rights),
        Trial::soak("deploy::what_the_conditions_of_the_off_switch_cost", costs),
    ]
}

/// The account of pauses.
const ACCOUNT: &str = "memgate-paused";

/// The right to skip all.
const SKIP: &str = r#"{"apiGroups": ["memgate.dev"], "resources": ["webhooks"], "verbs": ["skip"]}"#;

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

/// The commands of the page that switch memgate off and on again, for an installation in `home`.
fn of_page(namespace: &str, home: &str) -> Result<[String; 2]> {
    let page = include_str!("../../../docs/emergencies.md");
    let (_, section) = page.split_once("## The way out\n").context("no such section")?;
    let blocks = section.split("```console\n").skip(1).filter_map(|block| Some(block.split_once("```")?.0));
    let blocks: Vec<&str> = blocks.take(2).collect();
    let runbook = include_str!("../../../docs/runbooks/no-answer.md");
    ensure!(
        blocks.iter().all(|block| runbook.contains(block.trim())),
        "the runbook has other commands than the page"
    );
    let blocks =
        blocks.iter().map(|block| block.replace("team-a", namespace).replace("memgate-system", home));
    let [off, on] = <[String; 2]>::try_from(blocks.collect::<Vec<_>>())
        .ok()
        .context("docs/emergencies.md has no two blocks")?;
    Ok([off, on])
}

/// A Role with this rule, bound to the account of `home`, in the namespace `place`; without one for the whole cluster.
fn grant(cluster: &ControlPlane, place: Option<&str>, rule: &str, home: &str) -> Result<()> {
    let (kind, binding) =
        if place.is_some() { ("Role", "RoleBinding") } else { ("ClusterRole", "ClusterRoleBinding") };
    let name = format!("grant-{home}");
    let rule: Value = serde_json::from_str(rule)?;
    let metadata = json!({"name": name, "namespace": place});
    let objects = [
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": [rule]}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": binding, "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": home}],
        }),
    ];
    cluster.admin().apply(&text(&objects)).map(|_| ())
}

/// Takes it away again.
fn revoke(cluster: &ControlPlane, place: Option<&str>, home: &str) -> Result<()> {
    let name = format!("grant-{home}");
    let of = match place {
        Some(place) => vec!["-n", place, "delete", "role,rolebinding", &name],
        None => vec!["delete", "clusterrole,clusterrolebinding", &name],
    };
    cluster.kubectl(&of)?.ok().map(|_| ())
}

/// Whether the account may do this to a resource name in a namespace, by the authorizer.
fn may(cluster: &ControlPlane, verb: &str, name: &str, place: &str, home: &str) -> Result<bool> {
    let asked = json!({
        "namespace": place, "group": "memgate.dev", "resource": "webhooks", "name": name, "verb": verb,
    });
    let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{home}")];
    let spec = json!({
        "user": format!("system:serviceaccount:{home}:{ACCOUNT}"), "groups": groups, "resourceAttributes": asked,
    });
    let (version, kind) = ("authorization.k8s.io/v1", "SubjectAccessReview");
    let review = json!({"apiVersion": version, "kind": kind, "spec": spec});
    let path = format!("/apis/{version}/subjectaccessreviews");
    let answer = cluster.block_on(send(&cluster.client(), Method::POST, &path, Some(&review)))?.object()?;
    Ok(answer["status"]["allowed"] == true)
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

/// The two commands of the page, and the one that ends it.
fn one_namespace(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let strict = [("memgate.dev/policy", "strict")];
    let (off, open) =
        (cluster.labelled_namespace("off", &strict)?, cluster.labelled_namespace("open", &strict)?);
    let absent = Absent::new(cluster, &["--component=policy-strict"])?;
    let all = [memory("notes"), required(), pod("scout", "scout", &[]), ark_memory()];
    for object in &all {
        for namespace in [&off, &open] {
            until(cluster, namespace, object, false)?;
        }
    }
    let applied = || -> Result<String> { Ok(cluster.admin().apply(&text(&absent.objects))?.stdout) };
    applied()?;
    let before = applied()?;

    let [switch_off, switch_on] = of_page(&off, &absent.home)?;
    shell::run(cluster, &switch_off)?;
    for object in &all {
        until(cluster, &off, object, true)?;
        ensure!(!rehearse(cluster, &open, object)?.granted(), "{object} in {open}");
    }
    is_missed(cluster, "", &ark_config())?;
    // Nothing that was installed differs.
    let after = applied()?;
    ensure!(before == after, "{before}\n{after}");
    ensure!(rehearse(cluster, &off, &memory("notes"))?.granted());

    shell::run(cluster, &switch_on)?;
    for object in &all {
        until(cluster, &off, object, false)?;
    }
    Ok(())
}

fn platform_and_cluster(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let namespace = cluster.fresh_namespace("off")?;
    let absent = Absent::new(cluster, &[])?;
    let home = &*absent.home;
    let both =
        pod("scout", "scout", &[("memgate.dev/inject", "required"), ("orloj.dev/component", "agent-job")]);
    let named =
        |name: &str| SKIP.replace("\"verbs\"", &format!("\"resourceNames\": [\"{name}\"], \"verbs\""));
    for object in [memory("notes"), ark_memory(), required(), both.clone()] {
        is_missed(cluster, &namespace, &object)?;
    }
    grant(cluster, Some(home), &named(&format!("{namespace}.arkonis")), home)?;
    until(cluster, &namespace, &memory("notes"), true)?;
    until(cluster, &namespace, &required(), true)?;
    for object in [ark_memory(), both.clone()] {
        is_missed(cluster, &namespace, &object)?;
    }
    is_missed(cluster, "default", &memory("notes"))?;

    // The name for all, and a right without names.
    for rule in [named("*"), SKIP.to_owned()] {
        grant(cluster, Some(home), &rule, home)?;
        for (namespace, object) in [
            (&*namespace, ark_memory()),
            (&namespace, both.clone()),
            ("default", ark_memory()),
            ("", ark_config()),
        ] {
            until(cluster, namespace, &object, true)?;
        }
        revoke(cluster, Some(home), home)?;
        for (namespace, object) in [(&*namespace, memory("notes")), ("", ark_config())] {
            until(cluster, namespace, &object, false)?;
            is_missed(cluster, namespace, &object)?;
        }
    }
    Ok(())
}

/// Whatever a tenant binds in a namespace of its own, and whatever gives the account every right.
fn other_rights(fixture: &Fixture) -> Result<()> {
    const EVERYTHING: &str = r#"{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}"#;
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let namespace = cluster.fresh_namespace("tenant")?;
    let absent = Absent::new(cluster, &[])?;
    let home = &*absent.home;
    let both_verbs = format!(
        r#"{{"apiGroups": ["memgate.dev"], "resources": ["webhooks"], "resourceNames": ["{namespace}"], "verbs": ["*"]}}"#
    );
    let for_all = SKIP.replace("\"verbs\"", "\"resourceNames\": [\"*\"], \"verbs\"");
    let not_this = SKIP.replace("\"verbs\"", "\"resourceNames\": [\"tenant\", \"arkonis\"], \"verbs\"");
    for (place, rule, verbs) in [
        // In the namespace of the tenant: the same right, every right, and the name for all.
        (Some(&*namespace), SKIP, [("skip", true), ("never", false)]),
        (Some(&*namespace), EVERYTHING, [("skip", true), ("never", true)]),
        (Some(&*namespace), &for_all, [("skip", false), ("never", false)]),
        // In memgate's own: every verb on the name, every right, and other names.
        (Some(home), &both_verbs, [("skip", true), ("never", true)]),
        (Some(home), EVERYTHING, [("skip", true), ("never", true)]),
        (Some(home), &not_this, [("skip", false), ("never", false)]),
        // Everywhere, as in old clusters, where each service account is an administrator.
        (None, EVERYTHING, [("skip", true), ("never", true)]),
    ] {
        grant(cluster, place, rule, home)?;
        for (verb, expected) in verbs {
            let asked = place.unwrap_or(home);
            wait::until(&format!("{verb} in {asked}: {expected}"), || {
                Ok((may(cluster, verb, &namespace, asked, home)? == expected).then_some(()))
            })?;
        }
        for object in [memory("notes"), required(), ark_memory()] {
            is_missed(cluster, &namespace, &object).with_context(|| format!("{rule} in {place:?}"))?;
        }
        revoke(cluster, place, home)?;
    }
    // An account of that name elsewhere is another account.
    let named = SKIP.replace("\"verbs\"", &format!("\"resourceNames\": [\"{namespace}\"], \"verbs\""));
    grant(cluster, Some(&namespace), &named, &namespace)?;
    wait::until("the right of the other account", || {
        Ok(may(cluster, "skip", &namespace, &namespace, &namespace)?.then_some(()))
    })?;
    is_missed(cluster, &namespace, &memory("notes"))
}

/// How long the apiserver takes for creations that meet the conditions, and for the same without it.
fn costs(_: &Fixture) -> Result<()> {
    const CREATES: u32 = 500;
    let cluster = &ControlPlane::start()?;
    let namespace = cluster.fresh_namespace("costs")?;
    let manifests = crate::installed::memgate(&["manifests", "--only", "webhooks"])?;
    let manifests = crate::installed::documents(&manifests);
    let conditions = |entry: &str| -> Result<Vec<Value>> {
        let entries = manifests.iter().filter_map(|object| object["webhooks"].as_array()).flatten();
        let entry = entries.clone().find(|it| it["name"] == entry).context("an entry")?;
        let conditions = entry["matchConditions"].as_array().into_iter().flatten();
        let is_about_pauses =
            |it: &&Value| it["name"].as_str().is_some_and(|name| name.starts_with("not-paused"));
        Ok(conditions.filter(is_about_pauses).cloned().collect())
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
        measure(&format!("{more} further ClusterRoleBindings, without the conditions"))?;
        for entry in ["resources.memgate.dev", "required.pods.memgate.dev", "arkonis.pods.memgate.dev"] {
            configure(&[vec![never.clone()], conditions(entry)?].concat())?;
            measure(&format!("{more} further ClusterRoleBindings, with those of {entry}"))?;
        }
    }
    Ok(())
}
