//! The rules that the apiserver can check by itself, and the default that it can write.
//!
//! As in `validate`, a fault belongs to a whole part of the object: the address or the list of headers.

use memgate_model::cel::{CelDefault, CelRule, CelTable, CelVariable, NotInCel};
use memgate_model::finding::Code;

use super::api::{ARK_CONFIG, DEFAULT, MEMORY, QUERY};
use super::codes::{
    CONFIG_DEFAULT_MEMORY_NAME, CONFIG_DEFAULT_MEMORY_NAMESPACE, HEADER_NAME, HEADER_SOURCE,
    HEADER_VALUE_CHARS, HEADER_VALUE_REQUIRED, MEMORY_ADDRESS_REQUIRED, MEMORY_ADDRESS_SOURCE,
    MEMORY_ADDRESS_URL, MEMORY_PORT_RANGE, MEMORY_PORT_TYPE, MEMORY_REF_KEY, MEMORY_REF_NAME,
    QUERY_MEMORY_NAME, SCHEMA,
};

/// The tables of the family.
pub static TABLES: [CelTable; 2] = [
    CelTable { name: "ark-memories", kinds: &[&MEMORY], lets: &MEMORY_LETS, rules: &MEMORY_RULES },
    CelTable {
        name: "ark-configs",
        kinds: &[&ARK_CONFIG],
        lets: &[CelVariable::new("memory", "has(self.spec) && has(self.spec.defaultMemory)")],
        rules: &[
            CelRule {
                code: &CONFIG_DEFAULT_MEMORY_NAME,
                faults: "$memory && (!has(self.spec.defaultMemory.name) || self.spec.defaultMemory.name == '') \
                         ? [self.spec.defaultMemory] : []",
                message: "spec.defaultMemory.name is required when spec.defaultMemory is set",
            },
            CelRule {
                code: &CONFIG_DEFAULT_MEMORY_NAMESPACE,
                // `namespace` is reserved in CEL; `dyn` makes it readable as a key of a map.
                faults: "$memory && has(dyn(self.spec.defaultMemory).namespace) \
                         && dyn(self.spec.defaultMemory).namespace != '' ? [self.spec.defaultMemory] : []",
                message: "spec.defaultMemory.namespace must be empty",
            },
        ],
    },
];

const MEMORY_LETS: [CelVariable; 8] = [
    CelVariable::new("address", "has(self.spec) && has(self.spec.address)"),
    CelVariable::new("literal", "$address && has(self.spec.address.value) ? self.spec.address.value : ''"),
    CelVariable::new("from", "$address && has(self.spec.address.valueFrom)"),
    // The source that the platform uses, if it uses one.
    CelVariable::new(
        "source",
        "$literal != '' || !$from ? '' \
         : has(self.spec.address.valueFrom.secretKeyRef) ? 'secret' \
         : has(self.spec.address.valueFrom.configMapKeyRef) ? 'configMap' \
         : has(self.spec.address.valueFrom.serviceRef) ? 'service' \
         : has(self.spec.address.valueFrom.queryParameterRef) ? 'query' : 'none'",
    ),
    CelVariable::new(
        "headers",
        "has(self.spec) && has(self.spec.headers) && size(self.spec.headers) <= 128 \
         ? self.spec.headers : []",
    ),
    // The headers whose value comes from a source, and their references by kind.
    CelVariable::new(
        "sourced",
        "$headers.filter(h, has(h.value) && has(h.value.valueFrom) && (!has(h.value.value) \
         || h.value.value == '' || has(h.value.valueFrom.queryParameterRef)))",
    ),
    CelVariable::new(
        "secrets",
        "$sourced.filter(h, has(h.value.valueFrom.secretKeyRef) \
         && !has(h.value.valueFrom.queryParameterRef)).map(h, h.value.valueFrom.secretKeyRef)",
    ),
    CelVariable::new(
        "config_maps",
        "$sourced.filter(h, has(h.value.valueFrom.configMapKeyRef) \
         && !has(h.value.valueFrom.queryParameterRef) \
         && !has(h.value.valueFrom.secretKeyRef)).map(h, h.value.valueFrom.configMapKeyRef)",
    ),
];

const MEMORY_RULES: [CelRule; 11] = [
    CelRule {
        code: &MEMORY_ADDRESS_REQUIRED,
        // Typed clients write an absent address as an empty one, so both are the same.
        faults: "$literal == '' && !$from \
                 ? [$address && has(self.spec.address.value) ? 'empty' : 'none'] : []",
        message: "spec.address: address must specify either value or valueFrom",
    },
    CelRule {
        code: &MEMORY_ADDRESS_SOURCE,
        faults: "$source == 'none' ? [self.spec.address] : []",
        message: "spec.address.valueFrom: valueFrom must specify exactly one source",
    },
    CelRule {
        code: &MEMORY_ADDRESS_URL,
        // What Go's net/url takes, but that any digits and colons in brackets pass for an IPv6 address.
        faults: "$literal != '' && size($literal) <= 4096 && ($literal.matches('[[:cntrl:]]') || \
                 !$literal.matches('^(?i:https?)://\
                 (([-A-Za-z0-9._:~!$&()*+,;=@\\\\x27]|%[[:xdigit:]]{2})*@)?\
                 ([[][[:xdigit:].]*:[[:xdigit:].]*:[[:xdigit:]:.]*(%25\
                 ([]A-Za-z0-9._~!$&()*+,;=:<>\"\\\\x27-]|[^[:ascii:]]|%[2-7][[:xdigit:]])+)?[]]\
                 |([]A-Za-z0-9._~!$&()*+,;=<>\"\\\\x27-]|[^[:ascii:]]|%25|%[89A-Fa-f][[:xdigit:]])+)\
                 (:(0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?)?\
                 (/([^%?#]|%[[:xdigit:]]{2})*)?([?][^#]*)?(#([^%]|%[[:xdigit:]]{2})*)?$')) \
                 ? [self.spec.address] : []",
        message: "spec.address.value: address value must be an absolute http or https URL",
    },
    CelRule {
        code: &MEMORY_REF_NAME,
        faults: "($source == 'secret' && (!has(self.spec.address.valueFrom.secretKeyRef.name) \
                 || self.spec.address.valueFrom.secretKeyRef.name == '')) \
                 || ($source == 'configMap' && (!has(self.spec.address.valueFrom.configMapKeyRef.name) \
                 || self.spec.address.valueFrom.configMapKeyRef.name == '')) \
                 || ($source == 'service' && (!has(self.spec.address.valueFrom.serviceRef.name) \
                 || self.spec.address.valueFrom.serviceRef.name == '')) ? [self.spec.address] : []",
        message: "spec.address.valueFrom: the source that ARK takes has no name",
    },
    CelRule {
        code: &MEMORY_REF_KEY,
        faults: "($source == 'secret' && (!has(self.spec.address.valueFrom.secretKeyRef.key) \
                 || self.spec.address.valueFrom.secretKeyRef.key == '')) \
                 || ($source == 'configMap' && (!has(self.spec.address.valueFrom.configMapKeyRef.key) \
                 || self.spec.address.valueFrom.configMapKeyRef.key == '')) ? [self.spec.address] : []",
        message: "spec.address.valueFrom: the source that ARK takes has no key",
    },
    CelRule {
        code: &HEADER_NAME,
        faults: "$headers.exists(h, !has(h.name) || size(h.name) <= 4096 \
                 && !h.name.matches(\"^[-!#$%&'*+.^_`|~0-9A-Za-z]+$\")) ? [self.spec.headers] : []",
        message: "spec.headers: a name is missing or invalid",
    },
    CelRule {
        code: &HEADER_VALUE_REQUIRED,
        faults: "$headers.exists(h, !has(h.value) || !has(h.value.valueFrom) \
                 && (!has(h.value.value) || h.value.value == '')) ? [self.spec.headers] : []",
        message: "spec.headers: each must specify either value or valueFrom",
    },
    CelRule {
        code: &HEADER_SOURCE,
        faults: "$sourced.exists(h, !has(h.value.valueFrom.secretKeyRef) \
                 && !has(h.value.valueFrom.configMapKeyRef) \
                 && !has(h.value.valueFrom.queryParameterRef)) ? [self.spec.headers] : []",
        message: "spec.headers: valueFrom must specify exactly one source",
    },
    CelRule {
        code: &HEADER_VALUE_CHARS,
        faults: "$headers.exists(h, has(h.value) && has(h.value.value) && size(h.value.value) <= 4096 \
                 && !(has(h.value.valueFrom) && has(h.value.valueFrom.queryParameterRef)) \
                 && h.value.value.matches('[\\\\x00-\\\\x08\\\\x0a-\\\\x1f\\\\x7f]')) ? [self.spec.headers] : []",
        message: "spec.headers: invalid header value",
    },
    CelRule {
        code: &MEMORY_REF_NAME,
        faults: "$secrets.exists(source, !has(source.name) || source.name == '') \
                 || $config_maps.exists(source, !has(source.name) || source.name == '') \
                 ? [self.spec.headers] : []",
        message: "spec.headers: the source that ARK takes has no name",
    },
    CelRule {
        code: &MEMORY_REF_KEY,
        faults: "$secrets.exists(source, !has(source.key) || source.key == '') \
                 || $config_maps.exists(source, !has(source.key) || source.key == '') \
                 ? [self.spec.headers] : []",
        message: "spec.headers: the source that ARK takes has no key",
    },
];

/// The codes that deny and are not checked in CEL.
pub static NOT_IN_CEL: [(&Code, NotInCel); 4] = [
    (&MEMORY_PORT_RANGE, NotInCel::Schema),
    (&MEMORY_PORT_TYPE, NotInCel::Schema),
    (&QUERY_MEMORY_NAME, NotInCel::Schema),
    (&SCHEMA, NotInCel::Schema),
];

/// The default Memory of a Query.
pub static CEL_DEFAULTS: [CelDefault; 1] = [CelDefault {
    name: "ark-queries",
    kind: &QUERY,
    param: &MEMORY,
    param_name: DEFAULT,
    conditions: &[
        ("names-none", "has(object.spec) && !has(object.spec.memory)"),
        ("stays", "!has(params.metadata.deletionTimestamp)"),
    ],
    patch: "[JSONPatch{op: 'add', path: '/spec/memory', value: {'name': params.metadata.name}}]",
}];

/// Which of the family's defaults the apiserver can write.
pub const ABOUT_DEFAULTS: &str = "a Query without a Memory gets the Memory `default` of its namespace. Which \
    Memory an ArkConfig names is not seen, so install it only where no ArkConfig has a `defaultMemory`. A \
    port that is a number never gets so far: the schema wants text";
