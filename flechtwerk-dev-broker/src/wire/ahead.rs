//! Reading ahead: while a request waits, only reading tells whether its client is still there.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// A buffered reader that can be asked whether its other side is still there.
pub(crate) struct ReadAhead<R> {
    from: R,
    /// What was read and is still to be taken.
    buffer: BytesMut,
    capacity: usize,
}

impl<R: AsyncRead + Unpin> ReadAhead<R> {
    pub(crate) fn new(from: R, capacity: usize) -> ReadAhead<R> {
        ReadAhead { from, buffer: BytesMut::new(), capacity }
    }

    /// Returns when the other side has closed the connection. What it sends until then is kept for later; behind more than a
    /// buffer of it nothing is seen. May be given up at any time.
    pub(crate) async fn closed(&mut self) {
        loop {
            let room = self.capacity.saturating_sub(self.buffer.len());
            if room == 0 {
                return std::future::pending().await;
            }
            match self.from.read_buf(&mut (&mut self.buffer).limit(room)).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ReadAhead<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.buffer.is_empty() {
            if into.remaining() >= this.capacity {
                return Pin::new(&mut this.from).poll_read(task, into);
            }
            this.buffer.resize(this.capacity, 0);
            let mut free = ReadBuf::new(&mut this.buffer);
            let read = Pin::new(&mut this.from).poll_read(task, &mut free);
            let have = free.filled().len();
            this.buffer.truncate(have);
            if read.is_pending() {
                // Thousands of connections may stand idle, none with a buffer.
                this.buffer = BytesMut::new();
            }
            ready!(read)?;
        }
        let taken = this.buffer.len().min(into.remaining());
        into.put_slice(this.buffer.get(..taken).unwrap_or_default());
        this.buffer.advance(taken);
        Poll::Ready(Ok(()))
    }
}
