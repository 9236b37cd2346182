//! Many calls, all from one thread: as many as are answered, or at fixed times.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, yield_now};

use crate::support::https::{Caller, Connection, post};

/// How many connections there are at a time, as of an apiserver under load.
pub(crate) const CONNECTIONS: usize = 25;

/// The longest that an answer may take, in nanoseconds, as the histograms count.
const LONGEST: u64 = 60_000_000_000;

/// What `openssl s_server` answers.
pub(crate) fn plain_request() -> Arc<[u8]> {
    Arc::from(&b"GET / HTTP/1.0\r\n\r\n"[..])
}

/// A POST of this review, as bytes.
pub(crate) fn request(review: &str) -> Arc<[u8]> {
    post("/mutate?timeout=10s", review).into()
}

impl Caller {
    /// As many connections as there are at a time.
    pub(crate) async fn connect_all(&self) -> Result<Vec<Connection>> {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(self.connect().await?);
        }
        Ok(connections)
    }

    /// Each connection sends when its last call is answered; what came of them.
    pub(crate) async fn closed_loop(&self, request: &Arc<[u8]>, lasting: Duration) -> Result<Tally> {
        let (start, mut tasks) = (Instant::now(), JoinSet::new());
        for mut connection in self.connect_all().await? {
            let (caller, request) = (self.clone(), Arc::clone(request));
            tasks.spawn(async move {
                let mut tally = Tally::default();
                while start.elapsed() < lasting {
                    connection = connection.usable(&caller).await?;
                    tally.note(connection.call(&request).await?.is_some());
                }
                Ok::<_, anyhow::Error>(tally)
            });
        }
        sum(tasks, start).await
    }

    /// Calls at fixed times, whether those before them are answered or not. Times count from when a call was due, so a
    /// server that stalls has all the calls that waited for it (no coordinated omission). How many were refused comes
    /// with them.
    pub(crate) async fn open_loop(
        &self,
        request: &Arc<[u8]>,
        per_second: u32,
        lasting: Duration,
    ) -> Result<(Histogram<u64>, u64)> {
        let pause = Duration::from_secs(1) / per_second;
        let (start, end) = (Instant::now(), Instant::now() + lasting);
        // The next time at which a call is due. Callers spin until then, because a timer of tokio can be late by a
        // millisecond.
        let due = Arc::new(Mutex::new(start));
        let mut tasks = JoinSet::new();
        for mut connection in self.connect_all().await? {
            let (caller, request, due) = (self.clone(), Arc::clone(request), Arc::clone(&due));
            tasks.spawn(async move {
                let (mut times, mut refused) = (histogram()?, 0);
                loop {
                    let mut next = due.lock().await;
                    let mine = *next;
                    if mine >= end {
                        return Ok::<_, anyhow::Error>((times, refused));
                    }
                    *next += pause;
                    while Instant::now() < mine {
                        yield_now().await;
                    }
                    drop(next);
                    connection = connection.usable(&caller).await?;
                    refused += u64::from(connection.call(&request).await?.is_none());
                    times.saturating_record(u64::try_from(mine.elapsed().as_nanos())?);
                }
            });
        }
        let (mut all, mut all_refused) = (histogram()?, 0);
        while let Some(done) = tasks.join_next().await {
            let (times, refused) = done??;
            all.add(times)?;
            all_refused += refused;
        }
        Ok((all, all_refused))
    }

    /// A connection for each call, as many at a time as there are connections else; what came of them.
    pub(crate) async fn handshakes(&self, request: &Arc<[u8]>, lasting: Duration) -> Result<Tally> {
        let (start, mut tasks) = (Instant::now(), JoinSet::new());
        for _ in 0..CONNECTIONS {
            let (caller, request) = (self.clone(), Arc::clone(request));
            tasks.spawn(async move {
                let mut tally = Tally::default();
                while start.elapsed() < lasting {
                    let answered = async { caller.connect().await?.call(&request).await };
                    // A connection that is closed before it is one is refused too.
                    tally.note(matches!(answered.await, Ok(Some(_))));
                }
                Ok::<_, anyhow::Error>(tally)
            });
        }
        sum(tasks, start).await
    }
}

/// What came of calls.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) answered: u64,
    pub(crate) refused: u64,
    pub(crate) took: Duration,
}

impl Tally {
    fn note(&mut self, answered: bool) {
        *(if answered { &mut self.answered } else { &mut self.refused }) += 1;
    }
}

async fn sum(mut tasks: JoinSet<Result<Tally>>, start: Instant) -> Result<Tally> {
    let mut sum = Tally::default();
    while let Some(tally) = tasks.join_next().await {
        let tally = tally??;
        sum.answered += tally.answered;
        sum.refused += tally.refused;
    }
    Ok(Tally { took: start.elapsed(), ..sum })
}

/// For times of up to a minute, with three digits.
pub(crate) fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, LONGEST, 3)?)
}
