//! Recognises agent pods by their labels.

use memgate_model::pod::Pod;

use super::super::api::DIALECTS;

/// The label of an agent pod, and the agent that it names.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentLabel<'p> {
    pub(super) key: &'static str,
    pub(super) agent: &'p str,
}

/// The first label of the family with a value.
pub(super) fn recognise<'p>(pod: &'p Pod<'_>) -> Option<AgentLabel<'p>> {
    DIALECTS.iter().find_map(|dialect| {
        let agent = pod.label(dialect.pod_label).filter(|name| !name.is_empty())?;
        Some(AgentLabel { key: dialect.pod_label, agent })
    })
}
