//! Watch events → changes of the state.
//!
//! A list is gathered aside and replaces what was known in one step when it is complete: nobody
//! ever decides on half a list. No I/O here.

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::core::{DynamicResourceScope, ObjectMeta};
use kube::runtime::watcher::Event;
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;

use crate::model::kind::Kind;
use crate::model::snapshot::{Coverage, KindState, Object};
use crate::server::ration::{Rate, Ration};

/// How many lines a second may tell of objects of one kind that cannot be read: any user may write them.
pub(crate) const UNREADABLE: Rate = Rate { burst: 5, per_second: 1 };

/// An object as it came over the wire: only its name was read, the rest is still text. So neither
/// its size nor its depth nor what it says can stop a watch.
#[derive(Clone)]
pub(crate) struct Raw {
    metadata: ObjectMeta,
    text: Box<RawValue>,
}

/// One step from one state to the next.
#[derive(Debug)]
pub(crate) enum Change {
    /// This is all there is.
    Replace(KindState),
    /// This object is new, or has changed.
    Insert(Object),
    /// This object is gone.
    Remove {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// A list that is being received.
pub(crate) type Pending = Option<KindState>;

/// What an event changes. `pending` is the list that is being received, between calls; `lines` may tell of
/// objects that cannot be read.
pub(crate) fn fold(kind: &Kind, lines: &Ration, pending: &mut Pending, event: Event<Raw>) -> Option<Change> {
    match event {
        Event::Init => {
            *pending = Some(KindState::new(Coverage::Watched));
            None
        }
        Event::InitApply(raw) => {
            if let Change::Insert(object) = change(kind, lines, &raw) {
                pending.get_or_insert_with(|| KindState::new(Coverage::Watched)).insert(object);
            }
            None
        }
        Event::InitDone => pending.take().map(Change::Replace),
        Event::Apply(raw) => Some(change(kind, lines, &raw)),
        Event::Delete(raw) => Some(removal(&raw)),
    }
}

/// An object that cannot be read is removed rather than kept as it was: a lookup then finds out
/// that nobody knows.
fn change(kind: &Kind, lines: &Ration, raw: &Raw) -> Change {
    match raw.read(kind) {
        Ok(Some(object)) => Change::Insert(object),
        Ok(None) => removal(raw),
        Err(error) => {
            let (name, namespace) = (raw.metadata.name.as_deref(), raw.metadata.namespace.as_deref());
            if let Some(withheld) = lines.take(kind.kind) {
                let withheld = (withheld > 0).then_some(withheld);
                tracing::warn!(kind = kind.kind, namespace, name, withheld, %error, "an object could not be read");
            }
            removal(raw)
        }
    }
}

fn removal(raw: &Raw) -> Change {
    Change::Remove {
        namespace: raw.metadata.namespace.clone().unwrap_or_default(),
        name: raw.metadata.name.clone().unwrap_or_default(),
    }
}

impl Raw {
    fn read(&self, kind: &Kind) -> serde_json::Result<Option<Object>> {
        Object::read(kind, &mut serde_json::Deserializer::from_str(self.text.get()))
    }
}

impl<'de> Deserialize<'de> for Raw {
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

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.metadata.namespace, self.metadata.name)
    }
}

impl Resource for Raw {
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
    use super::*;
    use kube::core::{ObjectList, WatchEvent};

    use crate::model::kind::NAMESPACE;
    use crate::model::snapshot::{Lookup, Snapshot, StateReader};

    fn raw(name: &str) -> Raw {
        let text = format!(
            r#"{{"kind":"Namespace","metadata":{{"name":"{name}","resourceVersion":"7","labels":{{"a":"b"}}}}}}"#
        );
        serde_json::from_str(&text).expect("an object")
    }

    fn folded(events: Vec<Event<Raw>>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let mut pending = None;
        let lines = Ration::new(UNREADABLE);
        for event in events {
            match fold(&NAMESPACE, &lines, &mut pending, event) {
                Some(Change::Replace(state)) => snapshot.set(&NAMESPACE, state),
                Some(Change::Insert(object)) => snapshot.kind_mut(&NAMESPACE).insert(object),
                Some(Change::Remove { namespace, name }) => {
                    snapshot.kind_mut(&NAMESPACE).remove(&namespace, &name);
                }
                None => {}
            }
        }
        snapshot
    }

    fn holds(snapshot: &Snapshot, name: &str) -> bool {
        matches!(StateReader::new(snapshot).get(&NAMESPACE, "", name), Lookup::Found(_))
    }

    #[test]
    fn a_list_counts_when_it_is_complete() {
        let half = folded(vec![Event::Init, Event::InitApply(raw("a"))]);
        assert!(half.kind(&NAMESPACE).is_none());
        let whole = folded(vec![Event::Init, Event::InitApply(raw("a")), Event::InitDone]);
        assert!(holds(&whole, "a"));
    }

    #[test]
    fn a_new_list_forgets_what_is_not_in_it() {
        let list = |name| [Event::Init, Event::InitApply(raw(name)), Event::InitDone];
        let snapshot = folded(list("a").into_iter().chain(list("b")).collect());
        assert!(!holds(&snapshot, "a") && holds(&snapshot, "b"));
    }

    #[test]
    fn a_list_that_breaks_off_changes_nothing() {
        let list = [Event::Init, Event::InitApply(raw("a")), Event::InitDone];
        let broken = [Event::Init, Event::InitApply(raw("b"))];
        let again = [Event::Init, Event::InitApply(raw("c")), Event::InitDone];
        let before = folded(list.clone().into_iter().chain(broken.clone()).collect());
        assert!(holds(&before, "a") && !holds(&before, "b"));
        let after = folded(list.into_iter().chain(broken).chain(again).collect());
        assert!(holds(&after, "c") && !holds(&after, "b"));
    }

    #[test]
    fn follows_single_changes() {
        let snapshot = folded(vec![
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
        let list: ObjectList<Raw> = serde_json::from_str(&list).expect("a list");
        assert_eq!(list.items[0].metadata.name.as_deref(), Some("a"));
        let event = format!(r#"{{"type":"ADDED","object":{object}}}"#);
        let event: WatchEvent<Raw> = serde_json::from_str(&event).expect("an event");
        assert!(matches!(event, WatchEvent::Added(raw) if raw.read(&NAMESPACE).is_ok()));
    }

    #[test]
    fn an_object_that_cannot_be_read_is_not_kept_as_it_was() {
        let broken = r#"{"metadata":{"name":"a","resourceVersion":"8","labels":{"a":"\ud800"}}}"#;
        let broken: Raw = serde_json::from_str(broken).expect("an object");
        let snapshot =
            folded(vec![Event::Init, Event::InitApply(raw("a")), Event::InitDone, Event::Apply(broken)]);
        assert!(!holds(&snapshot, "a"));
    }

    #[test]
    fn objects_that_cannot_be_read_fill_no_log() {
        let broken = r#"{"metadata":{"name":"a","resourceVersion":"8","labels":{"a":"\ud800"}}}"#;
        let broken: Raw = serde_json::from_str(broken).expect("an object");
        let lines = Ration::new(UNREADABLE);
        for _ in 0..=UNREADABLE.burst {
            fold(&NAMESPACE, &lines, &mut None, Event::Apply(broken.clone()));
        }
        assert_eq!(lines.take(NAMESPACE.kind), None, "all lines are used up");
    }
}
