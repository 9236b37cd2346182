//! Recognises the worker of an AI Task, finds the objects whose annotations apply to it, and resolves the settings in
//! them.
//!
//! Image and service account are not considered, since each installation chooses its own.

use std::fmt::Write as _;

use crate::orka::prelude::*;
use crate::orka::setting::{Setting, SettingValue};
use memgate_model::pod::{Mount, Owners, visit_elements};
use memgate_model::view::View;
use ring::digest::{SHA256, digest};

/// The objects whose annotations can set the memory of a pod.
pub(super) struct SettingSources<'s> {
    task: Option<&'s Object>,
    /// Only for a Task that a schedule created: Orka copies the spec to it, but not the annotations.
    parent: Option<&'s Object>,
    agent: Option<&'s Object>,
    namespace: Option<&'s Object>,
    /// Warnings about these objects.
    pub(super) warnings: Vec<Finding>,
}

/// The value of a setting, and the object that sets it.
pub(super) struct ResolvedSetting<'s> {
    pub(super) value: SettingValue,
    pub(super) source: &'s Object,
}

/// The name of an object in messages and diffs; `separator` comes after the kind.
pub(super) fn title(object: &Object, separator: char) -> String {
    let Object { kind, namespace, name, .. } = object;
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{}{separator}{namespace}{slash}{name}", kind.kind)
}

impl<'s> SettingSources<'s> {
    /// Follows the references from a worker of this namespace.
    ///
    /// # Errors
    /// About the first object that could not be looked up. An unknown namespace is skipped.
    pub(super) fn look_up(
        worker: &Worker<'_, '_>,
        namespace: &str,
        state: &mut StateReader<'s>,
    ) -> Result<Self, Unmet> {
        let pod_namespace = state.get(&NAMESPACE, "", namespace).found();
        let failed = (&LOOKUP_FAILED, TASK_LABEL);
        let task = look_up(&STATE_TASK, [namespace, worker.task_name], failed, state)?;
        let parent = match task.and_then(|task| scheduled_parent(task.tree())) {
            Some(name) => look_up(&STATE_TASK, [namespace, name], failed, state)?,
            None => None,
        };
        let mut sources = Self { task, parent, agent: None, namespace: pod_namespace, warnings: Vec::new() };
        if let Some((agent_namespace, name)) = agent_reference(task, worker) {
            let agent_namespace = agent_namespace.unwrap_or(namespace);
            sources.agent = look_up(&STATE_AGENT, [agent_namespace, name], failed, state)?;
            if sources.agent.is_none() {
                let message = format!("Agent {} not found", quoted(&format!("{agent_namespace}/{name}")));
                let finding = Finding::warn(&AGENT_MISSING, label_pointer(TASK_LABEL), message);
                sources.warnings.push(finding.and_elsewhere(|| {
                    let (task, at) = (task?, Pointer::new("/spec/agentRef/name"));
                    Some(Elsewhere::of(task, at, "named here"))
                }));
            }
        }
        Ok(sources)
    }

    /// The first valid value. An Agent's opt-out is final.
    pub(super) fn resolve(&mut self, setting: &'static Setting) -> Option<ResolvedSetting<'s>> {
        let Self { task, parent, agent, namespace, .. } = *self;
        if !setting.is_switch() {
            let mut sources = [task, parent, agent, namespace].into_iter();
            return sources.find_map(|source| self.read(setting, source));
        }
        let of_agent = self.read(setting, agent);
        if of_agent.as_ref().is_some_and(|resolved| resolved.value == SettingValue::Switch(false)) {
            return of_agent;
        }
        let of_task = [task, parent].into_iter().find_map(|source| self.read(setting, source));
        of_task.or(of_agent).or_else(|| self.read(setting, namespace))
    }

    /// The value that one object sets. An invalid value adds a warning and counts as absent.
    fn read(&mut self, setting: &'static Setting, source: Option<&'s Object>) -> Option<ResolvedSetting<'s>> {
        let source = source?;
        let key = setting.annotation;
        match setting.parse_annotation(annotation(source.tree(), key)?) {
            Ok(value) => Some(ResolvedSetting { value, source }),
            Err(message) => {
                let message = format!("{} metadata.annotations[{key}]: {message}", title(source, ' '));
                let finding = Finding::warn(setting.annotation_code, label_pointer(TASK_LABEL), message);
                let at = annotation_pointer(key);
                self.warnings.push(finding.elsewhere(source, at, "invalid"));
                None
            }
        }
    }
}

/// The Agent that the Task names. The pod's variable counts only if there is no Task, since users can set
/// the variable themselves.
fn agent_reference<'n>(
    task: Option<&'n Object>,
    worker: &Worker<'n, '_>,
) -> Option<(Option<&'n str>, &'n str)> {
    match task {
        Some(task) => agent_ref(task.tree()),
        None => worker.agent_name().map(|name| (None, name)),
    }
}

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
pub(crate) struct Worker<'p, 'a> {
    /// Its index among the pod's containers.
    pub(super) index: usize,
    pub(super) container: &'p Container<'a>,
    pub(super) task_name: &'p str,
    pub(super) task_namespace: &'p str,
}

impl<'p, 'a> Worker<'p, 'a> {
    /// Finds the worker of a pod. Does not compare its fields with each other yet.
    pub(crate) fn find(pod: &'p Pod<'a>) -> Option<Self> {
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
    pub(crate) fn contradictions(&self, pod: &Pod<'_>, namespace: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.task_namespace != namespace {
            let text = "{bare} {} differs from the pod's namespace {}";
            let values = [TASK_NAMESPACE, self.task_namespace, namespace];
            let list = env::pointer(self.index);
            let pointer = match self.container.variable(TASK_NAMESPACE) {
                Some((index, _)) => list.index(index),
                None => list,
            };
            findings.push(warning(&POD_NAMESPACE_DIFFERS, pointer, text, values));
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

/// The longest value of a label. Source: Kubernetes documentation, Labels and Selectors.
const MAX_LABEL_BYTES: usize = 63;

/// How many bytes of a longer name are kept, before a part of its hash.
const NAME_PREFIX_BYTES: usize = 50;

/// How many bytes of the hash are kept, as two digits each.
const HASH_BYTES: usize = 6;

/// The label value for a name. Source: orka-agents/orka, the function of this name.
pub(crate) fn selector_value(name: &str) -> String {
    let name = name.trim();
    if name.len() <= MAX_LABEL_BYTES && is_label_value(name) {
        return name.to_owned();
    }
    let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
    let plain: String = name.to_lowercase().chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    let value = match trim_separators(&plain) {
        "" => "label",
        value => value,
    };
    if value.len() <= MAX_LABEL_BYTES {
        return value.to_owned();
    }
    let start = trim_separators(value.get(..NAME_PREFIX_BYTES).unwrap_or(value));
    let hash = digest(&SHA256, name.as_bytes());
    hash.as_ref().iter().take(HASH_BYTES).fold(format!("{start}-"), |mut value, byte| {
        let _ = write!(value, "{byte:02x}");
        value
    })
}

fn trim_separators(value: &str) -> &str {
    value.trim_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// Source: Kubernetes documentation, Labels and Selectors, syntax.
fn is_label_value(value: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    trim_separators(value) == value && value.bytes().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_fits_and_hashes_the_rest() {
        let long = format!("a{}.end", "b".repeat(70));
        for (name, value) in [
            ("cut-release", "cut-release"),
            (" Cut_Release ", "Cut_Release"),
            ("", ""),
            ("-a", "a"),
            ("Räksmörgås", "r-ksm-rg-s"),
            ("---", "label"),
        ] {
            assert_eq!(selector_value(name), value, "{name}");
        }
        let value = selector_value(&long);
        assert_eq!(value.len(), MAX_LABEL_BYTES);
        assert!(value.starts_with(&format!("a{}-", "b".repeat(49))));
        // The ends of the first fifty characters are stripped once more.
        let dotted = format!("{}.{}", "a".repeat(49), "b".repeat(30));
        assert!(selector_value(&dotted).starts_with(&format!("{}-", "a".repeat(49))));
        assert_eq!(selector_value(&dotted).len(), 62);
    }

    #[test]
    fn hashes_the_trimmed_name() {
        let name = "x".repeat(64);
        // printf 'xxx…' | sha256sum, 64 of them.
        let value = selector_value(&format!(" {name}\n"));
        assert_eq!(value, format!("{}-7ce100971f64", "x".repeat(50)));
    }
}
