//! A pipeline whose stages share tables and resources.

use std::time::Duration;

use flechtwerk::prelude::*;
use flechtwerk::{Key, Secret, Value};
use serde::Deserialize;

use crate::pipeline::{Joined, Words};

/// A table of texts.
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

/// A table of the lengths of texts; an empty text deletes.
#[topic(
    "lengths",
    key = Utf8,
    value = Utf8,
    row = usize,
    enrich = length,
    empty_is_delete = true,
    on_invalid = flechtwerk::invalid::skip,
)]
pub struct Lengths;

/// Says in the log that it was called.
fn length(key: &Key<Lengths>, text: Value<Lengths>) -> Result<usize, std::fmt::Error> {
    eprintln!("enriched {key} {text}");
    match text.as_str() {
        "refuse" => Err(std::fmt::Error),
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        text => Ok(text.len()),
    }
}

/// A word `get` is answered with the item of its key, `size` with the number of items. `wait:FILE` is `get`, says so in
/// the log, and then waits for a file; `big` is `get`, says so, and sends a lot more.
#[transformer(inputs = [Words])]
pub async fn look_up(word: Record<Words>, items: &Table<Items>, out: &mut Out<Joined>) -> flechtwerk::Result {
    let item = items.get(&word.key).map_or("-", String::as_str).to_owned();
    eprintln!("looked up {} {item}", word.value);
    match word.value.as_str() {
        "size" => out.send(word.key, items.len().to_string()),
        "big" => out.send(word.key, item + &" ".repeat(3000)),
        other => {
            if let Some(path) = other.strip_prefix("wait:") {
                wait(path).await?;
            }
            let again = items.get(&word.key).map_or("-", String::as_str);
            if again != item {
                return Err("the table changed within a record".into());
            }
            out.send(word.key, item);
        }
    }
    Ok(())
}

/// The same table, and another one.
#[transformer(inputs = [Words])]
pub async fn measure(
    word: Record<Words>,
    items: &Table<Items>,
    lengths: &Table<Lengths>,
    out: &mut Out<Joined>,
) -> flechtwerk::Result {
    let length = lengths.get(&word.key).map_or("-".to_owned(), usize::to_string);
    out.send(word.key, format!("{length} {}", items.len()));
    Ok(())
}

/// A key that can't be looked up if it is `trap`.
#[derive(PartialEq, Eq, Deserialize, serde::Serialize)]
pub struct Trap(String);

impl std::hash::Hash for Trap {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        assert!(self.0 != "trap", "the trap snaps shut");
        self.0.hash(hasher);
    }
}

/// A table with such keys.
#[topic("traps", key = Json<Trap>, value = Utf8)]
pub struct Traps;

/// Puts the number of traps behind each word.
#[transformer(inputs = [Words])]
pub async fn set_traps(
    word: Record<Words>,
    traps: &Table<Traps>,
    out: &mut Out<Joined>,
) -> flechtwerk::Result {
    out.send(word.key, traps.len().to_string());
    Ok(())
}

async fn wait(path: &str) -> flechtwerk::Result {
    std::fs::write(format!("{path}.arrived"), "")?;
    while !std::path::Path::new(path).exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Settings of [`clock`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockSettings {
    label: String,
    token: Secret<String>,
    #[expect(dead_code, reason = "nobody needs to know it")]
    #[serde(default)]
    pin: Option<Secret<u16>>,
    /// What goes wrong: `make`, `panic`, `close`, `close-panic`, `close-hang`.
    #[serde(default)]
    fails: String,
}

/// What [`clock`] makes.
pub struct Clock {
    settings: ClockSettings,
}

impl Drop for Clock {
    fn drop(&mut self) {
        eprintln!("dropped clock");
    }
}

/// What [`bell`] makes.
pub struct Bell {
    clock: Res<Clock>,
}

impl Drop for Bell {
    fn drop(&mut self) {
        eprintln!("dropped bell");
    }
}

#[derive(Debug)]
struct Refused(std::io::Error);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the clock is not set")
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Needs nothing.
#[resource(close = close_spring)]
pub async fn spring() -> flechtwerk::Result<Spring> {
    eprintln!("made spring");
    Ok(Spring)
}

/// What [`spring`] makes.
pub struct Spring;

impl Drop for Spring {
    fn drop(&mut self) {
        eprintln!("dropped spring");
    }
}

async fn close_spring(_: &Spring) -> flechtwerk::Result {
    eprintln!("closed spring");
    Ok(())
}

/// Needs a spring, and settings.
#[resource(close = close_clock)]
pub async fn clock(settings: ClockSettings, spring: &Res<Spring>) -> flechtwerk::Result<Clock> {
    let _ = spring;
    eprintln!("made clock {settings:?} {}", settings.token.expose().len());
    match settings.fails.as_str() {
        "make" => Err(Refused(std::io::Error::other("the key is lost")).into()),
        "panic" => panic!("the spring breaks"),
        _ => Ok(Clock { settings }),
    }
}

async fn close_clock(clock: &Clock) -> flechtwerk::Result {
    match clock.settings.fails.as_str() {
        "close" => return Err(Refused(std::io::Error::other("it ticks on")).into()),
        "close-panic" => panic!("the spring breaks"),
        "close-hang" => std::future::pending().await,
        _ => eprintln!("closed clock"),
    }
    Ok(())
}

/// Needs a clock.
#[resource(name = "big_bell", close = close_bell)]
pub async fn bell(clock: &Res<Clock>) -> Result<Bell, std::io::Error> {
    eprintln!("made bell");
    // It is the same runtime as that of the stages, and does not wait.
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(Bell { clock: clock.clone() })
}

async fn close_bell(bell: &Bell) -> Result<(), std::io::Error> {
    let _ = &bell.clock;
    eprintln!("closed bell");
    Ok(())
}

/// Settings of [`hammer`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HammerSettings {
    #[serde(default)]
    weight: u16,
    #[serde(default)]
    breaks: bool,
    #[serde(default)]
    breaks_at_last: bool,
}

/// What [`hammer`] makes. It has no function that closes it, and wants the runtime when it is dropped; it may be told to break
/// then.
pub struct Hammer {
    breaks: bool,
}

impl Drop for Hammer {
    fn drop(&mut self) {
        // Panics where there is none, as clients of databases do.
        tokio::runtime::Handle::current().block_on(tokio::task::yield_now());
        assert!(!self.breaks, "the hammer breaks");
        eprintln!("dropped hammer");
    }
}

/// Needs nothing but settings.
#[resource]
pub async fn hammer(settings: HammerSettings) -> flechtwerk::Result<Hammer> {
    match settings.breaks {
        true => Err(format!("the handle of {} g broke", settings.weight).into()),
        false => Ok(Hammer { breaks: settings.breaks_at_last }),
    }
}

/// Puts the clock's label behind each word.
#[transformer(inputs = [Words])]
pub async fn ring(
    word: Record<Words>,
    bell: &Res<Bell>,
    spring: &Res<Spring>,
    hammer: &Res<Hammer>,
    out: &mut Out<Joined>,
) -> flechtwerk::Result {
    let _ = (spring, hammer);
    out.send(word.key, format!("{} {}", word.value, bell.clock.settings.label));
    Ok(())
}

flechtwerk::pipeline!(
    /// Stages that share; named as the other pipeline of the tests is.
    pub SHARED = "rig": [look_up, measure, set_traps, ring], resources = [bell, clock, hammer, spring]
);
