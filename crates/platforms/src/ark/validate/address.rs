//! Validates the address of a Memory, and the Service and the port that it refers to.

use crate::ark::prelude::*;
use crate::ark::service::{Port, ServiceRef, fix_port, port_by_name, ports};
use crate::ark::value::{EffectiveValue, ValueOrSource, ValueSource};
use crate::endpoint_view::ambiguous_host;
use crate::url::{AddressRange, ip};
use memgate_primitives::plain_text::{shown_key, shown_name};

use super::reference::{self, ReferenceLocation, ValueWords};

const VALUE: &str = "/spec/address/value";
const ADDRESS: Path<'_> = Path::Known("/spec/address");

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let spec = subject.object.get("spec");
    if spec.is_some_and(|spec| !spec.is_object()) {
        return Vec::new();
    }
    let Some(address) = spec.and_then(|spec| spec.get("address")) else {
        return vec![WORDS.required(ADDRESS, state.budget())];
    };
    if !address.is_object() {
        return Vec::new();
    }
    let value = ValueOrSource::read_address(address);
    let mut findings: Vec<Finding> = WORDS.exactly_one(&value, ADDRESS, state.budget()).into_iter().collect();
    match value.effective() {
        EffectiveValue::Literal(literal) => {
            if let Some(text) = literal.text() {
                findings.extend(url(text, subject, state));
            }
        }
        EffectiveValue::Source(source) => findings.extend(effective_source(&source, subject, state)),
        EffectiveValue::Nothing => {}
    }
    let service = value.sources.iter().find(|source| source.field == "serviceRef");
    findings.extend(service.and_then(|source| port_type(source, subject.namespace, state)));
    findings
}

/// What is said of the values of an address.
static WORDS: ValueWords = ValueWords {
    subject: "address ",
    example: "serviceRef",
    codes: [
        &MEMORY_ADDRESS_REQUIRED, &MEMORY_ADDRESS_EXCLUSIVE, &MEMORY_ADDRESS_SOURCE, &MEMORY_ADDRESS_SOURCES,
    ],
};

fn effective_source(
    source: &ValueSource<'_>,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let value_from = Path::Key(&ADDRESS, "valueFrom");
    let path = Path::Key(&value_from, source.field);
    let location = ReferenceLocation { path, namespace: subject.namespace };
    reference::findings(source, location, state, &mut findings);
    match source.field {
        "configMapKeyRef" => findings.extend(reference::config_map_value(source, location, state)),
        "serviceRef" => findings.extend(service_findings(source, location, state)),
        "queryParameterRef" if source.tree.is_object() => {
            let message = "never resolves here; use another source";
            findings.push(Finding::warn(&MEMORY_ADDRESS_QUERY_PARAMETER, path.pointer(), message));
        }
        _ => {}
    }
    findings
}

fn url(text: &str, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let pointer = Pointer::new(VALUE);
    let Some(address) = Endpoint::for_go(text) else {
        let message =
            "address value must be an absolute http or https URL, such as https://memory.example.com";
        return vec![Finding::deny(&MEMORY_ADDRESS_URL, pointer, message)];
    };
    let advice = [
        (
            address.tail.contains(' '),
            &MEMORY_ADDRESS_BLANK,
            "address value contains a blank; remove it, or write %20",
        ),
        (
            address.userinfo.is_some(),
            &MEMORY_ADDRESS_CREDENTIALS,
            "address contains credentials, which status.lastResolvedAddress shows; use secretKeyRef",
        ),
        (
            address.tail.contains(['?', '#']),
            &MEMORY_ADDRESS_SUFFIX,
            "paths are appended to the address; remove the query string or fragment",
        ),
        (
            is_local(&address),
            &MEMORY_ADDRESS_LOCAL,
            "address points to the caller itself or a link-local host; use the name of a Service",
        ),
        (
            travels_unencrypted(&address, subject, state),
            &MEMORY_ADDRESS_PLAIN_HTTP,
            "http sends spec.headers unencrypted; use https",
        ),
    ];
    let value = advice.into_iter().filter(|(applies, ..)| *applies);
    let finding = |(_, code, message)| Finding::warn(code, pointer.clone(), message);
    let findings: Vec<Finding> = value.map(finding).collect();
    // What is wrong with the userinfo or with a local address is reported already.
    if findings.is_empty() { ambiguous_host(text, VALUE).into_iter().collect() } else { findings }
}

/// Whether the host is the caller itself or link-local.
fn is_local(address: &Endpoint<'_>) -> bool {
    match AddressRange::of(address.host) {
        Some(range) => range.loopback || range.link_local,
        None => address.name() == "localhost",
    }
}

/// Whether the Memory has headers that would leave the cluster in plain text.
fn travels_unencrypted(address: &Endpoint<'_>, subject: &Subject<'_>, state: &mut StateReader<'_>) -> bool {
    let headers = subject.object.list_at(&["spec", "headers"]);
    if address.has_scheme("https") || headers.is_empty() {
        return false;
    }
    if let Some(range) = AddressRange::of(address.host) {
        // Where the unspecified address leads is up to the client's machine.
        let is_unspecified = ip(address.host).is_some_and(|ip| ip.is_unspecified());
        return is_unspecified || !range.loopback && !range.private;
    }
    let name = address.name();
    let Some((service, home)) = name.split_once('.') else { return false };
    let is_of_network = matches!(home.rsplit('.').next(), Some("local" | "internal"));
    if is_of_network || home.split('.').any(|label| label == "svc") {
        return false;
    }
    let is_service = |state: &mut StateReader<'_>| {
        let found = state.get_if_known(&SERVICE, home, service);
        matches!(found, Lookup::Found(service) if *service.namespace == *home)
    };
    home.contains('.') || home != subject.namespace && !(state.is_known(&SERVICE) && is_service(state))
}

/// The ports of a Service.
const PORTS: &str = "/spec/ports";

/// Findings about a `serviceRef` that the platform uses.
pub(super) fn service_findings(
    source: &ValueSource<'_>,
    location: ReferenceLocation<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let Some(reference) = ServiceRef::read(source, location.namespace) else { return Vec::new() };
    let namespace = quoted(reference.namespace);
    let found = reference.look_up(state);
    let mut findings = Vec::new();
    if crosses_namespaces(&reference, location, found, state) {
        let message = format!("in namespace {namespace}; queries with the same name share messages there");
        let pointer = location.field("namespace");
        let finding = Finding::warn(&MEMORY_SERVICE_CROSS_NAMESPACE, pointer, message);
        let home = Pointer::new("/metadata/namespace");
        let place = || Some(Elsewhere::of(found.found()?, home, "it is in this namespace"));
        findings.push(finding.and_elsewhere(place));
    }
    if let Lookup::Found(service) = found {
        findings.extend(port(&reference, service, location));
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
    let home = format!("{}/{}", shown_name(reference.namespace), shown_name(reference.name));
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
            let hint = meant(name, ports).map(|meant| format!("; use {}", quoted_key(meant)));
            let message =
                format!("port {} not found in service {home}{}", shown_key(name), hint.unwrap_or_default());
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
        let message = format!("serviceRef.port must be between 1 and 65535, not {number}");
        Some(Finding::deny(&MEMORY_PORT_RANGE, pointer.clone(), message))
    };
    match port {
        Tree::Text(_) => None,
        Tree::Integer(number) if (1..=65535).contains(number) => {
            Some(port_rewritten(*number, source, namespace, state))
        }
        Tree::Integer(number) => out_of_range(number.to_string()),
        Tree::Fraction(number) if number.as_f64().is_some_and(|it| it.fract() == 0.0) => {
            // With all of its digits, as it stands in the file.
            let float = || number.as_f64().unwrap_or_default().to_string();
            out_of_range(number.as_u64().map_or_else(float, |whole| whole.to_string()))
        }
        _ => {
            let message = "serviceRef.port must be a string: the name of a port";
            Some(Finding::deny(&MEMORY_PORT_TYPE, pointer, message))
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
        Some(text) => format!("became {}", quoted_key(&text)),
        None => "was removed, so ARK uses the first port".to_owned(),
    };
    let message = format!("serviceRef.port is a port name; {number} {became}");
    let pointer = Pointer::new("/spec/address/valueFrom/serviceRef/port");
    let finding = Finding::warn(&MEMORY_PORT_INTEGER, pointer, message).on_rewrite();
    finding.and_elsewhere(|| Some(Elsewhere::of(service.found()?, Pointer::new(PORTS), "its ports")))
}
