//! Webhook configurations as files of the apiserver, a gate that Kubernetes 1.36 has off by default and 1.37 on:
//! an apiserver of its own reads what `memgate manifests --component static-manifest` prints.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use memgate_install::component::Component;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{MEMGATE, documents, memgate},
    request::create,
    samples::{INJECTED, agent, env_names, memory, pod},
    support::{
        assets::{Assets, SearchPaths},
        certs::Authority,
        components::{self, ApiServerFiles},
        connection::Connection,
        kubeconfig::{self, Credential},
        process::Process,
        scratch::Scratch,
        wait,
        webhook::{Serve, Webhook},
    },
};

/// Which plugin of the apiserver reads which kind; a folder holds nothing else.
const PLUGINS: [(&str, &str); 2] = [
    ("MutatingAdmissionWebhook", "MutatingWebhookConfiguration"),
    ("ValidatingAdmissionWebhook", "ValidatingWebhookConfiguration"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let since = Component::StaticManifest.min_kubernetes();
    vec![Trial::new("deploy::static_files_are_in_force_from_the_start", in_force).since(since)]
}

fn in_force(_: &Fixture) -> Result<()> {
    let scratch = Scratch::new("static")?;
    let webhook = serve(&scratch)?;
    write_configurations(&scratch, &webhook)?;
    let assets = Assets::find(&SearchPaths::from_environment()?)?;
    wait::with_free_ports(|[port]| agents_get_their_memory(&assets, &scratch, port))
}

/// A memgate that knows an agent and its memory.
fn serve(scratch: &Scratch) -> Result<Webhook> {
    let state = [memory("notes"), agent("scout", "notes")].map(|mut object| {
        object["metadata"]["namespace"] = json!("default");
        object.to_string()
    });
    let state = scratch.write("state.yaml", &state.join("\n---\n"))?;
    Serve::new(MEMGATE).arg("--state").arg(state).ready()
}

fn write_configurations(scratch: &Scratch, webhook: &Webhook) -> Result<()> {
    let ca = scratch.write("webhook-ca.crt", webhook.ca())?;
    let url = format!("https://{}", webhook.addresses().listen);
    let ca = ca.to_str().context("a path is not text")?;
    let wanted = ["--component", "static-manifest", "--component", "family-arkonis"];
    let printed = memgate(&[&["manifests", "--url", &url, "--ca", ca], &wanted[..]].concat())?;
    for object in documents(&printed) {
        let (plugin, _) =
            PLUGINS.iter().find(|(_, kind)| object["kind"] == *kind).context("an object has no plugin")?;
        let folder = scratch.path().join(plugin);
        fs::create_dir(&folder)?;
        fs::write(folder.join("memgate.yaml"), object.to_string())?;
    }
    Ok(())
}

fn agents_get_their_memory(assets: &Assets, outer: &Scratch, port: u16) -> Result<()> {
    let scratch = Scratch::new("files")?;
    let authority = Authority::new("memgate test cluster")?;
    let files = ApiServerFiles::write(&scratch, &authority, None)?;
    let pair = authority.client("test-admin", &["system:masters"])?;
    let url = format!("https://127.0.0.1:{port}");
    let admin = kubeconfig::write(&scratch, "admin", &url, &authority.pem(), Credential::Certificate(&pair))?;

    let log = scratch.path().join("etcd.log");
    let mut etcd = Process::start("etcd", &components::etcd(assets, &scratch), &log)?;
    let socket = components::etcd_socket(&scratch);
    etcd.until("etcd to listen", || Ok(socket.exists().then_some(())))?;
    let mut command = components::apiserver(assets, &files, port);
    command
        .arg("--feature-gates=ManifestBasedAdmissionControlConfig=true")
        .arg(format!("--admission-control-config-file={}", admission(outer)?.display()));
    let mut apiserver = Process::start("kube-apiserver", &command, &scratch.path().join("apiserver.log"))?;
    let connection = Connection::new(&admin)?;
    connection.wait_until_ready(&mut apiserver)?;

    let client = connection.client();
    for labels in [&[][..], &[("memgate.dev/inject", "required")]] {
        let answer =
            connection.block_on(create(&client, "default", &pod("agent", "scout", labels), "?dryRun=All"))?;
        let made = answer.object()?;
        let names = env_names(&made);
        ensure!(INJECTED.iter().all(|name| names.contains(name)), "{made}");
    }
    let wrong = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "absent", "labels": {"arkonis.dev/deployment": "absent", "memgate.dev/inject": "required"}},
        "spec": {"containers": [{"name": "agent", "image": "agent"}]},
    });
    let answer = connection.block_on(create(&client, "default", &wrong, "?dryRun=All"))?;
    ensure!(answer.message().contains("required.pods.memgate.dev"), "{}", answer.message());
    Ok(())
}

/// The file that names the folders.
fn admission(scratch: &Scratch) -> Result<std::path::PathBuf> {
    let plugin = |name: &str| -> Value {
        let folder: &Path = &scratch.path().join(name);
        json!({
            "name": name,
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
                "staticManifestsDir": folder,
            },
        })
    };
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": PLUGINS.map(|(name, _)| plugin(name)),
    });
    scratch.write("admission.json", &configuration.to_string())
}
