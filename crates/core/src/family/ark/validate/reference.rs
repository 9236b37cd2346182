//! Validates references by name, such as to a Secret or ConfigMap, in an address or a header.

use crate::model::finding::{Code, Finding, quoted};
use crate::model::kind::SECRET;
use crate::model::object::Lookup;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;

use super::super::address::Address;
use super::super::api::CONFIG_MAP;
use super::super::codes::{
    MEMORY_CONFIGMAP_KEY_MISSING, MEMORY_CONFIGMAP_MISSING, MEMORY_CONFIGMAP_VALUE, MEMORY_REF_KEY,
    MEMORY_REF_NAME, MEMORY_SECRET_KEY_MISSING, MEMORY_SECRET_MISSING,
};
use super::super::value::ValueSource;
use super::denial;

/// The place of a reference.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReferenceLocation<'p> {
    pub(super) pointer: &'p Pointer,
    /// The start of a denial.
    pub(super) prefix: &'p str,
    /// The namespace of the Memory.
    pub(super) namespace: &'p str,
}

impl ReferenceLocation<'_> {
    fn deny_field(&self, code: &'static Code, field: &str, message: &str) -> Finding {
        denial(code, self.pointer.key(field), &format!("{}{message}", self.prefix))
    }
}

/// Findings about a reference that the platform uses, of any kind.
pub(super) fn findings(
    source: &ValueSource<'_>,
    location: ReferenceLocation<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if source.lacks("name") {
        let message = match source.field {
            "secretKeyRef" => "secret name is required",
            "configMapKeyRef" => "configMap name is required",
            "serviceRef" => "service name is required",
            _ => "queryParameterRef.name cannot be empty",
        };
        findings.push(location.deny_field(&MEMORY_REF_NAME, "name", message));
    }
    let has_key = matches!(source.field, "secretKeyRef" | "configMapKeyRef");
    if has_key && source.lacks("key") {
        let message = format!("{}.key is required", source.field);
        findings.push(location.deny_field(&MEMORY_REF_KEY, "key", &message));
    }
    match source.field {
        "secretKeyRef" => findings.extend(secret(source, location, state)),
        "configMapKeyRef" => findings.extend(config_map(source, location, state)),
        _ => {}
    }
    findings
}

fn secret(
    source: &ValueSource<'_>,
    location: ReferenceLocation<'_>,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let name = source.text("name")?;
    match state.get_if_known(&SECRET, location.namespace, name) {
        Lookup::Unknown => None,
        Lookup::Absent => Some(missing(&MEMORY_SECRET_MISSING, "secret", name, location)),
        Lookup::Found(secret) => {
            let key = source.text("key")?;
            let has_key = |field| secret.tree.get(field).is_some_and(|keys| keys.has_key(key));
            let found = has_key("data") || has_key("stringData");
            (!found).then(|| key_missing(&MEMORY_SECRET_KEY_MISSING, "secret", (name, key), location))
        }
    }
}

fn config_map(
    source: &ValueSource<'_>,
    location: ReferenceLocation<'_>,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let name = source.text("name")?;
    match state.get_if_known(&CONFIG_MAP, location.namespace, name) {
        Lookup::Unknown => None,
        Lookup::Absent => Some(missing(&MEMORY_CONFIGMAP_MISSING, "configMap", name, location)),
        Lookup::Found(map) => {
            let key = source.text("key")?;
            let found = map.tree.get("data").is_some_and(|data| data.has_key(key));
            (!found).then(|| key_missing(&MEMORY_CONFIGMAP_KEY_MISSING, "configMap", (name, key), location))
        }
    }
}

fn missing(code: &'static Code, what: &str, name: &str, location: ReferenceLocation<'_>) -> Finding {
    let message = format!(
        "{what} '{}' does not exist in namespace '{}'",
        without_quotes(name),
        without_quotes(location.namespace)
    );
    Finding::warn(code, location.pointer.clone(), message)
}

fn key_missing(
    code: &'static Code,
    what: &str,
    (name, key): (&str, &str),
    location: ReferenceLocation<'_>,
) -> Finding {
    let (name, key, namespace) =
        (without_quotes(name), without_quotes(key), without_quotes(location.namespace));
    let message = format!("key '{key}' not found in {what} '{name}' in namespace '{namespace}'");
    Finding::warn(code, location.pointer.key("key"), message)
}

/// The platform uses the value as the address without trimming it.
pub(super) fn config_map_value(
    source: &ValueSource<'_>,
    location: ReferenceLocation<'_>,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let (name, key) = (source.text("name")?, source.text("key")?);
    let Lookup::Found(map) = state.get_if_known(&CONFIG_MAP, location.namespace, name) else { return None };
    let value = map.tree.get("data")?.entry(key)?;
    let clean = value.trim() == value && Address::parse(value).is_some();
    let message = "configMap value is not a clean URL; ARK does not trim it";
    (!clean).then(|| Finding::warn(&MEMORY_CONFIGMAP_VALUE, location.pointer.clone(), message))
}

/// A name from user input for a message that has its own quotes: sanitized and shortened as `quoted` does.
pub(super) fn without_quotes(name: &str) -> String {
    let quoted = quoted(name);
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(&quoted).to_owned()
}
