//! `tenancy`: names of objects, collections, Secrets and hosts that belong to the tenant of a namespace.

use std::sync::Arc;

use memgate_model::finding::Cause;
use memgate_model::label_selector::LabelValue;
use memgate_model::memory_view::Why;
use memgate_model::typed_rule::{JudgedView, RuleOutcome, TypedRule};
use memgate_primitives::credential::is_credential_name;
use memgate_primitives::glob::Glob;
use memgate_primitives::pointer::Pointer;

use super::check::{AnyGlob, Check, Condition, Shows};
use super::words::{MAX_CHARS, MAX_ENTRIES};
use crate::names::label_key;
use crate::reader::{Fields, Reader, one_of};
use crate::text::{name, or, value};

#[derive(Debug)]
struct Tenancy {
    from: TenantSource,
    /// Names, with texts in which `{tenant}` stands for the tenant and `*` for anything, one of which a name must fit.
    names: Vec<(&'static Name, Vec<Arc<str>>)>,
    is_required: bool,
}

/// What a tenant has a part of: the field of the rule, the paths, and how the message begins and shows it.
type Name = (&'static str, &'static [&'static str], &'static str, Shows);

static NAMES: [Name; 4] = [
    ("names", &["name"], "name ", Shows::Name),
    ("collection", &["collection"], "collection ", Shows::Value),
    ("secrets", &["secrets[].name"], "Secret ", Shows::Name),
    ("endpointHosts", &["endpoint.host", "embedding.endpoint.host"], "endpoint host ", Shows::Value),
];

/// Where the tenant of a memory is read from.
#[derive(Debug)]
enum TenantSource {
    Namespace,
    NamespaceLabel(String),
    ObjectLabel(String),
}

/// The field that names the Namespace of an object.
const NAMESPACE: &str = "metadata.namespace";

const FIELDS: [&str; 6] = ["from", "names", "collection", "secrets", "endpointHosts", "required"];

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = reader.fields(&FIELDS)?;
    let from = fields.required("from").and_then(|it| source(&it));
    let patterns = |name: &'static Name| Some((name, patterns(&fields.get(name.0)?)));
    let names = NAMES.iter().filter_map(patterns).collect();
    // Every object has a namespace.
    let may_lack = from.as_ref().is_some_and(|from| from.missing().is_some());
    let is_required = fields.get("required").and_then(|it| it.flag()) == Some(true) && may_lack;
    let asks = FIELDS.iter().skip(1).any(|field| fields.has(field));
    if !asks {
        let [_, known @ ..] = FIELDS;
        fields.fault_here(Cause::Required, &format!("asks for nothing; use {}", one_of(&known)));
    }
    Some(Box::new(Tenancy { from: from?, names, is_required }))
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

/// The patterns of a field: one text, or a list of them.
fn patterns(reader: &Reader<'_>) -> Vec<Arc<str>> {
    if reader.value().is_string() {
        return reader.text(MAX_CHARS).into_iter().map(Arc::from).collect();
    }
    reader.texts(1, MAX_ENTRIES, MAX_CHARS).into_iter().map(|(text, _)| text.into()).collect()
}

fn label(fields: &Fields<'_>, field: &str) -> Option<String> {
    let reader = fields.get(field)?;
    let key = label_key(&reader)?;
    // Messages show the tenant, also one that does not fit.
    if is_credential_name(key) {
        reader.fault(Cause::Invalid, "has the name of a credential; take the tenant from another label");
        return None;
    }
    Some(key.to_owned())
}

impl TypedRule for Tenancy {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        match (self.tenant(judged), self.from.missing()) {
            (Ok(Some(tenant)), _) => self.judge_names(tenant, judged, outcome),
            (Ok(None), Some((field, place, words))) if self.is_required => {
                let of_namespace = field == NAMESPACE;
                let shown = if of_namespace { name(judged, &judged.view.namespace) } else { String::new() };
                outcome.add(place, words + &shown, "");
            }
            (Ok(None), _) => {}
            (Err(why), _) => outcome.add_unknown(Pointer::new("/metadata/namespace"), why),
        }
    }

    fn paths(&self) -> Vec<&str> {
        let paths = self.names.iter().flat_map(|((_, paths, ..), _)| *paths);
        let of_names = paths.map(|path| path.trim_end_matches(".host").trim_end_matches("[].name"));
        of_names.chain(self.is_required.then_some("name")).collect()
    }

    fn applies(&self, judged: &JudgedView<'_>) -> bool {
        let has_tenant = || self.is_required || !matches!(self.tenant(judged), Ok(None));
        has_tenant() && self.paths().iter().any(|path| judged.can_have(path))
    }

    fn reads_namespaces(&self) -> bool {
        matches!(self.from, TenantSource::NamespaceLabel(_))
    }

    fn reads_other_objects(&self) -> bool {
        true
    }
}

impl TenantSource {
    /// The field that should set the tenant, also as a pointer, and the message if it does not, up to the Namespace.
    fn missing(&self) -> Option<(&'static str, Pointer, String)> {
        let (field, place, key, of) = match self {
            Self::Namespace => return None,
            Self::ObjectLabel(key) => {
                ("metadata.labels", Pointer::new("/metadata/labels").key(key), key, "the object")
            }
            Self::NamespaceLabel(key) => (NAMESPACE, Pointer::new("/metadata/namespace"), key, "Namespace "),
        };
        Some((field, place, format!("label \"{key}\" is missing on {of}")))
    }
}

impl Tenancy {
    /// The tenant of a memory, if it has one.
    fn tenant<'v>(&self, judged: &JudgedView<'v>) -> Result<Option<&'v str>, Why> {
        let namespace = &judged.view.namespace;
        let found = match &self.from {
            TenantSource::Namespace => return Ok(Some(namespace)),
            TenantSource::ObjectLabel(key) => judged.labels.get(key).map(String::as_str),
            TenantSource::NamespaceLabel(key) => match judged.namespace_labels.get(key) {
                LabelValue::Found(value) => Some(value),
                LabelValue::Missing => None,
                LabelValue::Unknown => return Err(Why::Namespace(namespace.clone())),
            },
        };
        Ok(found.filter(|it| !it.is_empty()))
    }

    fn judge_names(&self, tenant: &str, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        let shown = value(judged, tenant);
        let is_own = |path: &str| {
            !path.starts_with("embedding")
                || judged.view.endpoints().any(|(known, _)| known.starts_with("embedding"))
        };
        let paths = self.names.iter().flat_map(|name| name.0.1.iter().map(move |path| (name, path)));
        for (((field, _, what, shows), patterns), path) in paths.filter(|(_, path)| is_own(path)) {
            if *field == "names" && judged.view.has_fixed_name {
                continue;
            }
            let filled = |it: &Arc<str>| format!("\"{}\"", it.replace("{tenant}", shown.trim_matches('"')));
            let behind = format!(" must match {} for tenant {shown}", or(patterns.iter().map(filled)));
            let globs = patterns.iter().map(|it| AnyGlob::Text(glob_of(it, tenant))).collect();
            let condition = Condition::Fits { globs, written: Vec::new(), wanted: true };
            let of_tenant = format!("tenancy of {tenant}");
            Check::new(path, &of_tenant, field, condition, (what, *shows, behind)).judge(judged, outcome);
        }
    }
}

/// The pattern with the tenant in it. A tenant is the name of a namespace or the value of a label, which have no `*`.
fn glob_of(pattern: &str, tenant: &str) -> Glob {
    Glob::stars(pattern.replace("{tenant}", &tenant.replace('*', "\0")))
}

#[cfg(test)]
mod tests {
    use memgate_primitives::budget::Budget;

    use super::glob_of;

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
            ("a?*", "x", "ab", false),
            ("{tenant}-*", "*", "b-notes", false),
            ("{tenant}{tenant}", "a", "aa", true),
        ] {
            let fits = glob_of(pattern, tenant).matches(text, &Budget::default());
            assert_eq!(fits, expected, "{pattern} {tenant} {text}");
        }
    }
}
