//! Stages that set timers: what the records say, and many of them.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

use crate::pipeline::{Joined, Words};

/// Records and timers of a key so far.
#[derive(State, Serialize, Deserialize, Default, Clone)]
pub struct Calls {
    records: u64,
    timers: u64,
}

/// Does what the value says: `set NAME DUE`, `wall NAME MILLIS` (from now on), `cancel NAME`, `late NAME` (a timer at
/// 1 ms); everything else is a record. Each is sent on.
#[transformer(inputs = [Words], state = Calls, on_timer = fire)]
pub async fn plan(
    word: Record<Words>,
    calls: &mut State<Calls>,
    timers: &mut Timers,
    out: &mut Out<Joined>,
) -> flechtwerk::Result {
    calls.get_or_insert_default().records += 1;
    match word.value.split(' ').collect::<Vec<_>>()[..] {
        ["set", name, due] => timers.set(name, due.parse()?),
        ["wall", name, millis] => timers.set_wall_clock(name, timers.now() + millis.parse::<i64>()?),
        ["cancel", name] => drop(timers.cancel(name)),
        ["late", name] => timers.set(name, 1),
        _ => {}
    }
    out.send(word.key, format!("record {}", word.value));
    Ok(())
}

/// Some timers do more, by their names: `again` sets itself for the same time, `fail` and `panic` fail.
async fn fire(
    timer: Timer<Utf8>,
    calls: &mut State<Calls>,
    timers: &mut Timers,
    out: &mut Out<Joined>,
) -> flechtwerk::Result {
    let calls = calls.get_or_insert_default();
    calls.timers += 1;
    match &*timer.name {
        "again" => timers.set("again", timer.due),
        "fail" => return Err(std::io::Error::other("asked for an error").into()),
        "panic" => panic!("asked for a panic"),
        "big" => out.send(timer.key.clone(), "x".repeat(2_000_000)),
        _ => {}
    }
    out.send(timer.key, format!("{} fires, {} records, {} timers", timer.name, calls.records, calls.timers));
    Ok(())
}

/// Each record has a name of its own, and sets a timer of that name: 500 ms later by event time or, where the name begins
/// with `w`, 100 ms from now on; what begins with `-` sets none. The timer sends its name and its number in its key.
#[transformer(inputs = [Words], state = Calls, on_timer = reminded)]
pub async fn remind(
    word: Record<Words>,
    calls: &mut State<Calls>,
    timers: &mut Timers,
    _: &mut Out<Joined>,
) -> flechtwerk::Result {
    calls.get_or_insert_default().records += 1;
    match word.value.chars().next() {
        Some('-') => {}
        Some('w') => timers.set_wall_clock(&word.value, timers.now() + 100),
        _ => timers.set(&word.value, word.timestamp.unwrap_or_default() + 500),
    }
    Ok(())
}

async fn reminded(
    timer: Timer<Utf8>,
    calls: &mut State<Calls>,
    _: &mut Timers,
    out: &mut Out<Joined>,
) -> flechtwerk::Result {
    let calls = calls.get_or_insert_default();
    calls.timers += 1;
    out.send(timer.key, format!("{} {}", timer.name, calls.timers));
    Ok(())
}
