//! How far the runtime is behind: for how long a task that could run has waited.
//!
//! A few thousand connections of which each sends one review at a time are behind by milliseconds at
//! most. Where decisions are a hundred times dearer than usual, that grows to what callers wait for,
//! and then every answer would come too late. So beyond a share of the time that a request has left it
//! is refused at once, which costs next to nothing, and those that are taken are answered in time.
//!
//! A task takes its place in the queue every few milliseconds, behind everything that is there, and
//! leaves a mark when its turn comes: the age of the mark is the length of the queue. A machine that
//! was taken away for a moment leaves an old mark too. But then there was a moment in which no request
//! came, as long as that; in a queue there is mostly one after the other. So that moment is taken off,
//! unless the mark before was late too: then it is no moment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often a mark is left, when there is no queue.
const PERIOD: Duration = Duration::from_millis(20);

/// The share of the time left that waiting may take.
const SHARE: u32 = 4;

/// What is never too much: a busy machine lets anybody wait so long now and then.
const LEAST: Duration = Duration::from_millis(200);

/// No mark yet: nothing leaves any for a router without a server.
const NEVER: u64 = u64::MAX;

/// The last mark, and the requests since. Times are microseconds after `born`.
#[derive(Debug)]
pub(super) struct Lag {
    born: Instant,
    /// When the mark was left.
    marked: AtomicU64,
    /// Whether it was left late.
    late: AtomicBool,
    /// When the last request came.
    came: AtomicU64,
    /// The longest time without any request since the mark.
    calm: AtomicU64,
}

impl Lag {
    /// Without a mark.
    pub(super) fn new() -> Self {
        let [marked, came, calm] = [NEVER, 0, 0].map(AtomicU64::new);
        Self { born: Instant::now(), marked, late: AtomicBool::new(false), came, calm }
    }

    /// Leaves marks for as long as the runtime runs it.
    pub(super) async fn mark(&self) {
        loop {
            turn().await;
            self.mark_at(Instant::now());
            sleep(PERIOD).await;
        }
    }

    fn mark_at(&self, now: Instant) {
        let micros = self.micros(now);
        let before = self.marked.swap(micros, Ordering::Relaxed);
        let gap = Duration::from_micros(micros.saturating_sub(before));
        self.late.store(gap > PERIOD + LEAST, Ordering::Relaxed);
        self.calm.store(0, Ordering::Relaxed);
    }

    /// Whether it is too much for one more request, which must be answered by `deadline`.
    pub(super) fn is_too_much(&self, deadline: Instant) -> bool {
        self.is_too_much_at(Instant::now(), deadline)
    }

    fn is_too_much_at(&self, now: Instant, deadline: Instant) -> bool {
        let marked = self.marked.load(Ordering::Relaxed);
        if marked == NEVER {
            return false;
        }
        let micros = self.micros(now);
        let before = self.came.swap(micros, Ordering::Relaxed).max(marked);
        let calm = micros.saturating_sub(before);
        let calm = self.calm.fetch_max(calm, Ordering::Relaxed).max(calm);
        let excused = if self.late.load(Ordering::Relaxed) { 0 } else { calm };
        let behind = Duration::from_micros(micros.saturating_sub(marked).saturating_sub(excused));
        let behind = behind.saturating_sub(PERIOD);
        behind > LEAST && behind > deadline.saturating_duration_since(now) / SHARE
    }

    fn micros(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.born).as_micros()).unwrap_or(NEVER)
    }
}

/// Waits for the turn of a task that comes last of all that can run now.
///
/// A thread of the runtime runs the task that was woken last before all others, and a timer wakes its
/// task after all sockets. So that place is given to a task that does nothing.
async fn turn() {
    let last = tokio::spawn(async {});
    tokio::spawn(async {});
    last.await.ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    /// Which of the requests that come after so many milliseconds each are too much, when each must be
    /// answered within ten seconds and no mark is left after the first.
    fn refused(after: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let lag = Lag::new();
        lag.mark_at(lag.born);
        let too_much = |after: &u32| {
            let now = lag.born + MILLI * *after;
            lag.is_too_much_at(now, now + Duration::from_secs(10))
        };
        after.into_iter().filter(too_much).collect()
    }

    #[test]
    fn is_too_much_beyond_a_share_of_the_time_left() {
        let refused = refused((0..4_000).step_by(10));
        assert_eq!(refused.first(), Some(&2_540), "a quarter of ten seconds, and what is no queue");
        assert_eq!(refused.len(), 146, "all that come later");
    }

    #[test]
    fn a_little_is_nothing_however_little_time_is_left() {
        let lag = Lag::new();
        lag.mark_at(lag.born);
        let is_too_much = |after| {
            let now = lag.born + MILLI * after;
            lag.is_too_much_at(now, now)
        };
        let first = (0..1_000).step_by(10).find(|after| is_too_much(*after));
        assert_eq!(first, Some(240));
    }

    #[test]
    fn a_mark_starts_anew() {
        let lag = Lag::new();
        lag.mark_at(lag.born);
        let now = lag.born + MILLI * 4_000;
        let too_much = |after| lag.is_too_much_at(lag.born + MILLI * after, now);
        assert!((0..4_000).step_by(10).any(too_much));
        lag.mark_at(now);
        assert!(!lag.is_too_much_at(now + MILLI, now));
    }

    #[test]
    fn a_machine_that_was_away_is_no_queue() {
        // Three seconds, and then all that came meanwhile.
        assert_eq!(refused((0..50).chain(3_050..3_150)), [0; 0]);
    }

    #[test]
    fn a_machine_that_is_away_again_and_again_is_behind() {
        let lag = Lag::new();
        lag.mark_at(lag.born);
        let back = lag.born + MILLI * 3_000;
        lag.mark_at(back);
        let again = back + MILLI * 3_000;
        assert!(lag.is_too_much_at(again, again + Duration::from_secs(10)));
        lag.mark_at(again);
        lag.mark_at(again + PERIOD);
        let later = again + PERIOD + MILLI * 3_000;
        assert!(!lag.is_too_much_at(later, later + Duration::from_secs(10)), "it had recovered");
    }

    #[test]
    fn without_a_mark_nothing_is_too_much() {
        let lag = Lag::new();
        assert!((0..5_000).all(|after| !lag.is_too_much_at(lag.born + MILLI * after, lag.born)));
    }

    /// On the runtime that serves, the mark is left after the tasks that were there before it.
    #[test]
    fn a_turn_comes_after_what_was_there() {
        let runtime = crate::server::runtime_builder().worker_threads(1).build().expect("a runtime");
        let (tell, told) = std::sync::mpsc::channel();
        runtime.block_on(async {
            let marking = async move {
                for number in 0..100 {
                    let tell = tell.clone();
                    tokio::spawn(async move { tell.send(number).expect("somebody listens") });
                }
                turn().await;
                tell.send(100).expect("somebody listens");
            };
            tokio::spawn(marking).await.expect("no panic");
        });
        let order: Vec<_> = told.iter().collect();
        assert_eq!(order.last(), Some(&100), "{order:?}");
    }
}
