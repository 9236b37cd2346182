use std::time::Duration;

use super::*;

fn acquire(limiter: &Arc<ConnectionLimiter>) -> (ConnectionSlot, bool) {
    limiter.acquire().expect("a slot")
}

/// A request of this connection, answered so long ago.
fn respond(slot: &ConnectionSlot, ago: u64) {
    slot.activity.answered();
    slot.activity.flushed();
    slot.activity.state().since = Instant::now().checked_sub(Duration::from_secs(ago)).expect("a past");
}

fn is_closed(slot: &ConnectionSlot) -> bool {
    !slot.limiter.lock().contains_key(&slot.number)
}

#[tokio::test]
async fn closes_the_longest_idle_connection() {
    let limiter = ConnectionLimiter::new(3);
    let slots = [5, 9, 1].map(|ago| {
        let (slot, evicted) = acquire(&limiter);
        assert!(!evicted);
        respond(&slot, ago);
        slot
    });
    let (_newer, evicted) = acquire(&limiter);
    assert!(evicted);
    slots[1].activity.evicted().await;
    assert_eq!(slots.each_ref().map(is_closed), [false, true, false]);
    assert!(limiter.evict_one() && is_closed(&slots[0]));
    assert_eq!(limiter.open(), 2);
}

#[test]
fn closes_idle_connections_before_others_and_never_one_that_is_answered() {
    let limiter = ConnectionLimiter::new(5);
    let slots = [0; 5].map(|_| acquire(&limiter).0);
    let [answering, writing, body, head, idle] = &slots;
    for slot in [answering, writing, body, head] {
        slot.activity.http_begins();
        slot.activity.bytes_received();
    }
    for slot in [answering, writing, body] {
        slot.activity.head_received();
    }
    answering.activity.body_received();
    writing.activity.answered();
    for closed in [idle, head, body, writing] {
        assert!(limiter.evict_one() && is_closed(closed));
    }
    assert!(!limiter.evict_one() && !is_closed(answering));
}

#[test]
fn drops_a_newcomer_when_all_are_answered() {
    let limiter = ConnectionLimiter::new(1);
    let (only, _) = acquire(&limiter);
    only.activity.head_received();
    only.activity.body_received();
    assert!(limiter.acquire().is_none());
    drop(only);
    acquire(&limiter);
    assert_eq!(limiter.open(), 0);
}

#[test]
fn a_request_can_begin_while_an_answer_is_written() {
    let activity = Activity::new();
    activity.http_begins();
    for (received, next) in [(false, ConnectionPhase::Idle), (true, ConnectionPhase::Head)] {
        activity.answered();
        if received {
            activity.bytes_received();
        }
        assert_eq!(activity.phase().0, ConnectionPhase::Writing);
        activity.flushed();
        assert_eq!(activity.phase().0, next);
    }
}
