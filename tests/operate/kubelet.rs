//! Runs memgate's pods as a kubelet would, as far as memgate can tell: each pod of the Deployment is a
//! process with the Deployment's own arguments and the account's own token, ready when its probe says
//! so, ended by SIGTERM when the pod is deleted, and gone when the process is.
//!
//! What differs: it listens on loopback, finds the cluster by a kubeconfig, what would be mounted lies in
//! a directory of its own, and it has less time to end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::pod_logs::PodLogs;
use crate::support::balancer::Endpoints;
use crate::support::control_plane::ControlPlane;
use crate::support::process::Process;
use crate::support::scratch::Scratch;
use crate::support::wait;

/// The binary under test.
pub(crate) const MEMGATE: &str = env!("CARGO_BIN_EXE_memgate");
/// The namespace whose pods it runs.
pub(crate) const NAMESPACE: &str = "memgate-system";
/// The machine that pods are on.
const NODE: &str = "stand-in";
/// How often it looks; a real one learns of changes at once, and probes every few seconds.
const SYNC_INTERVAL: Duration = Duration::from_millis(250);

/// What a machine is like.
pub(crate) struct Machine {
    /// The program of each image; the others are the binary under test.
    pub(crate) images: BTreeMap<String, PathBuf>,
    /// How long a pod may take to end. A real one has two minutes, as the last calls come on connections
    /// that an apiserver keeps for 90 s; `tests/apiserver/faults` counts those.
    pub(crate) termination_delay: Duration,
    /// The output of its pods.
    pub(crate) logs: PodLogs,
}

impl Default for Machine {
    fn default() -> Self {
        Self { images: BTreeMap::new(), termination_delay: Duration::from_secs(5), logs: PodLogs::default() }
    }
}

/// A running stand-in, ended on drop, with all processes that it has started.
pub(crate) struct Kubelet {
    stop: Arc<AtomicBool>,
    hurry: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// See [`Kubelet::hurry`].
pub(crate) struct Hurry(Arc<AtomicBool>);

impl Drop for Hurry {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// One pod that runs.
struct Running {
    process: Process,
    listen: SocketAddr,
    health: SocketAddr,
    ready: bool,
    /// When it got the signal to end.
    ending: Option<Instant>,
    _files: Scratch,
}

impl Kubelet {
    /// Runs what there is, from now on, and tells `endpoints` what is ready.
    pub(crate) fn start(cluster: Arc<ControlPlane>, endpoints: Endpoints, machine: Machine) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let hurry = Arc::new(AtomicBool::new(false));
        let (stopped, hurried) = (Arc::clone(&stop), Arc::clone(&hurry));
        let run = move || {
            let (mut running, mut known) = (BTreeMap::new(), Vec::new());
            while !stopped.load(Ordering::Acquire) {
                if let Err(error) = look(&cluster, &machine, &mut running, hurried.load(Ordering::Acquire)) {
                    eprintln!("the stand-in for a kubelet: {error:#}");
                }
                let ready = running.values().filter(|pod: &&Running| pod.ready && pod.ending.is_none());
                let ready: Vec<SocketAddr> = ready.map(|pod| pod.listen).collect();
                if ready != known {
                    match publish(&cluster, &ready) {
                        Ok(()) => known.clone_from(&ready),
                        Err(error) => eprintln!("the stand-in for a kubelet: {error:#}"),
                    }
                }
                endpoints.set(ready);
                thread::sleep(SYNC_INTERVAL);
            }
        };
        Self { stop, hurry, thread: Some(thread::spawn(run)) }
    }

    /// For as long as this is kept, pods that are deleted are killed.
    pub(crate) fn hurry(&self) -> Hurry {
        self.hurry.store(true, Ordering::Release);
        Hurry(Arc::clone(&self.hurry))
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic in there was printed.
            let _ended = thread.join();
        }
    }
}

fn look(
    cluster: &ControlPlane,
    machine: &Machine,
    running: &mut BTreeMap<String, Running>,
    hurry: bool,
) -> Result<()> {
    let list = cluster.kubectl(&[
        "get",
        "pods",
        "-n",
        NAMESPACE,
        "-l",
        "app.kubernetes.io/name=memgate",
        "-o",
        "json",
    ])?;
    let list: Value = serde_json::from_str(&list.ok()?.stdout)?;
    let pods = list["items"].as_array().context("no list")?;
    for pod in pods {
        // What is wrong with one pod is none of the others' business; a real kubelet tries again, too.
        if let Err(error) = attend(cluster, machine, running, pod, hurry) {
            eprintln!("the stand-in for a kubelet: {error:#}");
        }
    }
    let names: Vec<&str> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
    running.retain(|name, _| names.contains(&name.as_str()));
    Ok(())
}

fn attend(
    cluster: &ControlPlane,
    machine: &Machine,
    running: &mut BTreeMap<String, Running>,
    pod: &Value,
    hurry: bool,
) -> Result<()> {
    let name = pod["metadata"]["name"].as_str().context("a pod without a name")?;
    let deleted = pod["metadata"].get("deletionTimestamp").is_some();
    match running.get_mut(name) {
        None if deleted => gone(cluster, name),
        None => {
            let started = run(cluster, machine, pod, name)?;
            running.insert(name.to_owned(), started);
            bind(cluster, pod, name)
        }
        Some(known) if deleted => {
            let since = known.ending.map(|since| since.elapsed());
            match since {
                None if !hurry => {
                    known.ending = Some(Instant::now());
                    known.process.signal("TERM")?;
                }
                Some(since) if !hurry && since < machine.termination_delay => {}
                _ => drop(known.process.kill()?),
            }
            if known.process.exited()?.is_some() {
                gone(cluster, name)?;
                running.remove(name);
            }
            Ok(())
        }
        Some(known) => probe(cluster, known, name),
    }
}

/// Has the cluster know the machine, and its port for logs: what is on an unknown one is behind no Service.
pub(crate) fn join(cluster: &ControlPlane, port: u16) -> Result<()> {
    let status = json!({
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    });
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "status": status});
    cluster.admin().run_with_input(&["create", "-f", "-"], &node.to_string())?.ok()?;
    Ok(())
}

/// Puts a pod on the machine: only then does its deletion wait for it.
fn bind(cluster: &ControlPlane, pod: &Value, name: &str) -> Result<()> {
    if pod["spec"].get("nodeName").is_some() {
        return Ok(());
    }
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
    });
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}/binding");
    cluster.admin().run_with_input(&["create", "--raw", &path, "-f", "-"], &binding.to_string())?.ok()?;
    Ok(())
}

fn gone(cluster: &ControlPlane, name: &str) -> Result<()> {
    let delete = [
        "delete", "pod", name, "-n", NAMESPACE, "--grace-period=0", "--force", "--ignore-not-found",
        "--wait=false",
    ];
    cluster.kubectl(&delete)?.ok()?;
    Ok(())
}

fn run(cluster: &ControlPlane, machine: &Machine, pod: &Value, name: &str) -> Result<Running> {
    let spec = &pod["spec"];
    let account = spec["serviceAccountName"].as_str().context("a pod without an account")?;
    let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, account)?;
    let files = Scratch::new("pod")?;
    let mounts = mounts(cluster, spec, &files)?;
    let args = spec["containers"][0]["args"].as_array().context("no arguments")?;
    let args: Vec<String> =
        args.iter().filter_map(Value::as_str).map(|arg| with_local_paths(arg, &mounts)).collect();
    let image = spec["containers"][0]["image"].as_str().unwrap_or_default();
    let program = machine.images.get(image).map_or_else(|| Path::new(MEMGATE), PathBuf::as_path);
    let (process, listen, health) = wait::with_free_ports(|[listen, health]| {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let (listen, health) = (at(listen), at(health));
        let mut command = Command::new(program);
        command.env("KUBECONFIG", &kubeconfig).current_dir(files.path());
        for arg in &args {
            match arg.split_once('=') {
                Some(("--listen", _)) => command.arg(format!("--listen={listen}")),
                Some(("--health", _)) => command.arg(format!("--health={health}")),
                _ => command.arg(arg),
            };
        }
        let mut process = Process::start("memgate", &command, &files.path().join("log"))?;
        process.until("memgate to answer probes", || Ok(wait::http_get(health, "/livez")))?;
        Ok((process, listen, health))
    })?;
    machine.logs.add(name, files.path().join("log"));
    Ok(Running { process, listen, health, ready: false, ending: None, _files: files })
}

/// The directories that stand for those of the pod: what Secrets and ConfigMaps hold, in files.
fn mounts(cluster: &ControlPlane, spec: &Value, files: &Scratch) -> Result<Vec<(String, PathBuf)>> {
    let mut mounts = Vec::new();
    for mount in spec["containers"][0]["volumeMounts"].as_array().into_iter().flatten() {
        let volumes = spec["volumes"].as_array().into_iter().flatten();
        let volume =
            volumes.into_iter().find(|volume| volume["name"] == mount["name"]).context("no volume")?;
        let source = volume.pointer("/secret/secretName").map(|name| ("secret", name));
        let Some((kind, name)) = source.or_else(|| Some(("configmap", volume.pointer("/configMap/name")?)))
        else {
            continue;
        };
        let name = name.as_str().context("a volume without a name")?;
        let object = wait::until("what is mounted", || {
            let object =
                cluster.kubectl(&["get", kind, name, "-n", NAMESPACE, "-o", "json", "--ignore-not-found"])?;
            Ok(serde_json::from_str::<Value>(&object.ok()?.stdout).ok())
        })?;
        let directory = files.path().join(name);
        std::fs::create_dir_all(&directory)?;
        for (key, value) in object["data"].as_object().into_iter().flatten() {
            let text = value.as_str().context("no text")?;
            let bytes =
                if kind == "secret" { BASE64_STANDARD.decode(text)? } else { text.as_bytes().to_vec() };
            std::fs::write(directory.join(key), bytes)?;
        }
        let at = mount["mountPath"].as_str().context("a mount without a path")?;
        mounts.push((at.to_owned(), directory));
    }
    Ok(mounts)
}

/// The argument with the directory on this machine in place of each mount path.
fn with_local_paths(arg: &str, mounts: &[(String, PathBuf)]) -> String {
    let replace = |arg: String, (at, directory): &(String, PathBuf)| arg.replace(at, &show(directory));
    mounts.iter().fold(arg.to_owned(), replace)
}

/// Tells the cluster which pods are ready behind the Service, as a controller for EndpointSlices would.
/// Each has an address of its own: those of loopback are refused.
fn publish(cluster: &ControlPlane, ready: &[SocketAddr]) -> Result<()> {
    let endpoints: Vec<Value> = (1..=ready.len())
        .map(|number| json!({"addresses": [format!("10.0.0.{number}")], "conditions": {"ready": true}}))
        .collect();
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": "memgate-stand-in", "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": "memgate"},
        },
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": "https", "port": 10250, "protocol": "TCP"}],
    });
    let namespace = cluster.kubectl(&["get", "namespace", NAMESPACE, "-o", "name", "--ignore-not-found"])?;
    // Without its namespace there is no Service either.
    if !namespace.ok()?.stdout.trim().is_empty() {
        cluster.admin().run_with_input(&["apply", "-f", "-"], &slice.to_string())?.ok()?;
    }
    Ok(())
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

/// Asks the pod whether it is ready, and notes it when that has changed.
fn probe(cluster: &ControlPlane, pod: &mut Running, name: &str) -> Result<()> {
    if let Some(status) = pod.process.exited()? {
        eprintln!("{name} has ended ({status}):\n{}", pod.process.log_tail());
    }
    let ready = wait::http_get(pod.health, "/readyz").is_some_and(|(status, _)| status == 200);
    if ready == pod.ready {
        return Ok(());
    }
    let condition = |kind: &str| json!({"type": kind, "status": if ready { "True" } else { "False" }, "lastTransitionTime": "2020-01-01T00:00:00Z"});
    // No two pods of one cluster have the same; nothing ever connects there.
    let address = format!("10.1.{}.{}", pod.health.port() >> 8, pod.health.port() & 0xff);
    let status = json!({"status": {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [condition("Ready"), condition("ContainersReady"), {"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{
            "name": "memgate", "image": "memgate", "imageID": "", "ready": ready, "started": true,
            "restartCount": 0, "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}},
        }],
    }});
    let patch = [
        "patch",
        "pod",
        name,
        "-n",
        NAMESPACE,
        "--subresource=status",
        "--type=merge",
        "-p",
        &status.to_string(),
    ];
    cluster.kubectl(&patch)?.ok()?;
    pod.ready = ready;
    Ok(())
}
