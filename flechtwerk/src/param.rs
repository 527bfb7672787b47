//! What a stage's parameters after the input may be.

use crate::glue::{
    Agrees, Closing, Due, NoState, Opening, Part, RawRecord, StateInfo, StateParameter, Trouble, Visit,
};
use crate::out::Out;
use crate::state::{State, StateValue};
use crate::timers::Timers;
use crate::topic::Topic;

/// A parameter that a stage takes by `&mut`: [`State<S>`](State), [`Out<T>`](Out), [`Timers`], or a type of your own that
/// is made of them.
///
/// A type of your own can give names to several outputs, or add methods to one. It is made anew from its parts for each
/// state key, and lives through those records of the key that are processed together:
///
/// ```
/// use flechtwerk::prelude::*;
///
/// #[topic("words", key = Utf8, value = Utf8)]
/// pub struct Words;
/// #[topic("short", key = Utf8, value = Utf8)]
/// pub struct Short;
/// #[topic("long", key = Utf8, value = Utf8)]
/// pub struct Long;
///
/// /// Sorts words by their length.
/// #[derive(Default)]
/// pub struct BySize {
///     outs: (Out<Short>, Out<Long>),
/// }
///
/// impl BySize {
///     fn send(&mut self, key: String, word: String) {
///         let (short, long) = &mut self.outs;
///         if word.len() < 5 { short.send(key, word) } else { long.send(key, word) }
///     }
/// }
///
/// impl Slot for BySize {
///     type Parts = (Out<Short>, Out<Long>);
///
///     fn from_parts(outs: Self::Parts) -> Self {
///         BySize { outs }
///     }
///
///     fn parts(&mut self) -> &mut Self::Parts {
///         &mut self.outs
///     }
/// }
///
/// #[transformer(inputs = [Words])]
/// pub async fn sort(word: Record<Words>, out: &mut BySize) -> flechtwerk::Result {
///     out.send(word.key, word.value);
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a stage can't be given a `&mut {Self}`",
    label = "not a parameter of a stage",
    note = "by `&mut` come `&mut State<S>`, `&mut Out<T>`, `&mut Timers`, and `&mut` of a type of your own that implements `Slot`; what \
            the stages share, a `&Table<T>` or a `&Res<R>`, comes by `&`"
)]
pub trait Slot: Sized + Send + 'static {
    /// What it is made of: a `State<S>`, an `Out<T>`, `Timers`, or a tuple of up to six of these.
    type Parts: SlotParts;

    /// Makes it for one state key.
    fn from_parts(parts: Self::Parts) -> Self;

    /// The parts that [`from_parts`](Slot::from_parts) took, where they are now.
    fn parts(&mut self) -> &mut Self::Parts;
}

/// What a [`Slot`] can be made of. Not to be implemented elsewhere.
#[diagnostic::on_unimplemented(
    message = "a parameter can't be made of `{Self}`",
    label = "not what a parameter can be made of",
    note = "a `Slot` is made of a `State<S>`, an `Out<T>`, `Timers`, or a tuple of two to six of these"
)]
pub trait SlotParts: Send + 'static {
    #[doc(hidden)]
    type Keeps;
    #[doc(hidden)]
    const PARTS: &'static [Part];
    #[doc(hidden)]
    fn open(opening: &mut Opening<'_>) -> Result<Self, Trouble>
    where
        Self: Sized;
    #[doc(hidden)]
    fn visit(&mut self, visit: &mut Visit<'_, '_>) -> Result<(), Trouble>;
}

/// One part: a state, an output or timers.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a parameter can't be made of `{Self}`",
    label = "not what a parameter can be made of",
    note = "a `Slot` is made of a `State<S>`, an `Out<T>`, `Timers`, or a tuple of two to six of these"
)]
pub trait SlotPart: Sized + Send + 'static {
    type Keeps;
    const PART: Part;
    fn open(opening: &mut Opening<'_>) -> Result<Self, Trouble>;
    /// Before each record.
    fn begin(&mut self, record: &RawRecord);
    /// After each record: bytes waiting, or what failed meanwhile.
    fn check(&mut self) -> Result<usize, Trouble>;
    /// Takes out a timer that is due.
    fn due(&mut self, _: &mut Due) {}
    /// After the last record of a key.
    fn close(&mut self, closing: &mut Closing<'_>) -> Result<(), Trouble>;
}

impl<S: StateValue> SlotPart for State<S> {
    type Keeps = StateParameter<S>;
    const PART: Part = Part::State(StateInfo { type_name: S::NAME, version: S::VERSION, oldest: S::OLDEST });

    fn open(opening: &mut Opening<'_>) -> Result<Self, Trouble> {
        State::load(opening.stored)
    }

    fn begin(&mut self, _: &RawRecord) {}

    fn check(&mut self) -> Result<usize, Trouble> {
        Ok(0)
    }

    fn close(&mut self, closing: &mut Closing<'_>) -> Result<(), Trouble> {
        *closing.change = self.change(closing.stored, closing.scratch)?;
        Ok(())
    }
}

impl<T: Topic> SlotPart for Out<T> {
    type Keeps = NoState;
    const PART: Part = Part::Output(T::INFO);

    fn open(opening: &mut Opening<'_>) -> Result<Self, Trouble> {
        let output = opening.outputs;
        opening.outputs += 1;
        Ok(Out::new(output, opening.pool.pop()))
    }

    fn begin(&mut self, record: &RawRecord) {
        Out::begin(self, record);
    }

    fn check(&mut self) -> Result<usize, Trouble> {
        Out::check(self)
    }

    fn close(&mut self, closing: &mut Closing<'_>) -> Result<(), Trouble> {
        closing.pool.extend(self.drain(closing.outputs));
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl SlotPart for Timers {
    type Keeps = NoState;
    const PART: Part = Part::Timers;

    fn open(opening: &mut Opening<'_>) -> Result<Self, Trouble> {
        Timers::load(opening.timers, opening.times.stream_time, opening.times.now)
    }

    fn begin(&mut self, _: &RawRecord) {}

    fn check(&mut self) -> Result<usize, Trouble> {
        Timers::check(self).map(|()| 0)
    }

    fn due(&mut self, due: &mut Due) {
        due.found = self.take_due(due.by);
    }

    fn close(&mut self, closing: &mut Closing<'_>) -> Result<(), Trouble> {
        *closing.timers_change = self.change(closing.stored_timers, closing.scratch);
        Ok(())
    }
}

impl<P: SlotPart> SlotParts for P {
    type Keeps = P::Keeps;
    const PARTS: &'static [Part] = &[P::PART];

    fn open(opening: &mut Opening<'_>) -> Result<Self, Trouble> {
        P::open(opening)
    }

    fn visit(&mut self, visit: &mut Visit<'_, '_>) -> Result<(), Trouble> {
        match visit {
            Visit::Begin(record) => self.begin(record),
            Visit::Check(bytes) => **bytes += self.check()?,
            Visit::Due(due) => self.due(due),
            Visit::Close(closing) => self.close(closing)?,
        }
        Ok(())
    }
}

impl<S: StateValue> Slot for State<S> {
    type Parts = Self;

    fn from_parts(parts: Self) -> Self {
        parts
    }

    fn parts(&mut self) -> &mut Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl Slot for Timers {
    type Parts = Self;

    fn from_parts(parts: Self) -> Self {
        parts
    }

    fn parts(&mut self) -> &mut Self {
        self
    }
}

impl<T: Topic> Slot for Out<T> {
    type Parts = Self;

    fn from_parts(parts: Self) -> Self {
        parts
    }

    fn parts(&mut self) -> &mut Self {
        self
    }
}

macro_rules! tuples {
    ($($($part:ident $n:tt)*;)*) => { $(
        impl<$($part: SlotPart),*> SlotParts for ($($part,)*) {
            type Keeps = ($($part::Keeps,)*);
            const PARTS: &'static [Part] = &[$($part::PART),*];

            fn open(opening: &mut Opening<'_>) -> Result<Self, Trouble> {
                Ok(($($part::open(opening)?,)*))
            }

            fn visit(&mut self, visit: &mut Visit<'_, '_>) -> Result<(), Trouble> {
                $( SlotParts::visit(&mut self.$n, visit)?; )*
                Ok(())
            }
        }

        impl<S, $($part: Agrees<S>),*> Agrees<S> for ($($part,)*) {}
    )* };
}

tuples! {
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D0 3;
    A 0 B 1 C 2 D0 3 E 4;
    A 0 B 1 C 2 D0 3 E 4 F 5;
}
