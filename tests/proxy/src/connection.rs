//! One connection of a client, and the one to its broker that stands for it.
//!
//! Requests and answers are passed on by two loops that share a queue of what is under way. Each reads one frame at a time and
//! has passed it on before it reads another: the order is kept, and who sends too fast is slowed down by the network itself.
//!
//! Ends are passed on, too. A client that has closed its connection has sent all that it sent: what is held of it reaches the
//! broker when it is released, and then the connection to the broker is closed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};

use crate::Shared;
use crate::fault::Active;
use crate::frame::{self, FrameError, PREFIX};
use crate::log::Event;
use crate::node::Node;
use crate::request::{self, Request};
use crate::rewrite::{self, Plan, RewriteError};
use crate::rule::{Action, When};
use crate::walk::Malformed;

/// More requests of a connection are not under way at a time: the next one waits.
const MOST_UNDER_WAY: usize = 1_000;
/// Key, version and correlation id: what every request has.
const MIN_REQUEST: usize = 8;
/// The correlation id, which every answer has.
const MIN_ANSWER: usize = 4;
const READ_BUFFER: usize = 64 * 1024;

/// What ends a connection.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("its broker has closed it")]
    BrokerClosed,
    #[error("a rule drops it")]
    Dropped,
    #[error("from the client: {0}")]
    Client(#[source] FrameError),
    #[error("from the client: {0}")]
    Request(#[from] Malformed),
    #[error("from the broker: {0}")]
    Broker(#[source] FrameError),
    #[error("the broker can't be written to")]
    Write(#[source] std::io::Error),
    #[error("an answer, correlation id {0}, to no request")]
    Unasked(i32),
    #[error("an answer, correlation id {0}, where that of {1} was due")]
    OutOfOrder(i32, Request),
    #[error("the answer to {0}: {1}")]
    Answer(Request, #[source] RewriteError),
}

/// A connection that is open.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) number: u64,
    pub(crate) node: Arc<Node>,
    /// As the last request said.
    client_id: Mutex<Option<Arc<str>>>,
    cut: watch::Sender<bool>,
}

/// A request that the broker has, or will have at once, and whose answer is to come.
struct UnderWay {
    request: Request,
    plan: Plan,
}

impl Connection {
    pub(crate) fn new(number: u64, node: Arc<Node>) -> Connection {
        Connection { number, node, client_id: Mutex::default(), cut: watch::channel(false).0 }
    }

    /// Closes it.
    pub(crate) fn cut(&self) {
        self.cut.send_replace(true);
    }

    pub(crate) fn is_of(&self, client_id: &str) -> bool {
        self.client_id().as_deref() == Some(client_id)
    }

    fn client_id(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.client_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves it to its end.
    pub(crate) async fn serve(&self, shared: &Arc<Shared>, client: TcpStream) {
        let mut cut = self.cut.subscribe();
        tokio::select! {
            biased;
            _ = cut.wait_for(|cut| *cut) => {}
            () = self.pass(shared, client) => {}
        }
    }

    async fn pass(&self, shared: &Arc<Shared>, client: TcpStream) {
        let address = self.node.broker();
        let broker = match TcpStream::connect(&address).await {
            Ok(broker) => broker,
            // Its client finds it as it would find the broker: gone.
            Err(error) => {
                tracing::debug!(%address, %error, "the broker can't be reached");
                return;
            }
        };
        for stream in [&client, &broker] {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "frames may come late");
            }
        }
        let (from_client, to_client) = client.into_split();
        let (from_broker, to_broker) = broker.into_split();
        let (sender, receiver) = mpsc::channel(MOST_UNDER_WAY);
        let ended = tokio::try_join!(
            self.requests(shared, from_client, to_broker, sender),
            self.answers(shared, from_broker, to_client, receiver),
        );
        let Err(end) = ended else { return };
        let number = self.number;
        let node = self.node.id();
        match end {
            End::BrokerClosed | End::Dropped | End::Write(_) => {
                tracing::debug!(number, node, "connection closed: {end}");
            }
            // Clients and brokers that end without a word are nothing to warn of.
            End::Client(FrameError::Io(_)) | End::Broker(FrameError::Io(_)) => {
                tracing::debug!(number, node, "connection lost: {end}");
            }
            _ => tracing::warn!(number, node, "connection closed: {end}"),
        }
    }

    /// Passes requests on until the client has sent all that it wants to.
    async fn requests(
        &self,
        shared: &Shared,
        from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        under_way: mpsc::Sender<UnderWay>,
    ) -> Result<(), End> {
        let mut from = BufReader::with_capacity(READ_BUFFER, from);
        loop {
            let mut frame = match frame::next(&mut from, MIN_REQUEST).await {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                // A client that was killed has sent all that it sent.
                Err(FrameError::Io(_) | FrameError::CutOff) => break,
                Err(error) => return Err(End::Client(error)),
            };
            let parsed = request::parse(&frame)?;
            let request = parsed.request;
            shared.log.count(&request);
            if *self.client_id() != request.client_id {
                self.client_id().clone_from(&request.client_id);
            }
            if let Some(rule) = self.hit(shared, When::Before, &request) {
                match self.act(shared, &rule, &request).await? {
                    Then::GoOn => {}
                    Then::Lose => {
                        // Whatever happens: nobody hears of it.
                        let _ = tokio::io::copy_buf(&mut from, &mut tokio::io::sink()).await;
                        break;
                    }
                }
            }
            let plan = Plan::of(request.key, request.version);
            match plan {
                Plan::AskForOldest => rewrite::ask_for_oldest(&mut frame, parsed.header_end),
                Plan::TooNew => shared.say_too_new(&request),
                Plan::Pass | Plan::Rewrite(..) => {}
            }
            if parsed.answered {
                // Before the broker can have answered. Where answers are lost, nobody takes it, and nobody has to.
                let _ = under_way.send(UnderWay { request, plan }).await;
            }
            to.write_all(&frame).await.map_err(End::Write)?;
        }
        // The broker hears of it, and closes the connection when it has answered what it will.
        to.shutdown().await.map_err(End::Write)
    }

    /// Passes answers on until the broker has closed the connection.
    async fn answers(
        &self,
        shared: &Arc<Shared>,
        from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        mut under_way: mpsc::Receiver<UnderWay>,
    ) -> Result<(), End> {
        let mut from = BufReader::with_capacity(READ_BUFFER, from);
        let mut client_is_gone = false;
        loop {
            let frame = frame::next(&mut from, MIN_ANSWER).await.map_err(End::Broker)?;
            let mut frame = frame.ok_or(End::BrokerClosed)?;
            let correlation_id =
                frame.get(PREFIX..).and_then(|rest| rest.first_chunk::<4>()).copied().unwrap_or_default();
            let correlation_id = i32::from_be_bytes(correlation_id);
            let Ok(UnderWay { request, plan }) = under_way.try_recv() else {
                return Err(End::Unasked(correlation_id));
            };
            if request.correlation_id != correlation_id {
                return Err(End::OutOfOrder(correlation_id, request));
            }
            let mut addresses = |id, host: &str, port| shared.address_of(id, host, port);
            if let Err(error) = rewrite::answer(plan, &mut frame, &mut addresses) {
                return Err(End::Answer(request, error));
            }
            if let Some(rule) = self.hit(shared, When::After, &request) {
                match self.act(shared, &rule, &request).await? {
                    Then::GoOn => {}
                    Then::Lose => {
                        drop(under_way);
                        let _ = tokio::io::copy_buf(&mut from, &mut tokio::io::sink()).await;
                        return Err(End::BrokerClosed);
                    }
                }
            }
            // A client that is gone may have left requests behind, which are still to reach the broker.
            client_is_gone = client_is_gone || to.write_all(&frame).await.is_err();
        }
    }

    /// The rule that hits this, if one does. From now on, those who wait for it know.
    fn hit(&self, shared: &Shared, when: When, request: &Request) -> Option<Arc<Active>> {
        let rule = shared.rules.next(when, request, self.node.id())?;
        shared.log.event(Event {
            at: SystemTime::now(),
            what: rule.rule.action.to_string(),
            rule: Some(rule.number),
            request: Some(request.clone()),
            node: self.node.id(),
            connection: Some(self.number),
        });
        rule.fire();
        Some(rule)
    }

    /// Does what a rule says.
    async fn act(&self, shared: &Shared, rule: &Active, request: &Request) -> Result<Then, End> {
        match rule.rule.action {
            Action::Delay(delay) | Action::ApplyThenDelayReply(delay) => tokio::time::sleep(delay).await,
            Action::Hold | Action::ApplyThenHoldReply => rule.released().await,
            Action::DropConnection | Action::ApplyThenDropReply => return Err(End::Dropped),
            Action::DropClient | Action::ApplyThenDropClient => {
                shared.cut(|one| request.client_id.as_deref().is_some_and(|id| one.is_of(id)));
                return Err(End::Dropped);
            }
            Action::Lose | Action::ApplyThenLoseReply => return Ok(Then::Lose),
        }
        Ok(Then::GoOn)
    }
}

/// What comes after a rule's action.
enum Then {
    GoOn,
    Lose,
}
