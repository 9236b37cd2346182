//! Reads which agent a pod runs, and in which Orloj namespace: from its arguments, or else its labels.

use std::borrow::Cow;

use serde_json::value::RawValue;

use memgate_model::pod::{Container, Pod, SPEC, read_list};
use memgate_model::view::Text;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Path;

use super::super::api::{AGENT_LABEL, NAMESPACE_LABEL};
use super::super::namespace::DEFAULT;

/// The flag with the agent's exact name.
const AGENT_FLAG: &str = "agent-name";

/// The flag with the task. Its Orloj namespace comes first unless it is `default`.
const TASK_FLAG: &str = "task-id";

/// The agent that a pod runs, according to its own arguments or labels.
#[derive(Debug)]
pub(super) struct Identity<'p> {
    /// The Orloj namespace of the task.
    pub(super) namespace: Cow<'p, str>,
    pub(super) name: AgentName<'p>,
}

/// How a pod names its agent.
#[derive(Debug)]
pub(super) enum AgentName<'p> {
    /// The exact name.
    Exact(Cow<'p, str>),
    /// The name as sanitized for a label.
    Sanitized(&'p str),
    /// The pod does not name an agent.
    None,
}

impl<'p> Identity<'p> {
    pub(super) fn read(
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
    pub(super) fn matches(&self, agent: &str) -> bool {
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
pub(super) fn sanitized(name: &str) -> String {
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
