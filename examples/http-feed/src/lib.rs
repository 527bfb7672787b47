//! Reads the pages of a JSON API into Kafka, every item once, in the order of its feed.
//!
//! Each record of the topic `feeds` is one feed to read. Its cursor, the id of the last item that was read, is committed in
//! the same transaction as the items of a page: whenever the process dies, both are there or neither is.

pub mod client;
pub mod server;

use client::{Answer, Http};
use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

/// A feed to read.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// Where its pages are.
    pub url: String,
    /// It is to rest; its cursor stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// One item of a feed.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Item {
    /// Larger than that of every earlier item of its feed.
    pub id: u64,
    /// When it came out, in milliseconds since the epoch.
    pub published: i64,
    /// What it says.
    pub title: String,
}

/// Feeds by their names. Compacted: the last record of a name counts.
#[topic("feeds", key = Utf8, value = Json<Feed>)]
pub struct Feeds;

/// Items under the names of their feeds, so that those of one feed stay in order.
#[topic("items", key = Utf8, value = Json<Item>)]
pub struct Items;

/// How far a feed was read.
#[derive(State, Serialize, Deserialize, Default, Clone, Debug, PartialEq)]
pub struct Cursor {
    /// Id of the last item.
    pub after: u64,
}

fn is_paused(feed: &Record<Feeds>) -> bool {
    feed.value.paused
}

/// Reads one page of one feed.
#[extractor(config = Feeds, state = Cursor, poll_interval = "1s", suspended = is_paused)]
pub async fn poll(
    feed: &Record<Feeds>,
    cursor: &mut State<Cursor>,
    http: &Res<Http>,
    out: &mut Out<Items>,
) -> flechtwerk::Result<Next> {
    let after = cursor.as_ref().map_or(0, |cursor| cursor.after);
    let page = match http.page(&feed.value.url, after).await? {
        Answer::Page(page) => page,
        // Nothing is lost: the cursor stays, and the same page is asked for again.
        Answer::NotNow { wait, why } => {
            let (partition, offset) = (feed.partition, feed.offset);
            tracing::warn!(partition, offset, "a feed has to wait, asking again in {wait:?}: {why}");
            return Ok(Next::After(wait));
        }
    };
    let Some(last) = page.items.last() else { return Ok(Next::Idle) };
    cursor.set(Cursor { after: last.id });
    for item in page.items {
        let published = item.published;
        out.send_record(OutRecord::new(feed.key.clone(), item).timestamp(published));
    }
    Ok(if page.more { Next::Again } else { Next::Idle })
}

flechtwerk::pipeline!(
    /// The whole pipeline.
    pub HTTP_FEED = "http-feed": [poll], resources = [client::http]
);

#[cfg(test)]
mod tests;
