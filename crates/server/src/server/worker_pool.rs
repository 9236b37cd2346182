//! A few threads for work that takes too long for the threads that read and write sockets, and a queue before
//! them that holds no more than can be done in time.
//!
//! ```text
//! run ─▶ queue: small ─▶ any thread
//!               large ─▶ any thread but the reserved one
//! ```
//!
//! Threads take what has waited longest, small or large. One thread more than was asked for takes small work
//! only, so that it does not wait behind large work, however much there is of that.
//!
//! Who waits for work holds a [`Ticket`]. When that is dropped, because the deadline has passed or the caller
//! has gone, the work leaves the queue; if it has begun, its flag is set, which long work reads from time to
//! time. Threads start when they are first needed and outlive panics.
//!
//! Where processors are short, the threads that read and write sockets come first: they refuse what the pool
//! cannot do, which is of no use when it comes too late.

mod queue;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::server::metrics::Metrics;
use crate::server::metrics::labels::JobOutcome;
use crate::server::worker_pool::queue::{Job, Lane, Queue, Seat};

pub(super) use crate::server::worker_pool::queue::SMALL_BYTES;

/// By how much the threads of the pool give way to those of the runtime, which have 0: Linux gives a thread with
/// 5 a third of the time of one with 0, and with 2 two thirds. Source: sched(7), "The nice value and group
/// scheduling".
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// The same for the thread that takes small work only.
#[cfg(target_os = "linux")]
const NICE_RESERVED: i32 = 2;

/// What a thread runs; it gets the flag that says that nobody waits for it any more.
type Work = Box<dyn FnOnce(&AtomicBool) + Send>;

/// A pool of threads.
#[derive(Debug)]
pub(super) struct WorkerPool {
    shared: Arc<Shared>,
}

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunError {
    /// It would have had to wait for too long.
    Full,
    /// Its deadline passed before it had begun.
    Late,
    /// It panicked.
    Panicked,
}

struct Shared {
    state: Mutex<State>,
    /// What sleeping threads of each kind wait for.
    wake_general: Condvar,
    wake_reserved: Condvar,
    metrics: Arc<Metrics>,
}

struct State {
    queue: Queue<Work>,
    general: SeatState,
    reserved: SeatState,
    /// When work was last finished, or came to a pool that had none.
    progress: Instant,
    closed: bool,
}

/// The threads of one kind.
#[derive(Debug, Default)]
struct SeatState {
    started: usize,
    sleeping: usize,
    /// How many of those that slept have been told to get up and have not yet.
    called: usize,
}

/// A place in the queue or on a thread; dropping it cancels the work.
#[derive(Debug)]
struct Ticket {
    shared: Arc<Shared>,
    lane: Lane,
    number: u64,
    cancelled: Arc<AtomicBool>,
    done: bool,
}

impl WorkerPool {
    /// A pool of `workers` threads, and one more for small work, whose queue holds at most `capacity` pieces
    /// of work.
    pub(super) fn new(workers: usize, capacity: usize, metrics: Arc<Metrics>) -> Self {
        let state = State {
            queue: Queue::new(workers.max(1), capacity),
            general: SeatState::default(),
            reserved: SeatState::default(),
            progress: Instant::now(),
            closed: false,
        };
        let (wake_general, wake_reserved) = (Condvar::new(), Condvar::new());
        let shared = Shared { state: Mutex::new(state), wake_general, wake_reserved, metrics };
        Self { shared: Arc::new(shared) }
    }

    /// Whether work on so many bytes would be taken now.
    pub(super) fn has_room(&self, bytes: usize, deadline: Instant) -> bool {
        self.shared.lock().queue.has_room(Lane::of(bytes), Instant::now(), deadline)
    }

    /// Has a thread do work on so many bytes, and waits for it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        deadline: Instant,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let (sender, receiver) = oneshot::channel();
        let work = Box::new(move |cancelled: &AtomicBool| drop(sender.send(work(cancelled))));
        let mut ticket = self.push(bytes, deadline, work)?;
        let late = || if Instant::now() >= deadline { RunError::Late } else { RunError::Panicked };
        let result = receiver.await.map_err(|_| late());
        ticket.done = true;
        result
    }

    fn push(&self, bytes: usize, deadline: Instant, work: Work) -> Result<Ticket, RunError> {
        let (lane, now) = (Lane::of(bytes), Instant::now());
        let mut state = self.shared.lock();
        if !state.queue.has_room(lane, now, deadline) {
            return Err(RunError::Full);
        }
        if state.queue.is_idle() {
            state.progress = now;
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let number = state.queue.push(lane, bytes, now, deadline, Arc::clone(&cancelled), work);
        let ticket = Ticket { shared: Arc::clone(&self.shared), lane, number, cancelled, done: false };
        if !self.shared.call_thread(&mut state, lane) {
            // No thread at all: the system gives none. The ticket takes the work back.
            drop(state);
            return Err(RunError::Full);
        }
        Ok(ticket)
    }

    /// How many pieces of work wait, and how many are being done.
    pub(super) fn usage(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.queue.waiting(), state.queue.running())
    }

    /// For how long nothing was finished although there is work, if it is longer than `limit`.
    pub(super) fn stalled(&self, limit: Duration) -> Option<Duration> {
        let state = self.shared.lock();
        let since = state.progress.elapsed();
        (!state.queue.is_idle() && since > limit).then_some(since)
    }
}

impl Drop for WorkerPool {
    /// Threads end when the queue is empty.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake_general.notify_all();
        self.shared.wake_reserved.notify_all();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.cancelled.store(true, Ordering::Relaxed);
        let removed = self.shared.lock().queue.remove(self.lane, self.number);
        if removed.is_some() {
            self.shared.metrics.count_jobs(JobOutcome::Dropped, 1);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a thread for work of this lane, or starts one. When all are busy the next that is free takes it.
    /// False when there is no thread and none can be started.
    fn call_thread(self: &Arc<Self>, state: &mut State, lane: Lane) -> bool {
        let seats: &[Seat] = match lane {
            Lane::Small => &[Seat::Reserved, Seat::General],
            Lane::Large => &[Seat::General],
        };
        for seat in seats {
            let allowed = state.queue.seats(*seat);
            let threads = state.threads(*seat);
            if threads.sleeping > 0 {
                threads.sleeping -= 1;
                threads.called += 1;
                self.wake(*seat).notify_one();
                return true;
            }
            if threads.started < allowed && self.start(*seat, threads.started).is_ok() {
                threads.started += 1;
                return true;
            }
        }
        seats.iter().any(|seat| state.threads(*seat).started > 0)
    }

    const fn wake(&self, seat: Seat) -> &Condvar {
        match seat {
            Seat::General => &self.wake_general,
            Seat::Reserved => &self.wake_reserved,
        }
    }

    fn start(self: &Arc<Self>, seat: Seat, number: usize) -> io::Result<()> {
        let shared = Arc::clone(self);
        let name = match seat {
            Seat::General => format!("decide-{number}"),
            Seat::Reserved => "decide-small".to_owned(),
        };
        thread::Builder::new().name(name).spawn(move || shared.serve(seat)).map(drop)
    }

    /// The life of a thread.
    fn serve(&self, seat: Seat) {
        give_way(seat);
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let (job, dropped) = state.queue.take(seat, now);
            if dropped > 0 {
                state.progress = now;
                self.metrics.count_jobs(JobOutcome::Dropped, dropped);
            }
            if let Some(job) = job {
                drop(state);
                let (lane, weight) = (job.lane, job.weight);
                self.metrics.count_jobs(run(job), 1);
                state = self.lock();
                state.progress = Instant::now();
                state.queue.finish(seat, lane, weight, now.elapsed());
            } else if state.closed {
                return;
            } else {
                state = self.sleep(state, seat);
            }
        }
    }

    fn sleep<'s>(&self, mut state: MutexGuard<'s, State>, seat: Seat) -> MutexGuard<'s, State> {
        state.threads(seat).sleeping += 1;
        let waiting = |state: &mut State| state.threads(seat).called == 0 && !state.closed;
        state = self.wake(seat).wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        let threads = state.threads(seat);
        threads.called = threads.called.saturating_sub(1);
        state
    }
}

impl State {
    const fn threads(&mut self, seat: Seat) -> &mut SeatState {
        match seat {
            Seat::General => &mut self.general,
            Seat::Reserved => &mut self.reserved,
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// Lowers the priority of this thread, which needs no right. Linux has a nice value for each thread; elsewhere
/// it would be that of the process, and stays as it is.
#[cfg(target_os = "linux")]
fn give_way(seat: Seat) {
    let nice = match seat {
        Seat::General => NICE,
        Seat::Reserved => NICE_RESERVED,
    };
    if let Err(error) = rustix::process::nice(nice) {
        tracing::debug!(%error, "a thread of the pool keeps its priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn give_way(_seat: Seat) {}

/// Does the work; what it panics with, the panic hook has logged, and who waits is told by the sender that is
/// dropped.
fn run(job: Job<Work>) -> JobOutcome {
    let Job { work, cancelled, .. } = job;
    let finished = catch_unwind(AssertUnwindSafe(|| work(&cancelled)));
    match finished {
        Err(_) => JobOutcome::Panicked,
        Ok(()) if cancelled.load(Ordering::Relaxed) => JobOutcome::Cancelled,
        Ok(()) => JobOutcome::Done,
    }
}
