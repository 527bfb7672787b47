//! Timers: what a stage wants to do later.

#[cfg(feature = "runtime")]
mod due;
#[cfg_attr(not(feature = "runtime"), allow(dead_code, reason = "only a task keeps its stream time"))]
mod list;

use std::fmt;
use std::time::SystemTime;

use crate::codec::Codec;
use crate::error::BoxError;
use crate::glue::{FailureKind, FiredTimer, StateChange, Trouble};

#[cfg(feature = "runtime")]
pub(crate) use due::DueIndex;
pub use list::Clock;
pub(crate) use list::{LONGEST_NAME, MOST, Pending, decode, encode, summary};
#[cfg(feature = "runtime")]
pub(crate) use list::{ListError, STREAM_TIME, Summary, decode_stream_time, encode_stream_time};

/// The last millisecond of the year 9999. What is later was hardly meant as milliseconds.
const LATEST: i64 = 253_402_300_799_999;

/// The timers of the record's key, as a parameter of a stage: `&mut Timers`.
///
/// A timer has a name, and there is one of a name for each key at most: setting it again moves it. When it is due it fires,
/// once: the function that the stage names with `on_timer` is called, with a [`Timer`] in the place of the record and the
/// same other parameters, the state and the timers of that key among them.
///
/// Event time goes by the timestamps of records, so a timer fires only when a later record has come, of whatever key; the
/// wall clock goes on by itself. Times are milliseconds since the epoch, as a record's timestamp is. One that has passed is
/// no mistake: the timer then fires at once.
///
/// Timers are stored as state is, in the same transaction: what is set by records whose transaction did not commit never
/// fires, and what is set by those that did fires after any crash.
///
/// ```
/// use flechtwerk::prelude::*;
///
/// #[topic("clicks", key = Utf8, value = Utf8)]
/// pub struct Clicks;
/// #[topic("visits", key = Utf8, value = Json<u64>)]
/// pub struct Visits;
///
/// /// A visit ends when nothing was clicked for half an hour.
/// #[transformer(inputs = [Clicks], state = u64, on_timer = end)]
/// pub async fn visits(
///     click: Record<Clicks>,
///     clicks: &mut State<u64>,
///     timers: &mut Timers,
///     _: &mut Out<Visits>,
/// ) -> flechtwerk::Result {
///     *clicks.get_or_insert_default() += 1;
///     timers.set("end", click.timestamp.unwrap_or_default() + 30 * 60 * 1000);
///     Ok(())
/// }
///
/// async fn end(
///     timer: Timer<Utf8>,
///     clicks: &mut State<u64>,
///     _: &mut Timers,
///     out: &mut Out<Visits>,
/// ) -> flechtwerk::Result {
///     if let Some(clicks) = clicks.take() {
///         out.send(timer.key, clicks);
///     }
///     Ok(())
/// }
/// # flechtwerk::pipeline!(pub DEMO = "demo": [visits]);
/// #
/// # let mut driver = flechtwerk::testing::Driver::new(&DEMO);
/// # driver.send::<Clicks>("ann".into(), "/".into());
/// # driver.run_blocking()?;
/// # driver.advance_stream_time(30 * 60 * 1000);
/// # driver.run_blocking()?;
/// # assert_eq!(driver.read::<Visits>()[0].value, 1);
/// # Ok::<(), flechtwerk::testing::Failed>(())
/// ```
///
/// The timers of one key lie in one entry of the store, so they should be few: a thousand at most, and tens for speed.
///
/// In a test of the bare function, `Timers::default()` has none, and [`due`](Timers::due) says what was set.
pub struct Timers {
    /// In the order of their names.
    pending: Vec<Pending>,
    stream_time: Option<i64>,
    now: i64,
    dirty: bool,
    /// The first that could not be set.
    failure: Option<BoxError>,
}

impl Default for Timers {
    /// No timers, no stream time, and the machine's clock.
    fn default() -> Self {
        Timers::at(None, wall_clock())
    }
}

/// Shows how many there are, not what they are called.
impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timers({} pending)", self.pending.len())
    }
}

impl Timers {
    /// None yet, at these times, for a test.
    pub fn at(stream_time: Option<i64>, now: i64) -> Self {
        Timers { pending: Vec::new(), stream_time, now, dirty: false, failure: None }
    }

    /// Sets a timer by event time, or moves the one of this name to it. It fires before the next record of its key with this
    /// timestamp or a later one, and soon after one of any other key in the same partition.
    ///
    /// `due` is in milliseconds since the epoch. One that is negative or after the year 9999 fails the stage at this record,
    /// as does a name that is empty or longer than 255 bytes, or a thousand-and-first timer of one key.
    ///
    /// ```
    /// use flechtwerk::prelude::*;
    ///
    /// let mut timers = Timers::default();
    /// timers.set("close", 1_700_000_000_000);
    /// timers.set("close", 1_700_000_060_000);
    /// assert_eq!(timers.due("close"), Some(1_700_000_060_000));
    /// ```
    pub fn set(&mut self, name: &str, due: i64) {
        self.put(name, Clock::EventTime, due);
    }

    /// Sets a timer by the wall clock, or moves the one of this name to it; what was set by event time before goes by the wall
    /// clock now. It fires soon after the time has come, whether or not there are records. `due` is as in [`set`](Timers::set).
    ///
    /// ```
    /// use flechtwerk::prelude::*;
    ///
    /// let mut timers = Timers::default();
    /// timers.set_wall_clock("retry", timers.now() + 30_000);
    /// ```
    pub fn set_wall_clock(&mut self, name: &str, due: i64) {
        self.put(name, Clock::WallClock, due);
    }

    /// Takes a timer back; true if there was one of this name.
    pub fn cancel(&mut self, name: &str) -> bool {
        let place = self.place(name);
        if let Ok(place) = place {
            self.pending.remove(place);
            self.dirty = true;
        }
        place.is_ok()
    }

    /// When the timer of this name is due, if there is one that has not fired.
    pub fn due(&self, name: &str) -> Option<i64> {
        self.place(name).ok().map(|place| self.pending[place].due)
    }

    /// The names of all that have not fired, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pending.iter().map(|timer| &*timer.name)
    }

    /// The largest timestamp of a record that this partition's task has taken, by which timers of event time go; `None` where
    /// no record had one. It never goes back, not after a restart either.
    pub fn stream_time(&self) -> Option<i64> {
        self.stream_time
    }

    /// The wall clock, in milliseconds since the epoch. In a [`Driver`](crate::testing::Driver) it is the driver's.
    pub fn now(&self) -> i64 {
        self.now
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.pending.binary_search_by(|timer| (*timer.name).cmp(name))
    }

    fn put(&mut self, name: &str, clock: Clock, due: i64) {
        if self.failure.is_some() {
            return;
        }
        let fault = match due {
            _ if name.is_empty() => Some("the name of a timer is empty".to_owned()),
            _ if name.len() > LONGEST_NAME => {
                Some(format!("the name of a timer has {} bytes, more than {LONGEST_NAME}", name.len()))
            }
            ..0 => Some(format!(
                "timer \"{name}\" was set for {due}, before 1970; the time is in milliseconds since the epoch"
            )),
            _ if due > LATEST => Some(format!(
                "timer \"{name}\" was set for {due}, after the year 9999; the time is in milliseconds since the epoch, not in \
                 micro- or nanoseconds, and a timer that is never to fire is not set, or cancelled"
            )),
            _ => None,
        };
        if let Some(fault) = fault {
            self.failure = Some(fault.into());
            return;
        }
        match self.place(name) {
            Ok(place) => (self.pending[place].clock, self.pending[place].due) = (clock, due),
            Err(_) if self.pending.len() >= MOST => {
                self.failure = Some(
                    format!(
                        "one key has {MOST} timers and was to get one more, \"{name}\": they lie in one entry and are for \
                         what is little; keep the times in the state, and one timer for the next of them"
                    )
                    .into(),
                );
                return;
            }
            Err(place) => self.pending.insert(place, Pending { name: name.to_owned(), clock, due }),
        }
        self.dirty = true;
    }

    pub(crate) fn load(stored: Option<&[u8]>, stream_time: Option<i64>, now: i64) -> Result<Self, Trouble> {
        let pending = stored.map(decode).transpose();
        let pending = pending.map_err(|error| (FailureKind::StoredTimers, error.into()))?.unwrap_or_default();
        Ok(Timers { pending, ..Timers::at(stream_time, now) })
    }

    /// Takes out the earliest timer that is due; ties in the order of names.
    pub(crate) fn take_due(&mut self, by: DueBy) -> Option<Pending> {
        let due = self.pending.iter().enumerate().filter(|(_, timer)| by.covers(timer));
        let (place, _) = due.min_by_key(|(_, timer)| (timer.due, timer.clock))?;
        self.dirty = true;
        Some(self.pending.remove(place))
    }

    /// What could not be set.
    pub(crate) fn check(&mut self) -> Result<(), Trouble> {
        self.failure.take().map_or(Ok(()), |error| Err((FailureKind::SetTimer, error)))
    }

    /// What became of them.
    pub(crate) fn change(&self, stored: Option<&[u8]>, scratch: &mut Vec<u8>) -> StateChange {
        if !self.dirty {
            return StateChange::Unchanged;
        }
        if self.pending.is_empty() {
            return if stored.is_some() { StateChange::Deleted } else { StateChange::Unchanged };
        }
        scratch.clear();
        encode(&self.pending, scratch);
        if stored.is_some_and(|stored| stored == scratch) {
            return StateChange::Unchanged;
        }
        StateChange::Set(scratch[..].into())
    }
}

/// Up to when timers are due, by each clock; `None`: none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueBy {
    /// Milliseconds since the epoch.
    pub event_time: Option<i64>,
    /// See `event_time`.
    pub wall_clock: Option<i64>,
}

impl DueBy {
    /// That of one clock.
    pub(crate) fn of(self, clock: Clock) -> Option<i64> {
        match clock {
            Clock::EventTime => self.event_time,
            Clock::WallClock => self.wall_clock,
        }
    }

    fn covers(self, timer: &Pending) -> bool {
        self.of(timer.clock).is_some_and(|by| timer.due <= by)
    }
}

/// A timer that fires, as the first parameter of a stage's `on_timer` function.
///
/// `K` is the codec of the stage's keys: `Timer<Utf8>`. Where a `key` function computes the state keys, it is any codec that
/// reads what that function makes; `Timer<Bytes>` has the bytes.
///
/// ```
/// use flechtwerk::prelude::*;
///
/// let timer = Timer::<Utf8>::new("ann".into(), "close", 1_700_000_000_000);
/// assert_eq!((&*timer.key, &*timer.name), ("ann", "close"));
/// ```
#[non_exhaustive]
pub struct Timer<K: Codec> {
    /// The state key that it was set for.
    pub key: K::Item,
    /// Its name.
    pub name: String,
    /// The time that it was set for, in milliseconds since the epoch; by now it is as late or later. What is sent has this
    /// timestamp, unless another one is given.
    pub due: i64,
    /// What it goes by.
    pub clock: Clock,
}

impl<K: Codec> Timer<K> {
    /// A timer by event time, for a test.
    pub fn new(key: K::Item, name: impl Into<String>, due: i64) -> Self {
        Timer { key, name: name.into(), due, clock: Clock::EventTime }
    }

    /// Makes it one by another clock.
    pub fn with_clock(self, clock: Clock) -> Self {
        Timer { clock, ..self }
    }

    pub(crate) fn load(fired: FiredTimer) -> Result<Self, Trouble> {
        let FiredTimer { key, name, due, clock } = fired;
        let key = K::decode(&key).map_err(|error| (FailureKind::TimerKey, error))?;
        Ok(Timer { key, name, due, clock })
    }
}

/// Shows what is not secret: the key is.
impl<K: Codec> fmt::Debug for Timer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("name", &self.name)
            .field("due", &self.due)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

/// The machine's clock, in milliseconds since the epoch.
pub(crate) fn wall_clock() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(LATEST)
}

#[cfg(test)]
mod tests;
