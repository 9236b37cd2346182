//! The default Memory of a Query, and the port name in place of a port number.
//!
//! A Query without a reference uses the Memory `default` of its namespace when it runs. The written default
//! makes that visible in the Query. The platform looks ports up by name, but its own documents show a
//! number.

use super::prelude::*;
use memgate_model::edit::{NAMESPACE_DEFAULT, Value};
use memgate_model::family::PolicyField;
use memgate_model::policy_field::FieldForm;

use super::service::{ServiceRef, fix_port};
use super::value::ValueOrSource;

/// The field that policies may fill: the Memory of a new Query, if that Memory exists.
pub(crate) static POLICY_FIELDS: [PolicyField; 1] = [PolicyField {
    kind: &QUERY,
    pointer: "/spec/memory",
    form: FieldForm::Reference("name"),
    fits: |value, subject, state| {
        let name = value.get("name").and_then(Json::as_str).unwrap_or_default();
        let memory = state.get_if_known(&MEMORY, subject.namespace, name);
        subject.operation == Operation::Create
            && matches!(memory, Lookup::Found(memory) if !memory.deleting())
    },
}];

/// One edit for each default that an object lacks.
pub(crate) fn default(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Edit> {
    if *subject.kind == QUERY {
        memory(subject, state).into_iter().collect()
    } else if *subject.kind == MEMORY {
        port(subject, state).into_iter().collect()
    } else {
        Vec::new()
    }
}

/// The default Memory of a namespace.
#[derive(Debug, PartialEq)]
pub(crate) enum DefaultMemory {
    /// This Memory.
    Memory {
        /// Its name.
        name: String,
        /// The object and field that chose it.
        origin: Origin,
    },
    /// The namespace has none.
    None,
    /// The ArkConfig or the Memory is not known yet.
    Unknown,
}

/// The Memory that a Query of this namespace gets: the one named in the ArkConfig if it is usable, or else
/// `default`.
pub(crate) fn default_memory(namespace: &str, state: &mut StateReader<'_>) -> DefaultMemory {
    let config = state.get(&ARK_CONFIG, "", DEFAULT);
    if config == Lookup::Unknown(()) {
        return DefaultMemory::Unknown;
    }
    if let Some(name) = configured(config) {
        match state.get_if_known(&MEMORY, namespace, name) {
            Lookup::Unknown(()) if state.in_cluster(&MEMORY) => return DefaultMemory::Unknown,
            Lookup::Found(memory) if is_usable(memory, state) => {
                let resource = format!("ArkConfig {DEFAULT}").into();
                let origin = Origin { resource, field: "spec.defaultMemory.name".into(), rule: "" };
                return DefaultMemory::Memory { name: name.to_owned(), origin };
            }
            _ => {}
        }
    }
    match state.get_if_known(&MEMORY, namespace, DEFAULT) {
        Lookup::Found(memory) if !memory.deleting() => {
            let resource = format!("Memory {namespace}/{DEFAULT}").into();
            let origin = Origin { resource, field: "".into(), rule: NAMESPACE_DEFAULT };
            DefaultMemory::Memory { name: DEFAULT.to_owned(), origin }
        }
        Lookup::Unknown(()) => DefaultMemory::Unknown,
        Lookup::Found(_) | Lookup::Absent => DefaultMemory::None,
    }
}

fn configured(config: Lookup<'_>) -> Option<&str> {
    let Lookup::Found(config) = config else { return None };
    config.tree().filled_at(&["spec", "defaultMemory", "name"])
}

/// Whether a Memory has an address. Objects from files have no status, so a Memory from a file is usable
/// without one.
fn is_usable(memory: &Object, state: &StateReader<'_>) -> bool {
    let unseen = !state.in_cluster(&MEMORY) && !memory.stored && status(memory.tree()).is_none();
    !memory.deleting() && (unseen || resolved_address(memory.tree()).is_some())
}

/// The default Memory, on CREATE only: a Query that already ran without a Memory did not use the default.
fn memory(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Edit> {
    let spec = subject.object.get("spec").filter(|spec| spec.is_object())?;
    if subject.operation != Operation::Create || spec.get("memory").is_some() {
        return None;
    }
    let DefaultMemory::Memory { name, origin } = default_memory(subject.namespace, state) else {
        return None;
    };
    let value = Value::Tree(serde_json::json!({"name": name}));
    Some(Edit::add(Pointer::new("/spec/memory"), value, origin))
}

fn port(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Edit> {
    let address = ValueOrSource::read_address(subject.object.at(&["spec", "address"])?);
    let source = address.sources.iter().find(|source| source.field == "serviceRef")?;
    let number = source.tree.get("port")?.integer().filter(|number| (1..=65535).contains(number))?;
    let reference = ServiceRef::read(source, subject.namespace);
    let service = reference.map_or(Lookup::Unknown(()), |reference| reference.look_up(state));
    let resource = match (service, reference) {
        (Lookup::Found(_), Some(reference)) => {
            format!("Service {}/{}", reference.namespace, reference.name).into()
        }
        _ => "".into(),
    };
    let (op, value) = match fix_port(number, service) {
        Some(text) => (Op::Replace, Value::Text(text)),
        None => (Op::Remove, Value::Nothing),
    };
    let origin = Origin { resource, field: "".into(), rule: "a port is given by its name" };
    let pointer = Pointer::new("/spec/address/valueFrom/serviceRef/port");
    Some(Edit { op, pointer, value, origins: vec![origin] })
}
