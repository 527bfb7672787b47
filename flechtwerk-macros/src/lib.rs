//! The macros of flechtwerk; use them through that crate, which documents what a pipeline is.
//!
//! This file is the front: documentation and forwarding. The work is done on `proc_macro2` tokens, by functions that
//! tests can call: `args` reads the arguments, `item` the function (its body stays opaque), `model` puts the two
//! together and finds mistakes, `headers` looks whether the body may see a record's headers, `expand` writes code. Mistakes
//! are collected by `errors`, and where errors of rustc will show is decided in `spans`.

mod args;
mod errors;
mod expand;
mod extractor;
mod headers;
mod item;
mod model;
mod names;
mod spans;
mod upgrades;

#[cfg(test)]
mod snapshots;

use proc_macro::TokenStream;

/// Makes a unit struct a topic.
///
/// ```
/// use flechtwerk::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// pub struct Order {
///     article: String,
///     pieces: u32,
/// }
///
/// #[topic("orders", key = BigEndian<u64>, value = Json<Order>)]
/// pub struct Orders;
///
/// assert_eq!(Orders::NAME, "orders");
/// ```
///
/// - The name comes first: 1 to 249 letters, digits, `.`, `_` and `-`.
/// - `key` and `value` name codecs. There is no default, and nothing is guessed from a type's name: `Utf8`, `Bytes`,
///   `Json<T>`, `BigEndian<u64>` and its like, or one of your own. What may be null is `Nullable<..>`.
/// - `row = R, enrich = path::to::function`: in a `Table` of the topic there is an `R` for each key, which the function makes
///   of a key and a value, `fn(&Key<T>, Value<T>) -> flechtwerk::Result<R>`; without it, the value.
/// - `on_invalid = path::to::function`: decides about records that don't decode where the topic is a `Table` or holds an extractor's
///   configs, as a stage's `on_invalid` does about its inputs; without it, the process stops at such a record.
/// - `empty_is_delete = true`: in a `Table` of the topic, a value without a single byte deletes its key, as null always does.
/// - `crate = path` says where flechtwerk is, if it has another name: `crate = fw`.
#[proc_macro_attribute]
pub fn topic(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::topic(arguments.into(), item.into()).into()
}

/// Makes an async function a stage: Kafka in, Kafka out. The function stays what it was, and a test can call it.
///
/// ```
/// use flechtwerk::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[topic("logins", key = Utf8, value = Utf8)]
/// pub struct Logins;
/// #[topic("first-logins", key = Utf8, value = Utf8)]
/// pub struct FirstLogins;
///
/// #[derive(State, Serialize, Deserialize)]
/// pub struct Seen;
///
/// #[transformer(inputs = [Logins], state = Seen)]
/// pub async fn first(login: Record<Logins>, seen: &mut State<Seen>, out: &mut Out<FirstLogins>) -> flechtwerk::Result {
///     if seen.is_none() {
///         seen.set(Seen);
///         out.send(login.key, login.value);
///     }
///     Ok(())
/// }
///
/// flechtwerk::pipeline!(pub DEMO = "demo": [first]);
///
/// let mut driver = flechtwerk::testing::Driver::new(&DEMO);
/// driver.send::<Logins>("ann".into(), "09:00".into());
/// driver.send::<Logins>("ann".into(), "10:00".into());
/// driver.run_blocking()?;
/// assert_eq!(driver.read::<FirstLogins>()[0].value, "09:00");
/// # Ok::<(), flechtwerk::testing::Failed>(())
/// ```
///
/// # The function
///
/// It is `async`, free and not generic, and returns `flechtwerk::Result` or another `Result<(), E>`.
///
/// - The first parameter is the input, by value: a `Record<Topic>`, or for several topics an enum with
///   [`#[derive(Input)]`](derive@Input).
/// - What belongs to one key is taken by `&mut`: `State<S>` and `Timers` at most once, `Out<T>` for each topic it sends to, or
///   types of your own that implement `Slot`.
/// - What all share is taken by `&`: `Table<T>`, `Res<R>`, or types of your own that implement `Shared`.
///
/// What a function does not take as a parameter it cannot do.
///
/// Its future must be `Send`: no `Rc` and no lock guard may live across an `.await`.
///
/// # Arguments
///
/// - `inputs = [Topic, ..]`: what it reads. The partitions of one number of all inputs are read together, so they must be
///   equally many. Where records of one key wait in several inputs, they come in the order of this list.
/// - `state = S`: it keeps an `S` for each key, and takes a `&mut State<S>`. The key is the record's; if it may be null, or
///   the inputs write their keys in different ways, `key` must be given.
/// - `key = path::to::function`: computes the state key from a reference to the input, as anything that is
///   `AsRef<[u8]>`. Records of one state key are processed one after another. **It may refine the record's key, but must
///   not put records of different partitions together**: each partition keeps its own states, and nothing can check this.
/// - `order = timestamp`: where records of one key wait in several inputs, the one with the smallest timestamp comes first;
///   equal ones in the order of `inputs`. The default is `order = inputs`.
/// - `start = latest`: where nothing was ever committed, it begins at the end of its inputs. The default is
///   `start = earliest`.
/// - `on_invalid = path::to::function`: decides about records that don't decode, where the default is to stop at them. The
///   function gets a `&flechtwerk::invalid::Invalid<'_>` and returns an `Answer`; `flechtwerk::invalid::{crash, skip,
///   dead_letter}` are ready-made.
/// - `dead_letters = Topic`: where that function may send such records, in the same transaction. The topic's codecs are
///   `Nullable<Bytes>`, both.
/// - `on_timer = path::to::function`: it takes a `&mut Timers` and sets timers, and this async function is called when they are
///   due. It has the parameters of the stage's own in the same order, but for a `Timer` in the place of the record. For the key the
///   same holds as with `state`.
/// - `name = ".."`: the stage's name, if not the function's.
/// - `application_id = ".."`: if not pipeline and name with a hyphen between. It names the consumer group, the transactional
///   ids and the changelog topic; whoever changes it begins from the start, without state.
/// - `crate = path`: where flechtwerk is, if it has another name.
///
/// ```
/// use flechtwerk::prelude::*;
/// # #[topic("orders", key = Utf8, value = Utf8)]
/// # pub struct Orders;
///
/// /// Orders of one customer are apart by article.
/// fn customer_and_article(order: &Record<Orders>) -> String {
///     format!("{}/{}", order.key, order.value)
/// }
///
/// #[transformer(inputs = [Orders], state = u64, key = customer_and_article, start = latest, name = "per-article")]
/// pub async fn count(_: Record<Orders>, pieces: &mut State<u64>) -> flechtwerk::Result {
///     *pieces.get_or_insert_default() += 1;
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn transformer(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::transformer(arguments.into(), item.into()).into()
}

/// Makes an async function a stage that brings data in: outside world in, Kafka out. The function stays what it was, and
/// a test can call it.
///
/// One call is one page: its messages and its cursor, which is the state, are committed together or not at all.
///
/// ```
/// use flechtwerk::prelude::*;
///
/// #[topic("feeds", key = Utf8, value = Json<u64>)]
/// pub struct Feeds;
/// #[topic("items", key = Utf8, value = Json<u64>)]
/// pub struct Items;
///
/// /// Counts up to the number that the config says.
/// #[extractor(config = Feeds, state = u64, poll_interval = "30s")]
/// pub async fn poll(feed: &Record<Feeds>, cursor: &mut State<u64>, out: &mut Out<Items>) -> flechtwerk::Result<Next> {
///     let next = cursor.unwrap_or(0);
///     if next == feed.value {
///         return Ok(Next::Idle);
///     }
///     out.send(feed.key.clone(), next);
///     cursor.set(next + 1);
///     Ok(Next::Again)
/// }
///
/// flechtwerk::pipeline!(pub DEMO = "demo": [poll]);
///
/// let mut driver = flechtwerk::testing::Driver::new(&DEMO);
/// driver.send::<Feeds>("a".into(), 3);
/// driver.poll_blocking("poll")?;
/// assert_eq!(driver.read::<Items>().len(), 3);
/// # Ok::<(), flechtwerk::testing::Failed>(())
/// ```
///
/// # The function
///
/// It is `async`, free and not generic, and returns `flechtwerk::Result<Next>`: [`Next::Again`] asks for the next page at
/// once, [`Next::Idle`] waits for `poll_interval`, [`Next::After`] for a time of its own.
///
/// - With `config`, the first parameter is the config record, by `&`: a `&Record<Topic>`, or for several topics a `&` of an
///   enum with [`#[derive(Input)]`](derive@Input). Each config is polled on its own, with a cursor of its own.
/// - By `&mut` come `State<S>` at most once, `Out<T>` for each topic it sends to, and types of your own that implement
///   `Slot`; by `&` come `Table<T>`, `Res<R>`, and types of your own that implement `Shared`.
///
/// # Arguments
///
/// - `config = Topic`, or `config = [Topic, ..]`: where its configs lie, one record each. The topics are read whole, and the
///   last record of a key counts; a null value removes a config, whose cursor stays. Without `config` there is one implicit
///   config.
/// - `state = S`: it keeps an `S` for each config, its cursor, and takes a `&mut State<S>`. Required without `config`.
/// - `poll_interval = "30s"`: how long a config rests when its source has nothing new, counted from the end of a call.
/// - `suspended = path::to::function`: says of a config, by reference, whether it is suspended; such a config is not polled,
///   and keeps its cursor.
/// - `key = path::to::function`: computes the state key from a reference to the config, as anything that is
///   `AsRef<[u8]>`, if it is not the record's key.
/// - `name = ".."`: the stage's name, if not the function's.
/// - `application_id = ".."`: if not pipeline and name with a hyphen between. It names the consumer group, the transactional
///   ids and the changelog topic; whoever changes it begins from the start, without cursors.
/// - `crate = path`: where flechtwerk is, if it has another name.
///
/// [`Next::Again`]: ../flechtwerk/enum.Next.html
/// [`Next::Idle`]: ../flechtwerk/enum.Next.html
/// [`Next::After`]: ../flechtwerk/enum.Next.html
#[proc_macro_attribute]
pub fn extractor(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::extractor(arguments.into(), item.into()).into()
}

/// Makes an async function the maker of a resource: something that stages share, such as the client of another system.
///
/// ```
/// use flechtwerk::prelude::*;
/// use flechtwerk::Secret;
/// use serde::Deserialize;
///
/// #[topic("alerts", key = Utf8, value = Utf8)]
/// pub struct Alerts;
///
/// /// `[resources.pager]` of the settings file, and `FLECHTWERK_RESOURCES_PAGER_TOKEN`.
/// #[derive(Deserialize)]
/// pub struct PagerSettings {
///     url: String,
///     token: Secret<String>,
/// }
///
/// pub struct Pager {
///     url: String,
///     token: Secret<String>,
/// }
///
/// impl Pager {
///     async fn page(&self, text: &str) -> flechtwerk::Result {
///         // ..
/// #       let _ = (&self.url, self.token.expose(), text);
///         Ok(())
///     }
/// }
///
/// #[resource]
/// pub async fn pager(settings: PagerSettings) -> flechtwerk::Result<Pager> {
///     Ok(Pager { url: settings.url, token: settings.token })
/// }
///
/// #[transformer(inputs = [Alerts])]
/// pub async fn page(alert: Record<Alerts>, pager: &Res<Pager>) -> flechtwerk::Result {
///     pager.page(&alert.value).await
/// }
///
/// flechtwerk::pipeline!(pub DEMO = "demo": [page], resources = [pager]);
/// ```
///
/// # The function
///
/// It is `async`, free and not generic, and returns `flechtwerk::Result<R>` or another `Result<R, E>`, where `R` is a type of
/// the same crate. For each `R` there is one such function; something of another crate is put into a struct of your own.
///
/// Its parameters are its settings, by value, if it has any: one type with `#[derive(Deserialize)]`; and other resources,
/// each as a `&Res<R>`.
///
/// It runs once in a process, before anything is read, and only if a stage that runs needs it. If it fails, the process ends
/// with status 2.
///
/// # Arguments
///
/// - `name = ".."`: the name of its settings, if not the function's.
/// - `close = path::to::function`: an async function that takes a `&R` and returns what a stage returns. It is called when
///   the stages have ended, those of resources made later first; what it does not finish within 5 seconds is left.
/// - `crate = path`: where flechtwerk is, if it has another name.
#[proc_macro_attribute]
pub fn resource(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::resource(arguments.into(), item.into()).into()
}

/// Makes an enum the input of stages that read several topics: each variant holds the record of one.
///
/// ```
/// use flechtwerk::prelude::*;
///
/// #[topic("orders", key = Utf8, value = Json<u64>)]
/// pub struct Orders;
/// #[topic("cancellations", key = Utf8, value = Utf8)]
/// pub struct Cancellations;
/// #[topic("open-orders", key = Utf8, value = Nullable<Json<u64>>)]
/// pub struct OpenOrders;
///
/// #[derive(Input)]
/// pub enum Change {
///     Order(Record<Orders>),
///     Cancellation(Record<Cancellations>),
/// }
///
/// #[transformer(inputs = [Orders, Cancellations], order = timestamp)]
/// pub async fn open(change: Change, out: &mut Out<OpenOrders>) -> flechtwerk::Result {
///     match change {
///         Change::Order(order) => out.send(order.key, Some(order.value)),
///         Change::Cancellation(cancellation) => out.send(cancellation.key, None),
///     }
///     Ok(())
/// }
/// ```
///
/// `#[input(crate = path)]` says where flechtwerk is, if it has another name.
#[proc_macro_derive(Input, attributes(input))]
pub fn input(item: TokenStream) -> TokenStream {
    expand::input(item.into()).into()
}

/// Makes a type that serde knows a state: it is stored as JSON, behind a version.
///
/// ```
/// use flechtwerk::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(State, Serialize, Deserialize, Default)]
/// #[state(version = 2)]
/// pub struct Totals {
///     count: u64,
///     #[serde(default)]
///     sum: f64,
/// }
///
/// let mut totals = State::<Totals>::default();
/// totals.get_or_insert_default().count += 1;
/// ```
///
/// - `#[state(version = N)]`: the version that is written, 1 if not given. A stored state of a version that the
///   program does not know is not read: the stage stops and names it. A change that serde can read either way, such as a new field with a default, needs no
///   new version.
/// - `#[state(upgrade_from(1 = Old, with = path::to::function))]`, once for each older version that can be read: the type that
///   the state was then, itself a state of that version, and a function that makes the **next** version of it, or a `Result`
///   with that. States are upgraded when a record asks for them, and written only where they change.
/// - `#[state(crate = path)]`: where flechtwerk is, if it has another name.
#[proc_macro_derive(State, attributes(state))]
pub fn state(item: TokenStream) -> TokenStream {
    expand::state(item.into()).into()
}

#[doc(hidden)]
#[proc_macro]
pub fn pipeline(tokens: TokenStream) -> TokenStream {
    expand::pipeline(tokens.into()).into()
}
