//! State: what a stage remembers for each key.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{Keys, write_json};
use crate::error::{BoxError, CodecError};
use crate::format;
use crate::glue::{FailureKind, StateChange, Tried, Trouble};

/// A type that can be kept as state: numbers, `bool`, `String`, and all with
/// [`#[derive(State, Serialize, Deserialize)]`](derive@crate::State).
///
/// It is stored as its version and its JSON, with the keys of maps sorted, so that a `HashMap` that did not change does
/// not count as changed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be kept as state",
    label = "not a state type",
    note = "add `#[derive(State, Serialize, Deserialize)]` to `{Self}`; a type that is not yours goes into a struct of your own"
)]
pub trait StateValue: Storable + Send + 'static {
    /// The version that is written in front of the contents. A stored state of a version that is neither this nor one that
    /// the type can upgrade is not read: the stage stops and names it.
    const VERSION: u32 = 1;
    #[doc(hidden)]
    const NAME: &'static str;
    /// The oldest version that can be upgraded.
    #[doc(hidden)]
    const OLDEST: u32 = Self::VERSION;
    /// Reads a state of an older version, down to `OLDEST`, and brings it up to date.
    #[doc(hidden)]
    fn upgrade(version: u32, _: &[u8]) -> Tried<Self> {
        unreachable!("state of version {version} is upgraded only by a type that says how")
    }
}

macro_rules! plain {
    ($($type:ident)*) => { $(
        impl StateValue for $type {
            const NAME: &'static str = stringify!($type);
        }
    )* };
}

plain!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 bool char String);

/// Anything that serde can write and read.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be stored as state: it lacks `Serialize` or `Deserialize`",
    label = "can't be written as JSON and read back",
    note = "write `#[derive(State, Serialize, Deserialize)]`, and see that every field has both"
)]
pub trait Storable: Sized {
    fn put(&self, into: &mut Vec<u8>) -> Result<(), CodecError>;
    fn get(bytes: &[u8]) -> Result<Self, CodecError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Storable for T {
    fn put(&self, into: &mut Vec<u8>) -> Result<(), CodecError> {
        write_json(self, Keys::MapsSorted, into)
    }

    fn get(bytes: &[u8]) -> Result<Self, CodecError> {
        crate::codec::read_json(bytes)
    }
}

/// The state of the record's key, as a parameter of a stage: `&mut State<Count>`.
///
/// It dereferences to `Option<S>`: `None` where nothing is stored yet, and setting `None` deletes. All of `Option`'s
/// methods are there: `get_or_insert_default()`, `as_mut()`, `take()`, `as_ref()`; [`set`](State::set) and
/// [`clear`](State::clear) are its own. Mutable access marks it as
/// changed; whether it really changed is then decided by its encoded bytes, and what is unchanged is not written.
///
/// ```
/// use flechtwerk::prelude::*;
///
/// let mut seen = State::<u64>::default();
/// *seen.get_or_insert_default() += 1;
/// assert_eq!(*seen, Some(1));
/// seen.set(7);
/// assert_eq!(*seen, Some(7));
/// seen.clear();
/// assert!(seen.is_none());
/// ```
pub struct State<S> {
    value: Option<S>,
    dirty: bool,
}

impl<S> State<S> {
    /// A state for a test; `State::default()` is an empty one.
    pub fn new(value: S) -> Self {
        State { value: Some(value), dirty: false }
    }

    /// Stores a value: the same as assigning `Some(value)` to what it dereferences to.
    pub fn set(&mut self, value: S) {
        **self = Some(value);
    }

    /// Deletes what is stored.
    pub fn clear(&mut self) {
        **self = None;
    }
}

impl<S> Default for State<S> {
    fn default() -> Self {
        State { value: None, dirty: false }
    }
}

impl<S> From<Option<S>> for State<S> {
    fn from(value: Option<S>) -> Self {
        State { value, dirty: false }
    }
}

impl<S> Deref for State<S> {
    type Target = Option<S>;

    fn deref(&self) -> &Option<S> {
        &self.value
    }
}

impl<S> DerefMut for State<S> {
    fn deref_mut(&mut self) -> &mut Option<S> {
        self.dirty = true;
        &mut self.value
    }
}

/// Shows whether there is one, not what it holds.
impl<S> fmt::Debug for State<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.value.is_some() { "State(set)" } else { "State(empty)" })
    }
}

impl<S: StateValue> State<S> {
    pub(crate) fn load(stored: Option<&[u8]>) -> Result<Self, Trouble> {
        Ok(State { value: stored.map(|bytes| decode(bytes)).transpose()?, dirty: false })
    }

    /// What became of it; `scratch` is a buffer to encode into.
    pub(crate) fn change(
        &self,
        stored: Option<&[u8]>,
        scratch: &mut Vec<u8>,
    ) -> Result<StateChange, Trouble> {
        if !self.dirty {
            return Ok(StateChange::Unchanged);
        }
        match (&self.value, stored) {
            (None, None) => Ok(StateChange::Unchanged),
            (None, Some(_)) => Ok(StateChange::Deleted),
            (Some(value), stored) => {
                scratch.clear();
                encode(value, scratch).map_err(|error| (FailureKind::EncodeState, BoxError::from(error)))?;
                if stored.is_some_and(|stored| stored == scratch) {
                    return Ok(StateChange::Unchanged);
                }
                Ok(StateChange::Set(scratch[..].into()))
            }
        }
    }
}

/// Appends the version, as a variable-length integer of seven bits a byte, the lowest first, and the JSON.
pub(crate) fn encode<S: StateValue>(value: &S, into: &mut Vec<u8>) -> Result<(), CodecError> {
    format::put_version(S::VERSION, into);
    value.put(into)
}

pub(crate) fn decode<S: StateValue>(bytes: &[u8]) -> Result<S, Trouble> {
    let (version, json) =
        format::take_version(bytes).map_err(|error| (FailureKind::State { version: None }, error.into()))?;
    if version != S::VERSION {
        if (S::OLDEST..S::VERSION).contains(&version) {
            return S::upgrade(version, json);
        }
        let known = known_versions(S::OLDEST, S::VERSION);
        let error = format!("the stored state is of version {version}, this program knows {known}");
        return Err((FailureKind::State { version: Some(version) }, error.into()));
    }
    S::get(json).map_err(|error| (FailureKind::State { version: None }, error.into()))
}

/// For messages.
pub(crate) fn known_versions(oldest: u32, version: u32) -> String {
    match version - oldest {
        0 => format!("version {version}"),
        1 => format!("versions {oldest} and {version}"),
        _ => format!("versions {oldest} to {version}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::compact::CompactBytes;

    fn stored<S: StateValue>(value: &S) -> CompactBytes {
        let mut bytes = Vec::new();
        encode(value, &mut bytes).unwrap();
        bytes.into()
    }

    #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
    struct V<const N: u32>(u8);

    impl<const N: u32> StateValue for V<N> {
        const VERSION: u32 = N;
        const NAME: &'static str = "V";
    }

    #[test]
    fn the_format_is_version_and_json() {
        assert_eq!(&stored(&7u64)[..], b"\x017");
        assert_eq!(&stored(&V::<127>(5))[..], b"\x7f5");
        assert_eq!(&stored(&V::<128>(5))[..], b"\x80\x015");
        assert_eq!(&stored(&V::<{ u32::MAX }>(5))[..], b"\xff\xff\xff\xff\x0f5");
        assert_eq!(decode::<V<{ u32::MAX }>>(&stored(&V::<{ u32::MAX }>(5))).unwrap(), V(5));
    }

    #[test]
    fn another_version_is_named() {
        let (kind, error) = decode::<V<2>>(&stored(&V::<300>(5))).unwrap_err();
        assert!(matches!(kind, FailureKind::State { version: Some(300) }));
        assert_eq!(error.to_string(), "the stored state is of version 300, this program knows version 2");
    }

    #[test]
    fn what_is_no_state_is_refused() {
        for bytes in
            [&b""[..], b"\x80", b"\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\x7f1", b"\x01", b"\x01x"]
        {
            let (kind, _) = decode::<u8>(bytes).unwrap_err();
            assert!(matches!(kind, FailureKind::State { version: None }), "{bytes:?}");
        }
    }

    #[test]
    fn untouched_is_unchanged_and_nothing_is_encoded() {
        let bytes = CompactBytes::from(&b"\x01 7"[..]);
        let state = State::<u64>::load(Some(&bytes)).unwrap();
        let mut scratch = Vec::new();
        assert_eq!(*state, Some(7));
        assert_eq!(state.change(Some(&bytes), &mut scratch).unwrap(), StateChange::Unchanged);
        assert!(scratch.is_empty());
    }

    #[test]
    fn only_other_bytes_are_a_change() {
        let before = stored(&7u64);
        let mut scratch = Vec::new();
        let mut state = State::<u64>::load(Some(&before)).unwrap();
        *state.get_or_insert_default() += 1;
        assert_eq!(state.change(Some(&before), &mut scratch).unwrap(), StateChange::Set(stored(&8u64)));
        *state.get_or_insert_default() -= 1;
        assert_eq!(state.change(Some(&before), &mut scratch).unwrap(), StateChange::Unchanged);
        state.clear();
        assert_eq!(state.change(Some(&before), &mut scratch).unwrap(), StateChange::Deleted);
        assert_eq!(state.change(None, &mut scratch).unwrap(), StateChange::Unchanged);
    }

    #[test]
    fn a_map_in_another_order_is_no_change() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Seen(HashMap<String, u32>);
        impl StateValue for Seen {
            const NAME: &'static str = "Seen";
        }
        let map: HashMap<String, u32> = (0..50).map(|n| (n.to_string(), n)).collect();
        let before = stored(&Seen(map));
        let mut state = State::<Seen>::load(Some(&before)).unwrap();
        state.as_mut().unwrap().0.insert("x".into(), 1);
        state.as_mut().unwrap().0.remove("x");
        assert_eq!(state.change(Some(&before), &mut Vec::new()).unwrap(), StateChange::Unchanged);
    }

    #[test]
    fn what_can_not_be_read_back_is_not_stored() {
        let mut state = State::<f64>::default();
        state.set(f64::NAN);
        let (kind, _) = state.change(None, &mut Vec::new()).unwrap_err();
        assert!(matches!(kind, FailureKind::EncodeState));
    }
}
