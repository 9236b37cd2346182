//! The ports of memgate's pods.

use crate::objects::Objects;
use crate::workload::PORTS;

/// Serves the webhook or the probes on another port.
pub(super) fn set_port(objects: &mut Objects, name: &str, port: i32) {
    let ports = objects.list(PORTS).into_iter().flatten();
    let Some(known) = ports
        .filter(|port| port.get("name").is_some_and(|it| it == name))
        .find_map(|port| port.get_mut("containerPort"))
    else {
        return;
    };
    let usual = std::mem::replace(known, port.into());
    for argument in &mut objects.arguments {
        *argument = argument.replace(&format!("[::]:{usual}"), &format!("[::]:{port}"));
    }
}
