//! Which objects count for a pod: from its worker to those whose annotations count, and what they say.

use crate::family::inject::label_pointer;
use crate::model::finding::{Finding, quoted};
use crate::model::kind::{Kind, NAMESPACE};
use crate::model::object::{Lookup, Object};
use crate::model::state_reader::StateReader;

use super::super::api::{
    KNOWN_AGENT, KNOWN_TASK, PARENT_ANNOTATION, PARENT_LABEL, SCHEDULED_LABEL, TASK_LABEL, agent_ref,
    annotation, label,
};
use super::super::codes::AGENT_MISSING;
use super::super::setting::{Setting, Value};
use super::recognise::Worker;

/// The objects that may say something about the memory of a pod.
pub(super) struct Chain<'s> {
    task: Option<Source<'s>>,
    /// Only of a Task that a schedule made: Orka copies the spec to it, but no annotation.
    parent: Option<Source<'s>>,
    agent: Option<Source<'s>>,
    namespace: Option<Source<'s>>,
    /// What was found wrong on the way.
    pub(super) warnings: Vec<Finding>,
}

/// An object that could not be looked up.
pub(super) struct Unknown {
    pub(super) kind: &'static str,
    pub(super) name: String,
}

/// An object with annotations.
#[derive(Clone, Copy)]
pub(super) struct Source<'s> {
    kind: &'static str,
    object: &'s Object,
}

/// What a setting is set to, and by whom.
pub(super) struct Resolved<'s> {
    pub(super) value: Value,
    pub(super) source: Source<'s>,
}

impl Source<'_> {
    /// As messages and diffs call it.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.kind, self.place())
    }

    /// As the annotation on the pod calls it.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.kind, self.place())
    }

    fn place(&self) -> String {
        let Object { namespace, name, .. } = self.object;
        if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") }
    }
}

impl<'s> Chain<'s> {
    /// Follows the references from a worker of this namespace.
    ///
    /// # Errors
    /// The first object that could not be looked up. A namespace of which nothing is known says
    /// nothing.
    pub(super) fn find(
        worker: &Worker<'_, '_>,
        namespace: &str,
        state: &mut StateReader<'s>,
    ) -> Result<Self, Unknown> {
        let home = match state.get(&NAMESPACE, "", namespace) {
            Lookup::Found(object) => Some(Source { kind: NAMESPACE.kind, object }),
            Lookup::Absent | Lookup::Unknown => None,
        };
        let task = known(&KNOWN_TASK, namespace, worker.task_name, state)?;
        let parent = match task.and_then(scheduled_parent) {
            Some(name) => known(&KNOWN_TASK, namespace, name, state)?,
            None => None,
        };
        let mut chain = Self { task, parent, agent: None, namespace: home, warnings: Vec::new() };
        if let Some((agent_namespace, name)) = agent_of(task, worker) {
            let agent_namespace = agent_namespace.unwrap_or(namespace);
            chain.agent = known(&KNOWN_AGENT, agent_namespace, name, state)?;
            if chain.agent.is_none() {
                let message = format!("Agent {} not found", quoted(&format!("{agent_namespace}/{name}")));
                chain.warnings.push(Finding::warn(&AGENT_MISSING, label_pointer(TASK_LABEL), message));
            }
        }
        Ok(chain)
    }

    /// The first valid value. What an Agent turns off stays off.
    pub(super) fn resolve(&mut self, setting: Setting) -> Option<Resolved<'s>> {
        let Self { task, parent, agent, namespace, .. } = *self;
        match setting {
            Setting::Enabled => {
                let of_agent = self.read(setting, agent);
                if of_agent.as_ref().is_some_and(|resolved| resolved.value == Value::Switch(false)) {
                    return of_agent;
                }
                let of_task = [task, parent].into_iter().find_map(|source| self.read(setting, source));
                of_task.or(of_agent).or_else(|| self.read(setting, namespace))
            }
            Setting::Limit | Setting::MaxChars => {
                let mut sources = [task, parent, agent, namespace].into_iter();
                sources.find_map(|source| self.read(setting, source))
            }
        }
    }

    /// What one object says; a value that means nothing is warned of and counts as none.
    fn read(&mut self, setting: Setting, source: Option<Source<'s>>) -> Option<Resolved<'s>> {
        let source = source?;
        let key = setting.annotation();
        match setting.of_text(annotation(&source.object.tree, key)?) {
            Ok(value) => Some(Resolved { value, source }),
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
fn known<'s>(
    kind: &'static Kind,
    namespace: &str,
    name: &str,
    state: &mut StateReader<'s>,
) -> Result<Option<Source<'s>>, Unknown> {
    match state.get(kind, namespace, name) {
        Lookup::Found(object) => Ok(Some(Source { kind: kind.kind, object })),
        Lookup::Absent => Ok(None),
        Lookup::Unknown => Err(Unknown { kind: kind.kind, name: format!("{namespace}/{name}") }),
    }
}

/// The name of the Task whose schedule made this one.
fn scheduled_parent(task: Source<'_>) -> Option<&str> {
    let task = &task.object.tree;
    if label(task, SCHEDULED_LABEL) != Some("true") {
        return None;
    }
    let whole = annotation(task, PARENT_ANNOTATION).filter(|name| !name.is_empty());
    whole.or_else(|| label(task, PARENT_LABEL)).filter(|name| !name.is_empty())
}

/// The Agent that the Task names. Without a Task the pod's own word counts; with one it may be the
/// user's own.
fn agent_of<'n>(task: Option<Source<'n>>, worker: &Worker<'n, '_>) -> Option<(Option<&'n str>, &'n str)> {
    match task {
        Some(task) => agent_ref(&task.object.tree),
        None => worker.agent_name().map(|name| (None, name)),
    }
}
