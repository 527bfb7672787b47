//! Follows the changes of a table in PostgreSQL: each change that is committed becomes one record, in the order in which the
//! changes were made.
//!
//! The cursor is the place of the last change that was read, its time and the row's id. What makes that safe is in
//! [`horizon`]: a page ends where there may still be a transaction that has not committed.

pub mod database;
pub mod horizon;

use database::{Answer, Database};
use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

/// An order as it was after a change.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Order {
    /// Its number.
    pub id: i64,
    /// Who ordered.
    pub customer: String,
    /// Its value.
    pub cents: i64,
    /// What has become of it.
    pub status: String,
    /// When it was changed, in microseconds since the epoch.
    pub updated_at: i64,
}

/// Orders under their numbers. May be compacted: the last record of a number is the order as it is.
#[topic("orders", key = Utf8, value = Json<Order>)]
pub struct Orders;

/// The last change that was read.
#[derive(State, Serialize, Deserialize, Default, Clone, Debug, PartialEq)]
pub struct Cursor {
    /// Its time, in microseconds since the epoch.
    pub updated_at: i64,
    /// The order's number, since several may have been changed at one time.
    pub id: i64,
}

/// Reads the next changes.
#[extractor(state = Cursor, poll_interval = "500ms")]
pub async fn follow(
    cursor: &mut State<Cursor>,
    database: &Res<Database>,
    out: &mut Out<Orders>,
) -> flechtwerk::Result<Next> {
    let after = cursor.as_ref().cloned().unwrap_or_default();
    let page = match database.changes(&after).await? {
        Answer::Changes(page) => page,
        Answer::NotNow(wait) => return Ok(Next::After(wait)),
    };
    let Some(last) = page.orders.last() else { return Ok(Next::Idle) };
    cursor.set(Cursor { updated_at: last.updated_at, id: last.id });
    for order in page.orders {
        let timestamp = order.updated_at / 1000;
        out.send_record(OutRecord::new(order.id.to_string(), order).timestamp(timestamp));
    }
    Ok(if page.more { Next::Again } else { Next::Idle })
}

flechtwerk::pipeline!(
    /// The whole pipeline.
    pub POSTGRES_ORDERS = "postgres-orders": [follow], resources = [database::database]
);
