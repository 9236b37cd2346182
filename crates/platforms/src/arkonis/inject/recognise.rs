//! Recognises agent pods by their labels.

use memgate_model::pod::Pod;

use super::super::api::DIALECTS;

/// The label of an agent pod, and the agent that it names.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentLabel<'p> {
    pub(super) key: &'static str,
    pub(super) agent: &'p str,
}

/// Whether a pod has any label of the family, which may be empty.
pub(in super::super) fn is_agent_pod(pod: &Pod<'_>) -> bool {
    DIALECTS.iter().any(|dialect| pod.label(dialect.pod_label).is_some())
}

/// The first label of the family with a value.
pub(super) fn recognise<'p>(pod: &'p Pod<'_>) -> Option<AgentLabel<'p>> {
    DIALECTS.iter().find_map(|dialect| {
        let agent = pod.label(dialect.pod_label).filter(|name| !name.is_empty())?;
        Some(AgentLabel { key: dialect.pod_label, agent })
    })
}
