//! The stream under HTTP, with the timers that HTTP needs and hyper's own does not give: a
//! connection between requests may wait long, one in the middle of a head may not.
//!
//! hyper's header timer starts when the connection does, so it would also close one that is just
//! idle, at the very moment when the next review may be on its way. It stays off.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::server::connection::seats::{Activity, Phase};
use crate::server::options::Timers;

/// A stream that fails when its peer takes too long.
#[derive(Debug)]
pub(super) struct Guarded<S> {
    stream: S,
    activity: Arc<Activity>,
    timers: Arc<Timers>,
    alarm: Pin<Box<Sleep>>,
}

impl<S> Guarded<S> {
    /// Watches over `stream`.
    pub(super) fn new(stream: S, activity: Arc<Activity>, timers: Arc<Timers>) -> Self {
        let alarm = Box::pin(sleep_until(Instant::now() + timers.idle));
        Self { stream, activity, timers, alarm }
    }

    /// The stream alone.
    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    /// Ready when the peer has taken too long; called when there is nothing to do but wait.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let (phase, since) = self.activity.phase();
        let end = match phase {
            Phase::Idle => since + self.timers.idle,
            Phase::Head => since + self.timers.head,
            Phase::Busy => return Poll::Pending,
        };
        if self.alarm.deadline() != end {
            self.alarm.as_mut().reset(end);
        }
        ready!(self.alarm.as_mut().poll(cx));
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    fn or_late<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_pending() { self.poll_late(cx).map(Err) } else { poll }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.received();
        }
        self.or_late(cx, poll)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.or_late(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.or_late(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.or_late(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.or_late(cx, poll)
    }
}
