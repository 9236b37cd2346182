//! One budget of handshakes, and those who wait for it, by where they come from.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Source;

/// For how long handshakes may come at once that come in a second otherwise.
const BURST: Duration = Duration::from_secs(1);

/// The most that wait: as many as there may be requests, since a new replica may get those of all apiservers at once.
const MAX_WAITING: usize = 1_024;

/// A budget that fills with time.
#[derive(Debug)]
pub(super) struct Tier {
    /// How many handshakes may begin, in nanoseconds of the time that it takes to earn them.
    saved: Duration,
    /// What one handshake costs.
    price: Duration,
    filled_at: Instant,
    queues: BTreeMap<Source, VecDeque<oneshot::Sender<()>>>,
    waiting: usize,
    /// Whose turn it was last.
    last: Option<Source>,
}

/// How fast a budget fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// As it was set.
    Full,
    /// As there is no time for so many.
    Reduced,
}

impl Pace {
    /// What the budget and its burst are divided by.
    const fn divisor(self) -> u32 {
        match self {
            Self::Full => 1,
            Self::Reduced => 8,
        }
    }
}

impl Tier {
    /// A full budget of so many handshakes a second.
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        let price = Duration::from_secs(1) / per_second.max(1);
        Self { saved: BURST, price, filled_at: now, queues: BTreeMap::new(), waiting: 0, last: None }
    }

    /// Whether one more of this source could only wait in vain.
    pub(super) fn is_crowded(&self, source: Source) -> bool {
        self.waiting >= MAX_WAITING && self.longest().is_none_or(|(longest, _)| longest == source)
    }

    /// Queues up for a handshake of this source, which may begin when the receiver says so, and may not when it is
    /// closed. `None` when too many wait already.
    pub(super) fn enqueue(&mut self, source: Source) -> Option<oneshot::Receiver<()>> {
        if self.waiting >= MAX_WAITING {
            self.forget_gone();
        }
        if self.is_crowded(source) {
            return None;
        }
        if self.waiting >= MAX_WAITING
            && let Some((longest, _)) = self.longest()
        {
            drop(self.pop(longest, VecDeque::pop_front));
        }
        let (turn, wait) = oneshot::channel();
        self.queues.entry(source).or_default().push_back(turn);
        self.waiting += 1;
        Some(wait)
    }

    /// Lets the next one begin if there is a token; how long until there is one. `None` when nobody waits.
    pub(super) fn serve(&mut self, now: Instant, pace: Pace) -> Option<Duration> {
        self.fill(now, pace);
        while let Some(source) = self.next() {
            if !self.take() {
                return Some(self.price.saturating_sub(self.saved) * pace.divisor());
            }
            self.last = Some(source);
            let turn = self.pop(source, VecDeque::pop_back);
            if turn.is_some_and(|turn| turn.send(()).is_ok()) {
                return Some(Duration::ZERO);
            }
            self.give_back();
        }
        None
    }

    /// Gives one token back.
    pub(super) fn give_back(&mut self) {
        self.saved = (self.saved + self.price).min(BURST);
    }

    fn fill(&mut self, now: Instant, pace: Pace) {
        let earned = now.saturating_duration_since(self.filled_at) / pace.divisor();
        self.saved = (self.saved + earned).min((BURST / pace.divisor()).max(self.price));
        self.filled_at = now;
    }

    fn take(&mut self) -> bool {
        let rest = self.saved.checked_sub(self.price);
        self.saved = rest.unwrap_or(self.saved);
        rest.is_some()
    }

    /// The source after the last one, in a circle.
    fn next(&self) -> Option<Source> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.queues.range((after, Bound::Unbounded)).next().or_else(|| self.queues.iter().next());
        next.map(|(source, _)| *source)
    }

    /// The source of which most wait.
    fn longest(&self) -> Option<(Source, usize)> {
        self.queues.iter().map(|(source, queue)| (*source, queue.len())).max_by_key(|(_, length)| *length)
    }

    /// Takes one of this source out of its queue.
    fn pop(
        &mut self,
        source: Source,
        end: fn(&mut VecDeque<oneshot::Sender<()>>) -> Option<oneshot::Sender<()>>,
    ) -> Option<oneshot::Sender<()>> {
        let queue = self.queues.get_mut(&source)?;
        let popped = end(queue);
        if queue.is_empty() {
            self.queues.remove(&source);
        }
        self.waiting -= usize::from(popped.is_some());
        popped
    }

    /// Forgets those that have given up.
    fn forget_gone(&mut self) {
        self.queues.retain(|_, queue| {
            queue.retain(|turn| !turn.is_closed());
            !queue.is_empty()
        });
        self.waiting = self.queues.values().map(VecDeque::len).sum();
    }
}
