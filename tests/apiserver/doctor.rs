//! That `memgate doctor` finds what is wrong in a cluster, and nothing where all is well.

mod causes;

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
    shell,
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
        Trial::new("doctor::names_the_cause_first_of_eleven_faults", causes::causes),
        Trial::alone("doctor::prints_commands_that_mend_an_installation", cures),
        Trial::new("doctor::lists_what_is_paused_with_the_command_that_ends_it", paused),
        Trial::new("doctor::says_first_that_memgate_is_not_installed", not_installed),
        Trial::new("doctor::finds_a_webhook_that_does_not_answer", unanswered),
        Trial::new("doctor::finds_pods_without_their_memory", missed),
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
        let output = run(cluster.admin_kubeconfig(), &[&["-n", &*self.namespace][..], args].concat())?;
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
        wait::until("the replicas", || {
            let names = cluster.kubectl(&["get", "pods", "-n", &self.namespace, "-o", "name"])?.ok()?.stdout;
            Ok((names.lines().count() == 2).then_some(()))
        })?;
        self.report_ready(cluster)?;
        self.says(cluster, "replicas", "ok", "2 of 2 replicas")?;
        Ok(())
    }

    /// Reports that each pod is ready.
    fn report_ready(&self, cluster: &ControlPlane) -> Result<()> {
        let pods = cluster.kubectl(&["get", "pods", "-n", &self.namespace, "-o", "name"])?.ok()?.stdout;
        let condition =
            json!({"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"});
        let status = json!({"status": {"phase": "Running", "conditions": [condition]}}).to_string();
        for pod in pods.lines() {
            let patch =
                ["patch", pod, "-n", &self.namespace, "--subresource=status", "--type=merge", "--patch"];
            cluster.kubectl(&[&patch[..], &[&status]].concat())?.ok()?;
        }
        Ok(())
    }
}

/// Its configurations, which the cures of a trial open for the whole cluster; they go when the value does.
struct Opened<'c>(&'c ControlPlane, String);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        let Self(cluster, name) = self;
        let _ = cluster.kubectl(&[
            "delete",
            "mutatingwebhookconfigurations,validatingwebhookconfigurations",
            name,
        ]);
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
    target.says(cluster, "replicas", "fail", "0 of 2 replicas are available")?;
    let outage = target.doctor(cluster, &[])?;
    let first = outage.checks().next().context("there are no checks")?;
    ensure!(first["id"] == "replicas" && first["status"] == "fail", "not the cause first: {first}");
    let help = first["help"].as_str().unwrap_or_default();
    ensure!(help.contains("`memgate explain runbook/no-answer`"), "{first}");
    let answers = outage.checks().find(|check| check["id"] == "answers" && check["status"] == "fail");
    ensure!(answers.is_none(), "the same twice: {answers:?}");
    target.run_replicas(cluster)?;
    let diagnosis = target.doctor(cluster, &[])?;
    for id in ["service", "replicas", "ca-bundle", "paused", "platforms", "rights"] {
        // Nothing runs in these pods, so they have no Leases.
        let is_lease =
            |check: &Value| check["subject"].as_str().is_some_and(|subject| subject.starts_with("Pod "));
        let others =
            diagnosis.checks().find(|check| check["id"] == id && check["status"] != "ok" && !is_lease(check));
        ensure!(others.is_none(), "{others:?}");
        ensure!(diagnosis.checks().any(|check| check["id"] == id), "nothing is said about {id}");
    }
    for check in diagnosis.checks().filter(|check| check["id"] == "webhooks") {
        let message = check["message"].as_str().unwrap_or_default();
        let of_trial = |part: &str| part.contains(&format!(" matchConditions {NEVER} is added"));
        ensure!(check["status"] == "fail" && message.split("; ").all(of_trial), "{check}");
    }
    Ok(())
}

/// One thing after the other is broken, and mended by the command that doctor prints.
fn cures(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let target = DoctorTarget::new(cluster)?;
    target.run_replicas(cluster)?;
    let home = &*target.namespace;
    let _opened = Opened(cluster, home.to_owned());
    let mutating = |patch: Value| -> Result<()> {
        let patch = patch.to_string();
        let args = ["patch", "mutatingwebhookconfiguration", home, "--type=json", "--patch", &patch];
        cluster.kubectl(&args)?.ok().map(|_| ()).with_context(|| patch.clone())
    };
    let kubectl = |args: &[&str]| cluster.kubectl(args)?.ok().map(|_| ());
    // What the fault is, its cure as it is printed, and that nothing is left of it.
    let mends = |id: &str, status: &str, text: &str| -> Result<()> {
        let check = target.says(cluster, id, status, text)?;
        let help = check["help"].as_str().context("there is no help")?;
        let command = help.split("; meanwhile").next().unwrap_or_default();
        let done = shell::run(cluster, &command.replace("IMAGE", "memgate:0"))?;
        wait::until(&format!("{command} to help: {done}"), || {
            Ok(target.doctor(cluster, &[])?.find(id, status, text).is_none().then_some(()))
        })
    };

    // The condition that keeps this installation out of other trials goes by the printed patch, too.
    let live = cluster.kubectl(&["get", "mutatingwebhookconfiguration", home, "-o=json"])?.ok()?;
    let live: Value = serde_json::from_str(&live.stdout)?;
    let entries = live["webhooks"].as_array().context("there are no entries")?;
    let index = entries.iter().position(|entry| entry["name"] == "arkonis.pods.memgate.dev");
    let entry = format!("/webhooks/{}", index.context("there is no such entry")?);
    mutating(json!([
        {"op": "add", "path": format!("{entry}/namespaceSelector/matchLabels"), "value": {"team": "a"}},
        {"op": "replace", "path": format!("{entry}/failurePolicy"), "value": "Fail"},
    ]))?;
    mends("webhooks", "fail", "failurePolicy is Fail, not Ignore")?;
    let diagnosis = target.doctor(cluster, &[])?;
    ensure!(diagnosis.find("webhooks", "ok", "MutatingWebhookConfiguration").is_some(), "{}", diagnosis.json);

    mutating(json!([{"op": "remove", "path": entry}]))?;
    mends("webhooks", "fail", ".pods.memgate.dev is missing")?;

    kubectl(&["delete", "validatingwebhookconfiguration", home])?;
    mends("webhooks", "fail", "there is no such configuration")?;

    let port = json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 8443}]).to_string();
    kubectl(&["patch", "service", "memgate", "-n", home, "--type=json", "--patch", &port])?;
    mends("service", "fail", "ports webhook targetPort is 8443, not webhook")?;
    kubectl(&["delete", "service", "memgate", "-n", home])?;
    mends("service", "fail", "there is no such Service")?;

    for replicas in ["0", "1"] {
        kubectl(&["scale", "deployment", "memgate", "-n", home, "--replicas", replicas])?;
        let (status, text) =
            if replicas == "0" { ("fail", "0 replicas are wanted") } else { ("warn", "one replica") };
        if replicas == "1" {
            // The one that stays has been ready.
            wait::until("one replica", || {
                let pods = cluster.kubectl(&["get", "pods", "-n", home, "-o", "name"])?.ok()?.stdout;
                Ok((pods.lines().count() == 1).then_some(()))
            })?;
            target.report_ready(cluster)?;
        }
        mends("replicas", status, text)?;
    }
    kubectl(&["delete", "deployment", "memgate", "-n", home])?;
    mends("replicas", "fail", "there is no such Deployment")?;

    // What applied it took the caBundle of this trial with it.
    target.says(cluster, "ca-bundle", "fail", "has no caBundle").map(|_| ())
}

/// What is switched off, by whatever Role, with the command that ends it.
fn paused(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let target = DoctorTarget::new(cluster)?;
    let (home, off) = (&*target.namespace, cluster.fresh_namespace("off")?);
    target.says(cluster, "paused", "ok", "nothing is paused")?;
    for (name, subject, message) in [
        (off.clone(), format!("Namespace {off}"), "memgate is paused: nothing is reviewed"),
        (format!("{off}.ark"), format!("Namespace {off}"), "memgate is paused for ark: nothing is reviewed"),
        ("*".to_owned(), String::new(), "memgate is paused everywhere: nothing is reviewed"),
    ] {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "any", "namespace": home},
            "rules": [{"apiGroups": ["memgate.dev"], "resources": ["webhooks"], "verbs": ["skip"], "resourceNames": [name]}],
        });
        cluster.admin().apply(&role.to_string())?;
        let account = format!("--serviceaccount={home}:memgate-paused");
        cluster.kubectl(&["create", "rolebinding", "any", "--role=any", &account, "-n", home])?.ok()?;
        let check = target.says(cluster, "paused", "fail", message)?;
        ensure!(check["subject"] == *subject, "{check}");
        let end = check["help"].as_str().context("there is no help")?;
        ensure!(end == format!("kubectl -n {home} delete rolebinding any"), "{check}");
        shell::run(cluster, end)?;
        target.says(cluster, "paused", "ok", "nothing is paused")?;
    }
    Ok(())
}

/// A namespace without memgate: said first, and what can be said of platforms and pods all the same.
fn not_installed(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let target = DoctorTarget { namespace: cluster.fresh_namespace("empty")? };
    let diagnosis = target.doctor(cluster, &[])?;
    let first = diagnosis.checks().next().context("there are no checks")?;
    ensure!(first["id"] == "installed" && first["status"] == "fail", "{first}");
    let failed = diagnosis.checks().filter(|check| check["status"] == "fail").count();
    ensure!(failed == 1, "the same twice: {}", diagnosis.json);
    for id in ["platforms", "missed-pods"] {
        ensure!(diagnosis.checks().any(|check| check["id"] == id), "nothing is said about {id}");
    }
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
    let name = format!("memgate-{namespace}");
    register(cluster, &Endpoint::new(webhook.addresses().listen, &foreign.pem()), &name, &only)?;
    says("fail", "x509: certificate signed by unknown authority")?;
    register(cluster, &webhook.endpoint(), &name, &only)?;
    says("ok", "answered by ")?;
    webhook.process().kill()?;
    says("fail", "connection refused")
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
    let doctor = || target.doctor(cluster, &[]);
    let title = format!("Pod {namespace}/scout-0");
    let diagnosis = doctor()?;
    let found = diagnosis.find("missed-pods", "warn", &title).context("nothing is said of the pod")?;
    ensure!(found["message"] == "1 pod runs without the memory that a new one would get", "{found}");
    let deployment = format!("Deployment {namespace}/scout");
    let found = diagnosis.find("missed-pods", "warn", &deployment).context("nothing is said of the owner")?;
    let restart = format!("kubectl -n {namespace} rollout restart deployment/scout");
    ensure!(found["help"] == restart.as_str(), "{found}");
    ensure!(found["message"] == "2 pods run without the memory that a new one would get", "{found}");
    let others = diagnosis.checks().find(|check| {
        let subject = check["subject"].as_str().unwrap_or_default();
        [1, 2].iter().any(|number| subject == format!("Pod {namespace}/scout-{number}"))
    });
    ensure!(others.is_none(), "{others:?}");

    cluster.kubectl(&["label", "namespace", &namespace, "memgate.dev/inject=disabled"])?.ok()?;
    let disabled = doctor()?;
    ensure!(disabled.find("missed-pods", "warn", &title).is_none(), "a pod that opted out missed nothing");

    // A Deployment that rolled out meanwhile, mended as doctor says.
    let labels = json!({"arkonis.dev/deployment": "scout", "app": "late"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "late", "namespace": namespace},
        "spec": {
            "replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod("late", "scout", &[])["spec"]},
        },
    });
    cluster.admin().apply(&deployment.to_string())?;
    wait::until("its pod", || {
        let pods =
            cluster.kubectl(&["get", "pods", "-n", &namespace, "-l", "app=late", "-o", "name"])?.ok()?;
        Ok((!pods.stdout.is_empty()).then_some(()))
    })?;
    cluster.kubectl(&["label", "namespace", &namespace, "memgate.dev/inject-"])?.ok()?;
    let title = format!("Deployment {namespace}/late");
    let found = doctor()?.find("missed-pods", "warn", &title).cloned().context("nothing is said of it")?;
    shell::run(cluster, found["help"].as_str().context("there is no help")?)?;
    wait::until("a pod with its memory", || {
        Ok(doctor()?.find("missed-pods", "warn", &title).is_none().then_some(()))
    })
}

/// A user without permissions sees which ones it takes, and the command does not fail.
fn rights(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let kubeconfig = cluster.user_kubeconfig("may-look-at-nothing", &[])?;
    let diagnosis = Diagnosis::read(&run(&kubeconfig, &[])?)?;
    ensure!(diagnosis.code == Some(0), "{}", diagnosis.json);
    for (id, text) in [
        ("answers", "a dry run needs the right to create"),
        ("webhooks", "you may not list mutatingwebhookconfigurations"),
        ("webhooks", "you may not list validatingwebhookconfigurations"),
        ("service", "you may not get services"),
        ("replicas", "you may not get deployments"),
        ("missed-pods", "you may not list agents.orloj.dev"),
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
