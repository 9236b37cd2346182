//! Validates references by name, such as to a Secret or ConfigMap, in an address or a header.

use crate::ark::prelude::*;
use crate::ark::value::ValueSource;

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
        findings.push(Finding::deny_within(work, &MEMORY_REF_NAME, location.field("name"), move |_| message));
    }
    let has_key = matches!(source.field, "secretKeyRef" | "configMapKeyRef");
    if has_key && source.lacks("key") {
        let field = source.field;
        let message = move |_: &Pointer| format!("{field}.key is required");
        findings.push(Finding::deny_within(work, &MEMORY_REF_KEY, location.field("key"), message));
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
    let clean = value.trim() == value && Endpoint::for_go(value).is_some();
    let finding = || {
        let shown = quoted_key(key);
        let message = format!("the value of key {shown} is not a clean http(s) URL; ARK does not trim it");
        Finding::warn(&MEMORY_CONFIGMAP_VALUE, location.path.pointer(), message).elsewhere(
            map,
            Pointer::new("/data").key(key),
            "this value",
        )
    };
    (!clean).then(finding)
}
