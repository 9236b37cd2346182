//! Running pods without their memory.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::house::House;
use crate::{
    fixture::Fixture,
    samples::{agent, deployment, memory, pod},
};

/// Pods come and go, and so does what they refer to.
pub(super) fn follows(_: &Fixture) -> Result<()> {
    let house = House::new()?;
    let namespace = house.cluster.fresh_namespace("team")?;
    let within = |mut object: Value| {
        object["metadata"]["namespace"] = namespace.as_str().into();
        object
    };
    for object in [
        memory("notes"),
        agent("scout", "notes"),
        deployment(2),
        pod("lone", "scout", &[]),
        pod("quiet", "scout", &[("memgate.dev/inject", "disabled")]),
    ] {
        house.apply(&within(object))?;
    }
    let of_deployment = format!("Deployment {namespace}/scout-agent: 2 pods run without the memory");
    let of_pod = format!("Pod {namespace}/lone: 1 pod runs without the memory");
    house.until_pods(&namespace, 4)?;
    let said = house.audit()?;
    ensure!(said.contains(&of_deployment) && said.contains(&of_pod) && !said.contains("quiet"), "{said}");
    ensure!(said.contains("rollout restart deployment/scout-agent"), "{said}");
    house.kubectl(&["-n", &namespace, "delete", "pod", "lone", "--force", "--grace-period=0"])?;
    let said = house.audit()?;
    ensure!(said.contains(&of_deployment) && !said.contains("lone"), "{said}");
    let forget = r#"[{"op": "remove", "path": "/spec/memoryRef"}]"#;
    house.kubectl(&["-n", &namespace, "patch", "arkagent", "scout", "--type=json", "-p", forget])?;
    let said = house.audit()?;
    ensure!(!said.contains("without the memory"), "{said}");
    Ok(())
}
