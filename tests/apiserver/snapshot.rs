//! That `memgate snapshot` holds what decisions read and nothing else, and that `check` decides with it as the
//! cluster would.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::MEMGATE,
    samples::{agent, memory, memory_of, pod},
    support::control_plane::ControlPlane,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("snapshot::decides_as_the_cluster_does", decides),
        Trial::new("snapshot::holds_no_credential_and_no_secret", holds_no_credential),
        Trial::new("snapshot::takes_names_and_keys_of_secrets_on_request", secrets),
        Trial::new("snapshot::says_what_may_not_be_read", rights),
        Trial::new("snapshot::refuses_a_namespace_that_is_not_there", no_namespace),
    ]
}

/// A folder of a trial with a snapshot in it.
struct Home {
    folder: PathBuf,
    snapshot: PathBuf,
}

impl Home {
    fn new(cluster: &ControlPlane, namespace: &str) -> Result<Self> {
        let folder = cluster.scratch().path().join(format!("snapshot-{namespace}"));
        fs::create_dir_all(&folder)?;
        Ok(Self { snapshot: folder.join("cluster.json"), folder })
    }

    /// Runs `memgate snapshot` into the file; what it says.
    fn take(&self, kubeconfig: &Path, args: &[&str]) -> Result<String> {
        let output = Command::new(MEMGATE)
            .arg("snapshot")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("-o")
            .arg(&self.snapshot)
            .args(args)
            .env_clear()
            .output()
            .context("memgate does not start")?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.success() && output.stdout.is_empty(), "{said}");
        Ok(said)
    }

    fn text(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.snapshot)?)
    }

    /// What the file says of a kind.
    fn entry(&self, kind: &str) -> Result<Value> {
        let file: Value = serde_json::from_str(&self.text()?)?;
        let mut entries = file["kinds"].as_array().into_iter().flatten();
        entries.find(|entry| entry["kind"] == kind).cloned().with_context(|| format!("{kind} is not named"))
    }

    /// Runs a command of memgate on an object with the snapshot.
    fn memgate(&self, command: &[&str], namespace: &str, object: &Value) -> Result<(String, Output)> {
        let file = self.folder.join("object.json");
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(namespace);
        fs::write(&file, object.to_string())?;
        let output = Command::new(MEMGATE)
            .args(command)
            .arg(&file)
            .arg("--snapshot")
            .arg(&self.snapshot)
            .env_clear()
            .output()
            .context("memgate does not start")?;
        let all = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        Ok((String::from_utf8(all)?, output))
    }
}

fn create(cluster: &ControlPlane, namespace: &str, objects: &[Value]) -> Result<()> {
    for object in objects {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(namespace);
        cluster.admin().apply(&object.to_string())?;
    }
    Ok(())
}

fn decides(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    // The definitions come with it.
    fixture.memgate()?;
    let (namespace, other) = (cluster.fresh_namespace("taken")?, cluster.fresh_namespace("not-taken")?);
    create(cluster, &namespace, &[memory("notes"), agent("scout", "notes")])?;
    let home = Home::new(cluster, &namespace)?;
    let said = home.take(cluster.admin_kubeconfig(), &["-n", &namespace])?;
    ensure!(said.contains("note: Secret is not in the snapshot: not asked for"), "{said}");
    ensure!(home.entry("ArkMemory")?["state"] == "known", "{}", home.text()?);
    ensure!(home.entry("CustomResourceDefinition")?["state"] == "known", "{}", home.text()?);

    let (text, _) = home.memgate(&["check"], &namespace, &agent("another", "notes"))?;
    ensure!(!text.contains("warn["), "{text}");
    ensure!(text.contains(&format!("of {namespace} only, as the cluster was at ")), "{text}");
    let (text, _) = home.memgate(&["check"], &namespace, &agent("another", "diary"))?;
    ensure!(text.contains("warn[arkonis/") && text.contains("\"diary\""), "{text}");
    // Nothing was read there, so nothing is missing there.
    let (text, _) = home.memgate(&["check"], &other, &agent("another", "diary"))?;
    ensure!(!text.contains("warn["), "{text}");

    let scout = pod("scout-0", "scout", &[]);
    let (text, _) = home.memgate(&["mutate", "--patch"], &namespace, &scout)?;
    ensure!(text.contains(r#""name":"AGENT_MEMORY_BACKEND","value":"redis""#), "{text}");
    Ok(())
}

fn holds_no_credential(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    // The definitions come with it.
    fixture.memgate()?;
    let namespace = cluster.fresh_namespace("taken")?;
    let endpoint = "http://bot:hunter2@qdrant:6333";
    let vectors =
        json!({"backend": "vector-store", "vectorStore": {"provider": "qdrant", "endpoint": endpoint}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden-name"},
        "stringData": {"REDIS_URL": "redis://:hunter2@cache"}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
        "data": {"API_TOKEN": "hunter2", "url": "http://ark-broker"}});
    create(cluster, &namespace, &[memory_of("notes", &vectors), secret, map])?;
    let home = Home::new(cluster, &namespace)?;
    home.take(cluster.admin_kubeconfig(), &["-n", &namespace])?;
    let text = home.text()?;
    ensure!(!text.contains("hunter2") && !text.contains("hidden-name"), "{text}");
    ensure!(text.contains("http://***:*******@qdrant:6333") && text.contains("http://ark-broker"), "{text}");
    ensure!(!text.contains("managedFields") && !text.contains("resourceVersion"), "{text}");
    Ok(())
}

fn secrets(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    // The definitions come with it.
    fixture.memgate()?;
    let namespace = cluster.fresh_namespace("taken")?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"},
        "stringData": {"KEY": "hunter2"}});
    create(cluster, &namespace, &[secret])?;
    let home = Home::new(cluster, &namespace)?;
    home.take(cluster.admin_kubeconfig(), &["-n", &namespace, "--secrets"])?;
    let text = home.text()?;
    ensure!(text.contains(r#""data":{"KEY":""}"#) && !text.contains("hunter2"), "{text}");
    ensure!(!text.contains("aHVudGVyMg"), "{text}");
    // With the Secrets known, one that a memory names and that is not there is missing.
    let (text, _) = home.memgate(&["check"], &namespace, &memory("notes"))?;
    ensure!(text.contains("warn[arkonis/secret-missing]"), "{text}");
    home.take(cluster.admin_kubeconfig(), &["-n", &namespace])?;
    let (text, _) = home.memgate(&["check"], &namespace, &memory("notes"))?;
    ensure!(!text.contains("arkonis/secret-missing"), "{text}");
    Ok(())
}

fn rights(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    // The definitions come with it.
    fixture.memgate()?;
    let namespace = cluster.fresh_namespace("taken")?;
    create(cluster, &namespace, &[memory("notes")])?;
    let kubeconfig = cluster.account_that_may("list", "arkmemories.arkonis.dev", &namespace)?;
    let home = Home::new(cluster, &namespace)?;
    let said = home.take(&kubeconfig, &["-n", &namespace])?;
    ensure!(
        said.contains(
            "note: ArkAgent.arkonis.dev is not in the snapshot: you may not list arkagents.arkonis.dev"
        ),
        "{said}"
    );
    ensure!(home.entry("ArkMemory")?["state"] == "known", "{said}");
    for kind in ["ArkAgent", "Service", "Namespace", "MemoryPolicy", "CustomResourceDefinition"] {
        // Where the cluster has no such kind there is nothing to be read.
        let entry = home.entry(kind)?;
        ensure!(entry["state"] == "unknown" || kind == "MemoryPolicy", "{kind}: {entry}");
    }
    let (text, _) = home.memgate(&["check"], &namespace, &pod("scout-0", "scout", &[]))?;
    ensure!(
        text.contains("so references to it count as right: ArkAgent.arkonis.dev (you may not list arkagents"),
        "{text}"
    );
    ensure!(text.contains("those that come with memgate count"), "{text}");
    Ok(())
}

fn no_namespace(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let home = Home::new(cluster, "nowhere")?;
    let error = home.take(cluster.admin_kubeconfig(), &["-n", "nowhere"]).err().context("it was taken")?;
    ensure!(error.to_string() == "error: there is no namespace nowhere\n", "{error}");
    ensure!(!home.snapshot.exists(), "a file was written");
    Ok(())
}
