//! Validates references by name, such as to a Secret or ConfigMap, in an address or a header.

use crate::ark::prelude::*;
use crate::ark::value::{EffectiveValue, ValueOrSource, ValueSource};

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

/// What is said of the values of an address or a header, which must have exactly one.
pub(super) struct ValueWords {
    /// What begins the messages.
    pub(super) subject: &'static str,
    /// One of the sources.
    pub(super) example: &'static str,
    /// Of no value, of a literal and a source, of no source, and of several.
    pub(super) codes: [&'static Code; 4],
}

impl ValueWords {
    pub(super) fn required(&'static self, at: Path<'_>, work: &Budget<'_>) -> Finding {
        let message = |_: &Pointer| format!("{}must specify either value or valueFrom", self.subject);
        let [required, ..] = self.codes;
        Finding::deny_within(work, required, at.pointer(), message)
    }

    pub(super) fn exactly_one(
        &'static self,
        value: &ValueOrSource<'_>,
        at: Path<'_>,
        work: &Budget<'_>,
    ) -> Option<Finding> {
        let [_, exclusive, source, sources] = self.codes;
        let Some(value_from) = value.value_from else {
            return value.literal.is_none().then(|| self.required(at, work));
        };
        if let Some(literal) = value.literal {
            literal.text()?;
            let used =
                if let EffectiveValue::Source(source) = value.effective() { source.field } else { "value" };
            let message = move |_: &Pointer| {
                format!("{}cannot specify both value and valueFrom; ARK uses {used}", self.subject)
            };
            return Some(Finding::warn_within(work, exclusive, at.pointer(), message));
        }
        let must = |end: String| move |_: &Pointer| format!("valueFrom must specify exactly one source{end}");
        let pointer = || Path::Key(&at, "valueFrom").pointer();
        match value.sources.as_slice() {
            _ if !value_from.is_object() => None,
            [] => {
                let message = must(format!(", such as {}", self.example));
                Some(Finding::deny_within(work, source, pointer(), message))
            }
            [_] => None,
            [first, ..] => {
                let message = must(format!("; ARK uses {}", first.field));
                Some(Finding::warn_within(work, sources, pointer(), message))
            }
        }
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
