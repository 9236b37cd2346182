//! That the cluster is what the other trials take it for.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{Api, Client, api::ListParams};

use crate::{
    fixture::{Fixture, Trial},
    support::{release::Release, wait},
};

/// Who the webhook is in a cluster.
const NAMESPACE: &str = "memgate-system";
const ACCOUNT: &str = "memgate";

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: registry.invalid/web}]
";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("control_plane::reports_its_version", reports_its_version),
        Trial::new("control_plane::answers_kubectl", answers_kubectl),
        Trial::new("control_plane::refuses_secrets_to_a_user", refuses_secrets_to_a_user),
        Trial::new("control_plane::knows_service_accounts_and_their_groups", knows_service_accounts),
        Trial::new("control_plane::makes_pods_of_a_deployment", makes_pods_of_a_deployment),
        Trial::alone("control_plane::survives_a_restart", survives_a_restart),
    ]
}

fn reports_its_version(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let version = cluster.block_on(cluster.client().apiserver_version())?;
    let Release { series, version: built, .. } = Release::from_environment()?;
    // Programs that were found rather than built may be of another patch, but know their version.
    let prefix = format!("v{series}.");
    ensure!(built.starts_with(&prefix));
    ensure!(version.git_version.starts_with(&prefix), "it is {}, not {built}", version.git_version);
    let minor = format!("{}.{}", version.major, version.minor);
    ensure!(minor == series, "major and minor are {minor}");
    Ok(())
}

fn answers_kubectl(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("kubectl")?;
    let output = cluster.kubectl(&["get", "namespace", &namespace, "--output=name"])?.ok()?;
    ensure!(output.stdout.trim() == format!("namespace/{namespace}"), "{output:?}");
    let refusal = cluster.kubectl(&["get", "namespace", "no-such"])?.refusal()?;
    ensure!(refusal.contains("(NotFound)"), "{refusal}");
    Ok(())
}

fn refuses_secrets_to_a_user(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("rbac")?;
    cluster
        .kubectl(&[
            "create", "rolebinding", "view", "--clusterrole=view", "--group=readers", "-n", &namespace,
        ])?
        .ok()?;
    let reader = cluster.user_kubeconfig("reader", &["readers"])?;

    let config = cluster.config(&reader)?;
    let client = cluster.block_on(async { Client::try_from(config) })?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    // Roles reach the authorizer through a watch, so a binding counts a moment after it is made.
    wait::until("the reader to be let in", || Ok(cluster.block_on(pods.list(&ListParams::default())).ok()))?;
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    match cluster.block_on(secrets.get("any")) {
        Err(kube::Error::Api(status)) if status.code == 403 => {}
        other => anyhow::bail!("a reader asked for a Secret and got {other:?}"),
    }
    let kubectl = cluster.kubectl_as(reader);
    let refusal = kubectl.run(&["get", "secrets", "-n", &namespace])?.refusal()?;
    ensure!(refusal.contains(r#"User "reader" cannot list"#), "{refusal}");
    Ok(())
}

fn knows_service_accounts(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    cluster.kubectl(&["create", "namespace", NAMESPACE])?.ok()?;
    cluster.kubectl(&["create", "serviceaccount", ACCOUNT, "-n", NAMESPACE])?.ok()?;
    let account = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)?;

    let output = cluster.kubectl_as(account).run(&["auth", "whoami", "--output=json"])?.ok()?;
    let review: serde_json::Value = serde_json::from_str(&output.stdout)?;
    let user = &review["status"]["userInfo"];
    ensure!(user["username"] == "system:serviceaccount:memgate-system:memgate", "{user}");
    let groups = serde_json::json!([
        "system:serviceaccounts",
        "system:serviceaccounts:memgate-system",
        "system:authenticated",
    ]);
    ensure!(user["groups"] == groups, "{user}");
    Ok(())
}

fn makes_pods_of_a_deployment(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("workload")?;
    cluster.admin().apply_in(&namespace, DEPLOYMENT)?.ok()?;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    let pod = wait::until("a pod of the Deployment", || {
        let list = cluster.block_on(pods.list(&ListParams::default().labels("app=web")))?;
        Ok(list.items.into_iter().next())
    })?;
    let owners = pod.metadata.owner_references.unwrap_or_default();
    ensure!(owners.iter().any(|owner| owner.kind == "ReplicaSet"), "owned by {owners:?}");
    Ok(())
}

fn survives_a_restart(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("restart")?;
    cluster.restart_apiserver()?;
    cluster.kubectl(&["get", "namespace", &namespace])?.ok()?;
    Ok(())
}
