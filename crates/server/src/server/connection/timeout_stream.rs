//! The stream under HTTP, with one timeout for each phase of a connection. Between requests it may be idle for long, but
//! not while it receives a head or writes an answer. The router has the timeouts of the body and of the decision.
//!
//! An answer holds memory until its peer has read it, so its timeout is for the whole answer: one byte a second does
//! not prolong it.
//!
//! hyper's own header timer stays off. It starts with the connection, so it would also close an idle one at the moment
//! when the next review may be on its way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::server::connection_limiter::{Activity, ConnectionPhase};
use crate::server::options::Timers;

/// A stream whose reads and writes fail with `TimedOut` when the peer takes too long.
pub(super) struct TimeoutStream<S> {
    stream: S,
    activity: Arc<Activity>,
    timers: Arc<Timers>,
    timer: Pin<Box<Sleep>>,
}

impl<S> TimeoutStream<S> {
    /// Puts timeouts on `stream`.
    pub(super) fn new(stream: S, activity: Arc<Activity>, timers: Arc<Timers>) -> Self {
        let timer = Box::pin(sleep_until(Instant::now() + timers.idle));
        Self { stream, activity, timers, timer }
    }

    /// The stream without timeouts.
    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    /// Turns a pending poll into an error when the peer has taken too long.
    fn or_timeout<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            return poll;
        }
        let (phase, since) = self.activity.phase();
        let end = match phase {
            ConnectionPhase::Idle => since + self.timers.idle,
            ConnectionPhase::Head => since + self.timers.head,
            ConnectionPhase::Writing => since + self.timers.write,
            ConnectionPhase::Body | ConnectionPhase::Answering => return Poll::Pending,
        };
        // Most polls find the timer at its time already; resetting it takes a lock.
        if self.timer.deadline() != end {
            self.timer.as_mut().reset(end);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
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
        self.or_timeout(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.or_timeout(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        if let Poll::Ready(Ok(())) = poll {
            self.activity.flushed();
        }
        self.or_timeout(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.or_timeout(cx, poll)
    }
}
