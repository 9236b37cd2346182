//! `tenancy`: names of collections, Secrets and hosts that belong to the tenant of a namespace.

use memgate_model::cel_view::{CelFault, CelSide, InCel, MessagePart};
use memgate_model::finding::Cause;
use memgate_model::label_selector::LabelValue;
use memgate_model::memory_view::Why;
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use super::super::in_cel::{VALUE, literal, pattern_of_tenant, text};
use super::super::names::label_key;
use super::super::reader::{Fields, Reader, one_of};
use super::super::text::{name, value};
use super::words::MAX_CHARS;

#[derive(Debug)]
struct Tenancy {
    from: TenantSource,
    collection: Option<String>,
    secrets: Option<String>,
    endpoint_hosts: Option<String>,
    is_required: bool,
}

/// Where the tenant of a memory is read from.
#[derive(Debug)]
enum TenantSource {
    Namespace,
    NamespaceLabel(String),
    ObjectLabel(String),
}

/// The tenant of a memory.
enum Tenant<'v> {
    Known(&'v str),
    /// Not set: the field that should set it, and the message about it.
    Missing(Pointer, String),
    Unknown(Why),
}

const FIELDS: [&str; 5] = ["from", "collection", "secrets", "endpointHosts", "required"];

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = reader.fields(&FIELDS)?;
    let from = fields.required("from").and_then(|it| source(&it));
    let pattern = |field| fields.text(field, MAX_CHARS).map(str::to_owned);
    let (collection, secrets) = (pattern("collection"), pattern("secrets"));
    let endpoint_hosts = pattern("endpointHosts");
    let is_required = fields.get("required").and_then(|it| it.flag()) == Some(true);
    let asks = FIELDS.iter().skip(1).any(|field| fields.has(field));
    if !asks {
        let message = format!(
            "asks for nothing; use {}",
            one_of(&["collection", "secrets", "endpointHosts", "required"])
        );
        fields.fault_here(Cause::Required, &message);
    }
    Some(Box::new(Tenancy { from: from?, collection, secrets, endpoint_hosts, is_required }))
}

fn source(reader: &Reader<'_>) -> Option<TenantSource> {
    let known = ["namespace", "namespaceLabel", "objectLabel"];
    let fields = reader.fields(&known)?;
    let given: Vec<&str> = known.into_iter().filter(|field| fields.has(field)).collect();
    if given.len() != 1 {
        fields.fault_here(Cause::Invalid, &format!("must have {}", one_of(&known)));
        return None;
    }
    let label = |field| label(&fields, field);
    if fields.has("namespace") {
        let reader = fields.get("namespace")?;
        if reader.flag()? {
            return Some(TenantSource::Namespace);
        }
        reader.fault(Cause::Invalid, "must be true");
        return None;
    }
    let of_namespace = label("namespaceLabel").map(TenantSource::NamespaceLabel);
    of_namespace.or_else(|| label("objectLabel").map(TenantSource::ObjectLabel))
}

fn label(fields: &Fields<'_>, field: &str) -> Option<String> {
    fields.get(field).as_ref().and_then(label_key).map(str::to_owned)
}

impl TypedRule for Tenancy {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        match self.tenant(judged) {
            Tenant::Known(tenant) => self.judge_names(tenant, judged, outcome),
            Tenant::Missing(pointer, message) if self.is_required => outcome.add(pointer, message, ""),
            Tenant::Missing(..) => {}
            Tenant::Unknown(why) => outcome.add_unknown(Pointer::new("/metadata/namespace"), why),
        }
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        let tenant = format!("({})", self.from.in_cel(side));
        if self.is_required
            && let Some((field, words)) = self.from.missing()
        {
            let list = format!("size({tenant}) == 0 ? ['{field} ' + request.namespace] : []");
            said.add(list, words);
        }
        for (path, what, pattern) in
            [("collection", "collection", &self.collection), ("secrets", "Secret", &self.secrets)]
        {
            if let Some(pattern) = pattern
                && let Some(entries) = said.entries(side, path, &format!("tenancy.{path}"))
            {
                let fits = pattern_of_tenant(pattern, "tenant");
                let fault = "it.split(' ', 2)[0] + ' ' + tenant + ' ' + it.split(' ', 2)[1]";
                let of_one = format!("{entries}.filter(it, !{VALUE}.matches({fits})).map(it, {fault})");
                let middle = format!(" must match \"{pattern}\" for tenant ");
                said.faults.push(CelFault {
                    // There is one tenant, or none.
                    list: format!("size({tenant}) == 0 ? [] : {tenant}.map(tenant, {of_one})[0]"),
                    words: 3,
                    message: vec![
                        text(format!("{what} ")),
                        MessagePart::Quoted(2),
                        text(middle),
                        MessagePart::Quoted(1),
                    ],
                    transition: false,
                });
            }
        }
        if self.endpoint_hosts.is_some() {
            let _no_table_has_it = said.entries(side, "endpoint", "tenancy.endpointHosts");
        }
    }

    fn reads_namespaces(&self) -> bool {
        matches!(self.from, TenantSource::NamespaceLabel(_))
    }

    fn reads_other_objects(&self) -> bool {
        true
    }
}

impl TenantSource {
    /// A list of the tenant in CEL; empty where there is none.
    fn in_cel(&self, side: &CelSide<'_>) -> String {
        let labelled = |labels: &str, key: &str| {
            let key = literal(key);
            format!("[{key}].filter(key, key in {labels} && {labels}[key] != '').map(key, {labels}[key])")
        };
        match self {
            Self::Namespace => "[request.namespace]".to_owned(),
            Self::ObjectLabel(key) => labelled(&side.labels(), key),
            Self::NamespaceLabel(key) => {
                let labels = "namespaceObject.metadata.labels";
                format!("namespaceObject == null || !has({labels}) ? [] : {}", labelled(labels, key))
            }
        }
    }

    /// The field that should set the tenant, and the message if it does not.
    fn missing(&self) -> Option<(&'static str, Vec<MessagePart>)> {
        match self {
            Self::Namespace => None,
            Self::ObjectLabel(key) => {
                Some(("metadata.labels", vec![text(format!("label \"{key}\" is missing on the object"))]))
            }
            Self::NamespaceLabel(key) => {
                let words = format!("label \"{key}\" is missing on Namespace ");
                Some(("metadata.namespace", vec![text(words), MessagePart::Quoted(1)]))
            }
        }
    }
}

impl Tenancy {
    fn tenant<'v>(&self, judged: &Judged<'v>) -> Tenant<'v> {
        let view = judged.view;
        match &self.from {
            TenantSource::Namespace => Tenant::Known(&view.namespace),
            TenantSource::ObjectLabel(key) => {
                match judged.labels.get(key).filter(|value| !value.is_empty()) {
                    Some(value) => Tenant::Known(value),
                    None => {
                        let message = format!("label \"{key}\" is missing on the object");
                        Tenant::Missing(Pointer::new("/metadata/labels").key(key), message)
                    }
                }
            }
            TenantSource::NamespaceLabel(key) => match judged.namespace_labels.get(key) {
                LabelValue::Found(value) if !value.is_empty() => Tenant::Known(value),
                LabelValue::Found(_) | LabelValue::Missing => {
                    let shown = name(judged, &view.namespace);
                    let message = format!("label \"{key}\" is missing on Namespace {shown}");
                    Tenant::Missing(Pointer::new("/metadata/namespace"), message)
                }
                LabelValue::Unknown => Tenant::Unknown(Why::Namespace(view.namespace.clone())),
            },
        }
    }

    fn judge_names(&self, tenant: &str, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let (view, budget) = (judged.view, judged.budget);
        let must = |what: &str, shown: &str, pattern: &str| {
            format!("{what} {shown} must match \"{pattern}\" for tenant {}", value(judged, tenant))
        };
        if let Some((pattern, collection)) = self.collection.as_ref().zip(view.collection.as_ref())
            && !fits(pattern, tenant, collection, budget)
        {
            let message = must("collection", &value(judged, collection), pattern);
            outcome.add(view.pointer("collection"), message, format!("{tenant} {collection}"));
        }
        if let Some(pattern) = &self.secrets {
            for secret in view.secrets.iter().filter(|secret| !fits(pattern, tenant, &secret.name, budget)) {
                let message = must("Secret", &name(judged, &secret.name), pattern);
                outcome.add(secret.field.clone(), message, format!("{tenant} {}", secret.name));
            }
        }
        for (path, pattern) in [("collection", &self.collection), ("secrets", &self.secrets)] {
            if pattern.is_some() {
                judged.note_unknown(path, outcome);
            }
        }
        if let Some((pattern, endpoint)) = self.endpoint_hosts.as_ref().zip(view.endpoint.as_ref()) {
            let pointer = view.pointer("endpoint");
            if let Some(why) = endpoint.unknown.as_ref().filter(|_| !endpoint.is_ambiguous()) {
                return outcome.add_unknown_of(pointer, why.clone(), endpoint.digest);
            }
            let is_allowed = |host: &str| !endpoint.is_ambiguous() && fits(pattern, tenant, host, budget);
            for host in endpoint.hosts.iter().filter(|host| !is_allowed(&host.host)) {
                let message = must("endpoint host", &value(judged, &host.host), pattern);
                let value = format!("{tenant} {:x} {}", endpoint.digest, host.host);
                outcome.add(pointer.clone(), message, value);
            }
        }
    }
}

/// Whether a text fits a pattern in which `{tenant}` stands for the tenant and `*` for anything. Each part between
/// two `*` is looked for once, from left to right.
fn fits(pattern: &str, tenant: &str, text: &str, budget: &Budget<'_>) -> bool {
    if !budget.bytes(pattern.len() + text.len()) {
        return false;
    }
    let parts: Vec<String> = pattern.split('*').map(|part| part.replace("{tenant}", tenant)).collect();
    let [first, rest @ ..] = parts.as_slice() else { return false };
    let Some(mut text) = text.strip_prefix(first.as_str()) else { return false };
    let [middle @ .., last] = rest else { return text.is_empty() };
    for part in middle {
        let Some(at) = text.find(part.as_str()) else { return false };
        text = text.get(at + part.len()..).unwrap_or_default();
    }
    text.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::{Budget, fits};

    #[test]
    fn fits_names_of_tenants() {
        for (pattern, tenant, text, expected) in [
            ("{tenant}-*", "a", "a-notes", true),
            ("{tenant}-*", "a", "a-b-notes", true),
            ("{tenant}-*", "a", "ab-notes", false),
            ("{tenant}", "a", "a", true),
            ("{tenant}", "a", "aa", false),
            ("*-{tenant}-*", "a", "x-a-y", true),
            ("*-{tenant}-*", "a", "x-b-y", false),
            ("*", "a", "", true),
            ("a*a", "x", "a", false),
            ("{tenant}-*", "*", "b-notes", false),
            ("{tenant}{tenant}", "a", "aa", true),
        ] {
            assert_eq!(
                fits(pattern, tenant, text, &Budget::default()),
                expected,
                "{pattern} {tenant} {text}"
            );
        }
    }
}
