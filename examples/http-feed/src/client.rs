//! The client of the API: a resource, so that all feeds share its connections, and the one place that knows which answers
//! mean "later".

use std::time::Duration;

use flechtwerk::Secret;
use flechtwerk::prelude::*;
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde::Deserialize;

use crate::Item;

/// How long to wait where the server does not say.
const PATIENCE: Duration = Duration::from_secs(5);
/// No server is waited for longer, whatever it says.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// `[resources.http]` of the settings file, or `FLECHTWERK_RESOURCES_HTTP_..` of the environment.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Items of a page.
    pub page_size: u32,
    /// Seconds that one request may take.
    pub timeout_seconds: u64,
    /// For a server that asks for one.
    pub token: Option<Secret<String>>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        HttpSettings { page_size: 100, timeout_seconds: 30, token: None }
    }
}

/// The client.
pub struct Http {
    client: reqwest::Client,
    settings: HttpSettings,
}

/// A page of the API.
#[derive(Deserialize, Debug)]
pub struct Page {
    /// Its items, in the order of their ids.
    pub items: Vec<Item>,
    /// There are further ones.
    pub more: bool,
}

/// What came of a request.
#[derive(Debug)]
pub enum Answer {
    /// A page; empty where there is nothing new.
    Page(Page),
    /// The same request may succeed after this time.
    NotNow(Duration),
}

/// Makes the client.
#[resource]
pub async fn http(settings: HttpSettings) -> flechtwerk::Result<Http> {
    let client = reqwest::Client::builder()
        .user_agent(concat!("http-feed/", env!("CARGO_PKG_VERSION")))
        .timeout(Duration::from_secs(settings.timeout_seconds))
        .build()?;
    Ok(Http { client, settings })
}

impl Http {
    /// The page behind item `after` of a feed.
    ///
    /// # Errors
    ///
    /// Where asking again does not help: the server refuses the request, or answers something else than a page. That stops
    /// the process, as it should: somebody has to look.
    pub async fn page(&self, url: &str, after: u64) -> flechtwerk::Result<Answer> {
        let query = [("after", after), ("limit", self.settings.page_size.into())];
        let mut request = self.client.get(url).query(&query);
        if let Some(token) = &self.settings.token {
            request = request.bearer_auth(token.expose());
        }
        let response = match request.send().await {
            Ok(response) => response,
            // A URL may hold a secret, so it goes into no message; the config's place does.
            Err(error) if error.is_builder() => return Err(error.without_url().into()),
            Err(error) => return Ok(later("no answer", &error.without_url(), PATIENCE)),
        };
        let status = response.status();
        let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status);
        if busy || status.is_server_error() {
            return Ok(later("refused for now", &status, retry_after(&response).unwrap_or(PATIENCE)));
        }
        if !status.is_success() {
            return Err(format!("the server answered {status}").into());
        }
        let page: Page = match response.json().await {
            Ok(page) => page,
            Err(error) if error.is_decode() => return Err(error.without_url().into()),
            Err(error) => return Ok(later("the answer broke off", &error.without_url(), PATIENCE)),
        };
        // The cursor has to lead to what comes next, or items would be left out or come twice.
        if !page.items.iter().map(|item| item.id).is_sorted_by(|a, b| a < b)
            || page.items.first().is_some_and(|first| first.id <= after)
        {
            return Err(format!("the page behind item {after} is out of order").into());
        }
        Ok(Answer::Page(page))
    }
}

fn later(what: &str, why: &dyn std::fmt::Display, wait: Duration) -> Answer {
    tracing::warn!(%why, "{what}; asking again in {wait:?}");
    Answer::NotNow(wait)
}

/// What the server asks for. It may be a date instead of seconds, which is not worth a calendar here.
fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST))
}
