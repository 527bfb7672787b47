//! The client of the API: a resource, so that all feeds share its connections, and the one place that knows which answers
//! mean "later".

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use flechtwerk::Secret;
use flechtwerk::prelude::*;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Certificate, StatusCode};
use serde::Deserialize;

use crate::Item;

/// How long to wait where the server does not say.
const PATIENCE: Duration = Duration::from_secs(5);
/// No server is asked again sooner, whatever it says.
const SHORTEST: Duration = Duration::from_secs(1);
/// No server is waited for longer.
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
    /// File with the certificates that are trusted, in place of the system's list.
    pub ca: Option<PathBuf>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        HttpSettings { page_size: 100, timeout_seconds: 30, token: None, ca: None }
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
    /// The same request may succeed later.
    NotNow {
        /// How long to wait.
        wait: Duration,
        /// What there was in place of a page.
        why: String,
    },
}

/// Makes the client.
#[resource]
pub async fn http(settings: HttpSettings) -> flechtwerk::Result<Http> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("http-feed/", env!("CARGO_PKG_VERSION")))
        .timeout(Duration::from_secs(settings.timeout_seconds));
    if let Some(path) = &settings.ca {
        let trusted = certificates(path).map_err(|error| format!("{}: {error}", path.display()))?;
        builder = builder.tls_built_in_root_certs(false);
        builder = trusted.into_iter().fold(builder, reqwest::ClientBuilder::add_root_certificate);
    }
    Ok(Http { client: builder.build()?, settings })
}

fn certificates(path: &PathBuf) -> flechtwerk::Result<Vec<Certificate>> {
    let certificates = Certificate::from_pem_bundle(&std::fs::read(path)?)?;
    if certificates.is_empty() {
        return Err("the file holds no certificate in PEM format".into());
    }
    Ok(certificates)
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
            Err(error) => return Ok(later("no answer", error)),
        };
        let status = response.status();
        let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status);
        if busy || status.is_server_error() {
            let wait = retry_after(response.headers(), SystemTime::now()).unwrap_or(PATIENCE);
            return Ok(Answer::NotNow { wait, why: format!("refused for now: {status}") });
        }
        if !status.is_success() {
            return Err(format!("the server answered {status}").into());
        }
        let page: Page = match response.json().await {
            Ok(page) => page,
            Err(error) if error.is_decode() => return Err(error.without_url().into()),
            Err(error) => return Ok(later("the answer broke off", error)),
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

/// With the causes: that a certificate is not trusted, for one, is said by the last of them.
fn later(what: &str, error: reqwest::Error) -> Answer {
    let error = error.without_url();
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let why = causes.fold(format!("{what}: {error}"), |why, cause| format!("{why}: {cause}"));
    Answer::NotNow { wait: PATIENCE, why }
}

/// What the server asks for: seconds, or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        // One that has passed means now.
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.clamp(SHORTEST, LONGEST))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn a_server_says_in_seconds_or_by_a_date_when_to_come_back() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").expect("a date");
        let wait = |text: &str| {
            let headers = [(RETRY_AFTER, HeaderValue::from_str(text).expect("a header"))];
            retry_after(&headers.into_iter().collect(), now)
        };
        for (says, seconds) in [
            ("0", 1),
            (" 120 ", 120),
            // The three forms that a recipient has to read.
            ("Sun, 06 Nov 1994 08:50:00 GMT", 23),
            ("Sunday, 06-Nov-94 08:50:00 GMT", 23),
            ("Sun Nov  6 08:50:00 1994", 23),
            ("Sun, 06 Nov 1994 08:49:00 GMT", 1),
            ("Mon, 07 Nov 1994 08:49:37 GMT", 900),
            ("18446744073709551615", 900),
        ] {
            assert_eq!(wait(says), Some(Duration::from_secs(seconds)), "{says}");
        }
        for says in ["", "soon", "-1", "1.5", "Sun, 06 Nov 1994", "99999999999999999999"] {
            assert_eq!(wait(says), None, "{says}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
