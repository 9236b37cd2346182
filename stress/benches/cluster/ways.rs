//! The ways in which an agent pod gets its memory: each is a few objects in the cluster.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use super::cases::{CONSTANT, MEMGATE, NOTHING, PEER, POLICY};
use super::creators::{Expected, NAMESPACE, pod};
use crate::installed::documents;
use crate::request::{create, send};
use crate::support::control_plane::ControlPlane;
use crate::support::wait;
use crate::support::webhook::{Endpoint, Webhook};

const API: &str = "/apis/admissionregistration.k8s.io/v1";

/// The webhook of memgate that is called about pods of arkonis agents.
const POD_WEBHOOK: &str = "arkonis.pods.memgate.dev";

/// More than a busy machine needs, so that no pod goes without its memory for want of time.
const WEBHOOK_SECONDS: u8 = 30;

/// What a pod gets.
const VARIABLES: [(&str, &str); 5] = [
    ("AGENT_MEMORY_BACKEND", "vector-store"),
    ("AGENT_MEMORY_VECTOR_STORE_PROVIDER", "qdrant"),
    ("AGENT_MEMORY_VECTOR_STORE_ENDPOINT", "http://qdrant.vectors.svc:6333"),
    ("AGENT_MEMORY_VECTOR_STORE_COLLECTION", "notes"),
    ("AGENT_MEMORY_VECTOR_STORE_TTL", "86400"),
];

/// How the container gets its variables.
#[derive(Clone)]
pub(crate) struct Way {
    /// As tables call it.
    pub(crate) name: &'static str,
    /// The annotation that a pod has from it alone.
    mark: Option<&'static str>,
    objects: Vec<Value>,
}

/// The annotations of all ways.
const MARKS: [&str; 4] = [
    "memgate.dev/injected",
    "peer.memgate.dev/injected",
    "policy.memgate.dev/injected",
    "constant.memgate.dev/injected",
];

/// The annotations of memgate and of the constant answer, as JSON pointers have them.
pub(crate) const POINTERS: (&str, &str) = ("memgate.dev~1injected", "constant.memgate.dev~1injected");

impl Way {
    /// Pods stay as they are.
    pub(crate) fn nothing() -> Self {
        Self { name: NOTHING, mark: None, objects: Vec::new() }
    }

    /// What memgate's own command prints for a memgate on this machine, with more patience.
    pub(crate) fn memgate(program: &Path, cluster: &ControlPlane, webhook: &Webhook) -> Result<Self> {
        let ca = cluster.scratch().write("memgate-ca.crt", webhook.ca())?;
        let url = format!("https://{}", webhook.addresses().listen);
        let mut command = Command::new(program);
        let output = command.args(["manifests", "--url", &url, "--ca"]).arg(ca).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut objects = documents(&String::from_utf8(output.stdout)?);
        for webhook in objects.iter_mut().filter_map(|object| object["webhooks"].as_array_mut()).flatten() {
            webhook["timeoutSeconds"] = json!(WEBHOOK_SECONDS);
            webhook["failurePolicy"] = json!("Fail");
        }
        Ok(Self { name: MEMGATE, mark: Some(MARKS[0]), objects })
    }

    /// The constant answer, called by all that memgate is called by.
    pub(crate) fn constant(&self, endpoint: &Endpoint) -> Result<Self> {
        let mut objects = self.objects.clone();
        for webhook in objects.iter_mut().filter_map(|object| object["webhooks"].as_array_mut()).flatten() {
            let url = webhook["clientConfig"]["url"].as_str().context("a webhook has a URL")?;
            let path = url.rfind('/').map(|start| &url[start..]).context("a URL has a path")?;
            webhook["clientConfig"] = endpoint.client_config(path);
        }
        Ok(Self { name: CONSTANT, mark: Some(MARKS[3]), objects })
    }

    /// The peer, called about the same pods under the same conditions.
    pub(crate) fn peer(&self, endpoint: &Endpoint) -> Result<Self> {
        let mut webhook = self.pod_webhook()?.clone();
        webhook["name"] = json!("peer.memgate.dev");
        webhook["clientConfig"] = endpoint.client_config("/mutate");
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "peer"}, "webhooks": [webhook],
        });
        Ok(Self { name: PEER, mark: Some(MARKS[1]), objects: vec![configuration] })
    }

    /// The apiserver by itself, for the same pods under the same conditions: values are constants, as it knows no agents.
    pub(crate) fn policy(&self) -> Result<Self> {
        let webhook = self.pod_webhook()?;
        let add = |path: &str, value: &str| format!("JSONPatch{{op: 'add', path: {path}, value: {value}}}");
        let mut operations: Vec<_> = VARIABLES
            .iter()
            .rev()
            .map(|(name, value)| {
                add("variables.env + '0'", &format!("{{'name': '{name}', 'value': '{value}'}}"))
            })
            .collect();
        let mark = format!("'/metadata/annotations/' + jsonpatch.escapeKey('{}')", MARKS[2]);
        operations.push(add(&mark, "'notes'"));
        let env =
            "'/spec/containers/' + string(object.spec.containers.map(c, c.name).indexOf('agent')) + '/env/'";
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": "policy"},
            "spec": {
                "failurePolicy": "Fail", "reinvocationPolicy": "IfNeeded",
                "matchConstraints": {
                    "namespaceSelector": webhook["namespaceSelector"], "objectSelector": webhook["objectSelector"],
                    "matchPolicy": webhook["matchPolicy"], "resourceRules": webhook["rules"],
                },
                "matchConditions": webhook["matchConditions"],
                "variables": [{"name": "env", "expression": env}],
                "mutations": [{
                    "patchType": "JSONPatch", "jsonPatch": {"expression": format!("[{}]", operations.join(", "))},
                }],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": "policy"}, "spec": {"policyName": "policy"},
        });
        Ok(Self { name: POLICY, mark: Some(MARKS[2]), objects: vec![policy, binding] })
    }

    /// Whether the apiserver asks anyone.
    pub(crate) fn calls_webhook(&self) -> bool {
        [MEMGATE, CONSTANT, PEER].contains(&self.name)
    }

    fn pod_webhook(&self) -> Result<&Value> {
        let mut webhooks =
            self.objects.iter().flat_map(|object| object["webhooks"].as_array().into_iter().flatten());
        webhooks.find(|webhook| webhook["name"] == POD_WEBHOOK).context("arkonis has no webhook for pods")
    }

    /// Puts it into the cluster, and waits until a pod gets its memory in this way and in no other.
    pub(crate) fn begin(&self, cluster: &ControlPlane) -> Result<()> {
        let client = cluster.client();
        for object in &self.objects {
            let path = collection(object)?;
            cluster.block_on(send(&client, Method::POST, &path, Some(object)))?.object()?;
        }
        let pod = pod("probe")?;
        wait::until(&format!("pods to be changed by {}", self.name), || {
            let answer = cluster.block_on(create(&client, NAMESPACE, &pod, "?dryRun=All"))?;
            let annotations = &answer.object()?["metadata"]["annotations"];
            let is_right =
                MARKS.iter().all(|mark| annotations.get(mark).is_some() == (self.mark == Some(*mark)));
            Ok(is_right.then_some(()))
        })
    }

    /// Takes it out again.
    pub(crate) fn end(&self, cluster: &ControlPlane) -> Result<()> {
        for object in &self.objects {
            let name = object["metadata"]["name"].as_str().context("an object has a name")?;
            let path = format!("{}/{name}", collection(object)?);
            cluster.block_on(send(&cluster.client(), Method::DELETE, &path, None))?.object()?;
        }
        Ok(())
    }

    /// What each pod shows of it.
    pub(crate) fn expected(&self) -> Expected {
        let all = || MARKS.iter().map(|mark| format!("\"{mark}\":"));
        let Some(mark) = self.mark else {
            return Expected {
                missing: all().chain(["AGENT_MEMORY_".to_owned()]).collect(),
                ..Expected::default()
            };
        };
        let mark = format!("\"{mark}\":");
        let variables =
            VARIABLES.iter().map(|(name, value)| format!(r#"{{"name":"{name}","value":"{value}"}}"#));
        Expected {
            missing: all().filter(|other| *other != mark).collect(),
            held: variables.chain([mark.clone()]).collect(),
        }
    }
}

/// Where objects of its kind are.
fn collection(object: &Value) -> Result<String> {
    let kind = object["kind"].as_str().context("an object has a kind")?;
    let plural = match kind.strip_suffix("Policy") {
        Some(stem) => format!("{stem}policies"),
        None => format!("{kind}s"),
    };
    Ok(format!("{API}/{}", plural.to_lowercase()))
}
