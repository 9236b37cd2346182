//! Injects the variables of an agent's memory into its pods.
//!
//! The arguments of the pod's container name the task and the agent. The prefix of the task is the Orloj
//! namespace, and the Agent in it names the Memory. Users can write any arguments and labels, so a pod gets
//! memory of another namespace only in the namespaces in which Orloj runs its Jobs.
//! Without arguments, its labels name the agent.

mod find;
pub(super) mod want;

use super::prelude::*;
use crate::inject::own::OwnVariables;
use crate::references::going;
use memgate_model::pod::{SPEC, read_list};
use serde_json::Value;

use self::find::{Finder, GrantedMemory};
use super::claim::DEFAULT;

/// What to add to the pod; `None` if it is not an agent pod of this family.
pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    if !is_agent_pod(pod) {
        return None;
    }
    Some(try_inject(pod, namespace, state).unwrap_or_else(|unmet| *unmet))
}

fn try_inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Result<Injection, Unmet> {
    let (index, container) = agent_container(pod)?;
    let found = find(pod, (index, container), namespace, state)?;
    let (wanted, omitted) = want::want((index, container), &found, namespace, state);
    let mut injection = merge(pod, wanted, state.budget(), |conflict: &Conflict<'_>| {
        let message = format!("env {} is already set; kept", conflict.variable.name);
        let origin = &conflict.variable.origin;
        Finding::warn(&POD_ENV_KEPT, conflict.list.clone(), message)
            .and_elsewhere(|| origin_place(origin, &[&AGENT, &MEMORY, &MODEL_ENDPOINT]))
    });
    injection.warnings.extend(omitted);
    injection.warnings.extend(going(found.memory, || env::pointer(index)));
    Ok(injection)
}

/// The memory of the agent that the container of a pod names.
fn find<'p, 's>(
    pod: &'p Pod<'_>,
    (index, container): (usize, &'p Container<'_>),
    namespace: &'p str,
    state: &mut StateReader<'s>,
) -> Result<GrantedMemory<'s>, Unmet> {
    let identity = Identity::read(pod, (index, container), namespace, state.budget());
    Finder { pointer: env::pointer(index), identity }.find(namespace, state)
}

/// The Memory of an agent pod, or why it is not found; `None` if it is not an agent pod of this family.
pub(super) fn memory_of<'s>(
    pod: &Pod<'_>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Option<Result<&'s Object, Unmet>> {
    if !is_agent_pod(pod) {
        return None;
    }
    let found = agent_container(pod).and_then(|container| find(pod, container, namespace, state));
    Some(found.map(|found| found.memory))
}

/// The variables that a pod sets itself: in the container of the agent, and in the others. Where its Memory is not found,
/// all are others.
pub(super) fn own_variables(
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> (OwnVariables, Vec<OwnVariables>) {
    let (pod, work) = (pods[0], state.budget());
    let found = agent_container(pod).and_then(|it| Ok((it, find(pod, it, namespace, state)?)));
    let Ok((container, found)) = found else {
        let others = OwnVariables::undeclared(pod, want::NAMES, Some(want::PROVIDER), work);
        return (OwnVariables::default(), others);
    };
    let (wanted, _) = want::want(container, &found, namespace, state);
    let wanted = wanted.containers.first().map(|it| it.env.as_ref()).unwrap_or_default();
    let declared = own::declared(MEMORY.kind, &found.memory.name);
    let own = OwnVariables::read(container.0, pods, wanted, want::NAMES, Some(&declared));
    let others = (|index| index == container.0, work);
    let mut others = OwnVariables::of_others(pod, wanted, want::NAMES, Some(&declared), others);
    others.retain(|own| !own.is_empty());
    (own, others)
}

fn is_agent_pod(pod: &Pod<'_>) -> bool {
    pod.label(COMPONENT_LABEL) == Some(AGENT_JOB)
}

/// The Agent of the pod, or else the pod's controller. `None` if the task belongs to another namespace.
pub(crate) fn involved_object(
    pod: &Pod<'_>,
    namespace: &str,
    state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    let agent = match agent_container(pod) {
        Ok(container) => {
            let identity = Identity::read(pod, container, namespace, state.budget());
            if identity.namespace != namespace {
                return None;
            }
            find::agent_at_home(&identity, namespace, state)
        }
        Err(_) => None,
    };
    agent.map(|agent| InvolvedObject::of(&AGENT, agent)).or_else(|| controller_of(pod, namespace))
}

/// The labels of the pods of an Agent.
pub(crate) fn labels_for_agent(kind: &Kind, namespace: &str, name: &str) -> Option<Value> {
    let labels =
        || json!({COMPONENT_LABEL: AGENT_JOB, AGENT_LABEL: sanitized(name), NAMESPACE_LABEL: namespace});
    (*kind == AGENT).then(labels)
}

fn agent_container<'p>(pod: &'p Pod<'p>) -> Result<(usize, &'p Container<'p>), Unmet> {
    container_named(pod, AGENT_CONTAINER).ok_or_else(|| {
        let message = format!("pod has no container \"{AGENT_CONTAINER}\"");
        unmet(Reason::NoContainer, &POD_CONTAINER_MISSING, Pointer::new("/spec/containers"), message)
    })
}

/// The flag with the agent's exact name.
const AGENT_FLAG: &str = "agent-name";

/// The flag with the task. Its Orloj namespace comes first unless it is `default`.
const TASK_FLAG: &str = "task-id";

/// The agent that a pod runs, according to its own arguments or labels.
#[derive(Debug)]
struct Identity<'p> {
    /// The Orloj namespace of the task.
    namespace: Cow<'p, str>,
    name: AgentName<'p>,
}

/// How a pod names its agent.
#[derive(Debug)]
enum AgentName<'p> {
    /// The exact name.
    Exact(Cow<'p, str>),
    /// The name as sanitized for a label.
    Sanitized(&'p str),
    /// The pod does not name an agent.
    None,
}

impl<'p> Identity<'p> {
    fn read(
        pod: &'p Pod<'_>,
        (index, container): (usize, &'p Container<'_>),
        pod_namespace: &'p str,
        work: &Budget<'_>,
    ) -> Self {
        let list = Path::Key(&SPEC, "containers");
        let path = Path::Index(&list, index);
        let mut arguments = arguments(container.command, Path::Key(&path, "command"), work);
        arguments.extend(self::arguments(container.args, Path::Key(&path, "args"), work));
        let label = |key| pod.label(key).filter(|value| !value.trim().is_empty());
        let name = match (flag_value(&arguments, AGENT_FLAG), label(AGENT_LABEL)) {
            (Some(name), _) => AgentName::Exact(name.to_owned().into()),
            (None, Some(label)) => AgentName::Sanitized(label),
            (None, None) => AgentName::None,
        };
        let namespace = match flag_value(&arguments, TASK_FLAG) {
            Some(task) => task_namespace(task).to_owned().into(),
            None => label(NAMESPACE_LABEL).unwrap_or(pod_namespace).into(),
        };
        Self { namespace, name }
    }

    /// Whether this can be the name of the Agent.
    fn matches(&self, agent: &str) -> bool {
        match &self.name {
            AgentName::Exact(name) => name == agent,
            AgentName::Sanitized(label) => sanitized(agent) == *label,
            AgentName::None => false,
        }
    }
}

/// The arguments of a command line; empty if it is not a list of strings.
fn arguments<'p>(raw: Option<&'p RawValue>, path: Path<'_>, work: &Budget<'_>) -> Vec<Text<'p>> {
    read_list(raw, path, work).unwrap_or_default()
}

/// The value of a flag as Go's `flag` package reads it: after one dash or two, with `=` or as the next
/// word. The last value counts, and a blank value counts as absent.
/// Source: Go documentation, package flag, command line flag syntax.
fn flag_value<'w>(arguments: &'w [Text<'_>], name: &str) -> Option<&'w str> {
    let value = |(index, argument): (usize, &'w Text<'_>)| -> Option<Option<&'w str>> {
        let argument = argument.strip_prefix('-')?;
        let rest = argument.strip_prefix('-').unwrap_or(argument).strip_prefix(name)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(Some(value)),
            None if rest.is_empty() => Some(arguments.get(index + 1).map(|next| &**next)),
            None => None,
        }
    };
    let last = arguments.iter().enumerate().rev().find_map(value)?;
    last.filter(|value| !value.trim().is_empty())
}

/// The Orloj namespace of a task.
fn task_namespace(task: &str) -> &str {
    let namespace = task.split_once('/').map_or("", |(namespace, _)| namespace.trim());
    if namespace.is_empty() { DEFAULT } else { namespace }
}

/// A name as Orloj writes it into a label.
/// Source: OrlojHQ/orloj, runtime/agent_runtime_kubernetes.go.
fn sanitized(name: &str) -> String {
    /// The longest value of a label, in bytes.
    const MAX_LABEL_BYTES: usize = 63;
    let to_label_char = |c: char| if matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.') { c } else { '-' };
    let mut label: String = name.trim().to_lowercase().chars().map(to_label_char).collect();
    // Every character is one byte at this point.
    label.truncate(MAX_LABEL_BYTES);
    label.trim_matches(['-', '_', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_flags_as_go_does() {
        for (line, value) in [
            ("--agent-name a", Some("a")),
            ("-agent-name a", Some("a")),
            ("--agent-name=a", Some("a")),
            ("-agent-name=a=b", Some("a=b")),
            ("--agent-name a --agent-name b", Some("b")),
            ("--agent-name a --agent-name=", None),
            ("--agent-name a --agent-name", None),
            ("--agent-names a", None),
            ("---agent-name a", None),
            ("agent-name a", None),
        ] {
            let arguments: Vec<_> = line.split(' ').map(|argument| Text(argument.into())).collect();
            assert_eq!(flag_value(&arguments, AGENT_FLAG), value, "{line}");
        }
    }

    #[test]
    fn sanitizes_as_orloj_does() {
        let long = format!("{}-{}", "a".repeat(62), "b".repeat(9));
        for (name, label) in
            [("Scribe", "scribe"), (" a b/c ", "a-b-c"), ("_a.b_", "a.b"), ("é", ""), (&long, &long[..62])]
        {
            assert_eq!(sanitized(name), label, "{name}");
        }
    }

    #[test]
    fn reads_the_namespace_of_a_task() {
        for (task, namespace) in [("acme/t", "acme"), ("t", "default"), ("/t", "default"), (" a / t/u", "a")]
        {
            assert_eq!(task_namespace(task), namespace, "{task}");
        }
    }
}
