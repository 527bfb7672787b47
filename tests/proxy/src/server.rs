//! What all connections share; accepting them, and asking which nodes there are.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use kafka_protocol::messages::ApiKey;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::fault::Rules;
use crate::frame;
use crate::log::Log;
use crate::node::{Node, Nodes};
use crate::request::{self, Request};
use crate::rewrite::{self, Plan};

/// How long the nodes are asked for before the proxy starts without knowing them.
const ASK: Duration = Duration::from_secs(5);

/// What all connections share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) nodes: Nodes,
    pub(crate) rules: Rules,
    pub(crate) log: Log,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
    numbers: AtomicU64,
    /// API and version of what was passed through because it is too new.
    too_new: Mutex<HashSet<(i16, i16)>>,
    stopped: watch::Sender<bool>,
}

impl Shared {
    /// Ends the proxy.
    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// Closes connections. How many they were.
    pub(crate) fn cut(&self, which: impl Fn(&Connection) -> bool) -> usize {
        let connections = self.connections();
        connections.values().filter(|one| which(one)).map(|one| one.cut()).count()
    }

    /// Where clients find a node that an answer names.
    pub(crate) fn address_of(self: &Arc<Shared>, id: i32, host: &str, port: u16) -> io::Result<SocketAddr> {
        let (node, new) = self.nodes.learn(id, host, port)?;
        let address = node.address;
        if let Some(listener) = new {
            tracing::debug!(node = id, %address, "a node became known");
            tokio::spawn(accept(Arc::clone(self), node, listener));
        }
        Ok(address)
    }

    /// Says once that the addresses in an answer could not be replaced.
    pub(crate) fn say_too_new(&self, request: &Request) {
        let mut said = self.too_new.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert((request.key, request.version)) {
            let api = request::name(request.key);
            tracing::warn!(api, version = request.version, "passed through: its version is too new");
        }
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves until the proxy is stopped. `ready`: the nodes are known as far as they can be.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    listeners: Vec<(Arc<Node>, TcpListener)>,
    ready: mpsc::Sender<()>,
) {
    let mut stopped = shared.stopped.subscribe();
    let mut asking = JoinSet::new();
    for (node, listener) in listeners {
        asking.spawn(ask(Arc::clone(&shared), node.broker()));
        tokio::spawn(accept(Arc::clone(&shared), node, listener));
    }
    let asked = tokio::time::timeout(ASK, async {
        while let Some(answer) = asking.join_next().await {
            match answer {
                Ok(Ok(())) => return,
                Ok(Err(error)) => tracing::debug!(%error, "a bootstrap address does not tell the nodes"),
                Err(error) => tracing::error!(%error, "asking for the nodes failed"),
            }
        }
        tracing::warn!("no bootstrap address tells the nodes: they become known when a client asks");
    });
    if asked.await.is_err() {
        tracing::warn!("the nodes are not known in time: they become known when a client asks");
    }
    drop(asking);
    // Nobody is there to hear it only if the start was given up.
    let _ = ready.send(());
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Asks a broker which nodes there are.
async fn ask(shared: Arc<Shared>, broker: String) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    const VERSION: i16 = 1;
    let mut stream = TcpStream::connect(&broker).await?;
    let client_id = b"flechtwerk-proxy";
    let mut request = vec![0; frame::PREFIX];
    request.extend((ApiKey::Metadata as i16).to_be_bytes());
    request.extend(VERSION.to_be_bytes());
    request.extend(0i32.to_be_bytes());
    request.extend((client_id.len() as u16).to_be_bytes());
    request.extend(client_id);
    // No topics.
    request.extend(0i32.to_be_bytes());
    frame::set_length(&mut request);
    stream.write_all(&request).await?;
    let mut answer = frame::next(&mut stream, 4).await?.ok_or("closed without an answer")?;
    let mut addresses = |id, host: &str, port| shared.address_of(id, host, port);
    rewrite::answer(Plan::Rewrite(ApiKey::Metadata, VERSION), &mut answer, &mut addresses)?;
    Ok(())
}

async fn accept(shared: Arc<Shared>, node: Arc<Node>, listener: TcpListener) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(node = node.id(), %error, "the listener can't be used");
            return;
        }
    };
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let number = shared.numbers.fetch_add(1, Ordering::Relaxed) + 1;
                let connection = Arc::new(Connection::new(number, Arc::clone(&node)));
                let open = Open::new(&shared, &connection);
                // After it can be cut: taking a node down comes before cutting its connections.
                if node.is_down() {
                    node.refuse();
                    continue;
                }
                tokio::spawn(async move {
                    connection.serve(&open.0, client).await;
                });
            }
            Err(error) => {
                tracing::warn!(node = node.id(), %error, "no connection can be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A connection that can be cut, as long as this lives.
struct Open(Arc<Shared>, u64);

impl Open {
    fn new(shared: &Arc<Shared>, connection: &Arc<Connection>) -> Open {
        shared.connections().insert(connection.number, Arc::clone(connection));
        Open(Arc::clone(shared), connection.number)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections().remove(&self.1);
    }
}
