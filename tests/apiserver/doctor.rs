//! That `memgate doctor` finds what is wrong in a cluster, and nothing where all is well.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{MANIFESTS, MEMGATE, documents, memgate, register},
    request::create,
    samples::{agent, memory, owned_pod, pod},
    support::{
        certs::Authority,
        control_plane::ControlPlane,
        wait,
        webhook::{Endpoint, Serve, push},
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("doctor::finds_nothing_where_all_is_well", healthy),
        Trial::new("doctor::finds_what_is_wrong_with_a_registration", registration),
        Trial::new("doctor::finds_a_webhook_that_does_not_answer", unanswered),
        Trial::new("doctor::finds_pods_without_their_memory", missed),
        Trial::new("doctor::does_not_know_what_is_beyond_its_limit", limited),
        // The agents would be users of the memory of other trials: of a kind that is looked for everywhere.
        Trial::alone("doctor::finds_quotas_that_are_used_up", full_quota),
        Trial::alone("doctor::finds_limits_that_are_too_narrow", narrow_limits),
        Trial::alone("doctor::finds_pods_that_pod_security_refuses", pod_security),
        Trial::alone("doctor::says_where_it_may_not_try_a_pod", no_right_to_try),
        Trial::new("doctor::finds_other_webhooks", other_webhooks),
        Trial::new("doctor::says_which_rights_it_lacks", rights),
        Trial::new("doctor::fails_without_an_apiserver", unreachable),
    ]
}

/// The installation that doctor looks at.
pub(crate) struct DoctorTarget {
    /// The namespace of memgate, and the name of the webhook configurations.
    pub(crate) namespace: String,
}

impl DoctorTarget {
    /// Installs one as `memgate manifests` prints it, except that the apiserver never calls it.
    pub(crate) fn new(cluster: &ControlPlane) -> Result<Self> {
        let namespace = cluster.fresh_namespace("doctor")?;
        let target = Self { namespace };
        let ca = Authority::new("memgate doctor test")?.pem();
        // Other trials have policies that need the component.
        let parts =
            ["--only", "rbac", "--only", "workload", "--only", "webhooks", "--component", "ark-brokers"];
        let names = ["-n", &target.namespace, "--name", &target.namespace];
        for mut object in documents(&memgate(&[&MANIFESTS[..], &names, &parts].concat())?) {
            Self::fit(&mut object, &ca);
            cluster.admin().apply(&object.to_string())?;
        }
        Ok(target)
    }

    /// Gives it a match condition that keeps it out of the other trials.
    fn fit(object: &mut Value, ca: &str) {
        for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["clientConfig"]["caBundle"] = json!(base64(ca));
            push(&mut webhook["matchConditions"], json!({"name": NEVER, "expression": "false"}));
        }
    }

    /// Runs it and reads what it says.
    fn doctor(&self, cluster: &ControlPlane, args: &[&str]) -> Result<Diagnosis> {
        let output = run(
            cluster.admin_kubeconfig(),
            &[&["-n", &self.namespace, "--webhook-configuration", &self.namespace], args].concat(),
        )?;
        Diagnosis::read(&output)
    }

    /// Runs it until it says something: what was changed is not seen at once.
    fn says(&self, cluster: &ControlPlane, id: &str, status: &str, text: &str) -> Result<Value> {
        wait::until(text, || {
            let diagnosis = self.doctor(cluster, &[])?;
            Ok(diagnosis.find(id, status, text).cloned())
        })
    }

    /// Reports what a kubelet would report, and writes the endpoints.
    fn run_replicas(&self, cluster: &ControlPlane) -> Result<()> {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "by-hand", "labels": {"kubernetes.io/service-name": "memgate"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
        });
        cluster.admin().apply_in(&self.namespace, &slice.to_string())?.ok()?;
        let pods = wait::until("the replicas", || {
            let names = cluster.kubectl(&["get", "pods", "-n", &self.namespace, "-o", "name"])?.ok()?.stdout;
            let names: Vec<String> = names.lines().map(str::to_owned).collect();
            Ok((names.len() == 2).then_some(names))
        })?;
        let condition =
            json!({"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"});
        let status = json!({"status": {"phase": "Running", "conditions": [condition]}}).to_string();
        for pod in pods {
            let patch =
                ["patch", &pod, "-n", &self.namespace, "--subresource=status", "--type=merge", "--patch"];
            cluster.kubectl(&[&patch[..], &[&status]].concat())?.ok()?;
        }
        self.says(cluster, "deployment", "ok", "2 of 2 replicas")?;
        Ok(())
    }
}

/// The match condition that no request meets.
const NEVER: &str = "never";

fn base64(text: &str) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    BASE64_STANDARD.encode(text)
}

/// The output of one run.
struct Diagnosis {
    code: Option<i32>,
    json: Value,
}

impl Diagnosis {
    fn read(output: &Output) -> Result<Self> {
        let shown = || format!("{output:?}");
        let json: Value = serde_json::from_slice(&output.stdout).with_context(shown)?;
        let checks = json["checks"].as_array().with_context(shown)?;
        let count = |status: &str| checks.iter().filter(|check| check["status"] == status).count();
        for status in ["ok", "warn", "fail", "unknown"] {
            ensure!(json["summary"][status] == json!(count(status)), "{status}: {json}");
        }
        let code = output.status.code();
        ensure!(code == Some(i32::from(count("fail") > 0)), "{output:?}");
        Ok(Self { code, json })
    }

    fn checks(&self) -> impl Iterator<Item = &Value> {
        self.json["checks"].as_array().into_iter().flatten()
    }

    fn find(&self, id: &str, status: &str, text: &str) -> Option<&Value> {
        let has = |check: &Value, field: &str| check[field].as_str().unwrap_or_default().contains(text);
        self.checks().find(|check| {
            check["id"] == id && check["status"] == status && (has(check, "message") || has(check, "subject"))
        })
    }
}

fn run(kubeconfig: &Path, args: &[&str]) -> Result<Output> {
    let mut command = Command::new(MEMGATE);
    command.arg("doctor").arg("--kubeconfig").arg(kubeconfig).args(["-o", "json"]).args(args).env_clear();
    command.output().context("memgate does not start")
}

/// The match condition of the trial is the only finding about the installation. Findings about agents may
/// come from other trials and are not looked at.
fn healthy(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let target = DoctorTarget::new(cluster)?;
    target.says(cluster, "deployment", "fail", "0 of 2 replicas are available")?;
    target.says(cluster, "endpoints", "fail", "no replica behind it is ready")?;
    let outage = target.doctor(cluster, &[])?;
    let first = outage.checks().next().context("there are no checks")?;
    ensure!(first["id"] == "deployment" && first["status"] == "fail", "not the cause first: {first}");
    let help = first["help"].as_str().unwrap_or_default();
    ensure!(help.contains("`memgate pause -n NAMESPACE --for 1h --reason TEXT`"), "{first}");
    target.run_replicas(cluster)?;
    let diagnosis = target.doctor(cluster, &[])?;
    for id in [
        "service", "endpoints", "deployment", "replicas", "disruption-budget", "rights", "ca-bundle",
        "apiserver", "platforms",
    ] {
        let others = diagnosis.checks().find(|check| check["id"] == id && check["status"] != "ok");
        ensure!(others.is_none(), "{others:?}");
        ensure!(diagnosis.checks().any(|check| check["id"] == id), "nothing is said about {id}");
    }
    for check in diagnosis.checks().filter(|check| check["id"] == "webhooks" && check["status"] != "ok") {
        let message = check["message"].as_str().unwrap_or_default();
        let of_trial = message == format!("the match condition {NEVER} narrows it");
        ensure!(of_trial, "{check}");
    }
    Ok(())
}

/// One thing after the other is broken.
fn registration(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let target = DoctorTarget::new(cluster)?;
    let mutating = |patch: Value| -> Result<()> {
        let patch = patch.to_string();
        let args =
            ["patch", "mutatingwebhookconfiguration", &target.namespace, "--type=json", "--patch", &patch];
        cluster.kubectl(&args)?.ok().map(|_| ())
    };
    target.says(cluster, "ca-bundle", "ok", "certificates in the caBundle: 1")?;
    let live =
        cluster.kubectl(&["get", "mutatingwebhookconfiguration", &target.namespace, "-o=json"])?.ok()?;
    let live: Value = serde_json::from_str(&live.stdout)?;
    let entries = live["webhooks"].as_array().context("there are no entries")?;
    let entry = entries.iter().position(|entry| entry["name"] == "arkonis.pods.memgate.dev");
    let entry = format!("/webhooks/{}", entry.context("there is no such entry")?);

    mutating(json!([{"op": "remove", "path": format!("{entry}/clientConfig/caBundle")}]))?;
    target.says(cluster, "ca-bundle", "fail", "has no caBundle")?;

    mutating(json!([{"op": "replace", "path": format!("{entry}/failurePolicy"), "value": "Fail"}]))?;
    target.says(cluster, "webhooks", "warn", "failurePolicy is Fail, not Ignore")?;

    mutating(json!([{"op": "remove", "path": entry}]))?;
    target.says(cluster, "webhooks", "fail", "the entry arkonis.pods.memgate.dev is missing")?;

    cluster.kubectl(&["delete", "validatingwebhookconfiguration", &target.namespace])?.ok()?;
    target.says(cluster, "webhooks", "fail", "there is no such configuration")?;

    cluster.kubectl(&["delete", "clusterrolebinding", &target.namespace])?.ok()?;
    target.says(cluster, "rights", "fail", "it lacks")?;

    let port = json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 8443}]).to_string();
    let patch = ["patch", "service", "memgate", "-n", &target.namespace, "--type=json", "--patch", &port];
    cluster.kubectl(&patch)?.ok()?;
    target.says(cluster, "service", "fail", "it leads to port 8443, but memgate listens on 10250")?;

    cluster.kubectl(&["scale", "deployment", "memgate", "-n", &target.namespace, "--replicas=1"])?.ok()?;
    target.says(cluster, "replicas", "warn", "one replica")?;
    Ok(())
}

/// With a registration of its own: first with another CA, then right, then with the webhook stopped.
fn unanswered(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("asking")?;
    let mut webhook = Serve::new(MEMGATE).kubeconfig(&fixture.memgate()?.kubeconfig).ready()?;
    let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]});
    let target = DoctorTarget { namespace: namespace.clone() };
    let says = |status: &str, text: &str| {
        wait::until(text, || {
            let diagnosis = target.doctor(cluster, &["--dry-run-namespace", &namespace])?;
            let of_probes = || diagnosis.checks().filter(|check| check["id"] == "answers");
            // A failure has one line, with the first probes and the number of the others.
            let about = |subject: &str| {
                of_probes().any(|check| {
                    let [message, subjects] =
                        ["message", "subject"].map(|field| check[field].as_str().unwrap_or_default());
                    let is_named = subjects.split(", ").any(|named| named == subject);
                    (is_named || status == "fail" && subjects.ends_with(" more"))
                        && check["status"] == status
                        && message.contains(text)
                })
            };
            let failed = of_probes().filter(|check| check["status"] == "fail").count();
            ensure!(failed < 2 || status == "ok", "a cause has one line: {:#}", diagnosis.json);
            Ok((about("pods") && about("orloj memories.orloj.dev")).then_some(()))
        })
    };
    let foreign = Authority::new("another CA")?;
    register(cluster, &Endpoint::new(webhook.addresses().listen, &foreign.pem()), &namespace, &only)?;
    says("fail", "the caBundle is of another CA")?;
    register(cluster, &webhook.endpoint(), &namespace, &only)?;
    says("ok", "refuses what it has to refuse")?;
    webhook.process().kill()?;
    says("fail", "nothing listens at the address where the apiserver calls memgate")
}

/// Pods that were created without a call to memgate.
fn missed(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let installed = fixture.memgate()?;
    let exempt = installed.exempt_client();
    let namespace = fixture.namespace("unaware", &[])?;
    let before = pod("scout-0", "scout", &[]);
    let (first, second) = (owned_pod("scout-3"), owned_pod("scout-4"));
    for object in [memory("notes"), agent("scout", "notes"), before, first, second] {
        cluster.block_on(create(&exempt, &namespace, &object, ""))?.object()?;
    }
    let asked = pod("scout-1", "scout", &[]);
    cluster.block_on(create(&cluster.client(), &namespace, &asked, ""))?.object()?;
    let out = pod("scout-2", "scout", &[("memgate.dev/inject", "disabled")]);
    cluster.block_on(create(&exempt, &namespace, &out, ""))?.object()?;

    let target = DoctorTarget { namespace: "memgate".to_owned() };
    // Other trials leave such pods behind on purpose.
    let doctor = || target.doctor(cluster, &["--family", "arkonis", "--show", "10000"]);
    let title = format!("Pod {namespace}/scout-0");
    let diagnosis = doctor()?;
    let found = diagnosis.find("missed-pods", "warn", &title).context("nothing is said of the pod")?;
    let message = found["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("without the memory ArkMemory/notes of its agent (platform arkonis)"),
        "{found}"
    );
    let deployment = format!("Deployment {namespace}/scout");
    let found = diagnosis.find("missed-pods", "warn", &deployment).context("nothing is said of the owner")?;
    let restart = format!("kubectl -n {namespace} rollout restart deployment/scout");
    ensure!(found["help"] == restart.as_str(), "{found}");
    let message = found["message"].as_str().unwrap_or_default();
    ensure!(
        message.starts_with("2 pods run without") && message.ends_with(": memgate did not answer"),
        "{found}"
    );
    let others = diagnosis.checks().find(|check| {
        let subject = check["subject"].as_str().unwrap_or_default();
        [1, 2].iter().any(|number| subject == format!("Pod {namespace}/scout-{number}"))
    });
    ensure!(others.is_none(), "{others:?}");

    let label = |value: &str| -> Result<()> {
        let label = format!("memgate.dev/inject={value}");
        cluster.kubectl(&["label", "namespace", &namespace, "--overwrite", &label])?.ok().map(|_| ())
    };
    label("off")?;
    let of_namespace = format!("Namespace {namespace}");
    let unknown = doctor()?;
    let found =
        unknown.find("inject-label", "warn", &of_namespace).context("nothing is said of the label")?;
    ensure!(found["message"] == "memgate.dev/inject=off on a namespace means nothing", "{found}");
    label("disabled")?;
    let disabled = doctor()?;
    let found =
        disabled.find("inject-label", "warn", &of_namespace).context("nothing is said of the label")?;
    ensure!(
        found["message"].as_str().unwrap_or_default().contains("opts out, but holds agent pods"),
        "{found}"
    );
    ensure!(disabled.find("missed-pods", "warn", &title).is_none(), "a pod that opted out missed nothing");
    Ok(())
}

/// What lies beyond the limit is not taken for missing.
fn limited(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let target = DoctorTarget::new(cluster)?;
    let diagnosis = target.doctor(cluster, &["--limit", "1"])?;
    for (id, kind) in [
        ("webhooks", "mutatingwebhookconfigurations"),
        ("order", "mutatingwebhookconfigurations"),
        ("timeouts", "mutatingwebhookconfigurations"),
        ("inject-label", "namespaces"),
    ] {
        let text = format!("there are too many {kind} to look at all of them; --limit raises the number");
        let found = diagnosis.find(id, "unknown", &text);
        ensure!(found.is_some(), "{id} is not unknown: {:#}", diagnosis.json);
    }
    for id in ["webhooks", "missed-pods", "ca-bundle", "review-paths"] {
        let wrong = diagnosis.checks().find(|check| {
            let message = check["message"].as_str().unwrap_or_default();
            check["id"] == id && ["there is no", "leaves out"].iter().any(|cause| message.contains(cause))
        });
        ensure!(wrong.is_none(), "{wrong:?}");
    }
    let whole = target.doctor(cluster, &[])?;
    // Webhooks of other trials count too.
    let known = ["ok", "warn"].iter().any(|status| whole.find("timeouts", status, "add up to").is_some());
    ensure!(known, "{:#}", whole.json);
    Ok(())
}

/// An agent of sympozium, to whose pods memgate adds a container.
fn agent_with_sidecar() -> [Value; 2] {
    let agent = json!({
        "apiVersion": "sympozium.ai/v1alpha1", "kind": "Agent", "metadata": {"name": "triage"},
        "spec": {"agents": {"default": {"model": "gpt-4o"}}, "skills": [{"skillPackRef": "memory"}]},
    });
    let pack = json!({
        "apiVersion": "sympozium.ai/v1alpha1", "kind": "SkillPack", "metadata": {"name": "memory"},
        "spec": {
            "skills": [{"name": "memory", "content": "Use memory_search before you start."}],
            "sidecar": {"image": "registry.example/memory-server:2.1"},
        },
    });
    [agent, pack]
}

/// Namespaces of agents to whose pods memgate adds a container: in `running` there is a pod, which came to
/// be before anything stood in its way; in `waiting` none was ever admitted.
struct Crowd {
    running: String,
    waiting: String,
}

impl Crowd {
    fn new(fixture: &Fixture) -> Result<Self> {
        let (cluster, exempt) = (fixture.cluster()?, fixture.memgate()?.exempt_client());
        // The pod that doctor makes up where there is none meets this.
        let strict = [("pod-security.kubernetes.io/enforce", "restricted")];
        let crowd = Self {
            running: fixture.namespace("crowded", &[])?,
            waiting: fixture.namespace("crowded", &strict)?,
        };
        let few = json!({"cpu": "1m", "memory": "1Mi"});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "triage-1",
                "labels": {"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "triage"},
            },
            "spec": {"containers": [{
                "name": "agent", "image": "agent-runner", "resources": {"requests": few, "limits": few},
            }]},
        });
        for namespace in crowd.both() {
            for object in agent_with_sidecar() {
                cluster.block_on(create(&exempt, namespace, &object, ""))?.object()?;
            }
        }
        cluster.block_on(create(&exempt, &crowd.running, &pod, ""))?.object()?;
        Ok(crowd)
    }

    fn both(&self) -> [&String; 2] {
        [&self.running, &self.waiting]
    }

    fn apply(&self, cluster: &ControlPlane, object: &Value) -> Result<()> {
        for namespace in self.both() {
            cluster.admin().apply_in(namespace, &object.to_string())?.ok()?;
        }
        Ok(())
    }

    /// That no dry run left a pod; then the agents go, which other trials would see.
    fn leave(&self, cluster: &ControlPlane) -> Result<()> {
        for (namespace, expected) in [(&self.running, "pod/triage-1\n"), (&self.waiting, "")] {
            let pods = cluster.kubectl(&["get", "pods", "-n", namespace, "-o", "name"])?.ok()?.stdout;
            ensure!(pods == expected, "{namespace}: a dry run stored something: {pods}");
            let kinds = "agents.sympozium.ai,skillpacks.sympozium.ai";
            cluster.kubectl(&["delete", kinds, "--all", "-n", namespace])?.ok()?;
        }
        Ok(())
    }
}

/// The checks about pods in a namespace.
fn about_pods(diagnosis: &Diagnosis, namespace: &str) -> Vec<Value> {
    let subjects = [format!("Namespace {namespace}"), format!("ResourceQuota {namespace}/full")];
    let about =
        diagnosis.checks().filter(|check| subjects.iter().any(|subject| check["subject"] == *subject));
    about.filter(|check| check["id"] != "inject-label").cloned().collect()
}

/// Runs it until this is its only check about pods in both namespaces.
fn says_of_both(
    cluster: &ControlPlane,
    crowd: &Crowd,
    (id, status, subject): (&str, &str, &str),
    message: &str,
) -> Result<()> {
    let target = DoctorTarget { namespace: "memgate".to_owned() };
    wait::until(message, || {
        let diagnosis = target.doctor(cluster, &["--family", "sympozium"])?;
        let is_said = |namespace: &String| match about_pods(&diagnosis, namespace).as_slice() {
            [check] => {
                check["id"] == id
                    && check["status"] == status
                    && check["subject"] == subject.replace("{}", namespace)
                    && check["message"].as_str().is_some_and(|text| text.starts_with(message))
            }
            _ => false,
        };
        Ok(crowd.both().into_iter().all(is_said).then_some(()))
    })
}

const REFUSED: &str = "one more pod with the added container memory-server is refused";

/// The memory of a sympozium agent runs beside it, and the quota of its namespace is used up.
fn full_quota(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let crowd = Crowd::new(fixture)?;
    let hard = json!({"requests.cpu": "10m"});
    crowd.apply(
        cluster,
        &json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": hard},
        }),
    )?;
    // There is no controller here that would count.
    let count = |status: Value| -> Result<()> {
        let status = json!({"status": status}).to_string();
        for namespace in crowd.both() {
            let patch = ["patch", "quota", "full", "-n", namespace, "--subresource=status", "--type=merge"];
            cluster.kubectl(&[&patch[..], &["--patch", &status]].concat())?.ok()?;
        }
        Ok(())
    };
    count(json!({"hard": hard}))?;
    let uncounted = "failed to try a pod: status unknown for quota: full, ";
    says_of_both(cluster, &crowd, ("room", "unknown", "Namespace {}"), uncounted)?;
    count(json!({"hard": hard, "used": {"requests.cpu": "1m"}}))?;
    let exceeded = format!("{REFUSED}: exceeded quota: full, ");
    says_of_both(cluster, &crowd, ("quota", "warn", "ResourceQuota {}/full"), &exceeded)?;
    crowd.leave(cluster)
}

/// Containers of the size of the memory's may not run there.
fn narrow_limits(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let crowd = Crowd::new(fixture)?;
    let limits = json!([{"type": "Container", "max": {"memory": "16Mi"}}]);
    crowd.apply(
        cluster,
        &json!({
            "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": limits},
        }),
    )?;
    let above = format!("{REFUSED}: maximum memory usage per Container is 16Mi, but limit is ");
    says_of_both(cluster, &crowd, ("limits", "fail", "Namespace {}"), &above)?;
    crowd.leave(cluster)
}

/// "restricted" admits the container that memgate adds, and not the agent's own.
fn pod_security(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let crowd = Crowd::new(fixture)?;
    let target = DoctorTarget { namespace: "memgate".to_owned() };
    let doctor = || target.doctor(cluster, &["--family", "sympozium"]);
    let admitted = doctor()?;
    for namespace in crowd.both() {
        let checks = about_pods(&admitted, namespace);
        ensure!(checks.is_empty(), "{checks:?}");
    }
    let level = "pod-security.kubernetes.io/enforce=restricted";
    cluster.kubectl(&["label", "namespace", &crowd.running, "--overwrite", level])?.ok()?;
    let message =
        format!("{REFUSED}, and one without it is refused too: violates PodSecurity \"restricted:latest\": ");
    let check = wait::until(&message, || {
        Ok(about_pods(&doctor()?, &crowd.running).into_iter().find(|check| check["id"] == "pod-security"))
    })?;
    let text = check["message"].as_str().unwrap_or_default();
    ensure!(check["status"] == "warn" && text.starts_with(&message), "{check}");
    ensure!(!text.contains("\"memory-server\" must"), "{check}");
    let others = about_pods(&doctor()?, &crowd.waiting);
    ensure!(others.is_empty(), "{others:?}");
    crowd.leave(cluster)
}

/// Without the right to create pods it stays open whether they would be admitted.
fn no_right_to_try(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let exempt = fixture.memgate()?.exempt_client();
    let namespace = fixture.namespace("untried", &[])?;
    for object in agent_with_sidecar() {
        cluster.block_on(create(&exempt, &namespace, &object, ""))?.object()?;
    }
    let user = "may-only-read";
    let read = json!({"apiGroups": ["sympozium.ai", ""], "resources": ["*"], "verbs": ["get", "list"]});
    let api = "rbac.authorization.k8s.io";
    for object in [
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": user}, "rules": [read],
        }),
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": user},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": user},
            "subjects": [{"apiGroup": api, "kind": "User", "name": user}],
        }),
    ] {
        cluster.admin().apply(&object.to_string())?;
    }
    let reader = cluster.user_kubeconfig(user, &[])?;
    let diagnosis = Diagnosis::read(&run(&reader, &["--family", "sympozium"])?)?;
    cluster
        .kubectl(&["delete", "agents.sympozium.ai,skillpacks.sympozium.ai", "--all", "-n", &namespace])?
        .ok()?;
    let check = diagnosis.checks().find(|check| check["subject"] == format!("Namespace {namespace}"));
    let check = check.with_context(|| diagnosis.json.to_string())?;
    ensure!(check["id"] == "room" && check["status"] == "unknown", "{check}");
    ensure!(check["message"] == "you may not create pods: this right is needed", "{check}");
    Ok(())
}

/// Another one that is asked after memgate and that memgate's own pods wait for.
fn other_webhooks(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let target = DoctorTarget::new(cluster)?;
    let name = format!("z-{}", target.namespace);
    let other = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "policy.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "policy", "namespace": "policies"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": target.namespace}},
            // Of the test, so that nothing in the namespace waits for it.
            "objectSelector": {"matchLabels": {"app.kubernetes.io/name": "memgate"}},
            "matchConditions": [{"name": "never", "expression": "false"}],
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        }],
    });
    cluster.admin().apply(&other.to_string())?;
    target.says(cluster, "webhook-loop", "warn", &name)?;
    let order = target.says(cluster, "order", "ok", "which is asked again when they change one")?;
    ensure!(order["status"] == "ok", "{order}");
    let never =
        json!([{"op": "replace", "path": "/webhooks/0/reinvocationPolicy", "value": "Never"}]).to_string();
    let patch =
        ["patch", "mutatingwebhookconfiguration", &target.namespace, "--type=json", "--patch", &never];
    cluster.kubectl(&patch)?.ok()?;
    target.says(cluster, "order", "warn", "memgate is not asked again")?;
    cluster.kubectl(&["delete", "mutatingwebhookconfiguration", &name])?.ok()?;
    Ok(())
}

/// A user without permissions sees which ones it takes, and the command does not fail.
fn rights(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let kubeconfig = cluster.user_kubeconfig("may-look-at-nothing", &[])?;
    let diagnosis = Diagnosis::read(&run(&kubeconfig, &["--family", "orloj"])?)?;
    ensure!(diagnosis.code == Some(0), "{}", diagnosis.json);
    for (id, text) in [
        ("answers", "a dry run needs the right to create"),
        ("webhooks", "you may not list mutatingwebhookconfigurations"),
        ("webhooks", "you may not list validatingwebhookconfigurations"),
        ("service", "you may not get services"),
        ("deployment", "you may not get deployments"),
        ("rights", "you may not create subjectaccessreviews"),
        ("order", "you may not list mutatingwebhookconfigurations"),
        ("inject-label", "you may not list namespaces"),
        ("missed-pods", "you may not list pods"),
        ("missed-pods", "you may not list memories"),
    ] {
        ensure!(diagnosis.find(id, "unknown", text).is_some(), "{id}: {text}: {}", diagnosis.json);
    }
    let bad = diagnosis.checks().find(|check| check["status"] == "fail" || check["status"] == "warn");
    ensure!(bad.is_none(), "{bad:?}");
    Ok(())
}

fn unreachable(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let text = std::fs::read_to_string(cluster.admin_kubeconfig())?;
    let nowhere = cluster.scratch().path().join("nowhere.kubeconfig");
    std::fs::write(&nowhere, text.replace(&cluster.url(), "https://127.0.0.1:1"))?;
    let output = run(&nowhere, &[])?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(2) && output.stdout.is_empty(), "{output:?}");
    ensure!(stderr.starts_with("error: the apiserver does not answer: "), "{stderr}");
    ensure!(stderr.contains("onnection refused"), "{stderr}");
    Ok(())
}
