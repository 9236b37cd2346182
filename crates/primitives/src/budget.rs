//! Bounds of one decision: limits on the size of the object, a counted budget of steps, and a flag that
//! cancels it.
//!
//! Every way into memgate has these limits, for they are part of the decision. Nothing here reads a clock.
//!
//! Beyond a limit a pod gets no memory, and is refused with `memgate.dev/inject: required` or where a policy denies pods; a
//! resource is refused. Where only judging by policies, or the comparison with a schema (files only), takes too many
//! steps, the policies answer that they cannot judge the object, and the schema's part is a warning.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::pointer::Pointer;

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

/// How many steps one part of a decision may take; [`Budget::apart`] begins a part. A value that is read is a
/// step. An object of 1.5 MiB, the most that etcd stores by default, has fewer if its fields have names. A
/// decision has at most six parts: the object, the stored object, the findings about that, the comparison of both with
/// their schema, and judging by policies.
pub const MAX_STEPS: u32 = 200_000;

/// How many steps judging a small object by policies may take; a larger one has more of them, up to [`MAX_STEPS`].
pub const MIN_JUDGING_STEPS: u32 = 80_000;

/// For how many bytes of the object judging may take one more step.
const BYTES_PER_JUDGING_STEP: usize = 8;

/// How many steps a finding about a small object counts for: it takes about as long as reading so many values.
pub const STEPS_PER_FINDING: u32 = 8;

/// How many steps a finding about a large object counts for. An object with ten thousand entries and two findings
/// about each stays within the budget.
pub const MIN_STEPS_PER_FINDING: u32 = 3;

/// How many bytes of texts that are compared count for a step.
pub const BYTES_PER_STEP: usize = 64;

/// The cancel flag is read each time that this many steps were taken.
const STEPS_PER_LOOK: u32 = 1_000;

/// The steps of one decision.
#[derive(Debug)]
pub struct Budget<'c> {
    cancelled: Option<&'c AtomicBool>,
    steps: Cell<u32>,
    /// Those of parts that are done.
    of_parts: Cell<u32>,
    /// How many objects of the state were looked at, in all parts.
    looks: Cell<u32>,
    /// The compared bytes that are not a whole step yet.
    bytes: Cell<usize>,
    steps_per_finding: Cell<u32>,
    stop: RefCell<Option<Stop>>,
    only_denials: Cell<bool>,
}

/// Why a decision ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The caller has gone.
    Cancelled,
    /// The object exceeds a limit.
    OverLimit(OverLimit),
}

/// An exceeded limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverLimit {
    /// The list, map or text that is too large.
    pub pointer: Pointer,
    /// The limit.
    pub limit: Limit,
}

/// The limits.
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
    /// The limit as messages name it.
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

impl Default for Budget<'_> {
    fn default() -> Self {
        Self::new(None, 0)
    }
}

impl<'c> Budget<'c> {
    /// A budget for one decision about an object of this many bytes. `cancelled` is set once the caller has gone.
    pub fn new(cancelled: Option<&'c AtomicBool>, bytes: usize) -> Self {
        Self {
            cancelled,
            steps: Cell::new(0),
            of_parts: Cell::new(0),
            looks: Cell::new(0),
            bytes: Cell::new(0),
            steps_per_finding: Cell::new(steps_per_finding(bytes)),
            stop: RefCell::new(None),
            only_denials: Cell::new(false),
        }
    }

    /// A budget for callers that only need denials.
    pub fn for_denials() -> Self {
        Self { only_denials: Cell::new(true), ..Self::default() }
    }

    /// A budget of at most so many steps, and of [`MAX_STEPS`].
    pub fn of_steps(most: usize) -> Self {
        let most = u32::try_from(most).unwrap_or(MAX_STEPS).min(MAX_STEPS);
        Self { steps: Cell::new(MAX_STEPS - most), ..Self::default() }
    }

    /// Runs a part of the decision, about an object of this many bytes, with [`MAX_STEPS`] of its own. Returns its
    /// result and the limit that it exceeded. A cancelled part ends the whole decision.
    pub fn apart<T>(&self, bytes: usize, run: impl FnOnce() -> T) -> (T, Option<OverLimit>) {
        self.part(0, bytes, run)
    }

    /// The same for judging by policies: the smaller the object, the fewer steps, since many policies cost as much
    /// for a small object as for a large one.
    pub fn judging<T>(&self, bytes: usize, run: impl FnOnce() -> T) -> (T, Option<OverLimit>) {
        let more = u32::try_from(bytes / BYTES_PER_JUDGING_STEP).unwrap_or(MAX_STEPS);
        self.part(MAX_STEPS.saturating_sub(MIN_JUDGING_STEPS.saturating_add(more)), bytes, run)
    }

    /// Runs a part of which so many steps are taken already.
    fn part<T>(&self, taken: u32, bytes: usize, run: impl FnOnce() -> T) -> (T, Option<OverLimit>) {
        let (steps, stop) = (self.steps.replace(taken), self.stop.take());
        let per_finding = self.steps_per_finding.replace(steps_per_finding(bytes));
        let result = run();
        let of_part = self.steps.replace(steps) - taken;
        self.of_parts.set(self.of_parts.get().saturating_add(of_part));
        self.steps_per_finding.set(per_finding);
        match self.stop.replace(stop) {
            Some(Stop::OverLimit(over)) => (result, Some(over)),
            Some(Stop::Cancelled) => {
                self.stop.replace(Some(Stop::Cancelled));
                (result, None)
            }
            None => (result, None),
        }
    }

    /// Runs rules of which only the denials are needed, as those about the stored object are.
    pub fn only_denials<T>(&self, run: impl FnOnce() -> T) -> T {
        let before = self.only_denials.replace(true);
        let result = run();
        self.only_denials.set(before);
        result
    }

    /// Whether warnings are needed too.
    pub fn wants_warnings(&self) -> bool {
        !self.only_denials.get()
    }

    /// Counts a step; returns whether to go on.
    pub fn step(&self) -> bool {
        self.steps(1)
    }

    /// Counts a finding; returns whether to go on.
    pub fn finding(&self) -> bool {
        self.steps(self.steps_per_finding.get())
    }

    /// Counts this many steps; returns whether to go on.
    pub fn steps(&self, count: u32) -> bool {
        self.take(&self.steps, count)
    }

    /// Counts a look at an object of the state; returns whether to go on. There may be as many looks as steps, which are
    /// not the object's own.
    pub fn look(&self) -> bool {
        self.take(&self.looks, 1)
    }

    /// How many steps and looks were taken, those of all parts together.
    pub fn taken(&self) -> u32 {
        self.steps.get().saturating_add(self.of_parts.get()).saturating_add(self.looks.get())
    }

    fn take(&self, taken: &Cell<u32>, count: u32) -> bool {
        let before = taken.get();
        let after = before.saturating_add(count);
        taken.set(after);
        if after > MAX_STEPS {
            self.over_limit(Pointer::root, Limit::Steps);
        } else if before / STEPS_PER_LOOK != after / STEPS_PER_LOOK
            && self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
        {
            self.end(|| Stop::Cancelled);
        }
        !self.has_ended()
    }

    /// Counts the comparison of so many bytes; returns whether to go on.
    pub fn bytes(&self, count: usize) -> bool {
        let count = self.bytes.get().saturating_add(count);
        self.bytes.set(count % BYTES_PER_STEP);
        self.steps(u32::try_from(count / BYTES_PER_STEP).unwrap_or(u32::MAX))
    }

    /// Ends the decision because the object exceeds a limit at this place.
    pub fn over_limit(&self, pointer: impl FnOnce() -> Pointer, limit: Limit) {
        self.end(|| Stop::OverLimit(OverLimit { pointer: pointer(), limit }));
    }

    /// Whether to stop.
    pub fn has_ended(&self) -> bool {
        self.stop.borrow().is_some()
    }

    /// Why the decision ended early; `None` while it goes on.
    pub fn stopped(&self) -> Option<Stop> {
        self.stop.borrow().clone()
    }

    /// Keeps the first reason.
    fn end(&self, stop: impl FnOnce() -> Stop) {
        self.stop.borrow_mut().get_or_insert_with(stop);
    }
}

/// The larger an object, the more findings it may have, and the less each of them counts.
fn steps_per_finding(bytes: usize) -> u32 {
    /// An object may have this many findings, and another one for each 16 bytes.
    const FINDINGS: usize = 20_000;
    const BYTES_PER_FINDING: usize = 16;
    // Where there is a finding for each value, the value is a step too.
    let steps = MAX_STEPS as usize / (FINDINGS + bytes / BYTES_PER_FINDING);
    let steps = u32::try_from(steps.saturating_sub(1)).unwrap_or(STEPS_PER_FINDING);
    steps.clamp(MIN_STEPS_PER_FINDING, STEPS_PER_FINDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_after_so_many_steps() {
        let budget = Budget::default();
        assert!(budget.steps(MAX_STEPS));
        assert!(!budget.step());
        let over = OverLimit { pointer: Pointer::root(), limit: Limit::Steps };
        assert_eq!(budget.stopped(), Some(Stop::OverLimit(over)));
    }

    #[test]
    fn findings_about_a_large_object_count_for_less() {
        assert_eq!(steps_per_finding(0), STEPS_PER_FINDING);
        assert_eq!(steps_per_finding(256 << 10), 4);
        assert_eq!(steps_per_finding(8 << 20), MIN_STEPS_PER_FINDING);
    }

    #[test]
    fn a_part_has_steps_of_its_own() {
        let cancelled = AtomicBool::new(false);
        let budget = Budget::new(Some(&cancelled), 0);
        assert!(budget.steps(MAX_STEPS));
        let (goes_on, over) = budget.apart(0, || budget.steps(MAX_STEPS));
        assert!(goes_on && over.is_none());
        let (_, over) = budget.apart(0, || budget.steps(MAX_STEPS + 1));
        assert!(over.is_some_and(|over| over.limit == Limit::Steps) && !budget.has_ended());
        cancelled.store(true, Ordering::Relaxed);
        let (_, over) = budget.apart(0, || budget.steps(STEPS_PER_LOOK));
        assert_eq!((over, budget.stopped()), (None, Some(Stop::Cancelled)));
    }

    #[test]
    fn judging_has_more_steps_for_larger_objects() {
        for (bytes, most) in [
            (0, MIN_JUDGING_STEPS),
            (80_000, MIN_JUDGING_STEPS + 10_000),
            (8 << 20, MAX_STEPS),
            (usize::MAX, MAX_STEPS),
        ] {
            let budget = Budget::default();
            assert!(budget.judging(bytes, || budget.steps(most)).0, "{bytes}");
            assert!(!budget.judging(bytes, || budget.steps(most + 1)).0, "{bytes}");
            assert!(!budget.has_ended());
        }
    }

    #[test]
    fn reads_the_flag_every_thousand_steps() {
        let cancelled = AtomicBool::new(false);
        let budget = Budget::new(Some(&cancelled), 0);
        assert!(budget.steps(STEPS_PER_LOOK - 2));
        cancelled.store(true, Ordering::Relaxed);
        assert!(budget.step(), "not looked at yet");
        assert!(!budget.step());
        assert_eq!(budget.stopped(), Some(Stop::Cancelled));
    }

    #[test]
    fn the_first_reason_counts() {
        let budget = Budget::default();
        budget.over_limit(|| Pointer::new("/spec/a"), Limit::Entries);
        budget.over_limit(|| Pointer::new("/spec/b"), Limit::Entries);
        let over = OverLimit { pointer: Pointer::new("/spec/a"), limit: Limit::Entries };
        assert_eq!(budget.stopped(), Some(Stop::OverLimit(over)));
    }
}
