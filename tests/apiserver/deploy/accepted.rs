//! That each component is accepted as it is printed, and that its pods may run where only the
//! strictest level of Pod Security is allowed.

use anyhow::{Result, ensure};
use memgate_install::component::Component;

use super::{
    renamed::{manifests, text},
    third_party_crds,
};
use crate::{
    fixture::{Fixture, Trial},
    installed::{MANIFESTS, memgate},
    support::{control_plane::ControlPlane, wait},
};

/// Those that change the pods, and how many there are then.
const PODS: [(&str, &str); 6] =
    [("", "2"), ("ha", "3"), ("cert-manager", "2"), ("csi-driver", "2"), ("cert-files", "2"), ("mtls", "2")];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("deploy::each_component_is_accepted_strictly", components_are_accepted),
        Trial::new("deploy::pods_come_where_pod_security_is_restricted", pods_come),
        Trial::new("deploy::host_network_needs_its_own_level", host_network),
    ]
}

fn components_are_accepted(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    third_party_crds::install(cluster)?;
    let namespace = cluster.fresh_namespace("accepted")?;
    let default = text(&manifests(&namespace, &[])?);
    is_accepted(cluster, &default, "the default")?;
    for (name, _) in Component::ALL {
        let printed = text(&manifests(&namespace, &["--component", name])?);
        // Audits are there by default.
        ensure!((printed == default) == (name == "audit"), "{name} changes nothing");
        is_accepted(cluster, &printed, name)?;
    }
    Ok(())
}

/// Not for good: other trials would be asked to wait for a memgate that does not run.
fn is_accepted(cluster: &ControlPlane, objects: &str, what: &str) -> Result<()> {
    let apply = ["apply", "--dry-run=server", "--validate=strict", "--server-side", "-f", "-"];
    let output = cluster.admin().run_with_input(&apply, objects)?;
    ensure!(output.status.success(), "{what}: {}", output.stderr);
    ensure!(output.stderr.is_empty(), "{what}: the apiserver warns: {}", output.stderr);
    Ok(())
}

fn pods_come(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    third_party_crds::install(cluster)?;
    for (component, replicas) in PODS {
        let namespace = cluster.fresh_namespace("restricted")?;
        install(cluster, &namespace, component, &["--only", "namespace", "--only", "workload"])?;
        wait::until("the pods of the Deployment", || {
            let found = pods(cluster, &namespace)?;
            Ok((found == replicas).then_some(()))
        })?;
        let level =
            cluster.kubectl(&["get", "namespace", &namespace, "--output=jsonpath={.metadata.labels}"])?;
        let level = level.ok()?.stdout;
        ensure!(
            level.contains(r#""pod-security.kubernetes.io/enforce":"restricted""#),
            "{component}: {level}"
        );
    }
    Ok(())
}

/// It is refused where the base is not, and accepted in the namespace that it makes for itself.
fn host_network(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let strict = [("pod-security.kubernetes.io/enforce", "restricted")];
    let namespace = cluster.labelled_namespace("host", &strict)?;
    install(cluster, &namespace, "host-network", &["--only", "workload"])?;
    let reason = r#"--output=jsonpath={.status.conditions[?(@.type=="ReplicaFailure")].message}"#;
    let message = wait::until("a pod to be refused", || {
        let output = cluster.kubectl(&["get", "deployment", "memgate", "-n", &namespace, reason])?.ok()?;
        Ok((!output.stdout.is_empty()).then_some(output.stdout))
    })?;
    ensure!(message.contains("violates PodSecurity") && message.contains("hostNetwork=true"), "{message}");
    ensure!(pods(cluster, &namespace)? == "0");

    let namespace = cluster.fresh_namespace("host")?;
    install(cluster, &namespace, "host-network", &["--only", "namespace", "--only", "workload"])?;
    wait::until("the pods of the Deployment", || Ok((pods(cluster, &namespace)? == "2").then_some(())))
}

fn install(cluster: &ControlPlane, namespace: &str, component: &str, parts: &[&str]) -> Result<()> {
    let mut arguments = [&MANIFESTS[..], &["-n", namespace], parts].concat();
    if !component.is_empty() {
        arguments.extend(["--component", component]);
    }
    cluster.admin().apply(&memgate(&arguments)?)?;
    Ok(())
}

/// How many pods of memgate there are.
fn pods(cluster: &ControlPlane, namespace: &str) -> Result<String> {
    let selector = "--selector=app.kubernetes.io/name=memgate";
    let output = cluster.kubectl(&["get", "pods", "-n", namespace, selector, "--output=name"])?.ok()?;
    Ok(output.stdout.lines().count().to_string())
}
