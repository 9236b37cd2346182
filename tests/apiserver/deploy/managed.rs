//! The objects of docs/managed.md, which this machine cannot try: the apiserver accepts them, and they name existing
//! pods and ports.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::renamed::{manifests, of_kind};
use crate::{
    fixture::{Fixture, Trial},
    installed::documents,
};

const PAGE: &str = include_str!("../../../docs/managed.md");

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("deploy::objects_for_managed_clusters_are_accepted", accepted)]
}

fn accepted(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("managed")?;
    let installed = manifests(&namespace, &["--component", "network-policy"])?;
    let blocks = yaml_blocks(PAGE);
    ensure!(!blocks.is_empty(), "the page has no YAML");
    for block in blocks {
        for mut object in documents(&block) {
            let is_network_policy = object["kind"] == "NetworkPolicy";
            if is_network_policy {
                object["metadata"]["namespace"] = json!(namespace);
            }
            let apply = ["apply", "--dry-run=server", "--validate=strict", "--server-side", "-f", "-"];
            let output = cluster.admin().run_with_input(&apply, &object.to_string())?;
            ensure!(output.status.success() && output.stderr.is_empty(), "{object}: {}", output.stderr);
            if is_network_policy {
                stands_for(&object, of_kind(&installed, "NetworkPolicy")?)?;
                ensure!(
                    selects(&object, of_kind(&installed, "Deployment")?)?,
                    "{object} is not for our pods"
                );
            }
        }
    }
    Ok(())
}

fn yaml_blocks(page: &str) -> Vec<String> {
    let mut lines = page.lines();
    let mut blocks = Vec::new();
    while lines.by_ref().any(|line| line == "```yaml") {
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// Takes the place of the component's policy: only who may send reviews is another.
fn stands_for(policy: &Value, component: &Value) -> Result<()> {
    ensure!(
        policy["metadata"]["name"] == component["metadata"]["name"],
        "{policy} is added to the component's"
    );
    let mut open = policy.clone();
    let reviews = open["spec"]["ingress"][0].as_object_mut().context("nothing comes in")?;
    ensure!(reviews.remove("from").is_some(), "{policy} is for everybody");
    ensure!(open["spec"] == component["spec"], "{policy} is not as {component}");
    Ok(())
}

/// Whether it selects the pods of a Deployment, and names ports that these have.
fn selects(policy: &Value, deployment: &Value) -> Result<bool> {
    let template = &deployment["spec"]["template"];
    let wanted = policy["spec"]["podSelector"]["matchLabels"].as_object().context("it selects all pods")?;
    let has_labels = wanted.iter().all(|(key, value)| template["metadata"]["labels"][key] == *value);
    let known = template["spec"]["containers"][0]["ports"].as_array().context("pods have no ports")?;
    let rules = policy["spec"]["ingress"].as_array().context("nothing comes in")?;
    let mut ports = rules.iter().flat_map(|rule| rule["ports"].as_array().into_iter().flatten());
    Ok(has_labels && ports.all(|port| known.iter().any(|known| known["name"] == port["port"])))
}
