//! `tenancy`: names of objects, collections, Secrets and hosts that belong to the tenant of a namespace.

use std::sync::Arc;

use memgate_model::cel_view::{CelFault, CelSide, InCel, MessagePart, StoredFault};
use memgate_model::finding::Cause;
use memgate_model::label_selector::LabelValue;
use memgate_model::memory_view::Why;
use memgate_model::possible::Possible;
use memgate_model::typed_rule::{Conditions, Idle, Judged, RuleOutcome, TypedRule};
use memgate_primitives::budget::Budget;
use memgate_primitives::credential::is_credential_name;
use memgate_primitives::pointer::Pointer;

use super::check::{AnyGlob, Check, Condition, Shows};
use super::tenant_glob::TenantGlob;
use super::words::{MAX_CHARS, MAX_ENTRIES, forbids_nothing};
use crate::in_cel::{VALUE, literal, pattern_of_tenant, text};
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
type Name = (&'static str, &'static [NamePath], &'static str, Shows);

/// A path in the view and in CEL.
type NamePath = (&'static str, &'static str);

static NAMES: [Name; 4] = [
    ("names", &[("name", "name.chosen")], "name ", Shows::Name),
    ("collection", &[("collection", "collection")], "collection ", Shows::Value),
    ("secrets", &[("secrets[].name", "secrets")], "Secret ", Shows::Name),
    (
        "endpointHosts",
        &[("endpoint.host", "endpoint"), ("embedding.endpoint.host", "embedding.endpoint")],
        "endpoint host ",
        Shows::Value,
    ),
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
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
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
        let of_names = paths.map(|(path, _)| path.trim_end_matches(".host").trim_end_matches("[].name"));
        of_names.chain(self.is_required.then_some("name")).collect()
    }

    fn applies(&self, judged: &Judged<'_>) -> bool {
        let has_tenant = || self.is_required || !matches!(self.tenant(judged), Ok(None));
        has_tenant() && self.paths().iter().any(|path| judged.can_have(path))
    }

    fn contradictions(&self, _budget: &Budget<'_>) -> Vec<(Pointer, String)> {
        let mut found = Vec::new();
        for ((field, ..), patterns) in &self.names {
            let more = match *field {
                "names" | "secrets" => "-.",
                "endpointHosts" => "-._[]:",
                _ => continue,
            };
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '*' || more.contains(c);
            for (pattern, index) in patterns.iter().zip(0_usize..) {
                if !pattern.replace("{tenant}", "*").chars().all(fits) {
                    let at = Pointer::root().key(field);
                    let at = if patterns.len() > 1 { at.index(index) } else { at };
                    let message =
                        format!("fits no name; use a-z, 0-9 and \"{more}\", and \"*\" and \"{{tenant}}\"");
                    found.push((at, message));
                }
            }
        }
        found
    }

    fn idle(
        &self,
        _possible: &[Possible],
        _when: Option<&dyn Conditions>,
        _budget: &Budget<'_>,
    ) -> Vec<Idle> {
        // A host that clients read in two ways fits no pattern.
        let is_anything = |((field, ..), patterns): &(&Name, Vec<Arc<str>>)| {
            *field != "endpointHosts" && patterns.iter().any(|it| &**it == "*")
        };
        let is_idle = !self.is_required && self.names.iter().all(is_anything);
        if is_idle { forbids_nothing() } else { Vec::new() }
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        let tenant = format!("({})", self.from.in_cel(side));
        if self.is_required
            && let Some((field, _, words)) = self.from.missing()
        {
            let list = format!("size({tenant}) == 0 ? ['{field} ' + request.namespace] : []");
            let shown = (field == NAMESPACE).then_some(MessagePart::Quoted(1));
            said.add(list, [text(words)].into_iter().chain(shown).collect());
        }
        for (((field, _, what, _), patterns), (_, path)) in self.paths_of_names() {
            if let Some(entries) = said.entries(side, path, &format!("tenancy.{field}")) {
                let fits =
                    |pattern: &Arc<str>| format!("{VALUE}.matches({})", pattern_of_tenant(pattern, "tenant"));
                let fits = patterns.iter().map(fits).collect::<Vec<_>>().join(" || ");
                let fault = "it.split(' ', 2)[0] + ' ' + tenant + ' ' + it.split(' ', 2)[1]";
                let of_one = format!("{entries}.filter(it, !({fits})).map(it, {fault})");
                let is_name = ["names", "secrets"].contains(field);
                let shown = if is_name { MessagePart::Name(2) } else { MessagePart::Quoted(2) };
                let mut message = vec![text(*what), shown, text(" must match ")];
                for (pattern, index) in patterns.iter().zip(0_usize..) {
                    let start = if index == 0 { "\"" } else { "\" or \"" };
                    message.push(text(start));
                    for (part, index) in pattern.split("{tenant}").zip(0_usize..) {
                        message.extend((index > 0).then_some(MessagePart::Plain(1)));
                        message.push(text(part));
                    }
                }
                message.extend([text("\" for tenant "), MessagePart::Quoted(1)]);
                said.faults.push(CelFault {
                    // There is one tenant, or none.
                    list: format!("size({tenant}) == 0 ? [] : {tenant}.map(tenant, {of_one})[0]"),
                    words: 3,
                    message,
                    stored: StoredFault::Equal,
                });
            }
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
    /// The names, once for each of their paths.
    fn paths_of_names(&self) -> impl Iterator<Item = (&(&'static Name, Vec<Arc<str>>), &'static NamePath)> {
        self.names.iter().flat_map(|name| name.0.1.iter().map(move |path| (name, path)))
    }

    /// The tenant of a memory, if it has one.
    fn tenant<'v>(&self, judged: &Judged<'v>) -> Result<Option<&'v str>, Why> {
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

    fn judge_names(&self, tenant: &str, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let shown = value(judged, tenant);
        let is_own = |path: &str| {
            !path.starts_with("embedding")
                || judged.view.endpoints().any(|(known, _)| known.starts_with("embedding"))
        };
        for (((field, _, what, shows), patterns), (path, _)) in
            self.paths_of_names().filter(|(_, (path, _))| is_own(path))
        {
            if *field == "names" && judged.view.has_fixed_name {
                continue;
            }
            let filled = |it: &Arc<str>| format!("\"{}\"", it.replace("{tenant}", shown.trim_matches('"')));
            let behind = format!(" must match {} for tenant {shown}", or(patterns.iter().map(filled)));
            let globs = patterns.iter().map(|it| AnyGlob::OfTenant(TenantGlob::new(it, tenant))).collect();
            let condition = Condition::Fits { globs, written: Vec::new(), wanted: true };
            let of_tenant = format!("tenancy of {tenant}");
            Check::new(path, &of_tenant, field, condition, (what, *shows, behind)).judge(judged, outcome);
        }
    }
}
