use std::sync::mpsc::{Sender, channel};
use std::thread::sleep;

use futures::FutureExt;

use super::*;
use crate::server::worker_pool::queue::SMALL_BYTES;

const SMALL: usize = 1 << 10;
const LARGE: usize = 1 << 20;
const MINUTE: Duration = Duration::from_mins(1);

fn pool(workers: usize) -> WorkerPool {
    WorkerPool::new(workers, 16, Arc::new(Metrics::new([])))
}

/// Waits until something is so; a test that waits in vain is ended by its runner.
fn until(mut check: impl FnMut() -> bool) {
    while !check() {
        sleep(Duration::from_millis(1));
    }
}

/// Work that lasts until the sender is dropped.
fn stuck() -> (Sender<()>, impl FnOnce(&AtomicBool) + Send + 'static) {
    let (sender, receiver) = channel::<()>();
    (sender, move |_: &AtomicBool| assert!(receiver.recv().is_err()))
}

fn jobs(pool: &WorkerPool, result: &str) -> u64 {
    let text = pool.shared.metrics.text().expect("metrics");
    let series = format!("memgate_pool_jobs_total{{result=\"{result}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn small_work_does_not_wait_behind_large() {
    let pool = pool(2);
    let deadline = Instant::now() + MINUTE;
    let (held, [first, second, third]) = {
        let (senders, stuck): (Vec<_>, Vec<_>) = (0..3).map(|_| stuck()).unzip();
        let running = stuck.into_iter().map(|work| Box::pin(pool.run(LARGE, deadline, work)));
        let running: Vec<_> = running.collect();
        (senders, <[_; 3]>::try_from(running).unwrap_or_else(|_| unreachable!()))
    };
    let mut running = [first, second, third];
    for work in &mut running {
        assert!(work.now_or_never().is_none());
    }
    until(|| pool.usage() == (1, 2));
    assert_eq!(pool.run(SMALL, deadline, |_| 1).await, Ok(1));
    drop(held);
    for work in running {
        assert_eq!(work.await, Ok(()));
    }
}

#[tokio::test]
async fn who_gives_up_cancels_what_runs_and_takes_back_what_waits() {
    let pool = pool(1);
    let deadline = Instant::now() + MINUTE;
    let (seen, was_cancelled) = channel();
    let runs = pool.run(LARGE, deadline, move |cancelled| {
        until(|| cancelled.load(Ordering::Relaxed));
        seen.send(()).expect("a receiver");
    });
    let mut runs = Box::pin(runs);
    assert!((&mut runs).now_or_never().is_none());
    until(|| pool.usage() == (0, 1));
    let mut waits = Box::pin(pool.run(LARGE, deadline, |_| panic!("it must not begin")));
    assert!((&mut waits).now_or_never().is_none());
    assert_eq!(pool.usage(), (1, 1));
    drop(waits);
    assert_eq!(pool.usage(), (0, 1));
    drop(runs);
    was_cancelled.recv().expect("it is told");
    until(|| pool.usage() == (0, 0));
    assert_eq!(["cancelled", "dropped", "ok"].map(|result| jobs(&pool, result)), [1, 1, 0]);
}

#[tokio::test]
async fn work_whose_time_is_up_does_not_begin() {
    let pool = pool(1);
    let (held, work) = stuck();
    let mut runs = Box::pin(pool.run(LARGE, Instant::now() + MINUTE, work));
    assert!((&mut runs).now_or_never().is_none());
    until(|| pool.usage() == (0, 1));
    let soon = Instant::now() + Duration::from_millis(200);
    let mut waits = Box::pin(pool.run(LARGE, soon, |_| panic!("it must not begin")));
    assert!((&mut waits).now_or_never().is_none());
    until(|| Instant::now() > soon);
    drop(held);
    assert_eq!(runs.await, Ok(()));
    until(|| pool.usage() == (0, 0));
    assert_eq!(jobs(&pool, "dropped"), 1);
    assert_eq!(
        waits.await,
        Err::<(), _>(RunError::Late),
        "a thread found it before who waits for it gave up"
    );
}

#[tokio::test]
async fn a_panic_ends_the_work_and_not_the_thread() {
    let pool = pool(1);
    let deadline = Instant::now() + MINUTE;
    for bytes in [SMALL, LARGE, SMALL, LARGE] {
        assert_eq!(
            pool.run(bytes, deadline, |_| panic!("asked to panic")).await,
            Err::<(), _>(RunError::Panicked)
        );
    }
    assert_eq!(pool.run(LARGE, deadline, |_| 1).await, Ok(1));
    assert_eq!(pool.run(SMALL_BYTES, deadline, |_| 2).await, Ok(2));
    until(|| jobs(&pool, "ok") == 2);
    assert_eq!(jobs(&pool, "failed"), 4);
    assert_eq!(pool.shared.metrics.panics.get(), 4);
}

#[tokio::test]
async fn it_stalls_only_when_it_has_work() {
    let pool = pool(1);
    sleep(Duration::from_millis(2));
    assert_eq!(pool.stalled(Duration::ZERO), None, "it has nothing to do");
    let (held, work) = stuck();
    let mut runs = Box::pin(pool.run(LARGE, Instant::now() + MINUTE, work));
    assert!((&mut runs).now_or_never().is_none());
    assert_eq!(pool.stalled(MINUTE), None);
    until(|| pool.stalled(Duration::from_millis(1)).is_some());
    drop(held);
    assert_eq!(runs.await, Ok(()));
    until(|| pool.usage() == (0, 0));
    assert_eq!(pool.stalled(Duration::ZERO), None);
}

#[tokio::test]
async fn what_is_queued_is_done_although_the_pool_is_dropped() {
    let pool = pool(1);
    let deadline = Instant::now() + MINUTE;
    let (held, work) = stuck();
    let (done, was_done) = channel();
    let runs = pool.push(LARGE, deadline, Box::new(work)).expect("room");
    until(|| pool.usage() == (0, 1));
    let waits =
        pool.push(LARGE, deadline, Box::new(move |_| done.send(()).expect("a receiver"))).expect("room");
    drop(pool);
    drop(held);
    was_done.recv().expect("it is done");
    drop((runs, waits));
}
