//! Checks of the versions of a state.

use super::text::Message;

/// An old type is of another version than the one under which it stands in `upgrade_from`.
#[track_caller]
pub(in super::super) const fn version_differs(name: &str, version: u32, said: u32) -> ! {
    Message::new()
        .add("`")
        .add(name)
        .add("` is of version ")
        .number(version)
        .add(" by its own attribute, and stands here as version ")
        .number(said)
        .add(": the type of an old version keeps what it said then, so correct the one that is wrong")
        .panic()
}
