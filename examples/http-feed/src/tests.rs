//! The extractor and its client without Kafka, against the server of the example.

use std::error::Error;
use std::time::Duration;

use flechtwerk::testing::Driver;

use super::*;
use client::HttpSettings;
use server::{FeedServer, RETRY};

async fn http(page_size: u32) -> Res<Http> {
    Res::new(client::http(HttpSettings { page_size, ..HttpSettings::default() }).await.unwrap())
}

fn feed(url: String) -> Feed {
    Feed { url, paused: false }
}

#[tokio::test]
async fn one_call_is_one_page() -> flechtwerk::Result {
    let server = FeedServer::start("127.0.0.1:0")?;
    server.add("news", 5);
    let config = Record::new("news".into(), feed(server.url("news")));
    let (mut cursor, http) = (State::default(), http(2).await);
    let mut read = Vec::new();
    for expected in [Next::Again, Next::Again, Next::Idle, Next::Idle] {
        let mut out = Out::default();
        assert_eq!(poll(&config, &mut cursor, &http, &mut out).await?, expected);
        let sent = out.sent_records();
        assert!(sent.iter().all(|sent| sent.key == "news" && sent.timestamp == Some(sent.value.published)));
        read.extend(sent.into_iter().map(|sent| sent.value.id));
    }
    assert_eq!(read, server.ids("news"));
    assert_eq!(cursor.as_ref().map(|cursor| cursor.after), read.last().copied());
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_busy_or_away_is_waited_for() -> flechtwerk::Result {
    let server = FeedServer::start("127.0.0.1:0")?;
    server.add("news", 1);
    server.refuse("news", 1);
    let config = Record::new("news".into(), feed(server.url("news")));
    let (mut cursor, mut out, http) = (State::default(), Out::default(), http(2).await);
    assert_eq!(poll(&config, &mut cursor, &http, &mut out).await?, Next::After(RETRY));
    // A port that nobody listens at.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let config = Record::new("news".into(), feed(format!("http://{port}/feeds/news")));
    let next = poll(&config, &mut cursor, &http, &mut out).await?;
    assert!(matches!(next, Next::After(wait) if wait > Duration::ZERO), "{next:?}");
    assert!(cursor.is_none() && out.sent().is_empty());
    Ok(())
}

#[tokio::test]
async fn what_waiting_does_not_mend_is_an_error_without_the_url() -> flechtwerk::Result {
    let server = FeedServer::start("127.0.0.1:0")?;
    let http = http(2).await;
    for (url, says) in [(server.url("secret"), "404"), ("no url: secret".into(), "")] {
        let error = http.page(&url, 0).await.unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("secret"), "{error}");
    }
    Ok(())
}

#[test]
fn feeds_are_read_to_their_ends_and_paused_ones_rest() -> Result<(), Box<dyn Error + Send + Sync>> {
    let server = FeedServer::start("127.0.0.1:0")?;
    ["news", "weather"].iter().for_each(|name| server.add(name, 7));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = runtime.block_on(client::http(HttpSettings { page_size: 3, ..HttpSettings::default() }))?;
    let mut driver = Driver::new(&HTTP_FEED).resource(client);
    driver.send::<Feeds>("news".into(), feed(server.url("news")));
    driver.send::<Feeds>("weather".into(), Feed { paused: true, ..feed(server.url("weather")) });
    runtime.block_on(driver.poll("poll"))?;
    let ids: Vec<u64> = driver.read::<Items>().into_iter().map(|item| item.value.id).collect();
    assert_eq!(ids, server.ids("news"));
    assert_eq!(driver.state::<Cursor>("poll", "weather"), None);

    driver.send::<Feeds>("weather".into(), feed(server.url("weather")));
    server.add("news", 1);
    runtime.block_on(driver.poll("poll"))?;
    assert_eq!(driver.read::<Items>().len(), 8);
    Ok(())
}

/// What other programs write and read must not change by accident.
#[test]
fn configs_and_items_are_plain_json() -> serde_json::Result<()> {
    let config: Feed = serde_json::from_str(r#"{"url":"http://localhost/feeds/news"}"#)?;
    assert_eq!(config, feed("http://localhost/feeds/news".into()));
    let item = Item { id: 7, published: 5, title: "rain".into() };
    assert_eq!(serde_json::to_string(&item)?, r#"{"id":7,"published":5,"title":"rain"}"#);
    Ok(())
}
