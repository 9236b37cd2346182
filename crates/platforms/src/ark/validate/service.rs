//! Validates the Service and the port that a Memory refers to.

use memgate_model::elsewhere::Elsewhere;
use memgate_model::finding::Finding;
use memgate_model::object::{Lookup, Object};
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

use super::super::codes::{
    MEMORY_PORT_AMBIGUOUS, MEMORY_PORT_INTEGER, MEMORY_PORT_RANGE, MEMORY_PORT_TYPE, MEMORY_PORT_UNKNOWN,
    MEMORY_SERVICE_CROSS_NAMESPACE, MEMORY_SERVICE_MISSING, MEMORY_SERVICE_NO_PORTS,
};
use super::super::service::{Port, ServiceRef, fix_port, port_by_name, ports};
use super::super::value::ValueSource;
use super::denial;
use super::reference::{ReferenceLocation, without_quotes};

/// The ports of a Service.
const PORTS: &str = "/spec/ports";

/// Findings about a `serviceRef` that the platform uses.
pub(super) fn findings(
    source: &ValueSource<'_>,
    location: ReferenceLocation<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let Some(reference) = ServiceRef::read(source, location.namespace) else { return Vec::new() };
    let (name, namespace) = (without_quotes(reference.name), without_quotes(reference.namespace));
    let found = reference.look_up(state);
    let mut findings = Vec::new();
    if crosses_namespaces(&reference, location, found, state) {
        let message =
            format!("in namespace \"{namespace}\"; queries with the same name share messages there");
        let pointer = location.field("namespace");
        let finding = Finding::warn(&MEMORY_SERVICE_CROSS_NAMESPACE, pointer, message);
        let home = Pointer::new("/metadata/namespace");
        let place = || Some(Elsewhere::of(found.found()?, home, "it is in this namespace"));
        findings.push(finding.and_elsewhere(place));
    }
    match found {
        Lookup::Found(service) => findings.extend(port(&reference, service, location)),
        Lookup::Absent => {
            let message = format!("service '{name}' does not exist in namespace '{namespace}'");
            findings.push(Finding::warn(&MEMORY_SERVICE_MISSING, location.field("name"), message));
        }
        Lookup::Unknown(()) => {}
    }
    findings
}

/// Warns about a Service of another namespace. Objects from files without a namespace are not compared,
/// since both may end up in the same namespace.
fn crosses_namespaces(
    reference: &ServiceRef<'_>,
    location: ReferenceLocation<'_>,
    found: Lookup<'_>,
    state: &StateReader<'_>,
) -> bool {
    let namespace_given =
        state.namespace_given() && !matches!(found, Lookup::Found(service) if !service.namespace_given);
    namespace_given && reference.namespace != location.namespace
}

fn port(reference: &ServiceRef<'_>, service: &Object, location: ReferenceLocation<'_>) -> Option<Finding> {
    let ports = ports(service.tree());
    let home = format!("{}/{}", without_quotes(reference.namespace), without_quotes(reference.name));
    match (reference.port, ports.as_slice()) {
        (None, []) => {
            let message = format!("service {home} has no ports");
            let finding = Finding::warn(&MEMORY_SERVICE_NO_PORTS, location.path.pointer(), message);
            Some(finding.elsewhere(service, Pointer::new("/spec"), "lacks ports"))
        }
        (None, [_]) => None,
        (None, several) => {
            let message = format!("service {home} has {} ports; ARK uses the first", several.len());
            let finding = Finding::warn(&MEMORY_PORT_AMBIGUOUS, location.path.pointer(), message);
            Some(finding.elsewhere(service, Pointer::new(PORTS), "its ports"))
        }
        (Some(port), ports) => {
            let name = port.text().filter(|name| port_by_name(ports, name).is_none())?;
            let hint = meant(name, ports).map(|meant| format!("; use \"{}\"", without_quotes(meant)));
            let message = format!(
                "port {} not found in service {home}{}",
                without_quotes(name),
                hint.unwrap_or_default()
            );
            let finding = Finding::warn(&MEMORY_PORT_UNKNOWN, location.field("port"), message);
            Some(finding.elsewhere(service, Pointer::new(PORTS), "its ports"))
        }
    }
}

/// The name of the port that a wrong name probably means.
fn meant<'s>(text: &str, ports: &[Port<'s>]) -> Option<&'s str> {
    let number = text.parse().ok();
    let numbered = ports.iter().find(|port| Some(port.number) == number);
    let only = if let [only] = ports { Some(only) } else { None };
    numbered.or(only).map(|port| port.name).filter(|name| !name.is_empty())
}

/// Findings about a port that is not a string. The schema requires a string even if the platform uses
/// another source.
pub(super) fn port_type(
    source: &ValueSource<'_>,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let port = source.tree.get("port")?;
    let pointer = Pointer::new("/spec/address/valueFrom/serviceRef/port");
    let out_of_range = |number: String| {
        let message = move || format!("serviceRef.port must be between 1 and 65535, not {number}");
        Some(denial(state.budget(), &MEMORY_PORT_RANGE, pointer.clone(), message))
    };
    match port {
        Tree::Text(_) => None,
        Tree::Integer(number) if (1..=65535).contains(number) => {
            Some(port_rewritten(*number, source, namespace, state))
        }
        Tree::Integer(number) => out_of_range(number.to_string()),
        Tree::Fraction(number) if number.fract() == 0.0 => out_of_range(number.to_string()),
        _ => {
            let message = || "serviceRef.port must be a string: the name of a port".to_owned();
            Some(denial(state.budget(), &MEMORY_PORT_TYPE, pointer, message))
        }
    }
}

fn port_rewritten(
    number: i64,
    source: &ValueSource<'_>,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Finding {
    let service =
        ServiceRef::read(source, namespace).map_or(Lookup::Unknown(()), |reference| reference.look_up(state));
    let became = match fix_port(number, service) {
        Some(text) => format!("became \"{}\"", without_quotes(&text)),
        None => "was removed, so ARK uses the first port".to_owned(),
    };
    let message = format!("serviceRef.port is a port name; {number} {became}");
    let pointer = Pointer::new("/spec/address/valueFrom/serviceRef/port");
    let finding = Finding::warn(&MEMORY_PORT_INTEGER, pointer, message).on_rewrite();
    finding.and_elsewhere(|| Some(Elsewhere::of(service.found()?, Pointer::new(PORTS), "its ports")))
}
