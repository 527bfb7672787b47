//! A server with such feeds, for the tests and for trying things. It remembers what it was asked, so that a test can tell
//! a page that was read again from one that was not.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};

use crate::Item;

/// Serves on a thread of its own until the process ends.
#[derive(Clone)]
pub struct FeedServer {
    address: SocketAddr,
    feeds: Feeds,
}

type Feeds = Arc<Mutex<BTreeMap<String, Feed>>>;

#[derive(Default)]
struct Feed {
    items: Vec<Item>,
    /// How often the page behind an item was served, by the item's id.
    served: BTreeMap<u64, usize>,
    /// So many requests are still to be refused.
    refusals: usize,
    /// Until when nobody should ask.
    rest: Option<Instant>,
    impatient: usize,
}

/// How long a refused client is told to wait; longer than the pipeline's `poll_interval`.
pub const RETRY: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    after: u64,
    #[serde(default = "most")]
    limit: usize,
}

/// Items of a page at most.
fn most() -> usize {
    100
}

#[derive(Serialize)]
struct Page {
    items: Vec<Item>,
    more: bool,
}

impl FeedServer {
    /// Starts it. Port 0 is a free one.
    ///
    /// # Errors
    ///
    /// If the address can't be listened at.
    pub fn start(listen: &str) -> io::Result<FeedServer> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let server = FeedServer { address: listener.local_addr()?, feeds: Arc::default() };
        let app = axum::Router::new().route("/feeds/{name}", get(page)).with_state(server.feeds.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("feeds".into()).spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                axum::serve(listener, app).await
            })
        })?;
        Ok(server)
    }

    /// Where a feed is.
    pub fn url(&self, feed: &str) -> String {
        format!("http://{}/feeds/{feed}", self.address)
    }

    /// Adds items to a feed, which is made if need be.
    pub fn add(&self, feed: &str, items: u64) {
        let mut feeds = lock(&self.feeds);
        let list = &mut feeds.entry(feed.to_owned()).or_default().items;
        for _ in 0..items {
            // Ids have gaps, as everywhere.
            let id = list.last().map_or(1, |last| last.id + 3);
            list.push(Item { id, published: now(), title: format!("{feed}, item {id}") });
        }
    }

    /// The ids of a feed's items.
    pub fn ids(&self, feed: &str) -> Vec<u64> {
        lock(&self.feeds)
            .get(feed)
            .map_or_else(Vec::new, |feed| feed.items.iter().map(|item| item.id).collect())
    }

    /// Refuses the next requests for a feed: "429 Too Many Requests", and when to come back.
    pub fn refuse(&self, feed: &str, requests: usize) {
        lock(&self.feeds).entry(feed.to_owned()).or_default().refusals = requests;
    }

    /// How many refusals are still to come.
    pub fn refusals_left(&self, feed: &str) -> usize {
        lock(&self.feeds).get(feed).map_or(0, |feed| feed.refusals)
    }

    /// How many requests came although the client had been told to wait.
    pub fn impatient(&self) -> usize {
        lock(&self.feeds).values().map(|feed| feed.impatient).sum()
    }

    /// How many pages with items were served more than once.
    pub fn repeated(&self) -> usize {
        lock(&self.feeds).values().flat_map(|feed| feed.served.values()).filter(|times| **times > 1).count()
    }
}

fn lock(feeds: &Feeds) -> MutexGuard<'_, BTreeMap<String, Feed>> {
    feeds.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

async fn page(
    State(feeds): State<Feeds>,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let mut feeds = lock(&feeds);
    let Some(feed) = feeds.get_mut(&name) else { return StatusCode::NOT_FOUND.into_response() };
    let now = Instant::now();
    feed.impatient += usize::from(feed.rest.take_if(|until| *until > now).is_some());
    if feed.refusals > 0 {
        feed.refusals -= 1;
        feed.rest = Some(now + RETRY);
        let wait = [(RETRY_AFTER, RETRY.as_secs().to_string())];
        return (StatusCode::TOO_MANY_REQUESTS, wait).into_response();
    }
    let begin = feed.items.partition_point(|item| item.id <= wanted.after);
    let end = feed.items.len().min(begin + wanted.limit.min(most()));
    if begin < end {
        *feed.served.entry(wanted.after).or_default() += 1;
    }
    Json(Page { items: feed.items[begin..end].to_vec(), more: end < feed.items.len() }).into_response()
}
