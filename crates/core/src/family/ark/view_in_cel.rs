//! The views of the family's objects as far as an apiserver can make them.

use crate::family::cel_reasons::{ADDRESS, CREDENTIALS, OTHER_OBJECTS};
use memgate_model::cel::CelVariable;
use memgate_model::cel_view::{CelPath, CelView};
use memgate_model::memory_view::Role;

use super::api::{MEMORY, QUERY};

/// The views.
pub static VIEWS: [CelView; 2] = [
    CelView {
        name: "memory",
        kinds: &[&MEMORY],
        role: Role::Memory,
        viewed: "true",
        lets: &LETS,
        paths: &PATHS,
        unsaid: &[("endpoint", ADDRESS), ("inline", CREDENTIALS), ("references", OTHER_OBJECTS)],
    },
    CelView {
        name: "query",
        kinds: &[&QUERY],
        role: Role::Referrer,
        viewed: "true",
        lets: &[],
        paths: &[],
        unsaid: &[("references", OTHER_OBJECTS)],
    },
];

const LETS: [CelVariable; 4] = [
    CelVariable::new("memory_addressed", "has(self.spec) && has(self.spec.address)"),
    CelVariable::new(
        "memory_literal",
        "$memory_addressed && has(self.spec.address.value) && self.spec.address.value != ''",
    ),
    // The sources in the order in which the platform looks.
    CelVariable::new(
        "memory_source",
        "!$memory_addressed || $memory_literal || !has(self.spec.address.valueFrom) ? '' \
         : has(self.spec.address.valueFrom.secretKeyRef) ? 'secretKeyRef' \
         : has(self.spec.address.valueFrom.configMapKeyRef) ? 'configMapKeyRef' \
         : has(self.spec.address.valueFrom.serviceRef) ? 'serviceRef' \
         : has(self.spec.address.valueFrom.queryParameterRef) ? 'queryParameterRef' : ''",
    ),
    // The source of a header counts if the header has no literal; a query parameter wins over both.
    CelVariable::new(
        "memory_headers",
        "has(self.spec) && has(self.spec.headers) ? $indices.filter(i, i < size(self.spec.headers) \
         && has(self.spec.headers[i].value) \
         && !(has(self.spec.headers[i].value.value) && self.spec.headers[i].value.value != '') \
         && has(self.spec.headers[i].value.valueFrom) \
         && !has(self.spec.headers[i].value.valueFrom.queryParameterRef) \
         && has(self.spec.headers[i].value.valueFrom.secretKeyRef) \
         && has(self.spec.headers[i].value.valueFrom.secretKeyRef.name) \
         && self.spec.headers[i].value.valueFrom.secretKeyRef.name != '')\
         .map(i, 'spec.headers[' + string(i) + '].value.valueFrom.secretKeyRef.name ' \
         + self.spec.headers[i].value.valueFrom.secretKeyRef.name) : []",
    ),
];

const PATHS: [CelPath; 4] = [
    CelPath::new("backend", "['spec.address http']"),
    CelPath::new(
        "endpoint.from",
        "$memory_literal ? ['spec.address.value literal'] \
         : $memory_source == 'secretKeyRef' ? ['spec.address.valueFrom.secretKeyRef secret'] \
         : $memory_source == 'configMapKeyRef' ? ['spec.address.valueFrom.configMapKeyRef configMap'] \
         : $memory_source == 'serviceRef' && has(self.spec.address.valueFrom.serviceRef.name) \
         && self.spec.address.valueFrom.serviceRef.name != '' \
         ? ['spec.address.valueFrom.serviceRef service'] \
         : $memory_source == 'queryParameterRef' ? ['spec.address.valueFrom.queryParameterRef query'] : []",
    ),
    CelPath::new(
        "secrets",
        "($memory_source == 'secretKeyRef' && has(self.spec.address.valueFrom.secretKeyRef.name) \
         && self.spec.address.valueFrom.secretKeyRef.name != '' \
         ? ['spec.address.valueFrom.secretKeyRef.name ' + self.spec.address.valueFrom.secretKeyRef.name] : []) \
         + $memory_headers",
    ),
    CelPath::new("secrets.place", "['spec.address.valueFrom.secretKeyRef ']"),
];
