//! A cluster in which memgate is installed as a user would.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use crate::kubelet::{self, Kubelet, MEMGATE, Machine, NAMESPACE};
use crate::network::Network;
use crate::support::control_plane::ControlPlane;
use crate::support::kubectl::Output;
use crate::support::scratch::Scratch;
use crate::support::{tools, wait};

/// The definitions of memgate's own kinds.
const DEFINITIONS: [&str; 2] =
    ["memorypolicies.policy.memgate.dev", "memorypolicyexemptions.policy.memgate.dev"];

/// Everything that memgate installs in a cluster, by kind.
const INSTALLED: &str = "mutatingwebhookconfigurations,validatingwebhookconfigurations,\
    validatingadmissionpolicies,validatingadmissionpolicybindings,\
    mutatingadmissionpolicies,mutatingadmissionpolicybindings,clusterroles,clusterrolebindings";

/// The longest that a script may take, in seconds.
const COMMAND_TIMEOUT_SECONDS: &str = "300";

/// A cluster with a network for its Services and a stand-in for a kubelet.
pub(crate) struct Cluster {
    // Dropped in this order: processes, then what they talk to.
    kubelet: Kubelet,
    control_plane: Arc<ControlPlane>,
    _network: Network,
    programs: Scratch,
}

impl Cluster {
    /// Starts it, with the CRDs of all platforms.
    pub(crate) fn start() -> Result<Self> {
        let network = Network::start()?;
        let control_plane = Arc::new(ControlPlane::start_behind(network.address)?);
        let machine = Machine::default();
        kubelet::join(&control_plane, machine.logs.serve(control_plane.authority())?)?;
        let kubelet = Kubelet::start(Arc::clone(&control_plane), network.endpoints.clone(), machine);
        let programs = Scratch::new("programs")?;
        for (name, program) in [
            ("memgate", PathBuf::from(MEMGATE)),
            ("kubectl", control_plane.admin().program),
            ("helm", tools::helm()?),
        ] {
            std::os::unix::fs::symlink(program, programs.path().join(name))?;
        }
        let cluster = Self { kubelet, control_plane, _network: network, programs };
        cluster
            .sh("memgate crds | kubectl apply -f - && kubectl wait --for=condition=Established crd --all")?
            .ok()?;
        Ok(cluster)
    }

    /// Runs a script as a user would type it, in a copy of the repository's directory.
    pub(crate) fn sh(&self, script: &str) -> Result<Output> {
        let home = self.programs.path().join("home");
        std::fs::create_dir_all(&home)?;
        let output = Command::new("timeout")
            .args(["--kill-after=10", COMMAND_TIMEOUT_SECONDS, "/bin/bash", "-euo", "pipefail", "-c", script])
            .env_clear()
            .env("HOME", &home)
            .env("KUBECONFIG", self.control_plane.admin_kubeconfig())
            .env("AUDIT_LOG", self.control_plane.audit_log_file())
            .env("TMPDIR", &home)
            .env("PATH", format!("{}:/usr/bin:/bin", self.programs.path().display()))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .context("failed to start bash")?;
        Ok(Output {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Takes away whatever there is of memgate, without waiting for callers to leave.
    pub(crate) fn clear(&self) -> Result<()> {
        let _hurry = self.kubelet.hurry();
        let names = self.control_plane.kubectl(&["get", INSTALLED, "-o", "name"])?.ok()?.stdout;
        for name in names.lines().filter(|name| name.contains("/memgate")) {
            self.control_plane.kubectl(&["delete", name, "--ignore-not-found"])?.ok()?;
        }
        // Helm takes over nothing that it has not installed.
        let definitions = [&["delete", "crd", "--ignore-not-found"], &DEFINITIONS[..]].concat();
        self.control_plane.kubectl(&definitions)?.ok()?;
        self.control_plane.kubectl(&["delete", "namespace", "team-a", "--ignore-not-found"])?.ok()?;
        // Nothing here collects what belongs to something that is gone.
        let everything = "deployments,replicasets,pods,services,poddisruptionbudgets,roles,rolebindings,secrets,\
            configmaps,networkpolicies,resourcequotas,serviceaccounts";
        let delete = ["delete", everything, "--all", "-n", NAMESPACE, "--wait=false", "--ignore-not-found"];
        self.control_plane.kubectl(&delete)?.ok()?;
        wait::until("memgate's pods to go", || {
            let pods = self.control_plane.kubectl(&["get", "pods", "-n", NAMESPACE, "-o", "name"])?.ok()?;
            Ok(pods.stdout.trim().is_empty().then_some(()))
        })
    }

    /// Installs memgate as its own command does with these flags, and waits until it answers.
    pub(crate) fn install(&self, flags: &str) -> Result<()> {
        let image = "--image registry.example.com/memgate:0.1.0";
        self.sh(&format!("memgate manifests {image} {flags} | kubectl apply -f -"))?.ok()?;
        self.wait()?;
        wait::until("memgate's Service to have replicas", || {
            let slices = ["get", "endpointslices", "-n", NAMESPACE, "-o", "json"];
            let slices = self.control_plane.kubectl(&slices)?.ok()?.stdout;
            Ok(slices.contains("\"ready\": true").then_some(()))
        })
    }

    /// Waits until memgate answers the apiserver.
    pub(crate) fn wait(&self) -> Result<()> {
        let pod = "kubectl run probe --image=example.org/none --labels=memgate.dev/inject=required --restart=Never --dry-run=server";
        let mut last = String::new();
        let answered = wait::until("memgate to answer", || {
            last = self.sh(pod)?.stderr;
            Ok(last.contains("the pod requires its memory").then_some(()))
        });
        answered.with_context(|| format!("kubectl says: {last}"))
    }

    /// That nothing of memgate is left that could get into the way of a pod.
    pub(crate) fn ensure_nothing_is_left(&self) -> Result<()> {
        let names = self.control_plane.kubectl(&["get", INSTALLED, "-o", "name"])?.ok()?.stdout;
        let left: Vec<&str> = names.lines().filter(|name| name.contains("/memgate")).collect();
        ensure!(left.is_empty(), "there is {left:?}");
        let definitions = self.control_plane.kubectl(&["get", "crd", "-o", "name"])?.ok()?.stdout;
        let left: Vec<&str> = DEFINITIONS.into_iter().filter(|name| definitions.contains(name)).collect();
        ensure!(left.is_empty(), "there is {left:?}");
        Ok(())
    }

    /// What there is, for the text of a failure.
    pub(crate) fn state(&self) -> String {
        let seen = self.control_plane.kubectl(&[
            "get",
            "deployments,pods,mutatingwebhookconfigurations,events.v1.",
            "-n",
            NAMESPACE,
        ]);
        seen.map_or_else(|error| format!("{error:#}"), |output| output.stdout)
    }
}
