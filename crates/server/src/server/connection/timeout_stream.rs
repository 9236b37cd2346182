//! The stream under HTTP, with a timeout for each phase of a connection: between requests it may be idle
//! for long, in the middle of the head of a request it may not, nor in the middle of an answer.
//!
//! An answer holds memory until its peer has read it. So it has a timeout as a whole, which one byte a second
//! does not prolong, and less than that when others wait for memory and it is read slowly.
//!
//! hyper's header timer starts when the connection does, so it would also close one that is just idle, at
//! the very moment when the next review may be on its way. It stays off.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::server::concurrency_limiter::ConcurrencyLimiter;
use crate::server::connection_limiter::{Activity, ConnectionPhase};
use crate::server::options::Timers;

/// A stream whose reads and writes fail with `TimedOut` when the peer takes too long.
pub(super) struct TimeoutStream<S> {
    stream: S,
    activity: Arc<Activity>,
    timers: Arc<Timers>,
    timer: Pin<Box<Sleep>>,
    /// What says that others wait for memory; `None` where answers hold none that is limited.
    limiter: Option<Arc<ConcurrencyLimiter>>,
    /// Ready when others wait and the answer may count as slow; made for answers that cannot be written at once.
    reclaim: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// How much of the answer was written.
    written: usize,
}

impl<S> TimeoutStream<S> {
    /// Puts timeouts on `stream`.
    pub(super) fn new(
        stream: S,
        activity: Arc<Activity>,
        timers: Arc<Timers>,
        limiter: Option<Arc<ConcurrencyLimiter>>,
    ) -> Self {
        let timer = Box::pin(sleep_until(Instant::now() + timers.idle));
        Self { stream, activity, timers, timer, limiter, reclaim: None, written: 0 }
    }

    /// The stream without timeouts.
    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    /// Ready when the peer has taken too long; called when the stream itself is pending.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let (phase, since) = self.activity.phase();
        let end = match phase {
            ConnectionPhase::Idle => since + self.timers.idle,
            ConnectionPhase::Head => since + self.timers.head,
            ConnectionPhase::Busy => return Poll::Pending,
            ConnectionPhase::Writing if self.poll_reclaim(cx, since).is_ready() => {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            ConnectionPhase::Writing => since + self.timers.write,
        };
        // Most polls find the timer as it should be; resetting one costs a lock.
        if self.timer.deadline() != end {
            self.timer.as_mut().reset(end);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    /// Ready when the answer that is being written since then is read slowly while others wait for its memory.
    fn poll_reclaim(&mut self, cx: &mut Context<'_>, since: Instant) -> Poll<()> {
        let Some(limiter) = &self.limiter else { return Poll::Pending };
        loop {
            let reclaim = self.reclaim.get_or_insert_with(|| {
                let limiter = Arc::clone(limiter);
                Box::pin(async move { limiter.reclaim_requested(since).await })
            });
            ready!(reclaim.as_mut().poll(cx));
            self.reclaim = None;
            if limiter.is_slow(self.written, since) {
                return Poll::Ready(());
            }
        }
    }

    /// Counts what was written.
    fn note_written(&mut self, poll: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(count)) = poll {
            self.written += count;
        }
    }

    fn or_timeout<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_pending() { self.poll_timeout(cx).map(Err) } else { poll }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.bytes_received();
        }
        self.or_timeout(cx, poll)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note_written(&poll);
        self.or_timeout(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.note_written(&poll);
        self.or_timeout(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        if let Poll::Ready(Ok(())) = poll {
            self.activity.flushed();
            (self.reclaim, self.written) = (None, 0);
        }
        self.or_timeout(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.or_timeout(cx, poll)
    }
}
