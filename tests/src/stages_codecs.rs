//! A pipeline whose topics are in Avro, Protocol Buffers and CBOR.

use apache_avro::AvroSchema;
use flechtwerk::codec::ProtobufSchema;
use flechtwerk::invalid::dead_letter;
use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

/// A payment, as `pay` writes it.
#[derive(Serialize, Deserialize, AvroSchema, Clone, Debug, PartialEq)]
pub struct Payment {
    /// Who pays.
    pub account: String,
    /// How much.
    pub cents: i64,
}

/// The schema that payments had before there were large ones.
pub const SMALL_PAYMENTS: &str = r#"{"type":"record","name":"Payment","fields":[
    {"name":"channel","type":"string"},{"name":"account","type":"string"},{"name":"cents","type":"int"}]}"#;

/// A payment that is too high.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Alert {
    /// Who paid.
    #[prost(string, tag = "1")]
    pub account: String,
    /// How much too much.
    #[prost(sint64, tag = "2")]
    pub excess: i64,
}

impl ProtobufSchema for Alert {
    const PROTO: &'static str = r#"
        syntax = "proto3";
        package bank;

        message Alert {
          string account = 1;
          sint64 excess = 2;
        }
    "#;
    const MESSAGE: &'static str = "bank.Alert";
}

/// Text: how many cents the key pays.
#[topic("orders", key = Utf8, value = Utf8)]
pub struct Orders;
/// What `pay` makes of them.
#[topic("payments", key = Utf8, value = Confluent<Avro<Payment>>)]
pub struct Payments;
/// The most that each account may pay.
#[topic("limits", key = Utf8, value = Confluent<Avro<i64>>)]
pub struct Limits;
/// What is too high.
#[topic("alerts", key = Utf8, value = Confluent<Protobuf<Alert>>)]
pub struct Alerts;
/// All of it.
#[topic("audit", key = Utf8, value = Cbor<Payment>)]
pub struct Audit;
/// What does not decode.
#[topic("dead-payments", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct DeadPayments;

/// Writes payments in Avro; the first of an account is its limit.
#[transformer(inputs = [Orders], state = u64)]
pub async fn pay(
    order: Record<Orders>,
    count: &mut State<u64>,
    limits: &mut Out<Limits>,
    payments: &mut Out<Payments>,
) -> flechtwerk::Result {
    let cents = order.value.parse()?;
    match count.get_or_insert_default() {
        0 => limits.send(order.key, cents),
        _ => payments.send(order.key.clone(), Payment { account: order.key, cents }),
    }
    *count.get_or_insert_default() += 1;
    Ok(())
}

/// Reads them, and sends those above their account's limit on.
#[transformer(inputs = [Payments], on_invalid = dead_letter, dead_letters = DeadPayments)]
pub async fn watch(
    payment: Record<Payments>,
    limits: &Table<Limits>,
    alerts: &mut Out<Alerts>,
    audit: &mut Out<Audit>,
) -> flechtwerk::Result {
    let Payment { account, cents } = &payment.value;
    let excess = limits.get(account).map_or(0, |limit| cents - limit);
    if excess > 0 {
        alerts.send(payment.key.clone(), Alert { account: account.clone(), excess });
    }
    audit.send(payment.key, payment.value);
    Ok(())
}

flechtwerk::pipeline!(
    /// See the module.
    pub CODECS = "rig": [pay, watch]
);
