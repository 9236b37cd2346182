//! The containers that listen on the port of a memory server in the pod.

use crate::prelude::*;

use super::{Surroundings, at, elements, json};
use crate::common::POD_PORT_CLASH;
use crate::inject::env;
use crate::inject::parts::init_containers_pointer;

/// Variables by which programs choose their port.
const PORT_VARIABLES: [&str; 3] = ["PORT", "HTTP_PORT", "SERVER_PORT"];

/// The memory server whose port is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listener<'s> {
    /// The port.
    pub(crate) port: u16,
    /// The server's container, if it is in the pod already.
    pub(crate) container: Option<&'s Container<'s>>,
    /// How many init containers start before it. Of these, the ones that end are gone when it listens.
    pub(crate) after: usize,
}

impl Surroundings<'_> {
    /// A container that listens on the server's port, and whether that is certain.
    pub(crate) fn port_clash(&self, server: Listener<'_>) -> Option<(Finding, bool)> {
        let ordinary = self.pod.containers().iter().enumerate();
        let ordinary = ordinary.map(|(index, container)| (env::container(index), container));
        let inits = self.parts.init_containers().iter().enumerate();
        let inits = inits.filter(|(index, it)| *index >= server.after || it.is_native_sidecar());
        let list = init_containers_pointer();
        let inits = inits.map(|(index, container)| (list.index(index), container));
        let is_server = |it: &Container<'_>| server.container.is_some_and(|server| std::ptr::eq(server, it));
        let others = || ordinary.clone().chain(inits.clone()).filter(|(_, container)| !is_server(container));
        let (port, added) = (server.port, server.container.is_none());
        let clash = others().find_map(|(place, container)| listens(&place, container, port));
        if let Some(at) = clash {
            let so = if added { "no sidecar is added" } else { "one of the two cannot listen" };
            let message = format!("{port} is the memory sidecar's port too; {so}");
            let finding = Finding::warn(&POD_PORT_CLASH, at, message);
            return Some((finding.help("change it, or use service mode"), true));
        }
        let (at, name) = others().find_map(|(place, container)| may_listen(&place, container, port))?;
        let message =
            format!("{name} is {port}, the memory sidecar's port: the container may listen on it too");
        let finding = Finding::warn(&POD_PORT_CLASH, at, message);
        Some((finding.help("change it, or declare the container's port"), false))
    }
}

/// The field by which a container says that it listens on a port. The name of a port is not looked up: the container
/// that declares it says so by its number.
fn listens(place: &Pointer, container: &Container<'_>, port: u16) -> Option<Pointer> {
    let is_port = |number: &Json| number.as_u64() == Some(port.into());
    let ports = json(container.ports);
    let declares = |it: &Json| {
        is_port(at(it, "/containerPort"))
            && at(it, "/protocol").as_str().is_none_or(|it| matches!(it, "" | "TCP"))
    };
    if let Some(index) = elements(&ports).iter().position(declares) {
        return Some(place.key("ports").index(index).key("containerPort"));
    }
    let called = |handler: &Json| {
        ["httpGet", "tcpSocket", "grpc"]
            .into_iter()
            .find(|kind| is_port(at(handler, &format!("/{kind}/port"))))
    };
    let lifecycle = json(container.lifecycle);
    let handlers = [
        (place.key("startupProbe"), json(container.startup_probe)),
        (place.key("readinessProbe"), json(container.readiness_probe)),
        (place.key("livenessProbe"), json(container.liveness_probe)),
        (place.key("lifecycle").key("postStart"), at(&lifecycle, "/postStart").clone()),
        (place.key("lifecycle").key("preStop"), at(&lifecycle, "/preStop").clone()),
    ];
    handlers.into_iter().find_map(|(at, handler)| Some(at.key(called(&handler)?).key("port")))
}

/// The variable that tells a container without declared ports to listen on a port.
fn may_listen(place: &Pointer, container: &Container<'_>, port: u16) -> Option<(Pointer, &'static str)> {
    if !elements(&json(container.ports)).is_empty() {
        return None;
    }
    PORT_VARIABLES.into_iter().find_map(|name| {
        let (index, entry) = container.variable(name)?;
        let is_port = entry.literal().is_some_and(|value| value.parse() == Ok(port));
        is_port.then(|| (place.key("env").index(index), name))
    })
}
