//! The connections there are: a bounded number, of which the least useful goes when one too many
//! comes.
//!
//! Who is being answered stays: of those there are never more than requests are let in. Of the others
//! the oldest goes first that came long ago and never had a review answered: a caller in earnest has one
//! within milliseconds, so that is somebody who holds the door or sends a byte a second. Then those of an
//! address that holds more than half of all places go before the rest, and of the rest those that never
//! had a review answered. Only when there is none, the one that has been idle the longest, and at last
//! one in the middle of a head.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// After how long a connection without an answer to a review holds a place for nothing.
const LONG: Duration = Duration::from_secs(1);

/// All connections of one listener.
#[derive(Debug)]
pub(in crate::server) struct Seats {
    most: usize,
    next: AtomicU64,
    taken: Mutex<Taken>,
}

/// The places that are taken.
#[derive(Debug, Default)]
struct Taken {
    /// Numbers grow with time.
    places: BTreeMap<u64, (IpAddr, Arc<Activity>)>,
    /// How many places each address has.
    crowds: BTreeMap<IpAddr, usize>,
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
    /// When it came.
    came: Instant,
    /// Whether a review of its was answered yet.
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

    /// A place for somebody at `peer`, and whether another connection had to give up its own. `None`
    /// when all of them are being answered.
    pub(in crate::server) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<(Seat, bool)> {
        let mut taken = self.lock();
        let full = taken.places.len() >= self.most;
        if full && !taken.evict(self.most) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let activity = Arc::new(Activity::new());
        taken.insert(number, peer.to_canonical(), Arc::clone(&activity));
        drop(taken);
        Some((Seat { number, seats: Arc::clone(self), activity }, full))
    }

    /// Makes the least useful connection go, if there is one.
    pub(in crate::server) fn make_room(&self) -> bool {
        self.lock().evict(self.most)
    }

    /// How many places are taken.
    pub(in crate::server) fn taken(&self) -> usize {
        self.lock().places.len()
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn insert(&mut self, number: u64, peer: IpAddr, activity: Arc<Activity>) {
        self.places.insert(number, (peer, activity));
        *self.crowds.entry(peer).or_default() += 1;
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Activity>> {
        let (peer, activity) = self.places.remove(&number)?;
        if let Some(crowd) = self.crowds.get_mut(&peer) {
            *crowd -= 1;
            if *crowd == 0 {
                self.crowds.remove(&peer);
            }
        }
        Some(activity)
    }

    fn evict(&mut self, most: usize) -> bool {
        let least = self.least_useful(most).and_then(|number| self.remove(number));
        least.inspect(|activity| activity.evicted.notify_one()).is_some()
    }

    fn least_useful(&self, most: usize) -> Option<u64> {
        let crowded = |peer: &IpAddr| self.crowds.get(peer).is_some_and(|crowd| *crowd > most / 2);
        let now = Instant::now();
        let rank = |(number, (peer, activity)): (&u64, &(IpAddr, Arc<Activity>))| {
            let state = *activity.state();
            let (class, since) = state.rank()?;
            Some((Reverse(state.is_useless(now)), Reverse(crowded(peer)), class, since, *number))
        };
        self.places.iter().filter_map(rank).min().map(|(.., number)| number)
    }
}

impl State {
    /// Whether it had time enough to be of use, and was of none.
    fn is_useless(self, now: Instant) -> bool {
        !self.served && now.saturating_duration_since(self.came) > LONG
    }

    /// Where it stands among those that may go, and since when; the lowest goes first. `None` for one
    /// that must stay.
    fn rank(self) -> Option<(u8, Option<Instant>)> {
        match (self.phase, self.served) {
            (Phase::Busy, _) => None,
            // In the order in which they came.
            (_, false) => Some((0, None)),
            (Phase::Idle, true) => Some((1, Some(self.since))),
            (Phase::Head, true) => Some((2, Some(self.since))),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().remove(self.number);
    }
}

impl Activity {
    fn new() -> Self {
        let now = Instant::now();
        let state = State { phase: Phase::Idle, since: now, came: now, served: false };
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

    /// A request was answered, `in_earnest` or as no review at all.
    pub(super) fn answered(&self, in_earnest: bool) {
        let mut state = self.state();
        let served = state.served || in_earnest;
        *state = State { phase: Phase::Idle, since: Instant::now(), served, ..*state };
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
    use std::time::Duration;

    use super::*;

    fn take(seats: &Arc<Seats>, host: u8) -> (Seat, bool) {
        seats.take(IpAddr::from([127, 0, 0, host])).expect("a seat")
    }

    fn has_gone(seat: &Seat) -> bool {
        !seat.seats.lock().places.contains_key(&seat.number)
    }

    #[tokio::test]
    async fn the_oldest_that_got_no_answer_goes_first() {
        let seats = Seats::new(3);
        let (served, _) = take(&seats, 1);
        served.activity.answered(true);
        let (silent, _) = take(&seats, 1);
        let (_newer, evicted) = take(&seats, 1);
        assert!(!evicted);
        let (_newest, evicted) = take(&seats, 1);
        assert!(evicted);
        silent.activity.evicted().await;
        drop(silent);
        assert_eq!(seats.taken(), 3);
    }

    #[tokio::test]
    async fn then_the_one_that_has_been_idle_longest() {
        let seats = Seats::new(2);
        let (first, _) = take(&seats, 1);
        let (second, _) = take(&seats, 1);
        second.activity.answered(true);
        tokio::time::sleep(Duration::from_millis(2)).await;
        first.activity.answered(true);
        take(&seats, 1);
        second.activity.evicted().await;
    }

    #[test]
    fn an_answer_to_no_review_earns_nothing() {
        let seats = Seats::new(2);
        let (served, _) = take(&seats, 1);
        served.activity.answered(true);
        served.activity.answered(false);
        let (noisy, _) = take(&seats, 1);
        noisy.activity.answered(false);
        take(&seats, 1);
        assert!(has_gone(&noisy) && !has_gone(&served));
    }

    #[test]
    fn who_drips_the_head_of_a_second_request_goes_last() {
        let seats = Seats::new(1);
        let (dripping, _) = take(&seats, 1);
        dripping.activity.answered(true);
        dripping.activity.received();
        take(&seats, 2);
        assert!(has_gone(&dripping));
    }

    #[test]
    fn who_holds_more_than_half_gives_way_before_everybody_else() {
        let seats = Seats::new(4);
        let apiserver = [take(&seats, 1).0, take(&seats, 1).0];
        apiserver[0].activity.answered(true);
        let crowd = [take(&seats, 2).0, take(&seats, 2).0];
        for seat in &crowd {
            seat.activity.answered(true);
        }
        let (third, _) = take(&seats, 2);
        assert!(has_gone(&apiserver[1]), "half of the places is no crowd");
        third.activity.answered(true);
        let (_newcomer, _) = take(&seats, 3);
        assert!(has_gone(&crowd[0]) && !has_gone(&apiserver[0]));
        let (_other, _) = take(&seats, 3);
        assert!(!has_gone(&crowd[1]) && !has_gone(&apiserver[0]), "its crowd has gone");
    }

    #[test]
    fn who_holds_the_door_goes_before_an_apiserver_with_more_than_half() {
        let seats = Seats::new(4);
        let (holding, _) = take(&seats, 2);
        let apiserver = [take(&seats, 1).0, take(&seats, 1).0, take(&seats, 1).0];
        for seat in &apiserver {
            seat.activity.answered(true);
        }
        let long_ago = Instant::now().checked_sub(LONG * 2).expect("a past");
        holding.activity.state().came = long_ago;
        take(&seats, 3);
        assert!(has_gone(&holding) && !apiserver.iter().any(has_gone));
    }

    #[test]
    fn nobody_goes_while_being_answered() {
        let seats = Seats::new(1);
        let (only, _) = take(&seats, 1);
        only.activity.busy();
        assert!(seats.take(IpAddr::from([127, 0, 0, 1])).is_none());
        drop(only);
        take(&seats, 1);
        assert_eq!(seats.taken(), 0);
    }
}
