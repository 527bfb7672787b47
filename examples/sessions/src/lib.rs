//! Puts the clicks of a visitor together to sessions: one ends when nothing was clicked for half an hour, which no click
//! says. A timer does, by the time that the clicks speak of.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

pub mod visitors;

/// A visitor is quiet for so long, in milliseconds, and the session is over.
pub const GAP: i64 = 30 * 60 * 1000;

/// A page was looked at, at the time of the record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Click {
    /// Path of the page.
    pub page: String,
}

/// Keyed by visitor.
#[topic("clicks", key = Utf8, value = Json<Click>)]
pub struct Clicks;

/// One visit.
#[derive(State, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Time of the first click, in milliseconds since the epoch.
    pub begin: i64,
    /// Time of the last one.
    pub end: i64,
    /// Page of the first click.
    pub entry: String,
    /// Page of the last one.
    pub exit: String,
    /// How many there were.
    pub clicks: u32,
}

/// Keyed by visitor, once it is over.
#[topic("sessions", key = Utf8, value = Json<Session>)]
pub struct Sessions;

impl Session {
    /// One click is a session already.
    pub fn new(at: i64, click: &Click) -> Session {
        Session { begin: at, end: at, entry: click.page.clone(), exit: click.page.clone(), clicks: 1 }
    }

    /// Adds a click, which may come late.
    pub fn add(&mut self, at: i64, click: Click) {
        self.clicks += 1;
        if at < self.begin {
            (self.begin, self.entry) = (at, click.page);
        } else if at >= self.end {
            (self.end, self.exit) = (at, click.page);
        }
    }
}

/// Adds a click to the visitor's session. Each click moves the end of the session, and so the timer.
#[transformer(inputs = [Clicks], state = Session, on_timer = close)]
pub async fn collect(
    click: Record<Clicks>,
    session: &mut State<Session>,
    timers: &mut Timers,
    out: &mut Out<Sessions>,
) -> flechtwerk::Result {
    let at = click.timestamp.ok_or("a click without a time belongs to no session")?;
    match session.as_mut() {
        // So late that it belongs to an earlier session, which is closed.
        Some(open) if at < open.begin - GAP => {
            out.send_record(OutRecord::new(click.key, Session::new(at, &click.value)).timestamp(at + GAP));
            return Ok(());
        }
        Some(open) => open.add(at, click.value),
        None => session.set(Session::new(at, &click.value)),
    }
    if let Some(open) = session.as_ref() {
        timers.set("close", open.end + GAP);
    }
    Ok(())
}

/// Nothing was clicked for as long as it takes: the session is over.
async fn close(
    timer: Timer<Utf8>,
    session: &mut State<Session>,
    _: &mut Timers,
    out: &mut Out<Sessions>,
) -> flechtwerk::Result {
    if let Some(session) = session.take() {
        out.send(timer.key, session);
    }
    Ok(())
}

/// Makes up the clicks of one minute: those of the first day at once, and then a minute each second.
#[extractor(state = u64, poll_interval = "1s")]
pub async fn visit(minute: &mut State<u64>, out: &mut Out<Clicks>) -> flechtwerk::Result<Next> {
    let now = minute.unwrap_or(0);
    for (visitor, at, click) in visitors::clicks(now) {
        out.send_record(OutRecord::new(visitor, click).timestamp(at));
    }
    minute.set(now + 1);
    Ok(if now < visitors::DAY { Next::Again } else { Next::Idle })
}

flechtwerk::pipeline!(
    /// Makes up clicks, and puts them together to sessions.
    pub SESSIONS = "sessions": [visit, collect]
);

#[cfg(test)]
mod tests;
