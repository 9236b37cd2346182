//! Recognises the worker of an AI Task, and reads it.
//!
//! Image and service account are not considered, since each installation chooses its own.

use serde_json::value::RawValue;

use crate::inject::{env, label_pointer};
use memgate_model::finding::Finding;
use memgate_model::pod::{Container, Mount, Owners, Pod, visit_elements};
use memgate_model::view::View;
use memgate_primitives::plain_text::quoted;

use super::super::api::{POOL_LABEL_PREFIX, TASK_LABEL, TASK_TYPE_AI, TASK_TYPE_LABEL, WORKER_CONTAINER};
use super::super::codes::{POD_LABEL_DIFFERS, POD_NAMESPACE_DIFFERS};
use super::super::selector_value::selector_value;

const TASK_NAME: &str = "ORKA_TASK_NAME";
const TASK_NAMESPACE: &str = "ORKA_TASK_NAMESPACE";
const CONTROLLER_URL: &str = "ORKA_CONTROLLER_URL";
const AGENT_NAME: &str = "ORKA_AGENT_NAME";
const TOKEN: &str = "ORKA_SA_TOKEN";

/// Where the kubelet mounts the token of a service account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The label and value of another kind of pool pods.
const APP_LABEL: (&str, &str) = ("app.kubernetes.io/name", "orka-acp-runtime");

/// The container of an AI worker.
pub(in super::super) struct Worker<'p, 'a> {
    /// Its index among the pod's containers.
    pub(super) index: usize,
    pub(super) container: &'p Container<'a>,
    pub(super) task_name: &'p str,
    pub(super) task_namespace: &'p str,
}

impl<'p, 'a> Worker<'p, 'a> {
    /// Finds the worker of a pod. Does not compare its fields with each other yet.
    pub(in super::super) fn find(pod: &'p Pod<'a>) -> Option<Self> {
        let is_ai_worker = pod.label(TASK_LABEL).is_some_and(|task| !task.is_empty())
            && pod.label(TASK_TYPE_LABEL) == Some(TASK_TYPE_AI);
        if !is_ai_worker || is_pooled(pod) || !made_by_job(pod) {
            return None;
        }
        let mut containers = pod.containers().iter().enumerate();
        let (index, container) =
            containers.find(|(_, container)| container.name.as_deref() == Some(WORKER_CONTAINER))?;
        let literal = |name| container.variable(name).and_then(|(_, variable)| variable.literal());
        // The worker trims the values before it asks whether they are set.
        let set = |name| literal(name).filter(|text| !text.trim().is_empty());
        set(CONTROLLER_URL)?;
        Some(Self { index, container, task_name: set(TASK_NAME)?, task_namespace: set(TASK_NAMESPACE)? })
    }

    /// Contradictions in the pod. A pod with a contradiction stays unchanged.
    pub(in super::super) fn contradictions(&self, pod: &Pod<'_>, namespace: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.task_namespace != namespace {
            let message = format!(
                "{TASK_NAMESPACE} {} differs from the pod's namespace {}",
                quoted(self.task_namespace),
                quoted(namespace)
            );
            let list = env::pointer(self.index);
            let pointer = match self.container.variable(TASK_NAMESPACE) {
                Some((index, _)) => list.index(index),
                None => list,
            };
            findings.push(Finding::warn(&POD_NAMESPACE_DIFFERS, pointer, message));
        }
        if pod.label(TASK_LABEL) != Some(selector_value(self.task_name).as_str()) {
            let expected = quoted(&selector_value(self.task_name));
            let message = format!("label {TASK_LABEL} does not match {TASK_NAME}: it should be {expected}");
            findings.push(Finding::warn(&POD_LABEL_DIFFERS, label_pointer(TASK_LABEL), message));
        }
        findings
    }

    /// The Agent that the pod's variable names.
    pub(super) fn agent_name(&self) -> Option<&'p str> {
        self.container
            .variable(AGENT_NAME)
            .and_then(|(_, variable)| variable.literal())
            .filter(|name| !name.is_empty())
    }

    /// Whether the container may have a token besides the automounted one.
    pub(super) fn has_token(&self) -> bool {
        let mounted = |mount: Mount<'_>| {
            mount.path.as_deref().is_some_and(|path| path.trim_end_matches('/') == TOKEN_PATH)
        };
        self.container.variable(TOKEN).is_some()
            || has_any(self.container.env_from, |_: &RawValue| true)
            || has_any(self.container.volume_mounts, mounted)
    }
}

fn is_pooled(pod: &Pod<'_>) -> bool {
    let labels = pod.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    let pooled = |key: &str| key.starts_with(POOL_LABEL_PREFIX);
    pod.label(APP_LABEL.0) == Some(APP_LABEL.1) || labels.is_some_and(|labels| labels.keys().any(pooled))
}

/// Whether a Job owns the pod. A pod without owners comes from a file and passes.
fn made_by_job(pod: &Pod<'_>) -> bool {
    let owners = pod.metadata.as_ref().and_then(|metadata| metadata.owner_references.as_ref());
    owners.is_none_or(Owners::allow_job)
}

/// Whether any element of a list that was left unread passes a test.
fn has_any<'a, T: View<'a>>(list: Option<&'a RawValue>, test: impl Fn(T) -> bool) -> bool {
    let mut found = false;
    visit_elements(list, |element| found |= test(element)).is_some() && found
}
