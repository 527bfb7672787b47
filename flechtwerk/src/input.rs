//! What a stage's first parameter may be.

use crate::glue::{RawRecord, TopicInfo, Trouble};
use crate::record::Record;
use crate::topic::Topic;

/// The first parameter of a stage: a [`Record`], or an enum with [`#[derive(Input)]`](derive@crate::Input).
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the input of a stage",
    label = "not an input",
    note = "the first parameter is the input, by value: `Record<SomeTopic>`, or for several topics an enum with `#[derive(Input)]`"
)]
pub trait Input: Sized + 'static {
    #[doc(hidden)]
    const TOPICS: &'static [&'static TopicInfo];
    /// Zero, unless an error in the type's definition was reported.
    #[doc(hidden)]
    const PROOF: usize = 0;
}

impl<T: Topic> Input for Record<T> {
    const TOPICS: &'static [&'static TopicInfo] = &[T::INFO];
}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "attribute and first parameter disagree: `{Self}` does not take a `{R}`",
    label = "`{Self}` does not take a `{R}`",
    note = "one topic: the first parameter is the `{R}` itself; several: it is an enum with `#[derive(Input)]` that has a variant for each"
)]
pub trait Accepts<R>: Input {
    fn accept(raw: &RawRecord) -> Result<Self, Trouble>;
}

impl<T: Topic> Accepts<Record<T>> for Record<T> {
    fn accept(raw: &RawRecord) -> Result<Self, Trouble> {
        Record::decode(raw)
    }
}

/// What a variant of a `#[derive(Input)]` enum holds.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a variant of an input holds a `Record<SomeTopic>`, not a `{Self}`",
    label = "should be `Record<SomeTopic>`",
    note = "each variant stands for one input topic of the stage: `Order(Record<Orders>)`"
)]
pub trait IsRecord: Sized {
    const INFO: &'static TopicInfo;
    fn accept(raw: &RawRecord) -> Result<Self, Trouble>;
}

impl<T: Topic> IsRecord for Record<T> {
    const INFO: &'static TopicInfo = T::INFO;

    fn accept(raw: &RawRecord) -> Result<Self, Trouble> {
        Record::decode(raw)
    }
}
