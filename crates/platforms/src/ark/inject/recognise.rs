//! Recognises pods that opt in, and reads their annotations. Blanks around values are ignored.

use memgate_model::pod::Pod;
use memgate_primitives::budget::MAX_ENTRIES;
use memgate_primitives::members::Members;
use memgate_primitives::name::is_dns_subdomain;

use super::super::api::{DEFAULT, MEMORY_ANNOTATION};

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
