//! Which objects count for a pod: from its worker to those whose annotations count, and what they say.

use crate::family::inject::label_pointer;
use crate::model::finding::{Finding, quoted};
use crate::model::kind::{Kind, NAMESPACE};
use crate::model::object::{Lookup, Object};
use crate::model::state_reader::StateReader;

use super::super::api::{
    PARENT_ANNOTATION, PARENT_LABEL, SCHEDULED_LABEL, STATE_AGENT, STATE_TASK, TASK_LABEL, agent_ref,
    annotation, label,
};
use super::super::codes::AGENT_MISSING;
use super::super::setting::{Setting, SettingValue};
use super::recognise::Worker;

/// The objects that may say something about the memory of a pod.
pub(super) struct SettingSources<'s> {
    task: Option<AnnotatedObject<'s>>,
    /// Only of a Task that a schedule made: Orka copies the spec to it, but no annotation.
    parent: Option<AnnotatedObject<'s>>,
    agent: Option<AnnotatedObject<'s>>,
    namespace: Option<AnnotatedObject<'s>>,
    /// What was found wrong on the way.
    pub(super) warnings: Vec<Finding>,
}

/// An object that could not be looked up.
pub(super) struct UnknownObject {
    pub(super) kind: &'static str,
    pub(super) name: String,
}

/// An object with annotations.
#[derive(Clone, Copy)]
pub(super) struct AnnotatedObject<'s> {
    kind: &'static str,
    object: &'s Object,
}

/// What a setting is set to, and by whom.
pub(super) struct ResolvedSetting<'s> {
    pub(super) value: SettingValue,
    pub(super) source: AnnotatedObject<'s>,
}

impl AnnotatedObject<'_> {
    /// As messages and diffs call it.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.kind, self.namespaced_name())
    }

    /// As the annotation on the pod calls it.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.kind, self.namespaced_name())
    }

    fn namespaced_name(&self) -> String {
        let Object { namespace, name, .. } = self.object;
        if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") }
    }
}

impl<'s> SettingSources<'s> {
    /// Follows the references from a worker of this namespace.
    ///
    /// # Errors
    /// The first object that could not be looked up. A namespace of which nothing is known says
    /// nothing.
    pub(super) fn look_up(
        worker: &Worker<'_, '_>,
        namespace: &str,
        state: &mut StateReader<'s>,
    ) -> Result<Self, UnknownObject> {
        let pod_namespace = match state.get(&NAMESPACE, "", namespace) {
            Lookup::Found(object) => Some(AnnotatedObject { kind: NAMESPACE.kind, object }),
            Lookup::Absent | Lookup::Unknown => None,
        };
        let task = get(&STATE_TASK, namespace, worker.task_name, state)?;
        let parent = match task.and_then(scheduled_parent) {
            Some(name) => get(&STATE_TASK, namespace, name, state)?,
            None => None,
        };
        let mut sources = Self { task, parent, agent: None, namespace: pod_namespace, warnings: Vec::new() };
        if let Some((agent_namespace, name)) = agent_reference(task, worker) {
            let agent_namespace = agent_namespace.unwrap_or(namespace);
            sources.agent = get(&STATE_AGENT, agent_namespace, name, state)?;
            if sources.agent.is_none() {
                let message = format!("Agent {} not found", quoted(&format!("{agent_namespace}/{name}")));
                sources.warnings.push(Finding::warn(&AGENT_MISSING, label_pointer(TASK_LABEL), message));
            }
        }
        Ok(sources)
    }

    /// The first valid value. What an Agent turns off stays off.
    pub(super) fn resolve(&mut self, setting: Setting) -> Option<ResolvedSetting<'s>> {
        let Self { task, parent, agent, namespace, .. } = *self;
        match setting {
            Setting::Enabled => {
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

    /// What one object says; a value that means nothing is warned of and counts as none.
    fn read(&mut self, setting: Setting, source: Option<AnnotatedObject<'s>>) -> Option<ResolvedSetting<'s>> {
        let source = source?;
        let key = setting.annotation();
        match setting.parse_annotation(annotation(&source.object.tree, key)?) {
            Ok(value) => Some(ResolvedSetting { value, source }),
            Err(message) => {
                let message = format!("{} metadata.annotations[{key}]: {message}", source.title());
                self.warnings.push(Finding::warn(
                    setting.annotation_code(),
                    label_pointer(TASK_LABEL),
                    message,
                ));
                None
            }
        }
    }
}

/// The object, or `None` where there is none.
fn get<'s>(
    kind: &'static Kind,
    namespace: &str,
    name: &str,
    state: &mut StateReader<'s>,
) -> Result<Option<AnnotatedObject<'s>>, UnknownObject> {
    match state.get(kind, namespace, name) {
        Lookup::Found(object) => Ok(Some(AnnotatedObject { kind: kind.kind, object })),
        Lookup::Absent => Ok(None),
        Lookup::Unknown => Err(UnknownObject { kind: kind.kind, name: format!("{namespace}/{name}") }),
    }
}

/// The name of the Task whose schedule made this one.
fn scheduled_parent(task: AnnotatedObject<'_>) -> Option<&str> {
    let task = &task.object.tree;
    if label(task, SCHEDULED_LABEL) != Some("true") {
        return None;
    }
    let full_name = annotation(task, PARENT_ANNOTATION).filter(|name| !name.is_empty());
    full_name.or_else(|| label(task, PARENT_LABEL)).filter(|name| !name.is_empty())
}

/// The Agent that the Task names. Without a Task the pod's own word counts; with one it may be the
/// user's own.
fn agent_reference<'n>(
    task: Option<AnnotatedObject<'n>>,
    worker: &Worker<'n, '_>,
) -> Option<(Option<&'n str>, &'n str)> {
    match task {
        Some(task) => agent_ref(&task.object.tree),
        None => worker.agent_name().map(|name| (None, name)),
    }
}
