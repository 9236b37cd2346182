use tokio::time::sleep;

use super::*;
use crate::server::options::Limits;

const FLOOD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

/// A limiter of ten handshakes a second, and the task that serves those who wait.
fn limiter() -> Arc<HandshakeLimiter> {
    limiter_of(10, LagMonitor::new())
}

fn limiter_of(per_second: u32, lag: LagMonitor) -> Arc<HandshakeLimiter> {
    let limiter =
        HandshakeLimiter::new(&Limits { handshakes: per_second, ..Limits::default() }, Arc::new(lag));
    tokio::spawn(Arc::clone(&limiter).run());
    limiter
}

/// What a connection does that begins to shake hands now.
fn activity() -> Arc<Activity> {
    let slot = crate::server::connection_limiter::ConnectionLimiter::new(1).acquire(FLOOD);
    Arc::clone(&slot.expect("a slot").0.activity)
}

async fn begin(limiter: &Arc<HandshakeLimiter>, peer: IpAddr) -> Option<HandshakePermit> {
    limiter.begin(peer, &activity()).await
}

/// Begins so many handshakes one after the other; how many may.
async fn begin_many(limiter: &Arc<HandshakeLimiter>, peer: IpAddr, count: usize) -> usize {
    let tries = (0..count).map(|_| begin(limiter, peer));
    futures::future::join_all(tries).await.iter().flatten().count()
}

#[tokio::test(start_paused = true)]
async fn strangers_get_their_ration_and_no_more() {
    let limiter = limiter();
    let ration = 10..=15;
    assert!(ration.contains(&begin_many(&limiter, FLOOD, 100).await), "a burst, and those of half a second");
    assert!(begin_many(&limiter, OTHER, 100).await <= 5, "the budget is one for all of them");
    sleep(Duration::from_mins(1)).await;
    assert!(ration.contains(&begin_many(&limiter, OTHER, 100).await), "it fills, but not beyond a burst");
}

#[tokio::test(start_paused = true)]
async fn whoever_has_a_review_answered_may_come_again() {
    let limiter = limiter();
    for _ in 0..1_000 {
        begin(&limiter, OTHER).await.expect("a permit").reviewed();
    }
    begin_many(&limiter, FLOOD, 100).await;
    let start = Instant::now();
    assert_eq!(begin_many(&limiter, OTHER, 20).await, 20, "a budget of their own");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(begin_many(&limiter, OTHER, 100).await <= 10, "which has an end as well");
}

#[tokio::test(start_paused = true)]
async fn while_the_runtime_is_behind_an_eighth_may_begin() {
    let lag = LagMonitor::new();
    lag.begin_probe(Instant::now());
    let limiter = limiter_of(800, lag);
    sleep(Duration::from_secs(1)).await;
    let ration = 100..=160;
    assert!(
        ration.contains(&begin_many(&limiter, FLOOD, 1_000).await),
        "a burst, and those of half a second"
    );
    limiter.lag.begin_probe(Instant::now() + Duration::from_hours(1));
    sleep(Duration::from_secs(1)).await;
    assert!(begin_many(&limiter, FLOOD, 1_000).await >= 900, "it has recovered");
}

#[tokio::test(start_paused = true)]
async fn strangers_that_wait_delay_no_known_address() {
    let limiter = limiter();
    begin(&limiter, OTHER).await.expect("a permit").reviewed();
    let strangers = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move { begin_many(&limiter, FLOOD, 1_000).await }
    });
    sleep(Duration::from_millis(10)).await;
    let start = Instant::now();
    begin(&limiter, OTHER).await.expect("a permit");
    assert_eq!(start.elapsed(), Duration::ZERO);
    strangers.await.expect("no panic");
}

/// Tasks that are ready run between two handshakes, however many wait for one.
#[tokio::test]
async fn a_crowd_that_connects_lets_others_run() {
    let limiter = limiter_of(1_000_000, LagMonitor::new());
    let begun = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for _ in 0..500 {
        let (limiter, begun) = (Arc::clone(&limiter), Arc::clone(&begun));
        tokio::spawn(async move {
            begin(&limiter, FLOOD).await.expect("a permit");
            begun.fetch_add(1, Ordering::Relaxed);
        });
    }
    let mut longest = 0;
    let mut before = 0;
    while before < 500 {
        yield_now().await;
        let now = begun.load(Ordering::Relaxed);
        longest = longest.max(now - before);
        before = now;
    }
    assert!(longest <= 2, "{longest} handshakes began one after the other");
}

#[tokio::test(start_paused = true)]
async fn addresses_take_turns() {
    let limiter = limiter();
    let flood = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move {
            loop {
                begin_many(&limiter, FLOOD, 1_000).await;
            }
        }
    });
    sleep(Duration::from_secs(3)).await;
    for last in 1..20 {
        let start = Instant::now();
        let stranger = IpAddr::from([10, 0, 1, last]);
        assert!(!limiter.is_crowded(stranger));
        assert!(begin(&limiter, stranger).await.is_some());
        assert!(start.elapsed() <= Duration::from_millis(200), "{:?}", start.elapsed());
    }
    flood.abort();
}

#[tokio::test(start_paused = true)]
async fn one_more_of_a_crowd_is_not_worth_a_task() {
    let limiter = limiter();
    begin_many(&limiter, FLOOD, 10).await;
    let crowd = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move { begin_many(&limiter, FLOOD, 2_000).await }
    });
    sleep(Duration::from_millis(10)).await;
    assert!(limiter.is_crowded(FLOOD) && !limiter.is_crowded(OTHER));
    assert!(crowd.await.is_ok_and(|begun| begun <= 5));
    assert!(begin(&limiter, OTHER).await.is_some(), "those who gave up are in nobody's way");
}

#[tokio::test(start_paused = true)]
async fn a_network_of_ipv6_is_one_address() {
    let limiter = limiter();
    begin(&limiter, IpAddr::from([0xfd00, 0, 0, 1, 9, 9, 9, 9])).await.expect("a permit").reviewed();
    let is_known =
        async |peer: [u16; 8]| begin(&limiter, peer.into()).await.is_some_and(|permit| permit.known);
    assert!(is_known([0xfd00, 0, 0, 1, 0, 0, 0, 1]).await);
    assert!(!is_known([0xfd00, 0, 0, 2, 0, 0, 0, 1]).await);
    let mapped: IpAddr = "::ffff:10.0.0.1".parse().expect("an address");
    assert_eq!(Source::of(mapped), Source::of(FLOOD));
}

#[tokio::test(start_paused = true)]
async fn nothing_grows_without_bound() {
    let limiter = limiter_of(10_000_000, LagMonitor::new());
    for number in 0..20_000_u16 {
        let [high, low] = number.to_be_bytes();
        begin(&limiter, IpAddr::from([10, 1, high, low])).await.expect("a permit").reviewed();
    }
    assert_eq!(limiter.state().known.len(), MAX_KNOWN);
    let (first, mut held) = (activity(), Vec::new());
    held.push(limiter.begin(FLOOD, &first).await);
    for _ in 0..MAX_UNFINISHED {
        held.push(begin(&limiter, FLOOD).await);
    }
    first.evicted().await;
    assert_eq!(limiter.state().unfinished.len(), MAX_UNFINISHED);
    drop(held);
    assert_eq!(limiter.state().unfinished.len(), 0);
}
