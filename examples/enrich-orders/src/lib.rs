//! Completes orders and picks out the large ones: a stage without state that writes to two topics.
//!
//! What it sends for one order arrives in both topics or in neither, and once.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

/// An order as the shop sends it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Order {
    /// Who ordered.
    pub customer: String,
    /// What was ordered.
    pub lines: Vec<Line>,
}

/// One line of an order.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Line {
    /// The article's number.
    pub article: String,
    /// How many pieces.
    pub pieces: u32,
    /// The price of one, in cents.
    pub cents: u64,
}

/// An order with what follows from it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Enriched {
    /// The order as it came.
    #[serde(flatten)]
    pub order: Order,
    /// The sum of its lines, in cents.
    pub total_cents: u64,
    /// Pieces in all lines.
    pub pieces: u64,
}

/// A notice about an order that someone should look at.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Large {
    /// Who ordered.
    pub customer: String,
    /// The sum of the order, in cents.
    pub total_cents: u64,
}

/// Orders by their number.
#[topic("orders", key = Utf8, value = Json<Order>)]
pub struct Orders;

/// The same orders, completed, under the same keys.
#[topic("enriched-orders", key = Utf8, value = Json<Enriched>)]
pub struct EnrichedOrders;

/// Only the large ones.
#[topic("large-orders", key = Utf8, value = Json<Large>)]
pub struct LargeOrders;

/// Orders from here on are large.
pub const LARGE_CENTS: u64 = 100_000;

/// Completes one order. A sum that no number can hold is an error: the process stops and names the record.
#[transformer(inputs = [Orders])]
pub async fn enrich(
    order: Record<Orders>,
    enriched: &mut Out<EnrichedOrders>,
    large: &mut Out<LargeOrders>,
) -> flechtwerk::Result {
    let Record { key, value: order, headers, .. } = order;
    let mut total_cents = 0u64;
    let mut pieces = 0u64;
    for line in &order.lines {
        let sum = line.cents.checked_mul(line.pieces.into()).and_then(|sum| total_cents.checked_add(sum));
        total_cents = sum.ok_or("the order's total does not fit into 64 bits")?;
        pieces += u64::from(line.pieces);
    }
    if total_cents >= LARGE_CENTS {
        large.send(key.clone(), Large { customer: order.customer.clone(), total_cents });
    }
    // Headers, traces for instance, go on with the order.
    enriched.send_record(OutRecord::new(key, Enriched { order, total_cents, pieces }).headers(headers));
    Ok(())
}

flechtwerk::pipeline!(
    /// The whole pipeline.
    pub ENRICH_ORDERS = "enrich-orders": [enrich]
);

#[cfg(test)]
mod tests {
    use flechtwerk::testing::Driver;

    use super::*;

    fn order(lines: &[(u32, u64)]) -> Order {
        let line = |&(pieces, cents)| Line { article: "loom".into(), pieces, cents };
        Order { customer: "ada".into(), lines: lines.iter().map(line).collect() }
    }

    #[tokio::test]
    async fn an_order_is_completed_and_keeps_its_headers() -> flechtwerk::Result {
        let (mut enriched, mut large) = (Out::default(), Out::default());
        let mut record = Record::new("17".into(), order(&[(2, 150), (3, 1000)]));
        record.headers.push("trace", None);
        let headers = record.headers.clone();
        enrich(record, &mut enriched, &mut large).await?;
        let sent = enriched.sent_records();
        assert_eq!((sent[0].value.total_cents, sent[0].value.pieces), (3300, 5));
        assert!(sent[0].headers == headers);
        assert!(large.sent().is_empty());
        Ok(())
    }

    #[tokio::test]
    async fn a_sum_beyond_all_numbers_is_an_error() {
        let (mut enriched, mut large) = (Out::default(), Out::default());
        let record = Record::new("17".into(), order(&[(2, u64::MAX / 2), (1, 2)]));
        let error = enrich(record, &mut enriched, &mut large).await.unwrap_err();
        assert_eq!(error.to_string(), "the order's total does not fit into 64 bits");
        assert!(enriched.sent().is_empty());
    }

    #[test]
    fn large_orders_are_in_both_topics() -> Result<(), Box<dyn std::error::Error>> {
        let mut driver = Driver::new(&ENRICH_ORDERS);
        driver.send::<Orders>("small".into(), order(&[(1, LARGE_CENTS - 1)]));
        driver.send::<Orders>("large".into(), order(&[(2, LARGE_CENTS / 2)]));
        driver.run_blocking()?;
        assert_eq!(driver.records::<EnrichedOrders>().len(), 2);
        let large: Vec<_> =
            driver.records::<LargeOrders>().into_iter().map(|record| (record.key, record.value)).collect();
        assert_eq!(large, [("large".to_owned(), Large { customer: "ada".into(), total_cents: LARGE_CENTS })]);
        Ok(())
    }

    /// What other programs read must not change by accident.
    #[test]
    fn the_output_is_flat_json() -> serde_json::Result<()> {
        let enriched = Enriched { order: order(&[(1, 5)]), total_cents: 5, pieces: 1 };
        let expected = r#"{"customer":"ada","lines":[{"article":"loom","pieces":1,"cents":5}],"total_cents":5,"pieces":1}"#;
        assert_eq!(serde_json::to_string(&enriched)?, expected);
        Ok(())
    }
}
