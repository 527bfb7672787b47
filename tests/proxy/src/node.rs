//! The proxy's own addresses: one for each node, made when an answer first names the node, and kept as long as the proxy lives.
//!
//! Which node listens behind a bootstrap address is known from the first answer that names the address. A node that comes
//! back at another one keeps its listener. A node that is taken down keeps its port too, or it might not get it back: new
//! connections are closed at once.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many nodes no cluster of a test has: an answer that names more is broken.
const MOST_NODES: usize = 100;

/// A node, and where clients find it.
#[derive(Debug)]
pub(crate) struct Node {
    /// Where the proxy listens for it.
    pub(crate) address: SocketAddr,
    down: AtomicBool,
    refused: AtomicU64,
    place: Mutex<Place>,
}

#[derive(Debug, Clone)]
struct Place {
    /// None until an answer tells.
    id: Option<i32>,
    /// Where the broker listens: `host:port`.
    broker: String,
}

impl Node {
    /// Listens on a free port.
    fn listen(id: Option<i32>, broker: String) -> io::Result<(Arc<Node>, TcpListener)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let node = Node {
            address: listener.local_addr()?,
            down: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            place: Mutex::new(Place { id, broker }),
        };
        Ok((Arc::new(node), listener))
    }

    /// Its id, once it is known.
    pub(crate) fn id(&self) -> Option<i32> {
        self.place().id
    }

    /// Where its broker listens.
    pub(crate) fn broker(&self) -> String {
        self.place().broker.clone()
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// Counts a connection that is closed because the node is down.
    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All nodes that are known.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    all: Mutex<Vec<Arc<Node>>>,
}

impl Nodes {
    /// One behind a bootstrap address.
    pub(crate) fn add(&self, broker: &str) -> io::Result<(Arc<Node>, TcpListener)> {
        let (node, listener) = Node::listen(None, broker.to_owned())?;
        self.lock().push(Arc::clone(&node));
        Ok((node, listener))
    }

    pub(crate) fn all(&self) -> Vec<Arc<Node>> {
        self.lock().clone()
    }

    pub(crate) fn find(&self, id: i32) -> Option<Arc<Node>> {
        self.lock().iter().find(|node| node.id() == Some(id)).cloned()
    }

    /// Where clients are to go for a node that an answer names; and its listener, if it is new.
    pub(crate) fn learn(
        &self,
        id: i32,
        host: &str,
        port: u16,
    ) -> io::Result<(Arc<Node>, Option<TcpListener>)> {
        let broker = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut all = self.lock();
        if let Some(node) = all.iter().find(|node| node.id() == Some(id)) {
            let mut place = node.place();
            if place.broker != broker {
                place.broker = broker;
            }
            drop(place);
            return Ok((Arc::clone(node), None));
        }
        let nameless = |node: &&Arc<Node>| node.id().is_none() && same_address(&node.broker(), &broker);
        if let Some(node) = all.iter().find(nameless) {
            tracing::debug!(node = id, %broker, "a bootstrap address is this node's");
            *node.place() = Place { id: Some(id), broker };
            return Ok((Arc::clone(node), None));
        }
        if all.len() >= MOST_NODES {
            return Err(io::Error::other(format!("an answer names node {id}, beyond {MOST_NODES} others")));
        }
        let (node, listener) = Node::listen(Some(id), broker)?;
        all.push(Arc::clone(&node));
        Ok((node, Some(listener)))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Node>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two names lead to one place.
fn same_address(one: &str, other: &str) -> bool {
    // What can't be resolved leads nowhere.
    let resolved = |name: &str| name.to_socket_addrs().map(Vec::from_iter).unwrap_or_default();
    one == other || resolved(one).iter().any(|address| resolved(other).contains(address))
}
