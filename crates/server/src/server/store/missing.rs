//! What is known to be missing, and since when: the reason to let a pod wait, and the end of its waiting.
//!
//! Manifests are applied in any order, so what a pod refers to may come a moment after it. Its controller makes
//! it again if it is refused, and a pod that is admitted stays without its memory for good. So it waits, but
//! each reference makes pods wait only once: from when it was found missing, for as long as the grace time.
//! A reference is forgotten when its object exists, and after that it may make pods wait anew.
//!
//! Users choose these names. So only so many are remembered, and the oldest goes first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::finding::quoted;
use crate::model::object::Reference;

use super::lock;

/// How many references are remembered. With the longest names these are 8 MB.
const MAX_REFERENCES: usize = 10_000;

/// Remembers what is missing.
#[derive(Debug)]
pub(super) struct MissingReferences {
    grace: Duration,
    known: Mutex<Known>,
}

/// The same references twice: by name, and in the order in which they were found missing.
#[derive(Debug, Default)]
struct Known {
    by_name: BTreeMap<Arc<Reference>, Entry>,
    by_number: BTreeMap<u64, Arc<Reference>>,
    next_number: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    number: u64,
    since: Instant,
}

/// What a pod waits for, and how much longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct Wait {
    pub(in crate::server) reference: Reference,
    left: Duration,
}

impl Wait {
    /// The message for whoever made the pod.
    pub(in crate::server) fn message(&self) -> String {
        let seconds = self.left.as_secs() + u64::from(self.left.subsec_nanos() > 0);
        format!("waits for {}; it will be admitted without in {seconds} s", self.name())
    }

    /// What the pod waits for.
    pub(in crate::server) fn name(&self) -> String {
        let Reference { kind, namespace, name } = &self.reference;
        let name = if namespace.is_empty() { quoted(name) } else { quoted(&format!("{namespace}/{name}")) };
        format!("{} {name}", kind.kind)
    }
}

impl MissingReferences {
    /// Nothing is known to be missing yet. With a grace time of zero nothing is ever waited for.
    pub(super) fn new(grace: Duration) -> Self {
        Self { grace, known: Mutex::default() }
    }

    /// Remembers that these are missing. Returns the one to wait for longest, if the grace time of any of them
    /// is not over. One that can never exist is not waited for.
    pub(super) fn must_hold(&self, references: &[Reference], now: Instant) -> Option<Wait> {
        if self.grace.is_zero() {
            return None;
        }
        let mut known = self.known();
        let mut longest: Option<Wait> = None;
        for reference in references.iter().filter(|reference| reference.is_possible()) {
            let since = known.since(reference, now);
            let left = self.grace.saturating_sub(now.saturating_duration_since(since));
            if left > longest.as_ref().map_or(Duration::ZERO, |wait| wait.left) {
                longest = Some(Wait { reference: reference.clone(), left });
            }
        }
        longest
    }

    /// Forgets those of which it is said that they exist.
    pub(super) fn forget<'r>(
        &self,
        references: impl IntoIterator<Item = &'r Reference>,
        exists: impl Fn(&Reference) -> bool,
    ) {
        let mut known = self.known();
        for reference in references {
            if exists(reference) {
                known.remove(reference);
            }
        }
    }

    /// Forgets all of which it is said that they exist.
    pub(super) fn forget_all(&self, exists: impl Fn(&Reference) -> bool) {
        let mut known = self.known();
        let found: Vec<_> = known.by_name.keys().filter(|reference| exists(reference)).cloned().collect();
        for reference in found {
            known.remove(&reference);
        }
    }

    /// Whether nothing is known to be missing.
    pub(super) fn is_empty(&self) -> bool {
        self.known().by_name.is_empty()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

impl Known {
    /// Since when this is known to be missing: from now on, if it was not.
    fn since(&mut self, reference: &Reference, now: Instant) -> Instant {
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
        self.by_name.insert(reference, Entry { number, since: now });
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
    use crate::family;

    const GRACE: Duration = Duration::from_secs(30);

    fn reference(name: &str) -> Reference {
        let kind = family::arkonis::FAMILY.kinds.memories[0];
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
    fn an_earlier_instant_is_no_reason_to_wait_longer() {
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
        let known = missing.known();
        assert_eq!((known.by_name.len(), known.by_number.len()), (MAX_REFERENCES, MAX_REFERENCES));
        assert!(known.by_name.contains_key(&reference(&name(11 * MAX_REFERENCES - 1))));
        assert!(!known.by_name.contains_key(&reference(&name(0))));
    }

    #[test]
    fn says_what_is_waited_for_and_for_how_long() {
        let missing = MissingReferences::new(Duration::from_millis(1_500));
        let wait = missing.must_hold(&[reference("notes")], Instant::now()).expect("a wait");
        let message = "waits for ArkMemory \"team-a/notes\"; it will be admitted without in 2 s";
        assert_eq!(wait.message(), message);
    }
}
