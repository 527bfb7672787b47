//! The connection to the database: a resource, which connects anew where the server went away, and knows which errors mean
//! "later".

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flechtwerk::Secret;
use flechtwerk::prelude::*;
use native_tls::{Certificate, TlsConnector};
use postgres_native_tls::MakeTlsConnector;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio_postgres::{Client, Error, Row};

use crate::horizon::{Horizon, Moment};
use crate::{Cursor, Order};

/// How long to leave a server alone that does not answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// `FLECHTWERK_RESOURCES_DATABASE_..` of the environment, or `[resources.database]` of the settings file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=require`
    pub url: Secret<String>,
    /// File with the certificates that are trusted, in place of the system's list.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Changes of a page.
    #[serde(default = "page_size")]
    pub page_size: u32,
    /// How much older than the change itself `updated_at` may be, in milliseconds: none with the trigger of `schema.sql`. Where
    /// programs set it, by `now()` or by their own clocks, it has to cover the longest transaction and the clocks' difference.
    #[serde(default)]
    pub lag_millis: u32,
}

fn page_size() -> u32 {
    500
}

/// The database.
pub struct Database {
    settings: DatabaseSettings,
    tls: MakeTlsConnector,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// `None`: to be connected.
    client: Option<Client>,
    horizon: Horizon,
}

/// Changes in their order.
#[derive(Debug)]
pub struct Changes {
    /// Orders as they are now, by time of change and number.
    pub orders: Vec<Order>,
    /// There may be further ones.
    pub more: bool,
}

/// What came of a request.
#[derive(Debug)]
pub enum Answer {
    /// What there is; empty where nothing has changed.
    Changes(Changes),
    /// The same request may succeed after this time.
    NotNow(Duration),
}

/// Connects, so that a wrong address or password is told at the start.
#[resource(close = Database::close)]
pub async fn database(settings: DatabaseSettings) -> flechtwerk::Result<Database> {
    let tls = MakeTlsConnector::new(tls(settings.ca.as_deref())?);
    let client = connect(&settings, tls.clone()).await?;
    Ok(Database { settings, tls, inside: Mutex::new(Inside { client: Some(client), ..Inside::default() }) })
}

/// What is encrypted is checked as well: the certificate is one that is trusted, and names the host.
fn tls(ca: Option<&Path>) -> flechtwerk::Result<TlsConnector> {
    let mut builder = TlsConnector::builder();
    if let Some(path) = ca {
        let at = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let trusted = std::fs::read(path).map_err(|error| at(&error))?;
        let trusted = Certificate::stack_from_pem(&trusted).map_err(|error| at(&error))?;
        if trusted.is_empty() {
            return Err(at(&"the file holds no certificate in PEM format").into());
        }
        builder.disable_built_in_roots(true);
        for certificate in trusted {
            builder.add_root_certificate(certificate);
        }
    }
    Ok(builder.build()?)
}

async fn connect(settings: &DatabaseSettings, tls: MakeTlsConnector) -> Result<Client, Error> {
    let mut config: tokio_postgres::Config = settings.url.expose().parse()?;
    config.application_name("postgres-orders").connect_timeout(Duration::from_secs(10));
    let (client, connection) = config.connect(tls).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!("the connection to the database broke: {error}");
        }
    });
    // Nothing of this is worth holding a server up for.
    client.batch_execute("SET statement_timeout = '30s'; SET default_transaction_read_only = on").await?;
    Ok(client)
}

impl Database {
    /// The changes behind a place, as far as they are complete.
    ///
    /// # Errors
    ///
    /// Where asking again does not help: the table is not there, or not as `schema.sql` has it.
    pub async fn changes(&self, after: &Cursor) -> flechtwerk::Result<Answer> {
        let mut inside = self.inside.lock().await;
        let Inside { client, horizon } = &mut *inside;
        match self.ask(client, horizon, after).await {
            Ok(changes) => Ok(Answer::Changes(changes)),
            Err(error) if passes(&error) => {
                tracing::warn!("the database did not answer; asking again in {PATIENCE:?}: {error}");
                *client = None;
                Ok(Answer::NotNow(PATIENCE))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn ask(
        &self,
        client: &mut Option<Client>,
        horizon: &mut Horizon,
        after: &Cursor,
    ) -> Result<Changes, Error> {
        let client = match client {
            Some(client) => client,
            None => client.insert(connect(&self.settings, self.tls.clone()).await?),
        };
        // `now()` is when this statement's own transaction began, so it comes before the look at the others. A transaction holds the lock on
        // its number from when it gets it until all others can see what it did; one that was prepared does, too.
        let now = client
            .query_one(
                "SELECT now(), coalesce(array_agg(transactionid::text::bigint), '{}')
                 FROM pg_locks WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted",
                &[],
            )
            .await?;
        let running: Vec<i64> = now.try_get(1)?;
        let now = Moment { time: micros(now.try_get(0)?), running: running.into_iter().collect() };
        let complete = horizon.advance(now) - i64::from(self.settings.lag_millis) * 1000;
        // A statement of its own: what it sees is newer than that look.
        let rows = client
            .query(
                "SELECT id, customer, cents, status, updated_at FROM orders
                 WHERE (updated_at, id) > ($1, $2) AND updated_at < $3
                 ORDER BY updated_at, id LIMIT $4",
                &[&time(after.updated_at), &after.id, &time(complete), &i64::from(self.settings.page_size)],
            )
            .await?;
        let orders = rows.iter().map(order).collect::<Result<Vec<_>, _>>()?;
        Ok(Changes { more: orders.len() as u64 == u64::from(self.settings.page_size), orders })
    }

    /// Takes leave of the server.
    ///
    /// # Errors
    ///
    /// None.
    pub async fn close(&self) -> flechtwerk::Result {
        self.inside.lock().await.client = None;
        Ok(())
    }
}

fn order(row: &Row) -> Result<Order, Error> {
    Ok(Order {
        id: row.try_get(0)?,
        customer: row.try_get(1)?,
        cents: row.try_get(2)?,
        status: row.try_get(3)?,
        updated_at: micros(row.try_get(4)?),
    })
}

/// The server is away, starts or stops, or has too much to do: another attempt may succeed.
fn passes(error: &Error) -> bool {
    match error.code() {
        // Classes of SQLSTATE: connection, insufficient resources, operator intervention.
        Some(state) => ["08", "53", "57"].iter().any(|class| state.code().starts_with(class)),
        // Under TLS, what went wrong with the connection lies deeper. A certificate that is not trusted is none of that.
        None => {
            let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
            error.is_closed() || causes.any(|cause| cause.is::<std::io::Error>())
        }
    }
}

/// PostgreSQL's times are whole microseconds, as are these.
fn micros(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
    }
}

fn time(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}
