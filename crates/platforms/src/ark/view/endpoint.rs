//! The endpoint of a Memory's service, from the source that the platform uses.

use crate::endpoint_view;
use crate::prelude::*;
use memgate_model::memory_view::qualified;

use crate::ark::service::{SERVICE_DOMAIN, ServiceRef};
use crate::ark::value::{EffectiveValue, ValueSource};

/// Adds the endpoint of an address at this place, and the Service that it refers to.
pub(super) fn add(
    view: &mut MemoryView,
    address: EffectiveValue<'_>,
    place: &Pointer,
    state: &mut StateReader<'_>,
) {
    let namespace = view.namespace.clone();
    match address {
        EffectiveValue::Literal(literal) => {
            view.at("endpoint", place.key("value"));
            let url = |text| endpoint_view::parse(EndpointSource::Literal, text, &namespace, state);
            view.endpoint = literal.text().map(url);
        }
        EffectiveValue::Source(source) => {
            let place = place.key("valueFrom").key(source.field);
            view.at("endpoint", &place);
            match ServiceRef::read(&source, &namespace).filter(|_| source.field == "serviceRef") {
                Some(reference) => add_service(view, &reference, &place, state),
                None => view.endpoint = of_source(&source, view, state),
            }
        }
        EffectiveValue::Nothing => view.at("endpoint", place),
    }
}

/// The endpoint from a source other than a Service; `None` for a source of the wrong type.
fn of_source(
    source: &ValueSource<'_>,
    view: &mut MemoryView,
    state: &mut StateReader<'_>,
) -> Option<EndpointView> {
    if !source.tree.is_object() {
        return None;
    }
    let [name, key] = ["name", "key"].map(|field| source.text(field).unwrap_or_default());
    match source.field {
        "secretKeyRef" => Some(EndpointView::in_object(EndpointSource::Secret, (name, key))),
        "configMapKeyRef" => Some(of_config_map((name, key), view, state)),
        // The platform never resolves it.
        "queryParameterRef" => {
            Some(EndpointView::unknown(EndpointSource::Query, Why::EndpointInQuery).of(name))
        }
        _ => None,
    }
}

fn of_config_map(
    (name, key): (&str, &str),
    view: &mut MemoryView,
    state: &mut StateReader<'_>,
) -> EndpointView {
    let namespace = view.namespace.clone();
    let map = state.get_if_known(&CONFIG_MAP, &namespace, name).found();
    let value = map.and_then(|map| map.tree().get("data")?.entry(key));
    let from = EndpointSource::ConfigMap;
    view.set_origin("endpoint", &CONFIG_MAP, Pointer::new("/data").key(key));
    match value {
        Some(text) => endpoint_view::parse(from, text, &namespace, state),
        None => EndpointView::in_object(from, (name, key)),
    }
}

/// Adds the URL that the platform makes of a Service. The port is known only if the Service is known.
fn add_service(
    view: &mut MemoryView,
    reference: &ServiceRef<'_>,
    place: &Pointer,
    state: &mut StateReader<'_>,
) {
    let lookup = reference.look_up(state);
    view.set_origin("endpoint", &SERVICE, "/spec");
    let number = |service| reference.port_of(service).or_else(|| reference.given_number());
    let number = lookup.found().and_then(number);
    let port = number.and_then(|number| u16::try_from(number).ok());
    let own_namespace = view.namespace.as_str();
    let url = reference.url(None);
    let endpoint = endpoint_view::parse(EndpointSource::Service, &url, own_namespace, state);
    let mut endpoint = endpoint.of(&format!("{url} {:?}", reference.port));
    for host in &mut endpoint.hosts {
        host.port = port;
        // The host is a Service, whatever the domain of this cluster is.
        host.in_cluster |= host.host.ends_with(SERVICE_DOMAIN);
        host.in_cluster &= !lookup.found().is_some_and(endpoint_view::is_external);
    }
    if port.is_none() {
        let name = qualified(reference.namespace, reference.name);
        endpoint.port_unknown = Some(Why::Service(name));
    }
    view.endpoint = Some(endpoint);
    let named = (home(reference.namespace, own_namespace, lookup, state), reference.name);
    view.references.push(ReferenceView::new(&SERVICE, named, place.key("name"), lookup));
}

/// The namespace of a referenced object. Empty if it differs from the referring object's namespace and one of
/// these was not given in a file, since both objects may be in the same namespace.
pub(super) fn home<'t>(
    namespace: &'t str,
    own: &str,
    lookup: Lookup<'_>,
    state: &StateReader<'_>,
) -> &'t str {
    let is_given =
        state.namespace_given() && !matches!(lookup, Lookup::Found(object) if !object.namespace_given);
    if is_given || namespace == own { namespace } else { "" }
}
