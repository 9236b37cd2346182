//! What one decision may cost: limits on the size of what is read, a counted budget of steps, and a flag
//! that ends it.
//!
//! The limits hold through every door, for they are part of the decision. Nothing here reads a clock.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::model::pointer::Pointer;

/// How many environment variables of a pod are read, all its containers together.
pub const MAX_VARIABLES: usize = 28_000;

/// How many containers of a pod are read.
pub const MAX_CONTAINERS: usize = 1_000;

/// How many init containers of a pod are read.
pub const MAX_INIT_CONTAINERS: usize = 1_000;

/// How many volumes of a pod are read.
pub const MAX_VOLUMES: usize = 1_000;

/// How many entries of each list, and of each map of strings, are read; of the mounts of a pod, all its
/// containers together.
pub const MAX_ENTRIES: usize = 10_000;

/// How many steps a decision may take. A value that is read is a step. An object of 1.5 MiB, the most that etcd
/// stores by default, has fewer if its fields have names.
pub const MAX_STEPS: u32 = 200_000;

/// How many steps a finding counts for: it takes about as long as reading so many values.
pub const STEPS_PER_FINDING: u32 = 8;

/// After how many steps the flag is read.
const STEPS_PER_LOOK: u32 = 1_000;

/// What is counted about one decision.
#[derive(Debug, Default)]
pub struct Work<'c> {
    cancelled: Option<&'c AtomicBool>,
    steps: Cell<u32>,
    ended: Cell<bool>,
    stop: RefCell<Option<Stop>>,
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
    /// What a patch may hold.
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

impl<'c> Work<'c> {
    /// Nothing done yet; `cancelled` says when nobody waits for the decision any more.
    #[must_use]
    pub const fn new(cancelled: Option<&'c AtomicBool>) -> Self {
        Self { cancelled, steps: Cell::new(0), ended: Cell::new(false), stop: RefCell::new(None) }
    }

    /// Counts a step; whether to go on.
    pub fn step(&self) -> bool {
        self.steps(1)
    }

    /// Counts a finding; whether to go on.
    pub fn finding(&self) -> bool {
        self.steps(STEPS_PER_FINDING)
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
