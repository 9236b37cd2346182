//! Orloj's own namespaces: which one an object is in, and how references between them are resolved.
//!
//! Orloj keeps its resources in a store with its own namespaces. An annotation of an object names its Orloj
//! namespace; without the annotation it is the Kubernetes namespace. With the annotation, a user of any Kubernetes
//! namespace can claim a name in any Orloj namespace. So an object with it counts only if the settings name its Kubernetes
//! namespace; readers of the state do not see any other ([`claim::counts`](super::claim::counts)). Of objects that count, two can have the same name
//! in one Orloj namespace. So a pod gets an object only if the object is the only claim on the name, or if it is in the
//! Kubernetes namespace with the name of the Orloj namespace.
//!
//! A job namespace holds Orloj's own Secrets and those of every team. A user who writes a Memory in another namespace
//! may not have access to them. So a pod gets a reference to a Secret only from an object of its own namespace,
//! unless the settings share the Secret.

use super::prelude::*;
use memgate_model::platform_settings::Orloj;
use memgate_primitives::glob::Glob;

use super::claim::{effective, is_ignored, or_default};

/// The Orloj namespace of an object of the state.
pub(super) fn object_namespace(object: &Object) -> &str {
    effective(object.tree(), &object.namespace)
}

/// Finds objects by name in an Orloj namespace.
static BY_NAMESPACED_NAME: Index =
    Index { place: 2, keys: |object| vec![namespaced(object_namespace(object), &object.name).into()] };

/// The key of an object by Orloj namespace and name. It is unambiguous, since names have no slash.
pub(super) fn namespaced(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The result of resolving a name in an Orloj namespace.
pub(super) enum Resolved<'s> {
    /// One object.
    Found(&'s Object),
    /// Objects of several Kubernetes namespaces, none of which has the name of the Orloj namespace.
    Ambiguous(Vec<&'s Object>),
    /// It does not exist.
    Absent,
    /// It is not known whether it exists.
    Unknown,
}

/// Resolves a name for a pod.
pub(super) fn resolve<'s>(
    kind: &'static Kind,
    namespace: &str,
    name: &str,
    state: &mut StateReader<'s>,
) -> Resolved<'s> {
    let at_home = state.get(kind, namespace, name);
    let key = namespaced(namespace, name);
    let here: Vec<_> = state.peek_indexed(kind, &BY_NAMESPACED_NAME, &key).collect();
    if let Some(object) = here.iter().find(|object| or_default(&object.namespace) == namespace) {
        return Resolved::Found(object);
    }
    // One that is not held may have the name, and another claim must not take its place.
    let is_home_unknown = at_home == Lookup::Unknown(()) && state.in_cluster(kind);
    if is_home_unknown || state.may_lack(kind, (&BY_NAMESPACED_NAME, &key)) {
        return Resolved::Unknown;
    }
    match (here.as_slice(), at_home) {
        ([object], _) => Resolved::Found(object),
        ([], Lookup::Unknown(())) => Resolved::Unknown,
        ([], Lookup::Found(_) | Lookup::Absent) => Resolved::Absent,
        _ => Resolved::Ambiguous(here),
    }
}

/// Resolves a name to which an object of this Kubernetes namespace refers, as [`find`]. If the object is ignored, it is
/// unknown what exists in the Orloj namespace that it claims.
pub(super) fn find_for<'s>(
    (object, kubernetes): (&Tree, &str),
    kind: &'static Kind,
    (namespace, name): (&str, &str),
    state: &mut StateReader<'s>,
) -> Lookup<'s> {
    if is_ignored(object, kubernetes, &state.settings().orloj) {
        return Lookup::Unknown(());
    }
    find(kind, namespace, name, state)
}

/// Resolves a name for a warning about an object that refers to it. If several objects claim the name, the first one
/// is returned.
pub(super) fn find<'s>(
    kind: &'static Kind,
    namespace: &str,
    name: &str,
    state: &mut StateReader<'s>,
) -> Lookup<'s> {
    match resolve(kind, namespace, name, state) {
        Resolved::Found(object) => Lookup::Found(object),
        Resolved::Ambiguous(claims) => claims.first().map_or(Lookup::Absent, |first| Lookup::Found(first)),
        Resolved::Absent => Lookup::Absent,
        Resolved::Unknown => Lookup::Unknown(()),
    }
}

/// `name` or `namespace/name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamespacedName<'t> {
    pub(super) namespace: &'t str,
    pub(super) name: &'t str,
}

impl<'t> NamespacedName<'t> {
    /// Reads a reference in an object of the Orloj namespace `home`.
    pub(super) fn read(text: &'t str, home: &'t str) -> Self {
        match text.split_once('/') {
            Some((namespace, name)) => {
                NamespacedName { namespace: or_default(namespace.trim()), name: name.trim() }
            }
            None => NamespacedName { namespace: home, name: text.trim() },
        }
    }

    /// Whether an object can have this name.
    pub(super) fn is_valid(&self) -> bool {
        !self.name.is_empty() && !self.name.contains(|c: char| c == '/' || c.is_whitespace())
    }
}

/// A reference to a Secret, which may name a key: `[namespace/]name[:key]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SecretReference<'t> {
    pub(super) secret: NamespacedName<'t>,
    /// The text after the colon, if there is one.
    written_key: Option<&'t str>,
}

impl<'t> SecretReference<'t> {
    /// Reads a reference in an object of the Orloj namespace `home`.
    pub(super) fn read(text: &'t str, home: &'t str) -> Self {
        let reference = NamespacedName::read(text, home);
        let (name, key) = match reference.name.split_once(':') {
            Some((name, key)) => (name.trim(), Some(key.trim())),
            None => (reference.name, None),
        };
        SecretReference { secret: NamespacedName { name, ..reference }, written_key: key }
    }

    /// The key that Orloj reads.
    pub(super) fn key(&self) -> &'t str {
        self.written_key.filter(|key| !key.is_empty()).unwrap_or(SECRET_KEY)
    }

    /// Whether the reference names a key, which may be empty.
    pub(super) const fn names_key(&self) -> bool {
        self.written_key.is_some()
    }

    /// Whether the apiserver accepts this in a `secretKeyRef` of a pod.
    pub(super) fn is_valid_key_ref(&self) -> bool {
        /// The longest key of a Secret.
        const MAX_SECRET_KEY_BYTES: usize = 253;
        let key = self.key();
        let is_key_char = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let is_key = key.len() <= MAX_SECRET_KEY_BYTES
            && key.bytes().all(is_key_char)
            && key != "."
            && !key.starts_with("..");
        is_key && is_dns_subdomain(self.secret.name)
    }
}

/// Whether an object of this Kubernetes namespace may give pods of the Secret's namespace access to the Secret.
pub(super) fn may_hand_out(secret: NamespacedName<'_>, from: &str, settings: &Orloj) -> bool {
    let budget = Budget::default();
    let fits = |pattern: &String| Glob::new(pattern.as_str()).matches(secret.name, &budget);
    from == secret.namespace
        || is_in_job_namespace(secret, settings) && settings.shared_secrets.iter().any(fits)
}

/// Whether the Secret is in a namespace in which Orloj runs its Jobs.
pub(super) fn is_in_job_namespace(secret: NamespacedName<'_>, settings: &Orloj) -> bool {
    settings.job_namespaces.iter().any(|namespace| namespace == secret.namespace)
}

/// The finding about a Secret that an object may not give to pods. `resource` is the object's kind, Kubernetes
/// namespace and name.
pub(super) fn not_shared(
    secret: NamespacedName<'_>,
    resource: [&str; 3],
    at: Pointer,
    settings: &Orloj,
) -> Finding {
    let [kind, namespace, name] = resource;
    let text = "Secret {/} is not shared with {bare} {/}; add it to orloj.sharedSecrets";
    let finding =
        warning(&POD_SECRET_FOREIGN, at, text, [secret.namespace, secret.name, kind, namespace, name]);
    if is_in_job_namespace(secret, settings) {
        return finding
            .help("orloj.sharedSecrets is a setting of memgate, in .memgate.yaml or the file of --settings");
    }
    finding
        .help(format!("only Secrets of job namespaces can be shared; create the {kind} where the pod runs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_references() {
        for (text, namespace, name, possible) in [
            ("a", "home", "a", true),
            ("ns/a", "ns", "a", true),
            (" ns / a ", "ns", "a", true),
            ("/a", "default", "a", true),
            ("ns/", "ns", "", false),
            ("a/b/c", "a", "b/c", false),
            ("a b", "home", "a b", false),
        ] {
            let reference = NamespacedName::read(text, "home");
            assert_eq!(reference, NamespacedName { namespace, name }, "{text}");
            assert_eq!(reference.is_valid(), possible, "{text}");
        }
    }

    #[test]
    fn reads_keys_of_secrets() {
        for (text, namespace, name, key, fits) in [
            ("a", "home", "a", "value", true),
            ("ns/a:k", "ns", "a", "k", true),
            ("a:", "home", "a", "value", true),
            ("a:b:c", "home", "a", "b:c", false),
            (":k", "home", "", "k", false),
            ("a:..", "home", "a", "..", false),
            ("A", "home", "A", "value", false),
        ] {
            let reference = SecretReference::read(text, "home");
            assert_eq!(reference.secret, NamespacedName { namespace, name }, "{text}");
            assert_eq!((reference.key(), reference.is_valid_key_ref()), (key, fits), "{text}");
        }
    }
}
