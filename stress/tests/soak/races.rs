//! A memory, its agent and the agent's pod, applied in one go: the pod has its memory,
//! however often: memgate is asked about each pod before its watches can have delivered the rest.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use crate::{
    installed::{GUARDED, Installed},
    request::{path, send},
    runs::Parameters,
    samples::{COMPLETE, agent, env_names, memory, pod},
    support::control_plane::ControlPlane,
};

pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let times = parameters.number("times")?;
    let cluster = ControlPlane::start()?;
    let _memgate = Installed::new(&cluster)?;
    let namespace = cluster.labelled_namespace("raced", &[GUARDED])?;
    let items = (0..times).flat_map(|number| {
        let (agent_name, memory_name) = (format!("scout-{number}"), format!("notes-{number}"));
        [memory(&memory_name), agent(&agent_name, &memory_name), pod(&agent_name, &agent_name, &[])]
    });
    let triples = json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()});
    cluster.admin().apply_in(&namespace, &triples.to_string())?.ok()?;

    let path = path(&pod("", "", &[]), &namespace, None)?;
    let list = cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()?;
    let pods = list["items"].as_array().context("a list has items")?;
    let whole = pods.iter().filter(|pod| env_names(pod) == COMPLETE).count();
    println!("{whole} of {times} pods got their memory");
    let bare: Vec<&Value> = pods.iter().filter(|pod| env_names(pod) != COMPLETE).collect();
    ensure!(pods.len() == usize::try_from(times)? && bare.is_empty(), "without it: {bare:?}");
    Ok(())
}
