//! The request handler: whole frames against a broker's state in memory, answered as on a connection.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::watch;

use super::Entropy;
use super::messages::Speaker;
use crate::broker::{Shared, for_fuzzing};
use crate::requests::{Failed, Peer, Reply, answer};
use crate::{DevBroker, NewTopic};

/// The most requests of a session: what one leaves, the next meets.
const MOST_REQUESTS: usize = 200;
/// Requests that wait at a time; the oldest gives up, as a client that hangs up does.
const MOST_WAITING: usize = 8;
/// No answer to what the targets ask is longer.
const MOST_ANSWERED: usize = 4 * 1024 * 1024;

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Reply, Failed>> + 'a>>;

/// One session with a new broker. How many requests were answered.
pub fn requests(entropy: &mut Entropy<'_>) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    let shared = broker(entropy);
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut speaker = Speaker::default();
    let mut waiting: Vec<(watch::Sender<bool>, Waiting<'_>)> = Vec::new();
    let mut answered = 0;
    for _ in 0..=entropy.below(MOST_REQUESTS) {
        if entropy.is_empty() {
            break;
        }
        let mut frame = speaker.request(entropy);
        if entropy.percent(15) {
            entropy.damage(&mut frame, 4);
        }
        let (hang_up, gone) = watch::channel(false);
        let peer = Peer { address, gone };
        waiting.push((hang_up, Box::pin(answer(&shared, 1, peer, Bytes::from(frame)))));
        if entropy.percent(5) {
            shared.with(|state| state.tick());
        }
        waiting.retain_mut(|(_, request)| {
            // The time stands still, so a request that waits for it waits until it is given up.
            match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => return true,
                Poll::Ready(Ok(Reply::Frame(frame, _))) => {
                    assert!(frame.len() <= MOST_ANSWERED, "an answer of {} bytes", frame.len());
                    answered += 1;
                    speaker.learn(&frame);
                }
                Poll::Ready(Ok(Reply::Nothing | Reply::Close(_))) => {}
                Poll::Ready(Err(error)) => assert!(!error.to_string().contains("panicked"), "{error}"),
            }
            false
        });
        if waiting.len() > MOST_WAITING {
            let (hang_up, mut request) = waiting.remove(0);
            hang_up.send_replace(true);
            let _ = request.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
    answered
}

fn broker(entropy: &mut Entropy<'_>) -> Arc<Shared> {
    let builder = DevBroker::builder()
        .topic(("abc", 3))
        .topic(NewTopic::new("totals", 1).config("cleanup.policy", "compact"))
        .auto_create_topics(entropy.percent(20))
        .remember_requests(10);
    Arc::new(Shared::new(for_fuzzing(builder).expect("a broker in memory starts")))
}
