//! The containers that memgate adds. They pass Pod Security "restricted" and have requests and limits.

use serde_json::{Value, json};

use memgate_model::edit::KeyRef;

use crate::inject::containers::{health_checked_port, resources, security_context};

use super::super::super::api::{MEMORY_SERVER, MEMORY_SERVER_PORT};
use super::super::super::variables::PRIVATE_TOKEN;

/// The group of volumes in pods that do not set one. Without it the memory server could not write to a new volume.
/// Source: upstream, issue 49.
pub(super) const DEFAULT_FS_GROUP_ID: i64 = 1000;

/// The directory in which the memory server looks for requests in files.
const IPC_VARIABLE: &str = "MEMORY_IPC_DIR";

/// The initial memories of an agent, as a JSON list.
const SEEDS_VARIABLE: &str = "MEMORY_SEEDS";

/// An init container that succeeds as soon as the memory server at this URL answers. `server` is the server's name in
/// the failure message; `has_user` tells whether the pod sets the user of its containers.
pub(super) fn wait_container(name: &str, server: &str, url: &str, image: &str, has_user: bool) -> Value {
    let url = format!("{}/health", url.strip_suffix('/').unwrap_or(url)).replace('\'', r"'\''");
    // `timeout` bounds the total time, however long each try takes. The script must not contain `$(`, which
    // Kubernetes would read as a variable.
    let script = format!(
        "export URL='{url}'\n\
         timeout 120 sh -c 'until timeout 2 wget -q -O /dev/null \"$URL\"; do \
         echo \"waiting for $URL\"; sleep 2; done' && exit 0\n\
         echo 'ERROR: {server} not ready after 120s'\n\
         exit 1\n"
    );
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "resources": resources(("50m", "32Mi"), ("100m", "64Mi")),
        "securityContext": security_context(has_user),
    })
}

/// The memory server in the pod of the agent.
pub(super) struct MemoryServer<'a> {
    pub(super) agent: &'a str,
    pub(super) image: &'a str,
    /// The command, if the SkillPack sets one.
    pub(super) command: Vec<&'a str>,
    /// The seeds of an empty database, as the value of their variable.
    pub(super) seeds: Option<String>,
    /// The Secret with the writer token, without which it refuses writes.
    pub(super) token: Option<KeyRef>,
    /// The variables from the SkillPack: names, and entries of `env`.
    pub(super) env: Vec<(&'a str, Value)>,
    /// The volume of the request files. Without it, the server accepts only HTTP.
    pub(super) ipc: Option<String>,
    pub(super) has_user: bool,
}

impl MemoryServer<'_> {
    pub(super) fn container(&self) -> Value {
        let mut container = json!({
            "name": MEMORY_SERVER,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "restartPolicy": "Always",
            "env": self.variables(),
            "resources": resources(("50m", "64Mi"), ("200m", "128Mi")),
            "securityContext": security_context(self.has_user),
            "volumeMounts": self.mounts(),
        });
        if let Value::Object(fields) = &mut container {
            let put = health_checked_port(MEMORY_SERVER_PORT);
            fields.extend(put.map(|(key, value)| (key.to_owned(), value)));
            if !self.command.is_empty() {
                fields.insert("command".to_owned(), json!(self.command));
            }
        }
        container
    }

    fn mounts(&self) -> Vec<Value> {
        let ipc = self.ipc.as_ref().map(|volume| json!({"name": volume, "mountPath": "/ipc"}));
        std::iter::once(json!({"name": "memory-db", "mountPath": "/data"})).chain(ipc).collect()
    }

    fn variables(&self) -> Vec<Value> {
        let mut own = vec![
            ("MEMORY_DB_PATH", "/data/memory.db".to_owned()),
            ("MEMORY_PORT", MEMORY_SERVER_PORT.to_string()),
            ("MEMORY_AGENT", self.agent.to_owned()),
        ];
        if self.ipc.is_some() {
            own.push((IPC_VARIABLE, "/ipc/tools".to_owned()));
        }
        let mut more: Vec<(&str, String)> = Vec::new();
        more.extend(self.seeds.clone().map(|seeds| (SEEDS_VARIABLE, seeds)));
        // The root file system is read-only, and SQLite sorts large results on disk.
        more.push(("SQLITE_TMPDIR", "/data".to_owned()));
        let literal = |(name, value)| (name, json!({"name": name, "value": value}));
        let token = self.token.as_ref().map(|secret| {
            (PRIVATE_TOKEN, json!({"name": PRIVATE_TOKEN, "valueFrom": {"secretKeyRef": secret}}))
        });
        let own: Vec<(&str, Value)> =
            own.into_iter().map(literal).chain(token).chain(more.into_iter().map(literal)).collect();
        // A SkillPack must not set the request directory, which a harness may not use.
        let is_own = |name: &str| name == IPC_VARIABLE || own.iter().any(|(own, _)| *own == name);
        let of_pack = self.env.iter().filter(|(name, _)| !is_own(name)).map(|(_, variable)| variable.clone());
        let of_pack: Vec<Value> = of_pack.collect();
        own.into_iter().map(|(_, variable)| variable).chain(of_pack).collect()
    }
}
