use std::time::Duration;

use super::*;

fn acquire(limiter: &Arc<ConnectionLimiter>, host: u8) -> (ConnectionSlot, bool) {
    limiter.acquire(IpAddr::from([127, 0, 0, host])).expect("a slot")
}

/// A request of this connection is answered, and the answer written.
fn respond(slot: &ConnectionSlot, is_review: bool) {
    slot.activity.answered(is_review);
    slot.activity.flushed();
}

fn is_closed(slot: &ConnectionSlot) -> bool {
    !slot.limiter.lock().connections.contains_key(&slot.number)
}

#[tokio::test]
async fn the_oldest_that_got_no_answer_goes_first() {
    let limiter = ConnectionLimiter::new(3);
    let (reviewed, _) = acquire(&limiter, 1);
    respond(&reviewed, true);
    let (silent, _) = acquire(&limiter, 1);
    let (_newer, evicted) = acquire(&limiter, 1);
    assert!(!evicted);
    let (_newest, evicted) = acquire(&limiter, 1);
    assert!(evicted);
    silent.activity.evicted().await;
    drop(silent);
    assert_eq!(limiter.open(), 3);
}

#[tokio::test]
async fn then_the_one_that_has_been_idle_longest() {
    let limiter = ConnectionLimiter::new(2);
    let (first, _) = acquire(&limiter, 1);
    let (second, _) = acquire(&limiter, 1);
    respond(&second, true);
    tokio::time::sleep(Duration::from_millis(2)).await;
    respond(&first, true);
    acquire(&limiter, 1);
    second.activity.evicted().await;
}

#[test]
fn an_answer_to_no_review_earns_nothing() {
    let limiter = ConnectionLimiter::new(2);
    let (reviewed, _) = acquire(&limiter, 1);
    respond(&reviewed, true);
    respond(&reviewed, false);
    let (noisy, _) = acquire(&limiter, 1);
    respond(&noisy, false);
    acquire(&limiter, 1);
    assert!(is_closed(&noisy) && !is_closed(&reviewed));
}

#[test]
fn a_slow_second_head_is_closed_last() {
    let limiter = ConnectionLimiter::new(1);
    let (dripping, _) = acquire(&limiter, 1);
    respond(&dripping, true);
    dripping.activity.bytes_received();
    acquire(&limiter, 2);
    assert!(is_closed(&dripping));
}

#[test]
fn a_peer_with_more_than_half_is_closed_before_others() {
    let limiter = ConnectionLimiter::new(4);
    let apiserver = [acquire(&limiter, 1).0, acquire(&limiter, 1).0];
    respond(&apiserver[0], true);
    let crowd = [acquire(&limiter, 2).0, acquire(&limiter, 2).0];
    for slot in &crowd {
        respond(slot, true);
    }
    let (third, _) = acquire(&limiter, 2);
    assert!(is_closed(&apiserver[1]), "half of the connections is no crowd");
    respond(&third, true);
    let (_newcomer, _) = acquire(&limiter, 3);
    assert!(is_closed(&crowd[0]) && !is_closed(&apiserver[0]));
    let (_other, _) = acquire(&limiter, 3);
    assert!(!is_closed(&crowd[1]) && !is_closed(&apiserver[0]), "its crowd has gone");
}

#[test]
fn a_useless_connection_is_closed_before_an_apiserver_with_more_than_half() {
    let limiter = ConnectionLimiter::new(4);
    let (holding, _) = acquire(&limiter, 2);
    let apiserver = [acquire(&limiter, 1).0, acquire(&limiter, 1).0, acquire(&limiter, 1).0];
    for slot in &apiserver {
        respond(slot, true);
    }
    let long_ago = Instant::now().checked_sub(USELESS_AFTER * 2).expect("a past");
    holding.activity.state().opened = long_ago;
    acquire(&limiter, 3);
    assert!(is_closed(&holding) && !apiserver.iter().any(is_closed));
}

#[test]
fn of_many_useless_ones_those_go_that_stay_useless() {
    let limiter = ConnectionLimiter::new(100);
    let slots: Vec<_> = (0..100).map(|_| acquire(&limiter, 1).0).collect();
    let long_ago = Instant::now().checked_sub(USELESS_AFTER * 2).expect("a past");
    for slot in &slots {
        slot.activity.state().opened = long_ago;
    }
    let _first = acquire(&limiter, 2);
    assert!(is_closed(&slots[0]));
    respond(&slots[1], true);
    slots[2].activity.request_received();
    let _others: Vec<_> = (0..90).map(|_| acquire(&limiter, 2)).collect();
    assert!(!is_closed(&slots[1]), "it has had a review answered since");
    assert!(!is_closed(&slots[2]), "it is being answered");
    assert!(slots[3..93].iter().all(is_closed) && !slots[93..].iter().any(is_closed), "the oldest first");
}

#[test]
fn a_handshake_that_has_begun_goes_after_those_that_wait() {
    let limiter = ConnectionLimiter::new(3);
    let (shaking, _) = acquire(&limiter, 1);
    shaking.activity.handshake_begins();
    let (idle, _) = acquire(&limiter, 1);
    respond(&idle, true);
    let (waiting, _) = acquire(&limiter, 1);
    let (newer, _) = acquire(&limiter, 1);
    assert!(is_closed(&waiting) && !is_closed(&shaking), "nothing was done for it yet");
    newer.activity.handshake_begins();
    let (_second, _) = acquire(&limiter, 1);
    assert!(is_closed(&shaking) && !is_closed(&idle), "the oldest of those without a review");
}

#[test]
fn newcomers_go_before_those_that_had_a_review_answered() {
    let limiter = ConnectionLimiter::new(100);
    let slots: Vec<_> = (0..100).map(|number| acquire(&limiter, number % 4).0).collect();
    for slot in &slots {
        respond(slot, true);
    }
    let newcomers: Vec<_> = (0..60).map(|_| acquire(&limiter, 9).0).collect();
    assert!(is_closed(&slots[0]) && !slots[1..].iter().any(is_closed), "one, for the first of them");
    assert!(newcomers[..59].iter().all(is_closed) && !is_closed(&newcomers[59]));
}

#[test]
fn none_is_closed_while_it_is_answered() {
    let limiter = ConnectionLimiter::new(1);
    let (only, _) = acquire(&limiter, 1);
    only.activity.request_received();
    assert!(limiter.acquire(IpAddr::from([127, 0, 0, 1])).is_none());
    drop(only);
    acquire(&limiter, 1);
    assert_eq!(limiter.open(), 0);
}
#[test]
fn one_that_does_not_read_its_answer_stays_only_for_a_moment() {
    let limiter = ConnectionLimiter::new(1);
    let (unread, _) = acquire(&limiter, 1);
    unread.activity.answered(true);
    assert!(limiter.acquire(IpAddr::from([127, 0, 0, 1])).is_none(), "its answer is being written");
    unread.activity.state().since = Instant::now().checked_sub(USELESS_AFTER * 2).expect("a past");
    acquire(&limiter, 1);
    assert!(is_closed(&unread));
}

#[test]
fn a_request_that_begins_during_an_answer_has_begun_after_it() {
    let activity = Activity::new();
    for (received, next) in [(false, ConnectionPhase::Idle), (true, ConnectionPhase::Head)] {
        activity.answered(true);
        if received {
            activity.bytes_received();
        }
        assert_eq!(activity.phase().0, ConnectionPhase::Writing);
        activity.flushed();
        assert_eq!(activity.phase().0, next);
    }
}
