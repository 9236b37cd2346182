//! A Deployment that grows to many pods at once: each of them has its memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use crate::{
    installed::{GUARDED, Installed},
    request::{path, send},
    runs::Parameters,
    samples::{COMPLETE, agent, deployment, env_names, memory, pod},
    support::control_plane::ControlPlane,
};

/// How long a pod may take to come; controllers create some twenty a second.
const TIME_LIMIT_PER_POD: Duration = Duration::from_secs(1);

pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let wanted = parameters.number("pods")?;
    let cluster = ControlPlane::start()?;
    let _memgate = Installed::new(&cluster)?;
    let namespace = cluster.labelled_namespace("scaled", &[GUARDED])?;
    let items = json!([memory("notes"), agent("scout", "notes"), deployment(wanted)]);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    cluster.admin().apply_in(&namespace, &list)?.ok()?;

    let (start, wanted) = (Instant::now(), usize::try_from(wanted)?);
    let path = path(&pod("", "", &[]), &namespace, None)?;
    let pods = loop {
        let list = cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()?;
        let pods = list["items"].as_array().context("a list has items")?;
        if pods.len() >= wanted {
            break pods.clone();
        }
        let time_limit = TIME_LIMIT_PER_POD * u32::try_from(wanted)?;
        ensure!(start.elapsed() < time_limit, "{} of {wanted} pods came in {time_limit:?}", pods.len());
        std::thread::sleep(Duration::from_secs(1));
    };
    let bare: Vec<&Value> = pods.iter().filter(|pod| env_names(pod) != COMPLETE).collect();
    println!(
        "{} pods came in {:.0?}, {} of them without their memory",
        pods.len(),
        start.elapsed(),
        bare.len()
    );
    ensure!(bare.is_empty(), "{}", bare[0]);
    Ok(())
}
