//! What an extractor answers: when it wants to be polled again.

use std::time::Duration;

/// What the function of an [`#[extractor]`](macro@crate::extractor) returns when its page is complete.
///
/// ```
/// use flechtwerk::prelude::*;
/// use std::time::Duration;
///
/// /// A page of at most 100 items says whether there may be more.
/// fn after(items: usize, retry_after: Option<Duration>) -> Next {
///     match retry_after {
///         Some(wait) => Next::After(wait),
///         None if items == 100 => Next::Again,
///         None => Next::Idle,
///     }
/// }
/// assert_eq!(after(100, None), Next::Again);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// There is more: the next page at once, as soon as this one is committed.
    ///
    /// A source that answers this for ever without anything new is an error: after a hundred such pages in a row the
    /// process stops. A call that took a second or more, such as a long poll, is none of them.
    Again,
    /// Nothing new for now: the next page after the extractor's `poll_interval`.
    Idle,
    /// The next page after this time, such as a source's own `Retry-After`. It is counted from the end of the call.
    /// No time at all is the same as [`Again`](Next::Again).
    After(Duration),
}
