//! Turns watch events into changes of the state. No I/O here.
//!
//! The store collects the objects of a list, and they replace the kind in one step when the list is complete: no
//! decision ever sees half a list.

use std::borrow::Cow;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use kube::Resource;
use kube::core::{DynamicResourceScope, ObjectMeta};
use kube::runtime::watcher::Event;
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;

use crate::logs::{LogRate, LogRateLimiter};
use crate::store::lock;
use memgate_certs::library_error::explained;
use memgate_model::kind::Kind;
use memgate_model::object::{KindState, Object};

/// How many bytes of JSON make an object large.
const LARGE_BYTES: usize = 64 << 10;

/// The turn to read a large object.
static LARGE: Mutex<()> = Mutex::new(());

/// The rate of log lines about unreadable objects of one kind: any user may write such objects.
pub(crate) const UNREADABLE_LOG_RATE: LogRate = LogRate { burst: 5, refill: Duration::from_secs(1) };

/// An object of which only the metadata that a watch needs is parsed; the rest stays text. So an object of any size, depth
/// or content does not stop a watch.
#[derive(Clone)]
pub(crate) struct RawObject {
    metadata: ObjectMeta,
    text: Box<RawValue>,
}

/// One step from one state to the next.
#[derive(Debug)]
pub(crate) enum StoreChange {
    /// A list begins.
    Begin,
    /// This object is in the list.
    Listed(Object),
    /// The list is complete: its objects are all of the kind.
    End,
    /// These are all objects of the kind.
    Replace(Box<KindState>),
    /// This object is new, or has changed.
    Insert(Object),
    /// This object was deleted.
    Remove {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// The change that an event makes, if any. `log_limiter` limits the log lines about unreadable objects.
pub(crate) fn apply_event(
    kind: &'static Kind,
    log_limiter: &LogRateLimiter,
    event: Event<RawObject>,
) -> Option<StoreChange> {
    match event {
        Event::Init => Some(StoreChange::Begin),
        Event::InitApply(raw) => match insert_or_remove(kind, log_limiter, &raw) {
            StoreChange::Insert(object) => Some(StoreChange::Listed(object)),
            _ => None,
        },
        Event::InitDone => Some(StoreChange::End),
        Event::Apply(raw) => Some(insert_or_remove(kind, log_limiter, &raw)),
        Event::Delete(raw) => Some(removal(&raw)),
    }
}

/// An object that cannot be read is removed, so a decision that needs it looks it up.
fn insert_or_remove(kind: &'static Kind, log_limiter: &LogRateLimiter, raw: &RawObject) -> StoreChange {
    match raw.read(kind) {
        Ok(Some(object)) => StoreChange::Insert(object),
        Ok(None) => removal(raw),
        Err(error) => {
            let (name, namespace) = (raw.metadata.name.as_deref(), raw.metadata.namespace.as_deref());
            if let Ok(suppressed) = log_limiter.take(kind.kind) {
                let (kind, error) = (kind.kind, explained(&error));
                let message = "an object could not be read; decisions that need it look it up";
                tracing::warn!(kind, namespace, name, suppressed, error, "{message}");
            }
            removal(raw)
        }
    }
}

fn removal(raw: &RawObject) -> StoreChange {
    StoreChange::Remove {
        namespace: raw.metadata.namespace.clone().unwrap_or_default(),
        name: raw.metadata.name.clone().unwrap_or_default(),
    }
}

impl RawObject {
    fn read(&self, kind: &'static Kind) -> serde_json::Result<Option<Object>> {
        let [namespace, name] = [&self.metadata.namespace, &self.metadata.name];
        let place = [namespace, name].map(|text| text.as_deref().unwrap_or_default());
        // Reading takes several times its size; so one large object at a time.
        let _turn = (self.text.get().len() > LARGE_BYTES).then(|| lock(&LARGE));
        Object::read_to_keep(kind, place.into(), self.text.get())
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Head {
            metadata: Metadata,
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            name: Option<String>,
            namespace: Option<String>,
            resource_version: Option<String>,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Head { metadata } = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            resource_version: metadata.resource_version,
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, text })
    }
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.metadata.namespace, self.metadata.name)
    }
}

impl Resource for RawObject {
    type DynamicType = &'static Kind;
    type Scope = DynamicResourceScope;

    fn kind<'k>(kind: &'k &'static Kind) -> Cow<'k, str> {
        kind.kind.into()
    }

    fn group<'k>(kind: &'k &'static Kind) -> Cow<'k, str> {
        kind.group.into()
    }

    fn version<'k>(kind: &'k &'static Kind) -> Cow<'k, str> {
        kind.version.into()
    }

    fn plural<'k>(kind: &'k &'static Kind) -> Cow<'k, str> {
        kind.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::Store;
    use kube::core::{ObjectList, WatchEvent};

    use memgate_model::kind::NAMESPACE;
    use memgate_model::object::Lookup;
    use memgate_model::snapshot::Snapshot;
    use memgate_model::state_reader::StateReader;
    use memgate_primitives::budget::Budget;

    fn raw(name: &str) -> RawObject {
        let text = format!(
            r#"{{"kind":"Namespace","metadata":{{"name":"{name}","resourceVersion":"7","labels":{{"a":"b"}}}}}}"#
        );
        serde_json::from_str(&text).expect("an object")
    }

    fn applied(events: Vec<Event<RawObject>>) -> Arc<Snapshot> {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        let log_limiter = LogRateLimiter::new(UNREADABLE_LOG_RATE);
        for event in events {
            if let Some(change) = apply_event(&NAMESPACE, &log_limiter, event) {
                store.apply(&NAMESPACE, change);
            }
        }
        store.snapshot()
    }

    fn holds(snapshot: &Snapshot, name: &str) -> bool {
        matches!(StateReader::new(snapshot, &Budget::default()).get(&NAMESPACE, "", name), Lookup::Found(_))
    }

    #[test]
    fn a_list_counts_when_it_is_complete() {
        let half = applied(vec![Event::Init, Event::InitApply(raw("a"))]);
        assert!(half.kind(&NAMESPACE).is_none());
        let whole = applied(vec![Event::Init, Event::InitApply(raw("a")), Event::InitDone]);
        assert!(holds(&whole, "a"));
    }

    #[test]
    fn a_new_list_forgets_what_is_not_in_it() {
        let list = |name| [Event::Init, Event::InitApply(raw(name)), Event::InitDone];
        let snapshot = applied(list("a").into_iter().chain(list("b")).collect());
        assert!(!holds(&snapshot, "a") && holds(&snapshot, "b"));
    }

    #[test]
    fn a_list_that_breaks_off_changes_nothing() {
        let list = [Event::Init, Event::InitApply(raw("a")), Event::InitDone];
        let broken = [Event::Init, Event::InitApply(raw("b"))];
        let again = [Event::Init, Event::InitApply(raw("c")), Event::InitDone];
        let before = applied(list.clone().into_iter().chain(broken.clone()).collect());
        assert!(holds(&before, "a") && !holds(&before, "b"));
        let after = applied(list.into_iter().chain(broken).chain(again).collect());
        assert!(holds(&after, "c") && !holds(&after, "b"));
    }

    #[test]
    fn follows_single_changes() {
        let snapshot = applied(vec![
            Event::Init,
            Event::InitApply(raw("a")),
            Event::InitDone,
            Event::Apply(raw("b")),
            Event::Delete(raw("a")),
        ]);
        assert!(!holds(&snapshot, "a") && holds(&snapshot, "b"));
    }

    #[test]
    fn no_depth_stops_a_list_or_a_watch() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let object = format!(r#"{{"status":{deep},"metadata":{{"name":"a"}}}}"#);
        let list = format!(r#"{{"kind":"L","apiVersion":"v1","metadata":{{}},"items":[{object}]}}"#);
        let list: ObjectList<RawObject> = serde_json::from_str(&list).expect("a list");
        assert_eq!(list.items[0].metadata.name.as_deref(), Some("a"));
        let event = format!(r#"{{"type":"ADDED","object":{object}}}"#);
        let event: WatchEvent<RawObject> = serde_json::from_str(&event).expect("an event");
        assert!(matches!(event, WatchEvent::Added(raw) if raw.read(&NAMESPACE).is_ok()));
    }

    #[test]
    fn an_object_that_cannot_be_read_is_not_kept_as_it_was() {
        let broken = r#"{"metadata":{"name":"a","resourceVersion":"8","labels":{"a":"\ud800"}}}"#;
        let broken: RawObject = serde_json::from_str(broken).expect("an object");
        let snapshot =
            applied(vec![Event::Init, Event::InitApply(raw("a")), Event::InitDone, Event::Apply(broken)]);
        assert!(!holds(&snapshot, "a"));
    }

    #[test]
    fn objects_that_cannot_be_read_fill_no_log() {
        let broken = r#"{"metadata":{"name":"a","resourceVersion":"8","labels":{"a":"\ud800"}}}"#;
        let broken: RawObject = serde_json::from_str(broken).expect("an object");
        let log_limiter = LogRateLimiter::new(UNREADABLE_LOG_RATE);
        for _ in 0..=UNREADABLE_LOG_RATE.burst {
            apply_event(&NAMESPACE, &log_limiter, Event::Apply(broken.clone()));
        }
        assert!(log_limiter.take(NAMESPACE.kind).is_err(), "all log_limiter are used up");
    }
}
