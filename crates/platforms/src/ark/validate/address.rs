//! Validates the address of a Memory.

use crate::endpoint_view::ambiguous_host;
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::kind::SERVICE;
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::{Path, Pointer};

use super::super::address::Address;
use super::super::codes::{
    MEMORY_ADDRESS_BLANK, MEMORY_ADDRESS_CREDENTIALS, MEMORY_ADDRESS_EXCLUSIVE, MEMORY_ADDRESS_LOCAL,
    MEMORY_ADDRESS_PLAIN_HTTP, MEMORY_ADDRESS_QUERY_PARAMETER, MEMORY_ADDRESS_REQUIRED,
    MEMORY_ADDRESS_SOURCE, MEMORY_ADDRESS_SOURCES, MEMORY_ADDRESS_SUFFIX, MEMORY_ADDRESS_URL,
};
use super::super::value::{EffectiveValue, ValueOrSource, ValueSource};
use super::reference::{self, ReferenceLocation};
use super::{denial, service};

const VALUE: &str = "/spec/address/value";
const VALUE_FROM: &str = "/spec/address/valueFrom";

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let spec = subject.object.get("spec");
    if spec.is_some_and(|spec| !spec.is_object()) {
        return Vec::new();
    }
    let Some(address) = spec.and_then(|spec| spec.get("address")) else {
        return vec![required(state.budget())];
    };
    if !address.is_object() {
        return Vec::new();
    }
    let value = ValueOrSource::read_address(address);
    let mut findings: Vec<Finding> = exactly_one(&value, state.budget()).into_iter().collect();
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
    findings.extend(service.and_then(|source| service::port_type(source, subject.namespace, state)));
    findings
}

fn required(work: &Budget<'_>) -> Finding {
    let message = || "address must specify either value or valueFrom".to_owned();
    denial(work, &MEMORY_ADDRESS_REQUIRED, Pointer::new("/spec/address"), message)
}

/// Checks that the address has exactly one value.
fn exactly_one(value: &ValueOrSource<'_>, work: &Budget<'_>) -> Option<Finding> {
    let Some(value_from) = value.value_from else {
        return value.literal.is_none().then(|| required(work));
    };
    if let Some(literal) = value.literal {
        let message = "address cannot specify both value and valueFrom; ARK uses value";
        let finding = || Finding::warn(&MEMORY_ADDRESS_EXCLUSIVE, Pointer::new("/spec/address"), message);
        return literal.text().map(|_| finding());
    }
    let pointer = Pointer::new(VALUE_FROM);
    match value.sources.as_slice() {
        _ if !value_from.is_object() => None,
        [] => {
            let message = || "valueFrom must specify exactly one source, such as serviceRef".to_owned();
            Some(denial(work, &MEMORY_ADDRESS_SOURCE, pointer, message))
        }
        [_] => None,
        [first, ..] => {
            let message = format!("valueFrom must specify exactly one source; ARK uses {}", first.field);
            Some(Finding::warn(&MEMORY_ADDRESS_SOURCES, pointer, message))
        }
    }
}

fn effective_source(
    source: &ValueSource<'_>,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let (spec, mut findings) = (Path::Key(&Path::Root, "spec"), Vec::new());
    let address = Path::Key(&spec, "address");
    let value_from = Path::Key(&address, "valueFrom");
    let path = Path::Key(&value_from, source.field);
    let location = ReferenceLocation { path, namespace: subject.namespace };
    reference::findings(source, location, state, &mut findings);
    match source.field {
        "configMapKeyRef" => findings.extend(reference::config_map_value(source, location, state)),
        "serviceRef" => findings.extend(service::findings(source, location, state)),
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
    let Some(address) = Address::parse(text) else {
        let message =
            "address value must be an absolute http or https URL, such as https://memory.example.com";
        return vec![denial(state.budget(), &MEMORY_ADDRESS_URL, pointer, || message.to_owned())];
    };
    let advice = [
        (
            address.rest.contains(' '),
            &MEMORY_ADDRESS_BLANK,
            "address value contains a blank; remove it, or write %20",
        ),
        (
            address.userinfo,
            &MEMORY_ADDRESS_CREDENTIALS,
            "address contains credentials, which status.lastResolvedAddress shows; use secretKeyRef",
        ),
        (
            address.has_suffix(),
            &MEMORY_ADDRESS_SUFFIX,
            "paths are appended to the address; remove the query string or fragment",
        ),
        (
            address.is_local(),
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

/// Whether the Memory has headers that would leave the cluster in plain text.
fn travels_unencrypted(address: &Address<'_>, subject: &Subject<'_>, state: &mut StateReader<'_>) -> bool {
    let headers = subject.object.list_at(&["spec", "headers"]);
    if address.encrypted || headers.is_empty() || address.is_inside() {
        return false;
    }
    let Some((name, namespace)) = address.service() else { return true };
    let is_service = |state: &mut StateReader<'_>| {
        let found = state.get_if_known(&SERVICE, namespace, name);
        matches!(found, Lookup::Found(service) if *service.namespace == *namespace)
    };
    namespace != subject.namespace && !(state.is_known(&SERVICE) && is_service(state))
}
