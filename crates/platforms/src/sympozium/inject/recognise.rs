//! Recognises agent pods by their labels.

use crate::inject::label_pointer;
use memgate_model::pod::Pod;
use memgate_primitives::pointer::Pointer;

use super::super::api::{AGENT_RUN_COMPONENT, COMPONENT_LABEL, INSTANCE_LABEL};

/// The name of the agent that a pod runs.
pub(in super::super) fn recognise<'p>(pod: &'p Pod<'_>) -> Option<&'p str> {
    instance(pod).filter(|name| !name.is_empty())
}

/// The label of an agent pod with the name of the agent, which may be empty.
pub(in super::super) fn instance<'p>(pod: &'p Pod<'_>) -> Option<&'p str> {
    let is_run = pod.label(COMPONENT_LABEL) == Some(AGENT_RUN_COMPONENT);
    pod.label(INSTANCE_LABEL).filter(|_| is_run)
}

/// The pointer to the label that names the agent.
pub(super) fn instance_label() -> Pointer {
    label_pointer(INSTANCE_LABEL)
}
