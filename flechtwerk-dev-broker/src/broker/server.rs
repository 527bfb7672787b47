//! Accepting connections and serving each in a task of its own, one request after the other, as a Kafka broker does.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::watch;
use tokio::time::timeout;

use super::shared::Shared;
use super::state::chain;
use crate::requests::{self, Peer, Reply};
use crate::wire::{FrameError, FrameReader, ReadAhead, STALLED};

const READ_BUFFER: usize = 16 * 1024;

/// Serves until the broker is stopped.
pub(super) async fn serve(shared: Arc<Shared>, listeners: Vec<TcpListener>) {
    let open = Arc::new(AtomicUsize::new(0));
    for (id, listener) in (1..).zip(listeners) {
        tokio::spawn(accept(Arc::clone(&shared), Arc::clone(&open), id, Port(listener)));
    }
    tokio::select! {
        () = shared.stopped() => {}
        () = shared.tick() => {}
    }
}

async fn accept(shared: Arc<Shared>, open: Arc<AtomicUsize>, node: i32, port: Port) {
    let listener = match port.0.try_clone().and_then(tokio::net::TcpListener::from_std) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(node, %error, "the listener can't be used");
            return;
        }
    };
    let (mut full, mut failing) = (Seldom::default(), Seldom::default());
    loop {
        match listener.accept().await {
            // A node that is down keeps its port, or it might not get it back.
            Ok((stream, _)) if !shared.is_up(node) => drop(stream),
            Ok((stream, _)) if open.load(Ordering::Relaxed) >= shared.max_connections => {
                if full.is_due() {
                    let limit = shared.max_connections;
                    tracing::warn!(node, limit, "too many connections are open: further ones are closed");
                }
                drop(stream);
            }
            Ok((stream, peer)) => {
                let shared = Arc::clone(&shared);
                let open = Open::new(&open);
                tokio::spawn(async move {
                    let _open = open;
                    tokio::select! {
                        () = shared.down(node) => {}
                        () = connection(&shared, node, stream, peer) => {}
                    }
                });
            }
            Err(error) => {
                if failing.is_due() {
                    tracing::warn!(
                        node,
                        %error,
                        "no connection can be accepted: is the limit of open files (ulimit -n) too low?"
                    );
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// What is said at most once a minute, though clients try again and again.
#[derive(Default)]
struct Seldom(Option<Instant>);

impl Seldom {
    fn is_due(&mut self) -> bool {
        let due = self.0.is_none_or(|last| last.elapsed() >= Duration::from_secs(60));
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }
}

/// A listener whose port is free as soon as this is dropped.
struct Port(TcpListener);

impl Drop for Port {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started holds a copy of the descriptor, and whoever wants
        // the port at once finds it taken.
        if let Err(error) = SockRef::from(&self.0).shutdown(Shutdown::Both) {
            tracing::debug!(%error, "a listener could not be shut down");
        }
    }
}

/// Counts one open connection.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Open {
        count.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Writes an answer. A client that doesn't read it is waited for, as long as nobody else needs the memory.
async fn send(shared: &Shared, write: &mut OwnedWriteHalf, mut answer: Bytes) -> io::Result<()> {
    while !answer.is_empty() {
        match timeout(STALLED, write.write(&answer)).await {
            Ok(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(Ok(count)) => answer.advance(count),
            Ok(Err(error)) => return Err(error),
            Err(_) if shared.frames.is_tight() => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, FrameError::Stalled));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

async fn connection(shared: &Arc<Shared>, node: i32, stream: TcpStream, peer: SocketAddr) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "answers may come late");
    }
    let (read, mut write) = stream.into_split();
    let read = ReadAhead::new(read, READ_BUFFER);
    let mut frames = FrameReader::new(read, shared.max_frame, shared.frames.clone());
    let (gone, is_gone) = watch::channel(false);
    loop {
        let frame = match frames.next().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            // Clients that end without a word are nothing to warn of.
            Err(error @ FrameError::Io(_)) => {
                tracing::debug!(node, %peer, error = %chain(&error), "connection lost");
                return;
            }
            Err(error) => {
                tracing::warn!(node, %peer, error = %chain(&error), "connection closed");
                return;
            }
        };
        let answer = requests::answer(shared, node, Peer { address: peer, gone: is_gone.clone() }, frame);
        let mut answer = pin!(answer);
        let answered = tokio::select! {
            biased;
            answered = &mut answer => answered,
            () = frames.closed() => {
                // What only waits gives up; what has an effect has it all the same.
                gone.send_replace(true);
                answer.await
            }
        };
        match answered {
            // A client that doesn't read keeps its answer in memory, and with it its share.
            Ok(Reply::Frame(answer, _share)) => {
                if let Err(error) = send(shared, &mut write, answer).await {
                    tracing::debug!(node, %peer, %error, "the client is gone");
                    return;
                }
            }
            Ok(Reply::Nothing) => {}
            Ok(Reply::Close(why)) => {
                tracing::info!(node, %peer, why, "connection closed");
                return;
            }
            Err(error) => {
                tracing::warn!(node, %peer, %error, "connection closed");
                return;
            }
        }
    }
}
