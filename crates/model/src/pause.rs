//! A pause: a binding of RBAC by which memgate is not asked, for a time, about the requests of a namespace, of a platform
//! or of the whole cluster. `memgate pause` writes it, the apiserver reads it, and replicas remove it at its end.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use memgate_primitives::credential::masked_keys;

/// The account that may `skip` memgate where it is paused, in memgate's namespace; also the name of the binding, and the
/// start of the name of one for a single platform. No pod uses the account, and it need not exist.
pub const PAUSED: &str = "memgate-paused";
/// The role that a pause gives to the account, and the start of the names of those for single platforms.
pub const SKIP: &str = "memgate-skip";
/// The label of pauses.
pub const LABEL: &str = "memgate.dev/pause";
/// The annotation with the end, as RFC 3339 has it.
pub const UNTIL: &str = "memgate.dev/paused-until";
/// The annotation with the user who paused.
pub const BY: &str = "memgate.dev/paused-by";
/// The annotation with the reason.
pub const REASON: &str = "memgate.dev/paused-reason";
/// The sign for all namespaces, and for all platforms.
pub const ALL: &str = "*";

/// How long a pause is without a readable end.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// The group of bindings, with its version.
const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The namespace of Events about objects without one. Source: validation of Events, k8s.io/kubernetes.
const NAMESPACE_OF_OTHERS: &str = "default";

/// The longest `note` of an Event. Source: k8s.io/api/events/v1, Event.
const MAX_NOTE_BYTES: usize = 1024;

/// A binding or role for one platform, or for all of them.
pub fn name(start: &str, family: Option<&str>) -> String {
    family.map_or_else(|| start.to_owned(), |family| format!("{start}-{family}"))
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    /// The namespace; `None` for the whole cluster.
    pub namespace: Option<String>,
    /// The platform; `None` for all.
    pub family: Option<String>,
    /// The end, as it was written; `unknown` if it was not.
    pub until: String,
    /// Who paused.
    pub by: String,
    /// The reason.
    pub reason: String,
    /// When the binding was made; a pause that replaces another one keeps its binding.
    pub began: Option<Timestamp>,
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
}

impl Pause {
    /// Reads a binding; `None` if its name is not that of a pause, or it does not give the account the right to skip
    /// memgate: owners of a namespace may write such a binding of a role of their own.
    pub fn read(binding: &Value) -> Option<Self> {
        let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let annotation =
            |key: &str| text(&format!("/metadata/annotations/{}", key.replace('/', "~1"))).to_owned();
        let family = match text("/metadata/name").strip_prefix(PAUSED)? {
            "" => None,
            rest => Some(rest.strip_prefix('-')?.to_owned()),
        };
        let is_for_account = |subject: &Value| {
            let is = |key: &str, value: &str| subject.get(key).is_some_and(|it| it == value);
            is("kind", "ServiceAccount") && is("name", PAUSED)
        };
        let subjects = binding.get("subjects").and_then(Value::as_array);
        let role = name(SKIP, family.as_deref());
        if (text("/roleRef/kind"), text("/roleRef/name")) != ("ClusterRole", &role)
            || !subjects.is_some_and(|subjects| subjects.iter().any(is_for_account))
        {
            return None;
        }
        let or_unknown = |text: String| if text.is_empty() { "unknown".to_owned() } else { text };
        Some(Self {
            namespace: Some(text("/metadata/namespace").to_owned()).filter(|name| !name.is_empty()),
            family,
            until: or_unknown(annotation(UNTIL)),
            by: or_unknown(annotation(BY)),
            reason: or_unknown(annotation(REASON)),
            began: text("/metadata/creationTimestamp").parse().ok(),
            uid: text("/metadata/uid").to_owned(),
            resource_version: text("/metadata/resourceVersion").to_owned(),
        })
    }

    /// The end that was written; `None` if it cannot be read.
    pub fn written_end(&self) -> Option<Timestamp> {
        self.until.parse().ok()
    }

    /// When it ends. An end that cannot be read is as far from the start as a pause may last without a further flag.
    pub fn end(&self) -> Option<Timestamp> {
        self.written_end().or_else(|| self.began?.checked_add(LONGEST).ok())
    }

    /// Whether it has ended.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.end().is_some_and(|end| end <= now)
    }

    /// Whether it lifts a platform in a namespace.
    pub fn lifts(&self, family: &str, namespace: &str) -> bool {
        let is_about = |of: Option<&str>, one| of.is_none_or(|of| of == one);
        is_about(self.namespace.as_deref(), namespace) && is_about(self.family.as_deref(), family)
    }

    /// Whether another one of the same binding says the same.
    pub fn is_like(&self, other: &Self) -> bool {
        let Self { uid, until, by, reason, .. } = self;
        (uid, until, by, reason) == (&other.uid, &other.until, &other.by, &other.reason)
    }

    /// The Event that it begins or has ended. The command and all replicas give it the same name, so that one of them
    /// writes it.
    pub fn event(&self, begins: bool, now: Timestamp) -> Value {
        let place = match &self.namespace {
            Some(namespace) => format!("in {namespace}"),
            None => "in the whole cluster".to_owned(),
        };
        let of = self.family.as_ref().map(|family| format!(" for {family}")).unwrap_or_default();
        let end = self.end().map(|end| end.to_string()).unwrap_or_default();
        let (kind, reason, note) = if begins {
            let note = format!("memgate is paused {place}{of} until {end}, by {}: {}", self.by, self.reason);
            ("Warning", "MemgatePaused", note)
        } else {
            ("Normal", "MemgatePauseEnded", format!("memgate is no longer paused {place}{of}"))
        };
        let seconds = self.end().map(Timestamp::as_second).unwrap_or_default();
        let (binding, verb) = (self.binding(), if begins { "begins" } else { "ended" });
        let note = masked_keys(&note);
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{binding}.{verb}.{}.{seconds}", self.uid),
                "namespace": self.namespace_of_event(),
            },
            "eventTime": format!("{now:.6}"),
            "type": kind,
            "reason": reason,
            "action": "Pause",
            "note": note.get(..note.floor_char_boundary(MAX_NOTE_BYTES)),
            "regarding": {
                "apiVersion": RBAC,
                "kind": if self.namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" },
                "namespace": self.namespace,
                "name": binding,
                "uid": self.uid,
            },
            "reportingController": "memgate",
            "reportingInstance": "memgate",
        })
    }

    /// Where its Events are.
    pub fn namespace_of_event(&self) -> &str {
        self.namespace.as_deref().unwrap_or(NAMESPACE_OF_OTHERS)
    }

    /// The name of its binding.
    pub fn binding(&self) -> String {
        name(PAUSED, self.family.as_deref())
    }

    /// The namespace, or the sign for all of them.
    pub fn namespace_or_all(&self) -> &str {
        self.namespace.as_deref().unwrap_or(ALL)
    }

    /// The platform, or the sign for all of them.
    pub fn family_or_all(&self) -> &str {
        self.family.as_deref().unwrap_or(ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn binding(name: &str, until: &str) -> Value {
        json!({
            "metadata": {
                "name": name, "namespace": "team-a", "creationTimestamp": "2026-11-25T09:00:00Z",
                "annotations": {UNTIL: until, BY: "jane", REASON: "an outage"},
            },
            "roleRef": {"kind": "ClusterRole", "name": name.replace(PAUSED, SKIP)},
            "subjects": [{"kind": "ServiceAccount", "name": PAUSED, "namespace": "memgate-system"}],
        })
    }

    #[test]
    fn a_binding_of_another_role_or_account_is_none() {
        let pause = binding(PAUSED, "2026-11-25T10:00:00Z");
        assert!(Pause::read(&pause).is_some());
        for (pointer, other) in [
            ("/roleRef/kind", json!("Role")),
            ("/roleRef/name", json!("memgate-skip-ark")),
            ("/subjects/0/kind", json!("User")),
            ("/subjects/0/name", json!("default")),
            ("/subjects", json!([])),
        ] {
            let mut forged = pause.clone();
            *forged.pointer_mut(pointer).expect("a field") = other;
            assert_eq!(Pause::read(&forged), None, "{pointer}");
        }
    }

    #[test]
    fn reads_a_binding() {
        let pause = Pause::read(&binding("memgate-paused-ark", "2026-11-25T10:00:00Z")).expect("a pause");
        assert_eq!((pause.namespace_or_all(), pause.family_or_all()), ("team-a", "ark"));
        assert_eq!(
            (&*pause.by, &*pause.reason, &*pause.binding()),
            ("jane", "an outage", "memgate-paused-ark")
        );
        let at = |text: &str| text.parse().expect("a time");
        assert!(!pause.has_ended(at("2026-11-25T09:59:59Z")) && pause.has_ended(at("2026-11-25T10:00:00Z")));
        for other in ["memgate", "memgate-pausedark", "memgate-skip"] {
            assert_eq!(Pause::read(&binding(other, "")), None, "{other}");
        }
    }

    #[test]
    fn its_events_have_names_that_follow_from_the_binding() {
        let now = "2026-11-25T09:00:00Z".parse().expect("a time");
        let mut json = binding(PAUSED, "2026-11-25T10:00:00Z");
        json["metadata"]["uid"] = "9b2d".into();
        json["metadata"]["annotations"][REASON] = format!("{}\u{e9}", "x".repeat(2000)).into();
        let pause = Pause::read(&json).expect("a pause");
        let begins = pause.event(true, now);
        assert_eq!(
            begins["metadata"],
            json!({"name": "memgate-paused.begins.9b2d.1795600800", "namespace": "team-a"})
        );
        assert_eq!((&begins["reason"], &begins["type"]), (&json!("MemgatePaused"), &json!("Warning")));
        assert_eq!(begins["eventTime"], "2026-11-25T09:00:00.000000Z");
        assert_eq!(begins["note"].as_str().map(str::len), Some(MAX_NOTE_BYTES));
        assert_eq!(
            pause.event(true, "2026-11-25T09:30:00Z".parse().expect("a time"))["metadata"],
            begins["metadata"]
        );
        let ended = pause.event(false, now);
        assert_eq!(ended["metadata"]["name"], "memgate-paused.ended.9b2d.1795600800");
        assert_eq!(ended["note"], "memgate is no longer paused in team-a");
        json["metadata"]["annotations"][UNTIL] = "2026-11-25T11:00:00Z".into();
        let longer = Pause::read(&json).expect("a pause").event(true, now);
        assert_ne!(longer["metadata"]["name"], begins["metadata"]["name"]);
        json["metadata"]["namespace"] = Value::Null;
        let everywhere = Pause::read(&json).expect("a pause").event(false, now);
        assert_eq!(
            (&everywhere["metadata"]["namespace"], &everywhere["regarding"]["kind"]),
            (&json!("default"), &json!("ClusterRoleBinding"))
        );
    }

    #[test]
    fn an_end_that_cannot_be_read_is_a_day_after_the_start() {
        let end = "2026-11-26T09:00:00Z".parse().ok();
        for until in ["", "tomorrow", "2026-11-25"] {
            assert_eq!(
                Pause::read(&binding("memgate-paused", until)).and_then(|pause| pause.end()),
                end,
                "{until}"
            );
        }
        let mut without = binding(PAUSED, "");
        without["metadata"] = json!({"name": PAUSED});
        assert_eq!(Pause::read(&without).and_then(|pause| pause.end()), None);
    }
}
