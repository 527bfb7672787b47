//! What `#[transformer]` generates is an implementation of [`Stage`], put together from one table per parameter. Each
//! user type is named, and each bound on it stated, in the making of its table only, so that a type which does not fit
//! gives one error.

use std::future::Future;
use std::marker::PhantomData;

use bytes::Bytes;

use super::{
    AnyStage, BoxFuture, Env, Failure, FailureKind, Outputs, Part, RawRecord, Round, RoundEnd, SharedParams,
    StageInfo, Topics,
};
use super::{ByRef, Due, FiredTimer, PartList, StateChange, Times, TopicInfo};
use crate::codec::Codec;
use crate::error::BoxError;
use crate::input::{Accepts, Input, IsRecord};
use crate::invalid::{Answer, Invalid};
use crate::out::Pool;
use crate::param::{Slot, SlotParts};
use crate::record::Record;
use crate::resource::Res;
use crate::table::Table;
use crate::topic::Topic;

/// A failure that does not know its record yet.
pub type Trouble = (FailureKind, BoxError);

/// What generated functions return.
pub type Tried<T> = Result<T, Trouble>;

/// What parameters are made from, at the first record of a bucket.
pub struct Opening<'a> {
    pub(crate) stored: Option<&'a [u8]>,
    pub(crate) timers: Option<&'a [u8]>,
    pub(crate) times: Times,
    /// How many outputs were opened before this one.
    pub(crate) outputs: u16,
    pub(crate) pool: &'a mut Pool,
}

/// Where parameters leave their results, after the last record of a bucket.
pub struct Closing<'a> {
    pub(crate) stored: Option<&'a [u8]>,
    pub(crate) change: &'a mut StateChange,
    pub(crate) stored_timers: Option<&'a [u8]>,
    pub(crate) timers_change: &'a mut StateChange,
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) pool: &'a mut Pool,
    pub(crate) scratch: &'a mut Vec<u8>,
}

/// What the parameters are told.
pub enum Visit<'a, 'b> {
    /// A record is about to be processed.
    Begin(&'a RawRecord),
    /// It was: each adds the bytes that wait in it, or says what failed in it meanwhile.
    Check(&'a mut usize),
    /// Is a timer due?
    Due(&'a mut Due),
    /// It was the last of its bucket.
    Close(&'a mut Closing<'b>),
}

/// A stage as its generated code describes it. Implemented by a type that nobody can name, so that the user's types in it
/// may be as private as they like.
pub trait Stage: Sized + 'static {
    /// Its description.
    const INFO: &'static StageInfo;
    /// The first parameter.
    type Input: Send + 'static;
    /// The topics of the inputs.
    type Topics: Topics<Self::Input>;
    /// All parameters by `&mut`.
    type Slots: Params;
    /// All parameters by `&`.
    type Shared: SharedParams;
    /// The state key of a record; generated where the stage computes it.
    fn key(raw: &RawRecord) -> Tried<Bytes> {
        Ok(raw.key.clone().unwrap_or_default())
    }
    /// Decodes a record.
    fn decode(raw: &RawRecord) -> Tried<Self::Input> {
        Self::Topics::decode(raw.input, raw)
    }
    /// Decides about a record that did not decode; generated where the stage names a function for it.
    fn on_invalid(_: &Invalid<'_>) -> Answer {
        Answer::Crash
    }
    /// Calls the function. The future is the function's own.
    fn call(
        input: Self::Input,
        slots: &mut Self::Slots,
        shared: &Self::Shared,
    ) -> impl Future<Output: Outcome> + Send;
    /// Calls the function for timers; generated where the stage takes timers.
    fn on_timer(
        timer: FiredTimer,
        _: &mut Self::Slots,
        _: &Self::Shared,
    ) -> impl Future<Output = Tried<()>> + Send {
        drop(timer);
        std::future::ready(Ok(()))
    }
}

/// What `pipeline!` finds under the path of a stage.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stage",
    label = "no `#[transformer]` or `#[extractor]` function of this name",
    note = "a pipeline lists functions with `#[transformer(inputs = [..])]` or `#[extractor(..)]`, by their paths"
)]
pub trait Listable {
    const LISTED: Listed;
}

/// The parameters by `&mut`, as nested pairs.
pub trait Params: Sized + Send + 'static {
    /// What they stand for.
    const PARTS: PartList;
    /// Makes them for a bucket.
    fn open(opening: &mut Opening<'_>) -> Tried<Self>;
    /// Passes a visit on to each.
    fn visit(&mut self, visit: &mut Visit<'_, '_>) -> Tried<()>;
}

impl Params for () {
    const PARTS: PartList = PartList { parts: &[], next: None };

    fn open(_: &mut Opening<'_>) -> Tried<Self> {
        Ok(())
    }

    fn visit(&mut self, _: &mut Visit<'_, '_>) -> Tried<()> {
        Ok(())
    }
}

impl<P: SlotParam, Rest: Params> Params for (P, Rest) {
    const PARTS: PartList = PartList { parts: P::PARTS, next: Some(&Rest::PARTS) };

    fn open(opening: &mut Opening<'_>) -> Tried<Self> {
        Ok((P::open(opening)?, Rest::open(opening)?))
    }

    fn visit(&mut self, visit: &mut Visit<'_, '_>) -> Tried<()> {
        self.0.visit(visit)?;
        self.1.visit(visit)
    }
}

/// A [`Stage`] as an object.
pub struct Erased<S>(pub PhantomData<fn() -> S>);

impl<S: Stage> AnyStage for Erased<S> {
    fn info(&self) -> &'static StageInfo {
        S::INFO
    }

    fn key(&self, record: &RawRecord) -> Result<Bytes, Trouble> {
        super::runner::caught(|| super::policy::key::<S>(record))
    }

    fn round<'a>(
        &'a self,
        round: &'a mut Round,
        outputs: &'a mut Outputs,
        env: &'a Env,
        budget: usize,
    ) -> BoxFuture<'a, Result<RoundEnd, Failure>> {
        Box::pin(super::runner::run::<S>(round, outputs, env, budget))
    }
}

/// What a parameter stands for; given that the rest of it was checked.
pub const fn slot<P: SlotParam>(_: &[usize]) -> &'static [Part] {
    P::PARTS
}

/// A parameter by `&mut`, right or wrong; what is known to be wrong has a role of its own, for its own message.
#[diagnostic::on_unimplemented(
    message = "a stage can't be given a `&mut {Self}`",
    label = "not a parameter of a stage",
    note = "by `&mut` come `&mut State<S>`, `&mut Out<T>`, `&mut Timers`, and `&mut` of a type of your own that implements `Slot`; what \
            the stages share, a `&Table<T>` or a `&Res<R>`, comes by `&`"
)]
pub trait SlotParam: Sized + Send + 'static {
    type Keeps;
    type Role;
    const PARTS: &'static [Part];
    fn open(opening: &mut Opening<'_>) -> Tried<Self>;
    fn visit(&mut self, visit: &mut Visit<'_, '_>) -> Tried<()>;
}

impl<P: Slot> SlotParam for P {
    type Keeps = <P::Parts as SlotParts>::Keeps;
    type Role = Right;
    const PARTS: &'static [Part] = P::Parts::PARTS;

    fn open(opening: &mut Opening<'_>) -> Tried<Self> {
        P::Parts::open(opening).map(P::from_parts)
    }

    fn visit(&mut self, visit: &mut Visit<'_, '_>) -> Tried<()> {
        self.parts().visit(visit)
    }
}

macro_rules! wrong {
    ($type:ty, $role:ident where $($bound:tt)+) => {
        #[diagnostic::do_not_recommend]
        impl<T: $($bound)+> SlotParam for $type {
            type Keeps = NoState;
            type Role = $role<Self>;
            const PARTS: &'static [Part] = &[];

            fn open(_: &mut Opening<'_>) -> Tried<Self> {
                unreachable!("a program with mistakes is not compiled")
            }

            fn visit(&mut self, _: &mut Visit<'_, '_>) -> Tried<()> {
                Ok(())
            }
        }
    };
}

wrong!(Record<T>, ByValue where Topic);
wrong!(Res<T>, ByRef where Send + Sync + 'static);
wrong!(Table<T>, ByRef where 'static);

/// A role that needs nothing said.
pub struct Right;
/// The role of an input among the other parameters.
pub struct ByValue<P>(PhantomData<P>);

/// Asked of the role of a parameter by `&mut`. It stands before [`RoleOk`] for the errors' sake: rustc says less of a
/// constant that is missing than of a bound of a function that is not met, and lists no types that have it.
pub trait FitsByMut {
    const PROOF: usize = 0;
}

impl<R: RoleOk> FitsByMut for R {}

/// Roles that are right.
pub trait RoleOk {}
impl RoleOk for Right {}
impl<P: TakenByValue> RoleOk for ByValue<P> {}

/// Never implemented: carries a message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is an input, so it is the first parameter, by value",
    label = "an input can't stand here",
    note = "a stage takes one record at a time; to read several topics, make the first parameter an enum with `#[derive(Input)]`"
)]
pub trait TakenByValue {}

/// What is known of an input.
#[derive(Clone, Copy)]
pub struct InputCheck {
    /// The topic that the attribute names.
    pub info: &'static TopicInfo,
    /// All topics that the input type takes.
    pub takes: &'static [&'static TopicInfo],
}

/// The check of an input topic; `D` is what its keys must be like.
pub const fn input<I: Accepts<Record<T>> + Send, T: Topic<KeyCodec: KeyLike<D>>, D>() -> InputCheck {
    InputCheck { info: T::INFO, takes: I::TOPICS }
}

/// No demand on a topic's keys.
pub struct AnyKey;
/// A topic's keys must be written as those of `T`.
pub struct KeyOf<T>(PhantomData<T>);

/// A topic's key codec meets a demand.
#[diagnostic::on_unimplemented(message = "the inputs of this stage have different key codecs")]
pub trait KeyLike<D> {}
impl<C> KeyLike<AnyKey> for C {}
impl<T: Topic<KeyCodec: SameKey<C>>, C> KeyLike<KeyOf<T>> for C {}

/// Implemented for one and the same codec only.
#[diagnostic::on_unimplemented(
    message = "the inputs of this stage write their keys as `{Self}` and as `{C}`, so one key would have two states",
    label = "keys are `{C}` here, and `{Self}` in the first input",
    note = "add `key = path::to::fn`, a function that makes the state key of any record of this stage"
)]
pub trait SameKey<C> {}
impl<C> SameKey<C> for C {}

/// Proof that something was checked: [`CheckedBy`] passes a type on only if the constant could be computed. A constant
/// whose own types don't fit is an error once; what depends on it is then an error already reported, and rustc says no
/// more about it.
pub const fn codecs<K: Codec, V: Codec>() -> usize {
    0
}

/// Proof that a type can be the first parameter.
pub const fn input_type<I: Input>() -> usize {
    I::PROOF
}

/// Proof that a variant of an input holds a record.
pub const fn variant<R: IsRecord>() -> usize {
    0
}

/// Proof of all of these.
pub const fn proofs(_: &[usize]) -> usize {
    0
}

/// Passes `Self` on.
pub trait CheckedBy<const PROOF: usize> {
    type It;
}

impl<T> CheckedBy<0> for T {
    type It = T;
}

/// Passes `Self` on as well; what depends on a `P` that is an error is one already reported.
pub trait With<P> {
    type It;
}

impl<T, P> With<P> for T {
    type It = T;
}

/// What a topic's types are, once they passed [`CheckedBy`].
pub trait Pair {
    type First;
    type Second;
}

impl<A, B> Pair for (A, B) {
    type First = A;
    type Second = B;
}

/// What a stage's types are, once they passed [`CheckedBy`].
pub trait Checked {
    type Input;
    type Topics;
    type Slots;
    type Shared;
    type Returns;
}

impl<I, T, S, H, R> Checked for (I, T, S, H, R) {
    type Input = I;
    type Topics = T;
    type Slots = S;
    type Shared = H;
    type Returns = R;
}

/// The type itself: `<P as Same>::T` can carry two spans, the user's first and last token.
pub trait Same {
    type T;
}

impl<X> Same for X {
    type T = X;
}

/// A parameter that keeps no state.
pub struct NoState;
/// A parameter that keeps an `S`.
pub struct StateParameter<S>(PhantomData<S>);

/// Asked of what a parameter keeps: goes it together with the state that the attribute names? As with [`FitsByMut`], for
/// the errors' sake.
pub trait KeptAs<A> {
    const PROOF: usize = 0;
}

impl<K: Agrees<A>, A> KeptAs<A> for K {}

/// What the parameter keeps agrees with `state = A` in the attribute.
#[diagnostic::on_unimplemented(message = "`state` in the attribute and the parameter disagree")]
pub trait Agrees<A> {}
impl<A> Agrees<A> for NoState {}
impl<S, A: SameState<S>> Agrees<A> for StateParameter<S> {}

/// Implemented for one and the same type only.
#[diagnostic::on_unimplemented(
    message = "the attribute says `state = {Self}`, the function takes a `State<{S}>`",
    label = "not the state that the attribute names",
    note = "name one type in both places"
)]
pub trait SameState<S> {}
impl<S> SameState<S> for S {}

/// What a stage's function returns.
#[diagnostic::on_unimplemented(
    message = "a stage returns `flechtwerk::Result`, not `{Self}`",
    label = "should be `flechtwerk::Result`",
    note = "`Result<(), E>` will do with every `E` that goes into a `Box<dyn Error + Send + Sync>`; results are sent with `Out`, not returned"
)]
pub trait Outcome {
    /// What generated code asks for, to tell what does not return this.
    const PROOF: usize = 0;
    fn outcome(self) -> Result<(), BoxError>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> Outcome for Result<(), E> {
    fn outcome(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// A function that computes state keys.
#[diagnostic::on_unimplemented(
    message = "this can't be the `key` of a stage whose input is `{I}`",
    label = "not a function from `&{I}` to bytes",
    note = "write `fn name(input: &{I}) -> K`, where `K` is a `&str`, a `String`, a `Vec<u8>`, or anything else that is `AsRef<[u8]>`"
)]
pub trait KeyFn<'a, I> {
    fn key(&self, input: &'a I) -> Bytes;
}

#[diagnostic::do_not_recommend]
impl<'a, I: 'a, F: Fn(&'a I) -> K, K: AsRef<[u8]> + 'a> KeyFn<'a, I> for F {
    fn key(&self, input: &'a I) -> Bytes {
        Bytes::copy_from_slice(self(input).as_ref())
    }
}

/// Computes a state key.
pub fn key<I, F: for<'a> KeyFn<'a, I>>(function: F, input: &I) -> Result<Bytes, Trouble> {
    Ok(function.key(input))
}

/// What stands in for the future of a stage with mistakes.
pub type Ready = std::future::Ready<crate::Result>;

/// Makes one.
pub fn ready() -> Ready {
    std::future::ready(Ok(()))
}

/// What stands in for an input with mistakes.
pub fn no_input<I>() -> Tried<I> {
    unreachable!("a program with mistakes is not compiled")
}

/// A stage that stands in a pipeline.
#[derive(Clone, Copy)]
pub struct Listed {
    /// What the checks look at.
    pub info: &'static StageInfo,
    /// What the pipeline runs.
    pub stage: &'static dyn AnyStage,
}

/// Makes the entry of a stage.
pub const fn listed<S: Stage>() -> Listed {
    Listed { info: S::INFO, stage: const { &Erased::<S>(PhantomData) } }
}
