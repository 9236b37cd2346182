//! The variables that a container should have.

use std::sync::Arc;

use crate::inject::env::{Variable, escape_references};
use crate::inject::field_origin;
use crate::inject::own::MemoryVariableNames;
use memgate_model::edit::{EnvSource, Origin};

pub(in super::super) use super::find::HEADER_PREFIX;
use super::find::{HeaderVariable, PodMemory};

/// The prefix of all variables. Variables of the pod without it are skipped.
pub(super) const PREFIX: &str = "ARK_MEMORY_";

/// Where the Memory is.
pub(in super::super) const URL: &str = "ARK_MEMORY_URL";

/// The names of all variables.
pub(super) const NAMES: MemoryVariableNames<'static> = MemoryVariableNames {
    prefixes: &[PREFIX],
    names: &[
        "ARK_MEMORY_NAME",
        "ARK_MEMORY_NAMESPACE",
        URL,
        "ARK_MEMORY_HTTP_TIMEOUT_SECONDS",
        "ARK_MEMORY_HEADERS",
    ],
    open: Some(HEADER_PREFIX),
};

/// All variables, in order. `memory` is the name of the Memory in origins.
pub(super) fn variables(
    found: &PodMemory<'_>,
    memory: &Arc<str>,
    address: EnvSource,
    timeout: Option<u16>,
    headers: Vec<HeaderVariable<'_>>,
) -> Vec<Variable<'static>> {
    let literal = |name: &'static str, text: &str, of: &'static str| {
        Variable::literal(name, escape_references(text), field_origin(memory, of))
    };
    let mut variables = vec![
        literal("ARK_MEMORY_NAME", &found.memory.name, "metadata.name"),
        literal("ARK_MEMORY_NAMESPACE", &found.namespace, "metadata.namespace"),
        Variable::new(URL, address, field_origin(memory, "spec.address")),
    ];
    variables.extend(timeout.map(|seconds| {
        let rule = "the pod's annotation for the timeout";
        let origin = Origin { resource: "".into(), field: "".into(), rule };
        Variable::literal("ARK_MEMORY_HTTP_TIMEOUT_SECONDS", seconds.to_string(), origin)
    }));
    if !headers.is_empty() {
        let names: Vec<&str> = headers.iter().map(|header| header.name).collect();
        variables.push(literal("ARK_MEMORY_HEADERS", &names.join(","), "spec.headers"));
    }
    variables.extend(headers.into_iter().map(|header| {
        let origin = field_origin(memory, format!("spec.headers[{}].value", header.index));
        Variable::new(header.variable, header.source, origin)
    }));
    variables
}
