//! How state of older versions is read (S2.7): each `upgrade_from` of a state type leads from one version to the next, so
//! that a step which was written once is never touched again. The steps run when a state is read, for that state alone;
//! nothing is written but what the stage changes.

use super::check::version_differs;
use super::{FailureKind, StateValue, Tried};
use crate::error::BoxError;

/// Proof that an old type is a state.
pub const fn old_state<S: StateValue>() -> usize {
    0
}

/// Fails the compilation if an old type does not say that it is of this version.
#[track_caller]
pub const fn old_version<S: StateValue>(version: u32) {
    if S::VERSION != version {
        version_differs(S::NAME, S::VERSION, version)
    }
}

/// The state as a `S`, if it is stored as one; else what the steps up to here have made of it.
pub fn read<S: StateValue>(version: u32, stored: (u32, &[u8]), upgraded: Option<S>) -> Tried<Option<S>> {
    if stored.0 != version {
        return Ok(upgraded);
    }
    match S::get(stored.1) {
        Ok(state) => Ok(Some(state)),
        Err(error) => Err((FailureKind::Upgrade { version }, error.into())),
    }
}

/// One step, from the version that `stored` may be of or have been brought to.
pub fn step<A: StateValue, B, F: UpgradeFn<A, B>>(
    function: F,
    stored: (u32, &[u8]),
    state: Option<A>,
) -> Tried<Option<B>> {
    let Some(state) = state else { return Ok(None) };
    let upgraded = function.upgrade(state);
    upgraded.map(Some).map_err(|error| {
        // Which of several steps it was.
        let (from, to) = (A::VERSION, A::VERSION + 1);
        let error = match stored.0 == from {
            true => error,
            false => format!("the step from version {from} to {to}: {error}").into(),
        };
        (FailureKind::Upgrade { version: stored.0 }, error)
    })
}

/// What the last step has made.
pub fn upgraded<S: StateValue>(stored: (u32, &[u8]), state: Option<S>) -> Tried<S> {
    state.ok_or_else(|| (FailureKind::State { version: Some(stored.0) }, "no step leads from it".into()))
}

/// A function that makes the state of the next version.
#[diagnostic::on_unimplemented(
    message = "this can't upgrade a `{A}` to a `{B}`",
    label = "not a function from `{A}` to `{B}`",
    note = "write `fn name(old: {A}) -> {B}`, or `-> flechtwerk::Result<{B}>` if it can fail"
)]
pub trait UpgradeFn<A, B> {
    fn upgrade(self, old: A) -> Result<B, BoxError>;
}

impl<A, B, R: Upgraded<B>, F: FnOnce(A) -> R> UpgradeFn<A, B> for F {
    fn upgrade(self, old: A) -> Result<B, BoxError> {
        self(old).upgraded()
    }
}

/// What such a function returns.
#[diagnostic::on_unimplemented(
    message = "this upgrade leads to a `{Self}`, and the next version is a `{B}`",
    label = "does not make a `{B}`",
    note = "each `upgrade_from` leads to the next version: return a `{B}`, or a `flechtwerk::Result<{B}>` if it can fail"
)]
pub trait Upgraded<B> {
    fn upgraded(self) -> Result<B, BoxError>;
}

impl<B> Upgraded<B> for B {
    fn upgraded(self) -> Result<B, BoxError> {
        Ok(self)
    }
}

impl<B, E: Into<BoxError>> Upgraded<B> for Result<B, E> {
    fn upgraded(self) -> Result<B, BoxError> {
        self.map_err(Into::into)
    }
}
