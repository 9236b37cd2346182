//! The values that a pod gets from a Memory: the address of its service, and the headers to send there.
//!
//! A value from a Secret stays a reference, and a literal credential is not copied. A pod of another namespace
//! gets only the address. Otherwise every user who can create pods could read the headers of all namespaces.
//!
//! Also recognises pods that opt in, and reads their annotations. Blanks around values are ignored.

use crate::ark::prelude::*;
use crate::ark::service::ServiceRef;
use crate::ark::value::{EffectiveValue, ValueOrSource, ValueSource};
use crate::inject::env::escape_references;
use memgate_primitives::budget::MAX_ENTRIES;

/// The Memory of a pod.
#[derive(Debug)]
pub(super) struct PodMemory<'s> {
    pub(super) memory: &'s Object,
    /// The namespace of the Memory, or the searched namespace if the Memory comes from a file without one.
    pub(super) namespace: String,
    /// Whether its namespace differs from the namespace of the pod.
    pub(super) cross_namespace: bool,
}

/// The beginning of the variables for headers.
pub(crate) const HEADER_PREFIX: &str = "ARK_MEMORY_HEADER_";
const NO_VALUE: &str = "cannot be injected: it has no value";
const QUERY_PARAMETER: &str = "cannot be injected: its value comes from a query parameter";
const OTHER_NAMESPACE: &str = "cannot be injected: the Memory is in another namespace";
const SAME_VARIABLE: &str = "cannot be injected: a later header has the same variable";
const CREDENTIAL: &str = "holds a literal credential and is not copied into the pod; use secretKeyRef";

/// A header that is injected as a variable.
#[derive(Debug)]
pub(super) struct HeaderVariable<'s> {
    pub(super) name: &'s str,
    pub(super) variable: String,
    pub(super) source: EnvSource,
    pub(super) index: usize,
}

/// A header that cannot be injected.
#[derive(Debug)]
pub(super) struct SkippedHeader<'s> {
    pub(super) name: &'s str,
    /// The reason, which messages put after the name.
    pub(super) reason: &'static str,
    pub(super) index: usize,
}

impl<'s> PodMemory<'s> {
    /// The address of the service, if it can be determined.
    pub(super) fn address(&self, state: &mut StateReader<'_>) -> Option<EnvSource> {
        let address = ValueOrSource::read_address(self.memory.tree().at(&["spec", "address"])?);
        match address.effective() {
            EffectiveValue::Literal(literal) => self.literal(literal.text()?),
            EffectiveValue::Nothing => None,
            EffectiveValue::Source(source) => match source.field {
                "secretKeyRef" if !self.cross_namespace => key_ref(&source).map(EnvSource::Secret),
                "configMapKeyRef" if !self.cross_namespace => key_ref(&source).map(EnvSource::ConfigMap),
                "configMapKeyRef" => self.resolved(),
                "serviceRef" => self.service(&source, state),
                _ => None,
            },
        }
    }

    /// A literal address, without one trailing slash. `None` if the Memory is in another namespace and the
    /// address may contain a secret.
    fn literal(&self, text: &str) -> Option<EnvSource> {
        let has_secret = |url: Endpoint<'_>| {
            url.userinfo.is_some() || url.tail.split('#').next().is_some_and(|it| it.contains('?'))
        };
        let usable = !self.cross_namespace || Endpoint::for_go(text).is_some_and(|url| !has_secret(url));
        usable.then(|| EnvSource::Value(escape_references(text.strip_suffix('/').unwrap_or(text))))
    }

    /// The address in the status, which the platform resolved.
    fn resolved(&self) -> Option<EnvSource> {
        self.literal(resolved_address(self.memory.tree())?)
    }

    fn service(&self, source: &ValueSource<'_>, state: &mut StateReader<'_>) -> Option<EnvSource> {
        let Some(reference) = ServiceRef::read(source, &self.namespace) else { return self.resolved() };
        if let Some(port) = reference.look_up(state).found().and_then(|service| reference.port_of(service)) {
            return self.literal(&reference.url(Some(port)));
        }
        let by_given_number = || self.literal(&reference.url(Some(reference.given_number()?)));
        self.resolved().or_else(by_given_number)
    }

    /// The Service of its address, if that Service does not exist.
    pub(super) fn missing_service(&self, state: &mut StateReader<'_>) -> Vec<Reference> {
        let address = self.memory.tree().at(&["spec", "address"]).map(ValueOrSource::read_address);
        let service = match address.as_ref().map(ValueOrSource::effective) {
            Some(EffectiveValue::Source(source)) if source.field == "serviceRef" => {
                ServiceRef::read(&source, &self.namespace)
            }
            _ => None,
        };
        let service = service.filter(|service| service.look_up(state) == Lookup::Absent);
        service.map(|service| references([&SERVICE], service.namespace, service.name)).unwrap_or_default()
    }

    /// The headers that can be injected, and those that cannot.
    pub(super) fn headers(&self) -> (Vec<HeaderVariable<'s>>, Vec<SkippedHeader<'s>>) {
        let headers = self.memory.tree().list_at(&["spec", "headers"]);
        let (mut usable, mut skipped) = (Vec::new(), Vec::new());
        // Headers of one canonical form are one header, and the last one counts. Without it, an earlier one would be what
        // the platform does not send. Going backwards, the last one is the first.
        let mut is_copied = ByKey::default();
        for (index, header) in headers.iter().enumerate().rev() {
            let Some(name) = header.filled_at(&["name"]) else { continue };
            let last: &mut Option<bool> = is_copied.entry(one_spelling(name)).or_default();
            let value = match last {
                None => self.header_value(name, header),
                Some(true) => Err(SAME_VARIABLE),
                Some(false) => continue,
            };
            last.get_or_insert(value.is_ok());
            match value {
                Ok(source) => {
                    usable.push(HeaderVariable { name, variable: header_variable_name(name), source, index });
                }
                Err(reason) => skipped.push(SkippedHeader { name, reason, index }),
            }
        }
        usable.reverse();
        // Going backwards, the first header of each variable is the last one in the list.
        let mut seen = Members::default();
        let last = usable.iter().rev().filter(|header| seen.insert(header.variable.as_str()));
        let is_last: Members<usize> = last.map(|header| header.index).collect();
        let (last, earlier): (Vec<_>, Vec<_>) =
            usable.into_iter().partition(|header| is_last.contains(&header.index));
        let to_skipped = |header: HeaderVariable<'s>| SkippedHeader {
            name: header.name,
            reason: SAME_VARIABLE,
            index: header.index,
        };
        skipped.extend(earlier.into_iter().map(to_skipped));
        skipped.sort_by_key(|skipped| skipped.index);
        (last, skipped)
    }

    fn header_value(&self, name: &str, header: &'s Tree) -> Result<EnvSource, &'static str> {
        if self.cross_namespace {
            return Err(OTHER_NAMESPACE);
        }
        match ValueOrSource::read_header(header.get("value").ok_or(NO_VALUE)?).effective() {
            EffectiveValue::Literal(literal) => match literal.text() {
                Some(_) if is_credential_header(name) => Err(CREDENTIAL),
                Some(text) => Ok(EnvSource::Value(escape_references(text))),
                None => Err(NO_VALUE),
            },
            EffectiveValue::Source(source) => match source.field {
                "secretKeyRef" => key_ref(&source).map(EnvSource::Secret).ok_or(NO_VALUE),
                "configMapKeyRef" => key_ref(&source).map(EnvSource::ConfigMap).ok_or(NO_VALUE),
                _ => Err(QUERY_PARAMETER),
            },
            EffectiveValue::Nothing => Err(NO_VALUE),
        }
    }
}

/// The name of the variable for a header.
fn header_variable_name(header: &str) -> String {
    let to_variable_char = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let mut name = String::with_capacity(HEADER_PREFIX.len() + header.len());
    name.push_str(HEADER_PREFIX);
    name.extend(header.chars().map(to_variable_char));
    name
}

/// The key of the Secret or ConfigMap.
fn key_ref(source: &ValueSource<'_>) -> Option<KeyRef> {
    let optional = match source.tree.get("optional") {
        Some(Tree::Boolean(optional)) => Some(*optional),
        _ => None,
    };
    let (name, key) = (source.text("name")?, source.text("key")?);
    Some(KeyRef { name: name.to_owned(), key: Cow::Owned(key.to_owned()), optional })
}

/// The longest timeout, in seconds.
const MAX_TIMEOUT_SECONDS: u16 = 3600;

/// The label with the name of a pod's application.
const NAME_LABEL: &str = "app.kubernetes.io/name";

/// How a pod that opted in is treated.
pub(super) enum OptIn<'p> {
    /// It asks for the Memory that this text names.
    Named(&'p str),
    /// It is a pod of the cluster or of memgate, which never gets a Memory.
    OfOthers,
    /// It is a pod of the platform's own memory service.
    OfBroker,
}

/// The opt-in of a pod of this namespace; `None` if it did not opt in.
pub(super) fn recognise<'p>(pod: &'p Pod<'_>, namespace: &str) -> Option<OptIn<'p>> {
    let wanted = pod.annotation(MEMORY_ANNOTATION)?;
    Some(match pod.label(NAME_LABEL) {
        Some("memgate") => OptIn::OfOthers,
        _ if namespace == "kube-system" => OptIn::OfOthers,
        Some("ark-broker") => OptIn::OfBroker,
        _ => OptIn::Named(wanted),
    })
}

/// The reference to a Memory in an annotation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MemoryName<'a> {
    /// The namespace; `None` for the namespace of the pod.
    pub(super) namespace: Option<&'a str>,
    /// The name; empty for the default Memory.
    pub(super) name: &'a str,
}

impl<'a> MemoryName<'a> {
    /// Reads `name`, `namespace/name` or an empty text; `None` for anything else.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let text = trim_blanks(text);
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        let valid_name = is_dns_subdomain(name) || text.is_empty();
        let valid = valid_name && namespace.is_none_or(is_namespace);
        valid.then_some(Self { namespace, name })
    }

    /// The namespace and the name of the Memory, for a pod of this namespace.
    pub(super) fn within(&self, pod_namespace: &'a str) -> (&'a str, &'a str) {
        let name = if self.name.is_empty() { DEFAULT } else { self.name };
        (self.namespace.unwrap_or(pod_namespace), name)
    }
}

/// A DNS-1123 label: without dots, at most 63 characters.
fn is_namespace(text: &str) -> bool {
    is_dns_subdomain(text) && !text.contains('.') && text.len() <= 63
}

/// A number of seconds, written without a sign and leading zeros.
pub(super) fn seconds(text: &str) -> Option<u16> {
    let text = trim_blanks(text);
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|seconds| plain && *seconds <= MAX_TIMEOUT_SECONDS)
}

/// The items of a comma-separated list, without duplicates and empty items. Of a very long list, only the
/// first items.
pub(super) fn names(text: &str) -> Vec<&str> {
    let mut known = Members::default();
    let names = text.split(',').map(trim_blanks).filter(|name| !name.is_empty() && known.insert(*name));
    names.take(MAX_ENTRIES + 1).collect()
}

fn trim_blanks(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_of_memories() {
        let name = |namespace, name| Some(MemoryName { namespace, name });
        for (text, read) in [
            ("", name(None, "")),
            (" \t", name(None, "")),
            (" vaulted ", name(None, "vaulted")),
            ("team-a/vaulted.v2", name(Some("team-a"), "vaulted.v2")),
            ("team.a/vaulted", None),
            ("team-a/", None),
            ("/vaulted", None),
            ("a/b/c", None),
            ("Vaulted", None),
            ("vaulted\n", None),
        ] {
            assert_eq!(MemoryName::read(text), read, "{text:?}");
        }
    }

    #[test]
    fn reads_seconds() {
        for (text, read) in [(" 30 ", Some(30)), ("1", Some(1)), ("3600", Some(3600))] {
            assert_eq!(seconds(text), read, "{text}");
        }
        for text in ["", "0", "3601", "+30", "-1", "030", "30s", "1.5", "99999999999", "٣"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn reads_lists() {
        assert_eq!(names(" engine, ,metrics,engine"), ["engine", "metrics"]);
        assert_eq!(names(" , "), Vec::<&str>::new());
    }
}
