//! An open-loop load: a call begins when it is due, not when the one before it has ended, and its
//! time counts from when it was due. So a server that stalls cannot hide it by slowing its callers.
//!
//! Bounded in calls at a time. What could not even be begun within [`MAX_LATENESS`] is counted as unsent:
//! that is the machine's failure or the plan's, and never mixed with the server's.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
    time::{Instant, MissedTickBehavior, interval},
};

/// How late a call may begin.
const MAX_LATENESS: Duration = Duration::from_secs(5);

/// How much is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Calls that become due each second.
    pub(crate) per_second: u32,
    /// The most calls at a time.
    pub(crate) at_once: usize,
}

/// Why a call was no good.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// A few words by which failures are counted.
    pub(crate) class: &'static str,
    /// The message.
    pub(crate) text: String,
}

impl Failure {
    /// A failure of this class.
    pub(crate) fn new(class: &'static str, text: impl fmt::Display) -> Self {
        Self { class, text: text.to_string() }
    }
}

/// A load that goes on until it is stopped.
pub(crate) struct Load {
    runtime: Handle,
    stopped: Arc<AtomicBool>,
    tally: Arc<Mutex<Tally>>,
    task: JoinHandle<()>,
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// The times of all good calls, in microseconds.
    micros: Vec<u32>,
    failed: BTreeMap<&'static str, (u64, String)>,
    unsent: u64,
}

impl Load {
    /// Calls `call` with 0, 1, 2 … at this pace.
    pub(crate) fn start<F, Fut>(runtime: &Handle, pace: Pace, call: F) -> Self
    where
        F: Fn(u64) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let (stopped, tally) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Tally>>::default());
        let task = runtime.spawn(drive(pace, Arc::clone(&stopped), Arc::clone(&tally), call));
        Self { runtime: runtime.clone(), stopped, tally, task }
    }

    /// What happened since the last time.
    pub(crate) fn take(&self) -> Tally {
        std::mem::take(&mut *lock(&self.tally))
    }

    /// Begins nothing more, waits for what is on its way, and tells what happened since the last
    /// [`Load::take`].
    pub(crate) fn stop(self) -> Result<Tally> {
        self.stopped.store(true, Ordering::Relaxed);
        self.runtime.block_on(self.task)?;
        Ok(std::mem::take(&mut *lock(&self.tally)))
    }
}

async fn drive<F, Fut>(pace: Pace, stopped: Arc<AtomicBool>, tally: Arc<Mutex<Tally>>, call: F)
where
    F: Fn(u64) -> Fut,
    Fut: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let semaphore = Arc::new(Semaphore::new(pace.at_once));
    let mut due = interval(Duration::from_secs(1) / pace.per_second.max(1));
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut calls = JoinSet::new();
    let mut number = 0;
    while !stopped.load(Ordering::Relaxed) {
        let due = due.tick().await;
        while calls.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&semaphore).acquire_owned().await else { return };
        if due.elapsed() > MAX_LATENESS {
            lock(&tally).unsent += 1;
            continue;
        }
        let (answer, tally) = (call(number), Arc::clone(&tally));
        number += 1;
        calls.spawn(async move {
            let answer = answer.await;
            lock(&tally).note(answer, due);
            drop(permit);
        });
    }
    while calls.join_next().await.is_some() {}
}

impl Tally {
    fn note(&mut self, answer: Result<(), Failure>, due: Instant) {
        match answer {
            Ok(()) => self.micros.push(u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX)),
            Err(failure) => {
                self.failed.entry(failure.class).or_insert_with(|| (0, failure.text)).0 += 1;
            }
        }
    }

    /// Adds what another one holds.
    pub(crate) fn add(&mut self, other: Self) {
        self.micros.extend(other.micros);
        self.unsent += other.unsent;
        for (class, (count, text)) in other.failed {
            self.failed.entry(class).or_insert_with(|| (0, text)).0 += count;
        }
    }

    /// How many calls were good.
    pub(crate) fn good(&self) -> usize {
        self.micros.len()
    }

    /// How many calls failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.values().map(|(count, _)| count).sum()
    }

    /// How many calls have ended, well or not.
    pub(crate) fn ended(&self) -> u64 {
        self.failed() + self.micros.len() as u64
    }

    /// How many calls of a class failed.
    pub(crate) fn failed_as(&self, class: &str) -> u64 {
        self.failed.get(class).map_or(0, |(count, _)| *count)
    }

    /// How many calls could not be begun in time.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// The time within which this share of the good calls was answered; 0.5 is the median.
    pub(crate) fn within(&self, share: f64) -> Duration {
        let mut micros = self.micros.clone();
        micros.sort_unstable();
        let last = micros.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "an index into a list, from a share between 0 and 1"
        )]
        let index = (last as f64 * share).round() as usize;
        Duration::from_micros(micros.get(index.min(last)).copied().unwrap_or_default().into())
    }

    /// Fails unless something was called and everything was good.
    pub(crate) fn all_good(&self) -> Result<()> {
        ensure!(self.good() > 0, "nothing was called");
        ensure!(self.failed() == 0, "{self}");
        Ok(())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (half, most) = (self.within(0.5), self.within(0.99));
        write!(f, "{} good, {} failed, {} unsent", self.good(), self.failed(), self.unsent)?;
        write!(f, "; p50 {half:.1?}, p99 {most:.1?}, slowest {:.1?}", self.within(1.0))?;
        for (class, (count, text)) in &self.failed {
            write!(f, "\n  {count} × {class}, the first: {text}")?;
        }
        Ok(())
    }
}

/// A panic with the lock leaves whole numbers behind.
fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
