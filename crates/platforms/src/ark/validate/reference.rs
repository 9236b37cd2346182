//! Validates references by name, such as to a Secret or ConfigMap, in an address or a header.

use crate::ark::address::Address;
use crate::ark::codes::{
    MEMORY_CONFIGMAP_KEY_MISSING, MEMORY_CONFIGMAP_MISSING, MEMORY_CONFIGMAP_VALUE, MEMORY_REF_KEY,
    MEMORY_REF_NAME, MEMORY_SECRET_KEY_MISSING, MEMORY_SECRET_MISSING,
};
use crate::ark::value::ValueSource;
use crate::prelude::*;
use memgate_model::finding::{Code, excerpt};
use memgate_model::kind::{CONFIG_MAP, SECRET};
use memgate_primitives::pointer::Path;

use super::denial;

/// The place of a reference.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReferenceLocation<'p> {
    pub(super) path: Path<'p>,
    /// The namespace of the Memory.
    pub(super) namespace: &'p str,
}

impl ReferenceLocation<'_> {
    /// The pointer to a field of the reference.
    pub(super) fn field(&self, name: &'static str) -> Pointer {
        Path::Key(&self.path, name).pointer()
    }
}

/// Findings about a reference that the platform uses, of any kind.
pub(super) fn findings(
    source: &ValueSource<'_>,
    location: ReferenceLocation<'_>,
    state: &mut StateReader<'_>,
    findings: &mut Vec<Finding>,
) {
    let work = state.budget();
    if source.lacks("name") {
        let message = match source.field {
            "secretKeyRef" => "secret name is required",
            "configMapKeyRef" => "configMap name is required",
            "serviceRef" => "service name is required",
            _ => "queryParameterRef.name cannot be empty",
        };
        findings.push(denial(work, &MEMORY_REF_NAME, location.field("name"), || message.to_owned()));
    }
    let has_key = matches!(source.field, "secretKeyRef" | "configMapKeyRef");
    if has_key && source.lacks("key") {
        let field = source.field;
        let message = move || format!("{field}.key is required");
        findings.push(denial(work, &MEMORY_REF_KEY, location.field("key"), message));
    }
    findings.extend(match source.field {
        "secretKeyRef" => missing(source, &SECRET_CODES, location, state),
        "configMapKeyRef" => missing(source, &CONFIG_MAP_CODES, location, state),
        _ => None,
    });
}

/// How findings report a reference to an object of one kind.
struct KeyRefCodes {
    kind: &'static Kind,
    /// The kind as messages name it.
    title: &'static str,
    missing: &'static Code,
    key_missing: &'static Code,
}

static SECRET_CODES: KeyRefCodes = KeyRefCodes {
    kind: &SECRET,
    title: "secret",
    missing: &MEMORY_SECRET_MISSING,
    key_missing: &MEMORY_SECRET_KEY_MISSING,
};

static CONFIG_MAP_CODES: KeyRefCodes = KeyRefCodes {
    kind: &CONFIG_MAP,
    title: "configMap",
    missing: &MEMORY_CONFIGMAP_MISSING,
    key_missing: &MEMORY_CONFIGMAP_KEY_MISSING,
};

/// Checks that the object exists and has the key.
fn missing(
    source: &ValueSource<'_>,
    codes: &KeyRefCodes,
    location: ReferenceLocation<'_>,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let (work, title) = (state.budget(), codes.title);
    let name = source.text("name")?;
    let (shown_name, namespace) = (excerpt(name), excerpt(location.namespace));
    match state.get_if_known(codes.kind, location.namespace, name) {
        Lookup::Unknown(()) => None,
        Lookup::Absent => {
            Some(Finding::warn_within(work, codes.missing, location.path.pointer(), move |_| {
                let (name, namespace) = (without_quotes(&shown_name), without_quotes(&namespace));
                format!("{title} '{name}' does not exist in namespace '{namespace}'")
            }))
        }
        Lookup::Found(object) => {
            let key = source.text("key").filter(|key| !object.has_data_key(key))?;
            let shown_key = excerpt(key);
            let finding = Finding::warn_within(work, codes.key_missing, location.field("key"), move |_| {
                let (name, key) = (without_quotes(&shown_name), without_quotes(&shown_key));
                let namespace = without_quotes(&namespace);
                format!("key '{key}' not found in {title} '{name}' in namespace '{namespace}'")
            });
            Some(finding.elsewhere(object, Pointer::new("/data"), "has no such key"))
        }
    }
}

/// Checks that a ConfigMap value is a clean URL: the platform uses it as the address without trimming it.
pub(super) fn config_map_value(
    source: &ValueSource<'_>,
    location: ReferenceLocation<'_>,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let (name, key) = (source.text("name")?, source.text("key")?);
    let Lookup::Found(map) = state.get_if_known(&CONFIG_MAP, location.namespace, name) else { return None };
    let value = map.tree().get("data")?.entry(key)?;
    let clean = value.trim() == value && Address::parse(value).is_some();
    let finding = || {
        let shown = quoted(key);
        let message = format!("the value of key {shown} is not a clean http(s) URL; ARK does not trim it");
        Finding::warn(&MEMORY_CONFIGMAP_VALUE, location.path.pointer(), message).elsewhere(
            map,
            Pointer::new("/data").key(key),
            "this value",
        )
    };
    (!clean).then(finding)
}

/// A name from user input, for a message that has its own quotes. The name is sanitized and shortened as
/// `quoted` does.
pub(super) fn without_quotes(name: &str) -> String {
    let quoted = quoted(name);
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(&quoted).to_owned()
}
