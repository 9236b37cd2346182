//! Remembers which references are missing, and since when: pods wait for them for the grace time.
//!
//! Manifests are applied in any order, so the object that a pod refers to may be created a moment after the pod. A
//! refused pod is created again by its controller; an admitted pod would never get its memory. So the pod is refused,
//! but each reference makes pods wait only once: for the grace time after it was found missing. A reference is forgotten
//! when its object exists, and after that may make pods wait again.
//!
//! Users choose these names, so their number is bounded, and the oldest is forgotten first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use memgate_model::object::Reference;
use memgate_primitives::plain_text::quoted;

use super::lock;

/// How many references are remembered. With the longest names they use 8 MB.
const MAX_REFERENCES: usize = 10_000;

/// Remembers missing references.
#[derive(Debug)]
pub(super) struct MissingReferences {
    grace: Duration,
    since: Mutex<MissingSince>,
}

/// The missing references, by name and in the order in which they were found missing.
#[derive(Debug, Default)]
struct MissingSince {
    by_name: BTreeMap<Arc<Reference>, FoundMissing>,
    by_number: BTreeMap<u64, Arc<Reference>>,
    next_number: u64,
}

#[derive(Debug, Clone, Copy)]
struct FoundMissing {
    number: u64,
    since: Instant,
}

/// The reference that a pod waits for, and how much longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) reference: Reference,
    left: Duration,
}

impl Wait {
    /// The message for the pod's controller.
    pub(crate) fn message(&self) -> String {
        let seconds = self.left.as_secs() + u64::from(self.left.subsec_nanos() > 0);
        format!("waits for {}; it will be admitted without in {seconds} s", self.name())
    }

    /// The title of the missing object.
    pub(crate) fn name(&self) -> String {
        let Reference { kind, namespace, name } = &self.reference;
        let name = if namespace.is_empty() { quoted(name) } else { quoted(&format!("{namespace}/{name}")) };
        format!("{} {name}", kind.kind)
    }
}

impl MissingReferences {
    /// No references yet. With a grace time of zero no pod waits.
    pub(super) fn new(grace: Duration) -> Self {
        Self { grace, since: Mutex::default() }
    }

    /// Remembers these missing references. Returns the one with the most time left, if the grace time of any is not
    /// over. A reference whose name is impossible is ignored.
    pub(super) fn must_hold(&self, references: &[Reference], now: Instant) -> Option<Wait> {
        if self.grace.is_zero() {
            return None;
        }
        let mut since = self.since();
        let mut longest: Option<Wait> = None;
        for reference in references.iter().filter(|reference| reference.is_possible()) {
            let found_missing = since.of(reference, now);
            let left = self.grace.saturating_sub(now.saturating_duration_since(found_missing));
            if left > longest.as_ref().map_or(Duration::ZERO, |wait| wait.left) {
                longest = Some(Wait { reference: reference.clone(), left });
            }
        }
        longest
    }

    /// Forgets these references, if they exist.
    pub(super) fn forget<'r>(
        &self,
        references: impl IntoIterator<Item = &'r Reference>,
        exists: impl Fn(&Reference) -> bool,
    ) {
        let mut since = self.since();
        for reference in references {
            if exists(reference) {
                since.remove(reference);
            }
        }
    }

    /// Forgets all references that exist.
    pub(super) fn forget_all(&self, exists: impl Fn(&Reference) -> bool) {
        let mut since = self.since();
        let found: Vec<_> = since.by_name.keys().filter(|reference| exists(reference)).cloned().collect();
        for reference in found {
            since.remove(&reference);
        }
    }

    /// Whether no reference is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.since().by_name.is_empty()
    }

    fn since(&self) -> MutexGuard<'_, MissingSince> {
        lock(&self.since)
    }
}

impl MissingSince {
    /// When a reference was found missing: now, if it is new. The oldest one makes room for it.
    fn of(&mut self, reference: &Reference, now: Instant) -> Instant {
        if let Some(entry) = self.by_name.get(reference) {
            return entry.since;
        }
        if self.by_name.len() >= MAX_REFERENCES
            && let Some((_, oldest)) = self.by_number.pop_first()
        {
            self.by_name.remove(&oldest);
        }
        let (reference, number) = (Arc::new(reference.clone()), self.next_number);
        self.next_number += 1;
        self.by_number.insert(number, Arc::clone(&reference));
        self.by_name.insert(reference, FoundMissing { number, since: now });
        now
    }

    fn remove(&mut self, reference: &Reference) {
        if let Some(entry) = self.by_name.remove(reference) {
            self.by_number.remove(&entry.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);

    fn reference(name: &str) -> Reference {
        let kind = memgate_platforms::arkonis::FAMILY.kinds.memories[0];
        Reference { kind, namespace: "team-a".to_owned(), name: name.to_owned() }
    }

    /// How many seconds a pod with these references has to wait.
    fn seconds(missing: &MissingReferences, names: &[&str], now: Instant) -> Option<u64> {
        let references: Vec<_> = names.iter().map(|name| reference(name)).collect();
        missing.must_hold(&references, now).map(|wait| wait.left.as_secs())
    }

    #[test]
    fn each_reference_is_waited_for_once() {
        let missing = MissingReferences::new(GRACE);
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(seconds(&missing, &["notes"], at(0)), Some(30));
        assert_eq!(seconds(&missing, &["notes"], at(29)), Some(1));
        assert_eq!(seconds(&missing, &["other"], at(29)), Some(30), "each has a time of its own");
        assert_eq!(seconds(&missing, &["notes"], at(30)), None);
        assert_eq!(seconds(&missing, &["notes"], at(1 << 20)), None, "and it is not waited for again");
        assert_eq!(seconds(&missing, &[], at(0)), None);
    }

    #[test]
    fn a_pod_waits_for_the_youngest_of_several() {
        let missing = MissingReferences::new(GRACE);
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(seconds(&missing, &["a"], at(0)), Some(30));
        let wait = missing.must_hold(&[reference("a"), reference("b"), reference("c")], at(10));
        assert_eq!(wait.as_ref().map(Wait::name).as_deref(), Some("ArkMemory \"team-a/b\""));
        assert_eq!(seconds(&missing, &["a", "b"], at(35)), Some(5));
        assert_eq!(seconds(&missing, &["a", "b"], at(40)), None);
    }

    #[test]
    fn what_existed_in_between_is_waited_for_anew() {
        let missing = MissingReferences::new(GRACE);
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(seconds(&missing, &["a", "b"], at(0)), Some(30));
        missing.forget(&[reference("a"), reference("b")], |reference| reference.name == "a");
        assert_eq!(seconds(&missing, &["b"], at(40)), None);
        assert_eq!(seconds(&missing, &["a"], at(40)), Some(30));
        missing.forget_all(|reference| reference.name == "b");
        assert_eq!(seconds(&missing, &["b"], at(50)), Some(30));
        assert_eq!(seconds(&missing, &["a"], at(50)), Some(20));
        missing.forget_all(|_| true);
        assert!(missing.is_empty());
    }

    #[test]
    fn an_earlier_instant_does_not_extend_the_wait() {
        let missing = MissingReferences::new(GRACE);
        let start = Instant::now();
        assert_eq!(seconds(&missing, &["a"], start + GRACE), Some(30));
        assert_eq!(seconds(&missing, &["a"], start), Some(30));
    }

    #[test]
    fn without_a_grace_time_nothing_is_waited_for_or_remembered() {
        let missing = MissingReferences::new(Duration::ZERO);
        assert_eq!(seconds(&missing, &["a"], Instant::now()), None);
        assert!(missing.is_empty());
    }

    #[test]
    fn what_can_never_exist_is_not_waited_for_or_remembered() {
        let missing = MissingReferences::new(GRACE);
        let long = "x".repeat(1 << 20);
        assert_eq!(seconds(&missing, &["A", "", "a/b", &long], Instant::now()), None);
        let namespace = "No Namespace".to_owned();
        let elsewhere = Reference { namespace, ..reference("a") };
        assert_eq!(missing.must_hold(&[elsewhere], Instant::now()), None);
        assert!(missing.is_empty());
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let missing = MissingReferences::new(GRACE);
        let start = Instant::now();
        let name = |number: usize| format!("m-{number}");
        for number in 0..MAX_REFERENCES {
            assert_eq!(seconds(&missing, &[&name(number)], start), Some(30));
        }
        let later = start + GRACE;
        assert_eq!(seconds(&missing, &[&name(0)], later), None, "there is room for all of them");
        for number in 0..10 * MAX_REFERENCES {
            seconds(&missing, &[&name(MAX_REFERENCES + number)], later);
        }
        let since = missing.since();
        assert_eq!((since.by_name.len(), since.by_number.len()), (MAX_REFERENCES, MAX_REFERENCES));
        assert!(since.by_name.contains_key(&reference(&name(11 * MAX_REFERENCES - 1))));
        assert!(!since.by_name.contains_key(&reference(&name(0))));
    }

    #[test]
    fn says_what_is_waited_for_and_for_how_long() {
        let missing = MissingReferences::new(Duration::from_millis(1_500));
        let wait = missing.must_hold(&[reference("notes")], Instant::now()).expect("a wait");
        let message = "waits for ArkMemory \"team-a/notes\"; it will be admitted without in 2 s";
        assert_eq!(wait.message(), message);
    }
}
