//! The connections there are: a bounded number, of which the least useful goes when one too many
//! comes.
//!
//! Least useful is the oldest that never got an answer: a caller in earnest gets one within
//! milliseconds, so that is somebody who holds the door or sends a byte a second. Only when there
//! is none, the one that has been idle the longest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// All connections of one listener.
#[derive(Debug)]
pub(in crate::server) struct Seats {
    most: usize,
    next: AtomicU64,
    taken: Mutex<BTreeMap<u64, Arc<Activity>>>,
}

/// The place of one connection; free again when dropped.
#[derive(Debug)]
pub(in crate::server) struct Seat {
    number: u64,
    seats: Arc<Seats>,
    /// What its connection is doing.
    pub(super) activity: Arc<Activity>,
}

/// What a connection is doing.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    evicted: Notify,
}

#[derive(Debug, Clone, Copy)]
struct State {
    phase: Phase,
    /// When the phase began.
    since: Instant,
    /// Whether it got an answer yet.
    served: bool,
}

/// The phases of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Shaking hands, or waiting for the first byte of a request.
    Idle,
    /// Receiving the head of a request.
    Head,
    /// Answering a request; its body belongs to this.
    Busy,
}

impl Seats {
    /// Places for `most` connections.
    pub(in crate::server) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), next: AtomicU64::new(0), taken: Mutex::default() })
    }

    /// A place, and whether another connection had to give up its own. `None` when all of them are
    /// being answered.
    pub(in crate::server) fn take(self: &Arc<Self>) -> Option<(Seat, bool)> {
        let mut taken = self.lock();
        let full = taken.len() >= self.most;
        if full && !evict(&mut taken) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let activity = Arc::new(Activity::new());
        taken.insert(number, Arc::clone(&activity));
        drop(taken);
        Some((Seat { number, seats: Arc::clone(self), activity }, full))
    }

    /// Makes the least useful connection go, if there is one.
    pub(in crate::server) fn make_room(&self) -> bool {
        evict(&mut self.lock())
    }

    /// How many places are taken.
    pub(in crate::server) fn taken(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Activity>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn evict(taken: &mut BTreeMap<u64, Arc<Activity>>) -> bool {
    let least = least_useful(taken).and_then(|number| taken.remove(&number));
    least.inspect(|activity| activity.evicted.notify_one()).is_some()
}

/// Numbers grow with time: the first that was never served is the oldest of them.
fn least_useful(taken: &BTreeMap<u64, Arc<Activity>>) -> Option<u64> {
    let mut idle: Option<(Instant, u64)> = None;
    for (number, activity) in taken {
        let state = *activity.state();
        if !state.served {
            return Some(*number);
        }
        if state.phase == Phase::Idle && idle.is_none_or(|(since, _)| state.since < since) {
            idle = Some((state.since, *number));
        }
    }
    idle.map(|(_, number)| number)
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().remove(&self.number);
    }
}

impl Activity {
    fn new() -> Self {
        let state = State { phase: Phase::Idle, since: Instant::now(), served: false };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    /// The phase, and when it began.
    pub(super) fn phase(&self) -> (Phase, Instant) {
        let state = self.state();
        (state.phase, state.since)
    }

    /// Bytes came in: if none were expected, they are the start of a request.
    pub(super) fn received(&self) {
        let mut state = self.state();
        if state.phase == Phase::Idle {
            (state.phase, state.since) = (Phase::Head, Instant::now());
        }
    }

    /// A whole head came in.
    pub(super) fn busy(&self) {
        let mut state = self.state();
        (state.phase, state.since) = (Phase::Busy, Instant::now());
    }

    /// A request was answered.
    pub(super) fn answered(&self) {
        *self.state() = State { phase: Phase::Idle, since: Instant::now(), served: true };
    }

    /// Waits until the connection must go for another one.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_that_got_no_answer_goes_first() {
        let seats = Seats::new(3);
        let (served, _) = seats.take().expect("a seat");
        served.activity.answered();
        let (silent, _) = seats.take().expect("a seat");
        let (_newer, evicted) = seats.take().expect("a seat");
        assert!(!evicted);
        let (_newest, evicted) = seats.take().expect("a seat");
        assert!(evicted);
        silent.activity.evicted().await;
        drop(silent);
        assert_eq!(seats.taken(), 3);
    }

    #[tokio::test]
    async fn then_the_one_that_has_been_idle_longest() {
        let seats = Seats::new(2);
        let (first, _) = seats.take().expect("a seat");
        let (second, _) = seats.take().expect("a seat");
        second.activity.answered();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        first.activity.answered();
        seats.take().expect("a seat");
        second.activity.evicted().await;
    }

    #[test]
    fn nobody_goes_while_being_answered() {
        let seats = Seats::new(1);
        let (only, _) = seats.take().expect("a seat");
        only.activity.answered();
        only.activity.busy();
        assert!(seats.take().is_none());
        drop(only);
        assert!(seats.take().is_some());
    }
}
