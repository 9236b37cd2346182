//! What one decision may cost: limits on the size of what is read, a counted budget of steps, and a flag
//! that ends it.
//!
//! The limits hold through every door, for they are part of the decision. Nothing here reads a clock.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::model::members::Members;
use crate::model::pointer::Pointer;

/// How many environment variables of a pod are read, all its containers together.
pub const MAX_VARIABLES: usize = 28_000;

/// How many containers of a pod are read.
pub const MAX_CONTAINERS: usize = 1_000;

/// How many init containers of a pod are read.
pub const MAX_INIT_CONTAINERS: usize = 1_000;

/// How many volumes of a pod are read.
pub const MAX_VOLUMES: usize = 1_000;

/// How many entries of each other list, and of each map of strings, are read.
pub const MAX_ENTRIES: usize = 10_000;

/// How many bytes a patch may have, as JSON.
pub const MAX_PATCH_BYTES: usize = 1 << 20;

/// How many steps a decision may take. A value that is read is a step. An object of 1.5 MiB, the most that etcd
/// stores by default, has fewer if its fields have names.
pub const MAX_STEPS: u32 = 200_000;

/// How many steps a finding about a small object counts for: it takes about as long as reading so many values.
pub const STEPS_PER_FINDING: u32 = 8;

/// How many steps a finding about a large object counts for. Ten thousand entries with two findings each are
/// judged.
pub const MIN_STEPS_PER_FINDING: u32 = 3;

/// How many denials, and how many warnings, of one object get words at first. More than are told, for the
/// ratchet turns denials into warnings, and rules take back what others say better.
pub const MAX_WORDED: u32 = 200;

/// After how many steps the flag is read.
const STEPS_PER_LOOK: u32 = 1_000;

/// What is counted about one decision.
#[derive(Debug)]
pub struct Work<'c> {
    cancelled: Option<&'c AtomicBool>,
    steps: Cell<u32>,
    steps_per_finding: u32,
    ended: Cell<bool>,
    stop: RefCell<Option<Stop>>,
    /// How many denials and warnings still get words.
    words: [Cell<u32>; 2],
    /// The only places whose findings get words, where it is known which ones are told.
    told: OnceCell<Members<Pointer>>,
    /// Whether any finding gets words.
    has_readers: bool,
    /// Whether findings are compared with those about another object.
    is_compared: bool,
}

/// Why a decision ended before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Nobody waits for it any more.
    Cancelled,
    /// Something is larger than what is read.
    OverLimit(OverLimit),
}

/// What is larger than what is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverLimit {
    /// Where, in the object.
    pub pointer: Pointer,
    /// Of what there is too much.
    pub limit: Limit,
}

/// Of what there can be too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`MAX_CONTAINERS`] or [`MAX_INIT_CONTAINERS`], which are equal.
    Containers,
    /// [`MAX_VOLUMES`].
    Volumes,
    /// [`MAX_VARIABLES`].
    Variables,
    /// [`MAX_ENTRIES`].
    Entries,
    /// [`MAX_STEPS`].
    Steps,
    /// [`MAX_PATCH_BYTES`].
    Patch,
}

impl Limit {
    /// What is read at most, as messages say it.
    #[must_use]
    pub fn at_most(self) -> String {
        match self {
            Self::Containers => format!("{MAX_CONTAINERS} containers"),
            Self::Volumes => format!("{MAX_VOLUMES} volumes"),
            Self::Variables => format!("{MAX_VARIABLES} environment variables"),
            Self::Entries => format!("{MAX_ENTRIES} entries"),
            Self::Steps => format!("{MAX_STEPS} values and findings"),
            Self::Patch => "a patch of 1 MiB".to_owned(),
        }
    }
}

impl Default for Work<'_> {
    fn default() -> Self {
        Self::new(None)
    }
}

impl<'c> Work<'c> {
    /// Nothing done yet; `cancelled` says when nobody waits for the decision any more.
    #[must_use]
    pub const fn new(cancelled: Option<&'c AtomicBool>) -> Self {
        Self::with_words(cancelled, MAX_WORDED)
    }

    /// The same where every finding gets its words.
    #[must_use]
    pub const fn wordy(cancelled: Option<&'c AtomicBool>) -> Self {
        Self::with_words(cancelled, u32::MAX)
    }

    /// The same where no finding gets words: for callers that only ask whether there are any.
    #[must_use]
    pub const fn wordless(cancelled: Option<&'c AtomicBool>) -> Self {
        Self::with_words(cancelled, 0)
    }

    const fn with_words(cancelled: Option<&'c AtomicBool>, words: u32) -> Self {
        Self {
            cancelled,
            steps: Cell::new(0),
            steps_per_finding: STEPS_PER_FINDING,
            ended: Cell::new(false),
            stop: RefCell::new(None),
            words: [Cell::new(words), Cell::new(words)],
            told: OnceCell::new(),
            has_readers: words > 0,
            is_compared: true,
        }
    }

    /// The same about an object of so many bytes. What may be spent grows with an object, and so does the number of
    /// its findings.
    #[must_use]
    pub fn about(self, bytes: usize) -> Self {
        /// How many findings an object may have, and after how many bytes another one.
        const FINDINGS: usize = 20_000;
        const BYTES_PER_FINDING: usize = 16;
        // Where there is a finding for each value, the value is a step too.
        let steps = MAX_STEPS as usize / (FINDINGS + bytes / BYTES_PER_FINDING);
        let steps = u32::try_from(steps.saturating_sub(1)).unwrap_or(STEPS_PER_FINDING);
        Self { steps_per_finding: steps.clamp(MIN_STEPS_PER_FINDING, STEPS_PER_FINDING), ..self }
    }

    /// The same where nothing is stored that findings are compared with.
    #[must_use]
    pub fn compared(self, is_compared: bool) -> Self {
        Self { is_compared, ..self }
    }

    /// Whether findings are compared with those about another object. Where not, they need no hash of the value
    /// that they are about.
    #[must_use]
    pub const fn is_compared(&self) -> bool {
        self.is_compared
    }

    /// From now on only the findings about these places get words.
    pub fn tell_only(&self, places: Members<Pointer>) {
        let _first_counts = self.told.set(places);
    }

    /// Whether one more finding at a place, that refuses the object, or warns, gets words.
    pub fn has_words(&self, refuses: bool, place: &Pointer) -> bool {
        if let Some(told) = self.told.get() {
            return told.contains(place);
        }
        let [denials, warnings] = &self.words;
        let left = if refuses { denials } else { warnings };
        let has_words = left.get() > 0;
        left.set(left.get().saturating_sub(1));
        has_words
    }

    /// Whether anybody reads warnings. Where not, only denials are asked for.
    #[must_use]
    pub const fn wants_warnings(&self) -> bool {
        self.has_readers
    }

    /// Counts what was counted before, elsewhere, and ends if that ended.
    pub fn go_on_after(&self, before: &Work<'_>) {
        if let Some(stop) = before.stopped() {
            self.end(|| stop);
        }
        self.steps(before.steps.get());
    }

    /// Counts a step; whether to go on.
    pub fn step(&self) -> bool {
        self.steps(1)
    }

    /// Counts a finding; whether to go on.
    pub fn finding(&self) -> bool {
        self.steps(self.steps_per_finding)
    }

    /// Counts so many steps; whether to go on.
    pub fn steps(&self, count: u32) -> bool {
        let before = self.steps.get();
        let after = before.saturating_add(count);
        self.steps.set(after);
        if after > MAX_STEPS {
            self.over_limit(Pointer::root, Limit::Steps);
        } else if before / STEPS_PER_LOOK != after / STEPS_PER_LOOK
            && self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
        {
            self.end(|| Stop::Cancelled);
        }
        !self.ended.get()
    }

    /// Ends the decision because there is too much of something.
    pub fn over_limit(&self, pointer: impl FnOnce() -> Pointer, limit: Limit) {
        self.end(|| Stop::OverLimit(OverLimit { pointer: pointer(), limit }));
    }

    /// Whether to stop.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Why the decision ended before its time; `None` while it goes on.
    #[must_use]
    pub fn stopped(&self) -> Option<Stop> {
        self.stop.borrow().clone()
    }

    /// The first reason counts.
    fn end(&self, stop: impl FnOnce() -> Stop) {
        if !self.ended.replace(true) {
            *self.stop.borrow_mut() = Some(stop());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_after_so_many_steps() {
        let work = Work::new(None);
        assert!(work.steps(MAX_STEPS));
        assert!(!work.step());
        let over = OverLimit { pointer: Pointer::root(), limit: Limit::Steps };
        assert_eq!(work.stopped(), Some(Stop::OverLimit(over)));
    }

    #[test]
    fn findings_about_a_large_object_count_for_less() {
        let steps = |bytes| Work::new(None).about(bytes).steps_per_finding;
        assert_eq!(steps(0), STEPS_PER_FINDING);
        assert_eq!(steps(256 << 10), 4);
        assert_eq!(steps(8 << 20), MIN_STEPS_PER_FINDING);
    }

    #[test]
    fn tells_only_of_the_places_that_are_asked_for() {
        let work = Work::wordy(None);
        let [here, there] = ["/spec/a", "/spec/b"].map(Pointer::new);
        assert!(work.has_words(true, &there));
        work.tell_only([here.clone()].into_iter().collect());
        assert!(work.has_words(true, &here) && !work.has_words(true, &there));
    }

    #[test]
    fn reads_the_flag_every_thousand_steps() {
        let cancelled = AtomicBool::new(false);
        let work = Work::new(Some(&cancelled));
        assert!(work.steps(STEPS_PER_LOOK - 2));
        cancelled.store(true, Ordering::Relaxed);
        assert!(work.step(), "not looked at yet");
        assert!(!work.step());
        assert_eq!(work.stopped(), Some(Stop::Cancelled));
    }

    #[test]
    fn the_first_reason_counts() {
        let work = Work::new(None);
        work.over_limit(|| Pointer::new("/spec/a"), Limit::Entries);
        work.over_limit(|| Pointer::new("/spec/b"), Limit::Entries);
        let over = OverLimit { pointer: Pointer::new("/spec/a"), limit: Limit::Entries };
        assert_eq!(work.stopped(), Some(Stop::OverLimit(over)));
    }
}
