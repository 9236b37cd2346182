//! Two installations in one cluster, as `memgate manifests` prints them: each with its own families, names,
//! certificates, and none in the way of the other.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use memgate_model::pause::SKIP;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{MANIFESTS, MEMGATE, documents, install_crds, memgate},
    request::{Answer, create, send},
    samples::{memory_of, pod},
    support::{
        control_plane::ControlPlane,
        tools, wait,
        webhook::{Serve, Webhook},
    },
};

const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("side_by_side::two_installations", two_installations),
        Trial::new("side_by_side::releases_of_helm", releases_of_helm),
    ]
}

/// One installation, with one replica outside the cluster.
struct Tenant<'c> {
    cluster: &'c ControlPlane,
    home: &'static str,
    /// The name of what is in no namespace.
    name: &'static str,
    /// What `memgate manifests` printed.
    objects: Vec<Value>,
    memgate: Webhook,
}

impl<'c> Tenant<'c> {
    fn install(
        cluster: &'c ControlPlane,
        (home, name): (&'static str, &'static str),
        arguments: &[&str],
    ) -> Result<Self> {
        let text = memgate(&[&MANIFESTS[..], &["-n", home], arguments].concat())?;
        let mut objects = documents(&text);
        let is_webhook = |object: &Value| object["webhooks"].is_array();
        for object in objects.iter_mut().filter(|object| !is_webhook(object)) {
            if object["kind"] == "Service" {
                // An alias of this machine, since nothing here forwards the addresses of others.
                object["spec"] = json!({"type": "ExternalName", "externalName": "localhost"});
            }
            cluster.admin().apply(&object.to_string())?;
        }
        let mut webhook = serve(cluster, home, &objects)?.live()?;
        let port = webhook.addresses().listen.port();
        for object in objects.iter_mut().filter(|object| is_webhook(object)) {
            for entry in object["webhooks"].as_array_mut().context("there are no entries")? {
                entry["clientConfig"]["service"]["port"] = json!(port);
            }
            cluster.admin().apply(&object.to_string())?;
        }
        webhook.wait_until_ready()?;
        Ok(Self { cluster, home, name, objects, memgate: webhook })
    }

    /// Every `caBundle`, without doubles.
    fn trust(&self) -> Result<BTreeSet<String>> {
        let mut bundles = BTreeSet::new();
        for kind in CONFIGURATIONS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/{}", self.name);
            let client = self.cluster.client();
            let configuration = self.cluster.block_on(send(&client, Method::GET, &path, None))?.object()?;
            for entry in configuration["webhooks"].as_array().into_iter().flatten() {
                bundles.insert(entry["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned());
            }
        }
        Ok(bundles)
    }

    /// Waits until it answers about the memory of a family.
    fn wait_until_asked(&self, namespace: &str, family: &str) -> Result<()> {
        let kubeconfig = self.cluster.admin_kubeconfig().display().to_string();
        let what =
            ["wait", "--kubeconfig", &kubeconfig, "-n", namespace, "--family", family, "--timeout", "2m"];
        let printed = memgate(&what)?;
        let of_family =
            |line: &str| line.starts_with(&format!("{family} ")) && line.contains(": answered by ");
        ensure!(printed.lines().any(of_family), "{printed}");
        Ok(())
    }

    /// What `memgate doctor` says of installations beside each other, and of whether it is the one in its namespace.
    fn doctor(&self) -> Result<Value> {
        let kubeconfig = self.cluster.admin_kubeconfig().display().to_string();
        let what = ["doctor", "--kubeconfig", &kubeconfig, "-n", self.home, "-o", "json"];
        let output = std::process::Command::new(MEMGATE).args(what).env_clear().output()?;
        let printed: Value = serde_json::from_slice(&output.stdout).context("doctor prints no JSON")?;
        Ok(printed["checks"].clone())
    }

    /// Takes away what was installed, but for the definitions that others use as well.
    fn uninstall(self) -> Result<()> {
        let is_shared = |object: &Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            object["kind"] == "CustomResourceDefinition" || name.starts_with(SKIP)
        };
        let text: Vec<_> = self.objects.iter().rev().filter(|object| !is_shared(object)).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": text});
        let file = self.cluster.scratch().path().join(format!("{}.json", self.name));
        std::fs::write(&file, list.to_string())?;
        self.cluster.kubectl(&["delete", "--wait=false", "-f", &file.display().to_string()])?.ok()?;
        drop(self.memgate);
        Ok(())
    }
}

/// The command of the Deployment, on other addresses and with the identity of its account.
pub(crate) fn serve(cluster: &ControlPlane, home: &str, objects: &[Value]) -> Result<Serve> {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array();
    let arguments = arguments.context("no arguments")?.iter().filter_map(Value::as_str).skip(1);
    let kept = arguments.filter(|one| !one.starts_with("--listen=") && !one.starts_with("--health="));
    let kubeconfig = cluster.service_account_kubeconfig(home, "memgate")?;
    let serve = Serve::new(MEMGATE).own_certificate().kubeconfig(&kubeconfig).arg("--namespace").arg(home);
    Ok(kept.fold(serve, Serve::arg))
}

fn two_installations(_: &Fixture) -> Result<()> {
    let cluster = &ControlPlane::start()?;
    install_crds(cluster)?;
    let agents = cluster.fresh_namespace("agents")?;
    let ask = |object: &Value| -> Result<Answer> {
        cluster.block_on(create(&cluster.client(), &agents, object, "?dryRun=All"))
    };
    let bad_memory = memory_of("bad", &json!({"backend": "redis"}));
    let own_pod = pod("arkonis", "absent", &[("memgate.dev/inject", "required")]);
    let mut their_pod = pod("ark", "absent", &[("memgate.dev/inject", "required")]);
    if let Some(labels) = their_pod["metadata"]["labels"].as_object_mut() {
        labels.retain(|label, _| label == "memgate.dev/inject");
    }
    their_pod["metadata"]["annotations"] = json!({"memgate.dev/ark-memory": "absent"});

    let one = ["--family=arkonis", "--elsewhere=ark"];
    let first = Tenant::install(cluster, ("memgate-system", "memgate"), &one)?;
    let two = ["--family=ark", "--elsewhere=arkonis"];
    let second = Tenant::install(cluster, ("team-b", "memgate-team-b"), &two)?;
    first.wait_until_asked(&agents, "arkonis")?;
    second.wait_until_asked(&agents, "ark")?;

    let (bundles, others) = (first.trust()?, second.trust()?);
    ensure!(
        bundles.len() == 1 && others.len() == 1 && bundles.is_disjoint(&others),
        "{bundles:?} {others:?}"
    );
    ensure!(![&bundles, &others].iter().any(|texts| texts.contains("")), "one is empty");

    for tenant in [&first, &second] {
        let checks = tenant.doctor()?;
        let all = checks.as_array().context("doctor prints no checks")?;
        let of = |id: &'static str| all.iter().filter(move |check| check["id"] == id);
        let statuses: Vec<_> = of("installations").map(|check| check["status"].clone()).collect();
        ensure!(statuses == ["ok"], "{}: {checks:#}", tenant.name);
        let subjects: Vec<_> = of("webhooks").filter_map(|check| check["subject"].as_str()).collect();
        ensure!(
            subjects.iter().all(|subject| subject.ends_with(&format!(" {}", tenant.name))),
            "{subjects:?}"
        );
        ensure!(of("webhooks").chain(of("rights")).all(|check| check["status"] == "ok"), "{checks:#}");
    }

    // Each knows its own pods, and is not asked about those of the other.
    for (object, missing) in [(&own_pod, "ArkAgent \"absent\""), (&their_pod, "\"absent\"")] {
        let answer = ask(object)?;
        let message = answer.webhook_message().context("a pod without its memory was let in")?;
        ensure!(message.contains(missing), "{message}");
    }

    // Neither account may touch what is the other's.
    let kubeconfig = cluster.service_account_kubeconfig("team-b", "memgate")?;
    let of_second = cluster.kubectl_as(kubeconfig);
    for kind in CONFIGURATIONS {
        let refused = of_second.run(&["get", kind, first.name])?.refusal()?;
        ensure!(refused.contains("Forbidden"), "{refused}");
        let patch = r#"[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]"#;
        let refused = of_second.run(&["patch", kind, second.name, "--type=json", "-p", patch])?.refusal()?;
        ensure!(refused.contains("memgate-team-b-self-guard"), "{refused}");
    }

    let refused = ask(&bad_memory)?.webhook_message().map(str::to_owned);
    ensure!(refused.is_some(), "what cannot work was let in");
    first.uninstall()?;
    wait::until("the first one to be gone", || Ok(ask(&bad_memory)?.granted().then_some(())))?;
    ensure!(
        ask(&own_pod)?.granted(),
        "the other installation was asked about the pod of the one that is gone"
    );
    second.wait_until_asked(&agents, "ark")?;
    let answer = ask(&their_pod)?;
    ensure!(answer.webhook_message().is_some_and(|message| message.contains("\"absent\"")), "{answer:?}");
    ensure!(second.trust()? == others, "its trust has changed");
    second.uninstall()?;
    wait::until("both to be gone", || Ok(ask(&their_pod)?.granted().then_some(())))
}

/// Helm knows of each object which release has it, and takes none of another.
fn releases_of_helm(_: &Fixture) -> Result<()> {
    let cluster = &ControlPlane::start()?;
    let helm = tools::helm()?;
    let install = |namespace: &str, values: &[&str]| -> Result<String> {
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/memgate");
        let mut command = std::process::Command::new(&helm);
        command.args(["install", "memgate", chart, "--create-namespace", "--namespace", namespace]);
        command.args(["--set", "image.repository=registry.example.com/memgate"]);
        command.arg("--kubeconfig").arg(cluster.admin_kubeconfig());
        command.args(values.iter().flat_map(|value| ["--set", value]));
        let home = cluster.scratch().path().join(namespace);
        let output = command.env_clear().env("HOME", home).output().context("Helm does not start")?;
        Ok(if output.status.success() {
            String::new()
        } else {
            String::from_utf8_lossy(&output.stderr).into()
        })
    };
    let first = install("memgate-system", &[])?;
    ensure!(first.is_empty(), "{first}");
    let no_definitions = "policies.crds.install=false";
    for (namespace, values, refusal) in [
        ("team-a", &[][..], "CustomResourceDefinition"),
        ("team-a", &[no_definitions], ""),
        ("team-b", &[no_definitions, "clusterName=memgate-team-a"], "ClusterRole \"memgate-team-a\""),
        ("team-b", &[no_definitions, "fullnameOverride=memgate"], "ClusterRole \"memgate\""),
        ("team-b", &[no_definitions], ""),
    ] {
        let said = install(namespace, values)?;
        ensure!(said.is_empty() == refusal.is_empty(), "{namespace} {values:?}: {said}");
        ensure!(said.contains(refusal), "{namespace} {values:?}: {said}");
        ensure!(refusal.is_empty() || said.contains("invalid ownership metadata"), "{said}");
    }
    let names = ["get", "mutatingwebhookconfigurations", "--output=jsonpath={.items[*].metadata.name}"];
    let names = cluster.kubectl(&names)?.ok()?.stdout;
    ensure!(names == "memgate memgate-team-a memgate-team-b", "{names}");
    Ok(())
}
