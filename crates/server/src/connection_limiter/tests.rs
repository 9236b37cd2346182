use std::net::Ipv4Addr;
use std::time::Duration;

use super::*;

/// The address with this last number.
fn peer(host: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host).into()
}

fn acquire(limiter: &Arc<ConnectionLimiter>, host: u8) -> (ConnectionSlot, bool) {
    limiter.acquire(peer(host)).expect("a slot")
}

/// A connection of this address.
fn open(limiter: &Arc<ConnectionLimiter>, host: u8) -> ConnectionSlot {
    acquire(limiter, host).0
}

/// A request of this connection, answered so long ago.
fn respond(slot: &ConnectionSlot, ago: u64) {
    slot.activity.head_received();
    slot.activity.answered();
    slot.activity.flushed();
    last_for(slot, ago);
}

/// The phase of this connection began so long ago.
fn last_for(slot: &ConnectionSlot, seconds: u64) {
    slot.activity.state().since = Instant::now().checked_sub(Duration::from_secs(seconds)).expect("a past");
}

fn is_closed(slot: &ConnectionSlot) -> bool {
    let open = slot.limiter.lock();
    !open.by_address.get(&slot.address).is_some_and(|own| own.contains_key(&slot.number))
}

#[tokio::test]
async fn closes_the_longest_idle_connection() {
    let limiter = ConnectionLimiter::new(3);
    let slots = [5, 9, 1].map(|ago| {
        let (slot, evicted) = acquire(&limiter, 1);
        assert!(!evicted);
        respond(&slot, ago);
        slot
    });
    let (newer, evicted) = acquire(&limiter, 1);
    assert!(evicted);
    slots[1].activity.evicted().await;
    assert_eq!(slots.each_ref().map(is_closed), [false, true, false]);
    respond(&newer, 0);
    assert!(limiter.evict_one() && is_closed(&slots[0]));
    assert_eq!(limiter.open(), 2);
}

#[test]
fn closes_what_sends_no_review_before_others_and_never_one_that_is_answered() {
    let limiter = ConnectionLimiter::new(8);
    let slots = [0; 8].map(|_| open(&limiter, 1));
    let [answering, body, writing, slow_body, next_head, kept, silent, slow_head] = &slots;
    for slot in [answering, body, writing, slow_body, next_head, slow_head] {
        slot.activity.http_begins();
        slot.activity.bytes_received();
    }
    for slot in [answering, body, writing, slow_body] {
        slot.activity.head_received();
    }
    answering.activity.body_received();
    writing.activity.answered();
    respond(next_head, 0);
    next_head.activity.bytes_received();
    respond(kept, 1);
    for (slot, ago) in [(answering, 60), (writing, 30), (slow_body, 20), (slow_head, 40), (silent, 50)] {
        last_for(slot, ago);
    }
    for closed in [silent, slow_head, kept, next_head, writing, slow_body] {
        assert!(limiter.evict_one() && is_closed(closed));
    }
    assert!(!limiter.evict_one() && !is_closed(answering) && !is_closed(body));
}

#[test]
fn the_address_with_the_most_connections_gives() {
    let limiter = ConnectionLimiter::new(6);
    let kept = [1, 1, 2].map(|host| {
        let slot = open(&limiter, host);
        respond(&slot, 100);
        slot
    });
    let mut flood: Vec<_> = (0..3).map(|_| open(&limiter, 3)).collect();
    for host in [3, 3, 4] {
        flood.push(acquire(&limiter, host).0);
        assert_eq!(flood.iter().filter(|slot| is_closed(slot)).count(), flood.len() - 3);
    }
    assert!(!kept.iter().any(is_closed), "another address had more");
    assert_eq!(limiter.open(), 6);
}

/// The newcomer counts: else an address with as many as another one would take a connection from it.
#[test]
fn an_address_takes_none_from_one_with_as_many() {
    let limiter = ConnectionLimiter::new(4);
    let slots = [1, 1, 2, 2].map(|host| open(&limiter, host));
    respond(&slots[0], 100);
    respond(&slots[1], 100);
    for slot in &slots[2..] {
        slot.activity.head_received();
        slot.activity.body_received();
    }
    assert!(limiter.acquire(peer(2)).is_none(), "its own are being answered");
    assert!(acquire(&limiter, 1).1 && is_closed(&slots[0]));
}

#[test]
fn counts_by_ipv4_address_and_ipv6_network() {
    let counted = |text: &str| counted_address(text.parse().expect("an address"));
    assert_eq!(counted("::ffff:10.0.0.1"), counted("10.0.0.1"));
    assert_ne!(counted("::ffff:10.0.0.1"), counted("::ffff:10.0.0.2"));
    assert_eq!(counted("2001:db8:1:2::1"), counted("2001:db8:1:2:ffff::"));
    assert_ne!(counted("2001:db8:1:2::1"), counted("2001:db8:1:3::1"));
}

#[test]
fn drops_a_newcomer_when_all_are_answered() {
    let limiter = ConnectionLimiter::new(1);
    let only = open(&limiter, 1);
    only.activity.head_received();
    only.activity.body_received();
    assert!([1, 2].iter().all(|host| limiter.acquire(peer(*host)).is_none()));
    drop(only);
    acquire(&limiter, 1);
    assert_eq!(limiter.open(), 0);
}
