//! Each directory of examples/, applied as it is, time and again: each time in other namespaces, as if it were
//! the first time.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::Value;

use super::{Delays, created};
use crate::{
    fixture::{Fixture, Trial},
    order_cluster::OrderCluster,
    request::send,
    support::{scratch::Scratch, wait},
};

/// How often each directory is applied.
const TIMES: usize = 20;

/// A family whose pods need their memory.
struct Example {
    family: &'static str,
    /// The namespaces that get other names; what is in `sympozium-system` is for all namespaces.
    namespaces: &'static [&'static str],
    /// How many pods its workloads make.
    pods: usize,
}

const EXAMPLES: [Example; 4] = [
    Example { family: "arkonis", namespaces: &["team-a"], pods: 2 },
    Example { family: "ark", namespaces: &["team-a"], pods: 2 },
    Example { family: "orloj", namespaces: &["acme", "orloj"], pods: 1 },
    Example { family: "sympozium", namespaces: &["lab", "media", "ops"], pods: 2 },
];

pub(super) fn trials() -> Vec<Trial> {
    let of_family = |example: &'static Example| {
        let name = format!("order::examples::{}_gets_its_memory_when_applied_as_it_is", example.family);
        Trial::new(name, move |fixture| apply_often(fixture, example))
    };
    let every = Trial::new("order::examples::all_can_be_applied", apply_once);
    EXAMPLES.iter().map(of_family).chain([every]).collect()
}

fn directory(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(family)
}

fn apply(order: &OrderCluster, directory: &Path) -> Result<()> {
    let path = directory.display().to_string();
    // Agents that come before their memories draw warnings.
    order.cluster.kubectl(&["apply", "-f", &path])?.ok().with_context(|| path.clone())?;
    Ok(())
}

/// The very files. Where two families have a namespace in common, the second one finds it there.
fn apply_once(fixture: &Fixture) -> Result<()> {
    let order = fixture.order()?;
    memgate_platforms::ALL.iter().try_for_each(|family| apply(order, &directory(family.name)))
}

fn apply_often(fixture: &Fixture, example: &Example) -> Result<()> {
    let order = fixture.order()?;
    let runs: Vec<Run> = (0..TIMES).map(|number| Run::new(example, number)).collect::<Result<_>>()?;
    runs.iter().try_for_each(|run| apply(order, run.directory.path()))?;
    let mut delays = Delays::default();
    runs.iter().try_for_each(|run| run.check(order, example, &mut delays))?;
    delays.finish(&format!("examples/{}, {TIMES} times", example.family))
}

/// A copy of a directory with other namespaces.
struct Run {
    directory: Scratch,
    namespaces: Vec<String>,
}

impl Run {
    fn new(example: &Example, number: usize) -> Result<Self> {
        let copy = Scratch::new("example")?;
        let renamed = |namespace: &&str| format!("{namespace}-{}-{number}", example.family);
        for file in fs::read_dir(directory(example.family))? {
            let path = file?.path();
            let mut text = fs::read_to_string(&path)?;
            for namespace in example.namespaces {
                text = rename(&text, namespace, &renamed(namespace));
            }
            let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
            copy.write(&name, &text)?;
        }
        Ok(Self { directory: copy, namespaces: example.namespaces.iter().map(renamed).collect() })
    }

    /// That every pod of a controller has its memory, and how long after the first object it came.
    fn check(&self, order: &OrderCluster, example: &Example, delays: &mut Delays) -> Result<()> {
        let pods = wait::until(&format!("the pods of {:?}", self.namespaces), || {
            let pods: Result<Vec<_>> = self.namespaces.iter().map(|name| order.pods(name)).collect();
            let pods: Vec<Value> = pods?.into_iter().flatten().collect();
            Ok((pods.len() >= example.pods).then_some(pods))
        })?;
        ensure!(pods.len() == example.pods, "{} pods, not {}", pods.len(), example.pods);
        let namespace = self.namespaces.first().context("there is no namespace")?;
        let path = format!("/api/v1/namespaces/{namespace}");
        let cluster = &order.cluster;
        let first = cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()?;
        for pod in &pods {
            let marker = pod["metadata"]["annotations"]["memgate.dev/injected"].as_str();
            let family = format!("\"family\":\"{}\"", example.family);
            ensure!(marker.is_some_and(|text| text.contains(&family)), "a pod without its memory: {pod}");
            delays.add(created(pod)? - created(&first)?);
        }
        Ok(())
    }
}

/// Gives a namespace another name, wherever an example names it.
fn rename(text: &str, from: &str, to: &str) -> String {
    let line = |line: &str| {
        let is_named = |key: &&str| {
            let value = line.trim_start().strip_prefix(*key).and_then(|rest| rest.split(' ').next());
            value == Some(from)
        };
        match ["namespace: ", "orloj.dev/namespace: ", "name: "].into_iter().find(is_named) {
            Some(key) => line.replacen(&format!("{key}{from}"), &format!("{key}{to}"), 1) + "\n",
            None => line.replace(&format!(" {from}/"), &format!(" {to}/")) + "\n",
        }
    };
    text.lines().map(line).collect()
}
