//! Calls at fixed times as an apiserver makes them: a call takes the connection that was used last, or a new one when
//! there is none, and after an answer with `Connection: close` its connection is gone.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use crate::load::histogram;
use crate::support::https::{Caller, Connection, REFUSED};

/// The most calls at a time, as many as an apiserver has changes at a time by default.
const AT_ONCE: usize = 200;

/// After which a call is lost: no caller of a webhook waits longer.
const LONGEST_CALL: Duration = Duration::from_secs(30);

/// What an answer has that changes the pod.
const PATCHED: &[u8] = br#""patchType":"JSONPatch""#;

/// Connections to where new ones go.
pub(crate) struct Pool {
    to: Mutex<Caller>,
    idle: Mutex<Vec<Connection>>,
    limit: Arc<Semaphore>,
}

impl Pool {
    /// As many connections as an apiserver keeps.
    pub(crate) async fn full(to: Caller) -> Result<Arc<Self>> {
        let idle = Mutex::new(to.connect_all().await?);
        Ok(Arc::new(Self { to: Mutex::new(to), idle, limit: Arc::new(Semaphore::new(AT_ONCE)) }))
    }

    /// From now on new connections go there.
    pub(crate) fn turn_to(&self, to: Caller) {
        *lock(&self.to) = to;
    }

    /// So many calls a second until it is stopped, none of which may fail; times, which count from when a call was due, and
    /// how many were refused since there was too much to do.
    pub(crate) async fn calls(
        self: &Arc<Self>,
        request: &Arc<[u8]>,
        per_second: u32,
        stopped: &AtomicBool,
    ) -> Result<(Histogram<u64>, u64)> {
        let pause = Duration::from_secs(1) / per_second;
        let (mut due, mut calls) = (Instant::now(), JoinSet::new());
        let (mut times, mut refused) = (histogram()?, 0);
        let mut note = |(took, is_refused)| {
            times.saturating_record(took);
            refused += u64::from(is_refused);
        };
        while !stopped.load(Relaxed) {
            // Awake, since a timer of tokio is late by up to a millisecond.
            yield_now().await;
            while let Some(took) = calls.try_join_next() {
                note(took??);
            }
            if due <= Instant::now() {
                calls.spawn(Arc::clone(self).call(Arc::clone(request), due));
                due += pause;
            }
        }
        while let Some(took) = calls.join_next().await {
            note(took??);
        }
        Ok((times, refused))
    }

    /// One call; the nanoseconds since it was due, and whether it was refused.
    async fn call(self: Arc<Self>, request: Arc<[u8]>, due: Instant) -> Result<(u64, bool)> {
        let _permit = self.limit.acquire().await?;
        let idle = lock(&self.idle).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => {
                let to = lock(&self.to).clone();
                to.connect().await.context("a new connection")?
            }
        };
        let answer = timeout(LONGEST_CALL, connection.exchange(&request)).await.context("no answer")??;
        let is_refused = answer.status == REFUSED;
        ensure!(
            is_refused || answer.status == 200,
            "{}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        // A server without the memory has nothing to change.
        let is_patched = answer.body.windows(PATCHED.len()).any(|part| part == PATCHED);
        ensure!(is_refused || is_patched, "no patch: {}", String::from_utf8_lossy(&answer.body));
        if !answer.closes() {
            lock(&self.idle).push(connection);
        }
        Ok((u64::try_from(due.elapsed().as_nanos())?, is_refused))
    }
}

/// A panic with the lock leaves a whole value behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
