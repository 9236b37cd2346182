//! Eleven faults of an installation, one after the other in an order that a script chose: doctor's first line names the cause
//! with the command that mends it, and its exit code is 1. Where the command can be run here, it is, and mends it.

use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    fixture::Fixture,
    installed::{MANIFESTS, MEMGATE, documents, install_crds, memgate},
    knowledge::{break_ark, mend_ark},
    request::create,
    samples::{agent, memory},
    shell,
    support::{
        certs::Authority,
        control_plane::ControlPlane,
        wait,
        webhook::{Endpoint, Identity, Serve, Webhook},
    },
};

const HOME: &str = "memgate-system";

/// The entry that calls memgate by its Service, so that the installation is one of this cluster; no probe asks it. The others
/// call replicas by URL: no proxy leads from a Service to a process here.
const BY_SERVICE: &str = "kagent.deletions.memgate.dev";

/// An installation that works, with two replicas.
struct Scene {
    cluster: ControlPlane,
    identity: Identity,
    replicas: Vec<Webhook>,
    pods: Vec<String>,
}

/// A fault: its name, what the first line says, how it is made, and how it ends where the printed command cannot end it here.
struct Fault {
    says: &'static str,
    make: fn(&mut Scene) -> Result<()>,
    end: Option<fn(&mut Scene) -> Result<()>>,
}

const FAULTS: [Fault; 11] = [
    Fault { says: "fail[paused]: Namespace default: memgate is paused", make: pause, end: None },
    Fault { says: "fail[policies]: MemoryPolicy nothing: it denies each of the ", make: deny_all, end: None },
    Fault {
        says: "fail[service]: Service memgate-system/memgate: selector",
        make: select_nothing,
        end: None,
    },
    Fault {
        says: "fail[ca-bundle]: MutatingWebhookConfiguration memgate: the caBundle is of a CA",
        make: other_ca,
        end: Some(own_ca),
    },
    Fault {
        says: "fail[rights]: ServiceAccount memgate-system/memgate: it may not get memories.ark.mckinsey.com",
        make: take_right,
        end: None,
    },
    Fault {
        says: "fail[replicas]: Deployment memgate-system/memgate: ValidatingWebhookConfiguration other of somebody else",
        make: blocked,
        end: Some(unblock),
    },
    Fault { says: "fail[webhooks]: MutatingWebhookConfiguration memgate: ", make: leave_out, end: None },
    Fault {
        says: "fail[replicas]: Deployment memgate-system/memgate: the ResourceQuota small lets no more pods in",
        make: quota,
        end: Some(after_quota),
    },
    Fault {
        says: "fail[replicas]: Deployment memgate-system/memgate: the Deployment has a flag that memgate",
        make: wrong_flag,
        end: Some(roll_out),
    },
    Fault { says: "fail[unread]: ", make: no_conversion, end: Some(conversion) },
    Fault { says: "fail[replicas]: Pod memgate-system/", make: one_is_silent, end: Some(hears_again) },
];

pub(super) fn causes(_: &Fixture) -> Result<()> {
    let mut scene = Scene::new()?;
    wait::until("nothing to be wrong", || Ok(scene.doctor()?.0.is_none().then_some(())))
        .with_context(|| format!("{:?}", scene.doctor()))?;
    // A step that is prime to their number reaches each once; the day chooses where it begins.
    let start = usize::try_from(std::process::id())? % FAULTS.len();
    for turn in 0..FAULTS.len() {
        let Fault { says, make, end } = &FAULTS[(start + turn * 7) % FAULTS.len()];
        make(&mut scene).with_context(|| format!("to make {says}"))?;
        let help = wait::until(says, || {
            let (first, code) = scene.doctor()?;
            let Some((line, help)) = first else { return Ok(None) };
            Ok((line.starts_with(says) && code == Some(1)).then_some(help))
        })
        .with_context(|| scene.text().unwrap_or_default())?;
        ensure!(help.contains("kubectl "), "{says}: no command in {help:?}");
        println!("{says} …\n  {help}");
        shell::run(&scene.cluster, &help)?;
        if let Some(end) = end {
            end(&mut scene)?;
        }
        wait::until(&format!("{help} to mend it"), || Ok(scene.doctor()?.0.is_none().then_some(())))
            .with_context(|| format!("{:?}", scene.doctor()))?;
    }
    Ok(())
}

impl Scene {
    fn new() -> Result<Self> {
        let cluster = ControlPlane::start()?;
        install_crds(&cluster)?;
        cluster.kubectl(&["create", "namespace", HOME])?.ok()?;
        for object in [memory("notes"), agent("scout", "notes")] {
            cluster.block_on(create(&cluster.client(), "default", &object, ""))?.object()?;
        }
        let install = |parts: &[&str]| -> Result<Vec<Value>> {
            Ok(documents(&memgate(&[&MANIFESTS[..], parts].concat())?))
        };
        for object in install(&["--only", "rbac", "--only", "workload"])? {
            cluster.admin().apply(&object.to_string())?;
        }
        let mut scene = Self { cluster, identity: Identity::new()?, replicas: Vec::new(), pods: Vec::new() };
        scene.start_replicas()?;
        scene.register(scene.identity.ca())?;
        Ok(scene)
    }

    /// Reports for each pod of the Deployment what a kubelet would, and starts a replica in it.
    fn start_replicas(&mut self) -> Result<()> {
        let kubeconfig = self.cluster.service_account_kubeconfig(HOME, "memgate")?;
        self.pods = self.two_pods()?;
        self.replicas.clear();
        for pod in self.pods.clone() {
            let uid = self.get(&["pod", &pod, "-n", HOME])?["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let serve = Serve::new(MEMGATE).kubeconfig(&kubeconfig).identity(&self.identity);
            let serve = serve.env("POD_NAME", &pod).env("POD_UID", uid).env("POD_IP", "127.0.0.1");
            self.replicas.push(serve.arg("--namespace=memgate-system").ready()?);
        }
        Ok(())
    }

    fn two_pods(&self) -> Result<Vec<String>> {
        let pods = wait::until("two pods of the newest form", || {
            let deployment = self.get(&["deployment", "memgate", "-n", HOME])?;
            let pods = self.get(&["pods", "-n", HOME, "-l", "app.kubernetes.io/name=memgate"])?;
            let names = pods["items"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|pod| pod["metadata"]["name"].as_str());
            let names: Vec<String> = names.map(str::to_owned).collect();
            for name in &names {
                self.report_ready(name)?;
            }
            let status = &deployment["status"];
            let is_done =
                status["availableReplicas"] == 2 && status["updatedReplicas"] == 2 && names.len() == 2;
            Ok(is_done.then_some(names))
        })?;
        Ok(pods)
    }

    fn report_ready(&self, pod: &str) -> Result<()> {
        let condition =
            json!({"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"});
        let status = json!({"status": {"phase": "Running", "conditions": [condition]}}).to_string();
        // It may be gone: a rollout takes the old ones away.
        self.cluster.kubectl(&[
            "patch", "pod", pod, "-n", HOME, "--subresource=status", "--type=merge", "-p", &status,
        ])?;
        Ok(())
    }

    fn get(&self, args: &[&str]) -> Result<Value> {
        let output = self.cluster.kubectl(&[&["get", "-o", "json"][..], args].concat())?.ok()?;
        Ok(serde_json::from_str(&output.stdout)?)
    }

    /// The entries as memgate prints them, at the first replica, with a caBundle of this authority.
    fn register(&self, ca: &str) -> Result<()> {
        let endpoint = Endpoint::new(self.replicas[0].addresses().listen, ca);
        for mut configuration in documents(&memgate(&["manifests", "--only", "webhooks"])?) {
            let path =
                if configuration["kind"] == "MutatingWebhookConfiguration" { "/mutate" } else { "/validate" };
            for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
                let by_url = endpoint.client_config(path);
                if webhook["name"] == BY_SERVICE {
                    webhook["clientConfig"]["caBundle"] = by_url["caBundle"].clone();
                } else {
                    webhook["clientConfig"] = by_url;
                }
            }
            let kind = configuration["kind"].as_str().unwrap_or_default().to_lowercase();
            let entries = json!({"webhooks": configuration["webhooks"]}).to_string();
            let known = self.cluster.kubectl(&["patch", &kind, "memgate", "--type=merge", "-p", &entries])?;
            if !known.status.success() {
                self.cluster.admin().apply(&configuration.to_string())?;
            }
        }
        Ok(())
    }

    fn apply(&self, object: &Value) -> Result<()> {
        self.cluster.admin().apply(&object.to_string())?;
        Ok(())
    }

    fn quota_status(&self, status: &Value) -> Result<()> {
        let patch = json!({"status": status}).to_string();
        self.kubectl(&[
            "patch", "resourcequota", "small", "-n", HOME, "--subresource=status", "--type=merge", "-p",
            &patch,
        ])
    }

    fn kubectl(&self, args: &[&str]) -> Result<()> {
        self.cluster.kubectl(args)?.ok().map(|_| ())
    }

    fn patch(&self, object: &[&str], patch: &Value) -> Result<()> {
        let patch = patch.to_string();
        self.kubectl(&[&["patch"][..], object, &["--type=json", "-p", &patch]].concat())
    }

    fn run(&self) -> Result<Output> {
        let mut command = Command::new(MEMGATE);
        command.args(["doctor", "--kubeconfig"]).arg(self.cluster.admin_kubeconfig()).env_clear();
        command.output().context("memgate does not start")
    }

    fn text(&self) -> Result<String> {
        Ok(String::from_utf8(self.run()?.stdout)?)
    }

    /// The first failure as people read it, with its command, and the exit code.
    #[expect(clippy::type_complexity, reason = "a line, its help, and a code")]
    fn doctor(&self) -> Result<(Option<(String, String)>, Option<i32>)> {
        let output = self.run()?;
        let text = String::from_utf8(output.stdout)?;
        let mut lines = text.lines();
        let first = lines.next().filter(|line| line.starts_with("fail[")).map(str::to_owned);
        let help = lines.next().and_then(|line| line.strip_prefix("  help: ")).unwrap_or_default().to_owned();
        ensure!(first.is_some() == (output.status.code() == Some(1)), "{text}");
        Ok((first.map(|line| (line, help)), output.status.code()))
    }
}

fn pause(scene: &mut Scene) -> Result<()> {
    scene.apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "off", "namespace": HOME},
        "rules": [{"apiGroups": ["memgate.dev"], "resources": ["webhooks"], "verbs": ["skip"], "resourceNames": ["default"]}],
    }))?;
    scene.kubectl(&[
        "create",
        "rolebinding",
        "off",
        "--role=off",
        "--serviceaccount=memgate-system:memgate-paused",
        "-n",
        HOME,
    ])
}

fn deny_all(scene: &mut Scene) -> Result<()> {
    scene.apply(&json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "metadata": {"name": "nothing"},
        "spec": {"actions": {"admission": "deny"}, "rules": [{"id": "none", "labels": {"required": ["no-object-has-this"]}}]},
    }))
}

fn select_nothing(scene: &mut Scene) -> Result<()> {
    scene.patch(
        &["service", "memgate", "-n", HOME],
        &json!([{"op": "add", "path": "/spec/selector", "value": {"app": "gone"}}]),
    )
}

fn other_ca(scene: &mut Scene) -> Result<()> {
    scene.register(&Authority::new("another CA")?.pem())
}

/// What memgate does by itself where it makes the certificates.
fn own_ca(scene: &mut Scene) -> Result<()> {
    scene.start_replicas()?;
    scene.register(scene.identity.ca())
}

fn take_right(scene: &mut Scene) -> Result<()> {
    let role = scene.get(&["clusterrole", "memgate"])?;
    let rules = role["rules"]
        .as_array()
        .context("rules")?
        .iter()
        .filter(|rule| rule["apiGroups"] != json!(["ark.mckinsey.com"]));
    let rules: Vec<&Value> = rules.collect();
    scene.patch(&["clusterrole", "memgate"], &json!([{"op": "replace", "path": "/rules", "value": rules}]))
}

/// A webhook of somebody else that nobody answers for, and a pod that has to be made anew.
fn blocked(scene: &mut Scene) -> Result<()> {
    scene.apply(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "other"},
        "webhooks": [{
            "name": "pods.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "timeoutSeconds": 1, "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        }],
    }))?;
    std::thread::sleep(std::time::Duration::from_secs(2));
    lose_a_pod(scene)
}

fn lose_a_pod(scene: &Scene) -> Result<()> {
    scene.kubectl(&["delete", "pod", &scene.pods[1], "-n", HOME, "--grace-period=0", "--force"])
}

fn unblock(scene: &mut Scene) -> Result<()> {
    scene.start_replicas()?;
    scene.register(scene.identity.ca())?;
    scene.kubectl(&["delete", "validatingwebhookconfiguration", "other"])
}

fn leave_out(scene: &mut Scene) -> Result<()> {
    let configuration = scene.get(&["mutatingwebhookconfiguration", "memgate"])?;
    let entries = configuration["webhooks"].as_array().context("entries")?.iter();
    let index = entries
        .enumerate()
        .find(|(_, entry)| entry["name"] == "arkonis.pods.memgate.dev")
        .context("an entry")?
        .0;
    scene.patch(
        &["mutatingwebhookconfiguration", "memgate"],
        &json!([{"op": "add", "path": format!("/webhooks/{index}/matchConditions/-"), "value": {
            "name": "not-team-a", "expression": "request.namespace != 'team-a'",
        }}]),
    )
}

fn quota(scene: &mut Scene) -> Result<()> {
    scene.apply(&json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small", "namespace": HOME},
        "spec": {"hard": {"pods": "1"}},
    }))?;
    // No controller counts here.
    scene.quota_status(&json!({"hard": {"pods": "1"}, "used": {"pods": "2"}}))?;
    lose_a_pod(scene)
}

fn after_quota(scene: &mut Scene) -> Result<()> {
    ensure!(
        scene.get(&["resourcequota", "small", "-n", HOME])?["spec"]
            .get("hard")
            .is_none_or(|hard| *hard == json!({}))
    );
    scene.quota_status(&json!({"hard": null, "used": null}))?;
    scene.start_replicas()?;
    scene.register(scene.identity.ca())
}

/// A rollout of which the new pod ends at once, as the kubelet would say.
fn wrong_flag(scene: &mut Scene) -> Result<()> {
    scene.patch(
        &["deployment", "memgate", "-n", HOME],
        &json!([{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--no-such-flag=1"}]),
    )
}

fn roll_out(scene: &mut Scene) -> Result<()> {
    scene.start_replicas()?;
    scene.register(scene.identity.ca())
}

fn no_conversion(scene: &mut Scene) -> Result<()> {
    scene.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ark-system"}}))?;
    scene.apply(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "ark", "namespace": "ark-system"},
        "spec": {
            "selector": {"matchLabels": {"app": "ark"}},
            "template": {
                "metadata": {"labels": {"app": "ark"}},
                "spec": {"containers": [{"name": "ark", "image": "registry.invalid/ark"}]},
            },
        },
    }))?;
    break_ark(&scene.cluster)
}

fn conversion(scene: &mut Scene) -> Result<()> {
    mend_ark(&scene.cluster)
}

/// The second replica has been silent for an hour, by its Lease.
fn one_is_silent(scene: &mut Scene) -> Result<()> {
    scene.replicas.truncate(1);
    scene.patch(
        &["lease", &scene.pods[1], "-n", HOME],
        &json!([{"op": "replace", "path": "/spec/renewTime", "value": "2026-01-01T00:00:00.000000Z"}]),
    )
}

fn hears_again(scene: &mut Scene) -> Result<()> {
    scene.start_replicas()?;
    scene.register(scene.identity.ca())
}
