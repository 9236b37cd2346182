//! The socket under TLS. It notes the phases of its connection. When it is closed while its peer does not read an answer,
//! the kernel must not keep the rest of the answer and try to send it for minutes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::connection_limiter::{Activity, ConnectionPhase};

/// A TCP stream that is reset rather than closed when an answer is still being written.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    activity: Arc<Activity>,
}

impl Socket {
    /// The socket of a connection.
    pub(super) fn new(stream: TcpStream, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }

    /// Waits for the first byte; whether one came before the end. It looks at the byte, because a socket can be
    /// reported as readable without one.
    pub(super) async fn has_first_byte(&self) -> bool {
        self.stream.peek(&mut [0]).await.is_ok_and(|bytes| bytes > 0)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.activity.phase().0 == ConnectionPhase::Writing {
            // It fails only for a socket that has nothing left to send.
            let _gone_already = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
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
        poll
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        if let Poll::Ready(Ok(())) = poll {
            self.activity.flushed();
        }
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
