//! Finds the objects whose annotations apply to a worker, and resolves the settings in them.

use crate::inject::{Unmet, annotation_pointer, label_pointer, lookup_failed};
use memgate_model::elsewhere::Elsewhere;
use memgate_model::finding::Finding;
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::object::{Lookup, Object};
use memgate_model::state_reader::StateReader;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::{STATE_AGENT, STATE_TASK, TASK_LABEL, agent_ref, annotation, scheduled_parent};
use super::super::codes::{AGENT_MISSING, LOOKUP_FAILED};
use super::super::setting::{Setting, SettingValue};
use super::recognise::Worker;

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
        let task = get(&STATE_TASK, namespace, worker.task_name, state)?;
        let parent = match task.and_then(|task| scheduled_parent(task.tree())) {
            Some(name) => get(&STATE_TASK, namespace, name, state)?,
            None => None,
        };
        let mut sources = Self { task, parent, agent: None, namespace: pod_namespace, warnings: Vec::new() };
        if let Some((agent_namespace, name)) = agent_reference(task, worker) {
            let agent_namespace = agent_namespace.unwrap_or(namespace);
            sources.agent = get(&STATE_AGENT, agent_namespace, name, state)?;
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
    pub(super) fn resolve(&mut self, setting: Setting) -> Option<ResolvedSetting<'s>> {
        let Self { task, parent, agent, namespace, .. } = *self;
        match setting {
            Setting::Enabled | Setting::Tools => {
                let agent_setting = self.read(setting, agent);
                if agent_setting
                    .as_ref()
                    .is_some_and(|resolved| resolved.value == SettingValue::Switch(false))
                {
                    return agent_setting;
                }
                let task_setting = [task, parent].into_iter().find_map(|source| self.read(setting, source));
                task_setting.or(agent_setting).or_else(|| self.read(setting, namespace))
            }
            Setting::Limit | Setting::MaxChars => {
                let mut sources = [task, parent, agent, namespace].into_iter();
                sources.find_map(|source| self.read(setting, source))
            }
        }
    }

    /// The value that one object sets. An invalid value adds a warning and counts as absent.
    fn read(&mut self, setting: Setting, source: Option<&'s Object>) -> Option<ResolvedSetting<'s>> {
        let source = source?;
        let key = setting.annotation();
        match setting.parse_annotation(annotation(source.tree(), key)?) {
            Ok(value) => Some(ResolvedSetting { value, source }),
            Err(message) => {
                let message = format!("{} metadata.annotations[{key}]: {message}", title(source, ' '));
                let finding = Finding::warn(setting.annotation_code(), label_pointer(TASK_LABEL), message);
                let at = annotation_pointer(key);
                self.warnings.push(finding.elsewhere(source, at, "invalid"));
                None
            }
        }
    }
}

/// The object, or `None` if it does not exist.
fn get<'s>(
    kind: &'static Kind,
    namespace: &str,
    name: &str,
    state: &mut StateReader<'s>,
) -> Result<Option<&'s Object>, Unmet> {
    match state.get(kind, namespace, name) {
        Lookup::Found(object) => Ok(Some(object)),
        Lookup::Absent => Ok(None),
        Lookup::Unknown(()) => {
            let object = [kind.kind, namespace, name];
            Err(lookup_failed(&LOOKUP_FAILED, label_pointer(TASK_LABEL), object, state))
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
