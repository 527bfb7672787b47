//! Checks of one stage. Each is called in a constant whose expression is shown at the user's tokens that it is about.

use super::super::{AllParts, InputVt, Part, TopicInfo, infos};
use super::text::{Message, Name, same};

/// Every topic that the input type takes stands in `inputs`. The other way round is checked by types.
#[track_caller]
pub const fn inputs_complete<I, const N: usize>(ty: &str, tables: &[InputVt<I>; N]) {
    let takes = tables[0].takes;
    if takes.len() <= N {
        return;
    }
    let inputs = infos(tables);
    let mut n = 0;
    while n < takes.len() {
        let mut m = 0;
        while m < inputs.len() && !same(inputs[m].id, takes[n].id) {
            m += 1;
        }
        if m == inputs.len() {
            Message::new()
                .add("`")
                .add(ty)
                .add("` also takes records of topic ")
                .quoted(Name::of(takes[n].name))
                .add(" (`")
                .add(takes[n].id)
                .add("`), which `inputs` does not name, so they would never come: add it there, or remove the variant")
                .panic();
        }
        n += 1;
    }
}

/// The topic at `index` does not stand in `inputs` twice, under two names of its type.
#[track_caller]
pub const fn input_once<I, const N: usize>(tables: &[InputVt<I>; N], index: usize) {
    let mut n = 0;
    while n < index {
        if same(tables[n].info.id, tables[index].info.id) {
            Message::new()
                .add("topic ")
                .quoted(Name::of(tables[n].info.name))
                .add(" stands in `inputs` twice, and a stage reads each topic once: remove one")
                .panic();
        }
        n += 1;
    }
}

/// A stage that says `state = ..` has a parameter for it.
#[track_caller]
pub const fn state_taken(ty: &str, parts: &[Part]) {
    if count_states(parts) == 0 {
        Message::new()
            .add("the attribute says `state = ")
            .add(ty)
            .add("`, but no parameter takes it: add `state: &mut State<")
            .add(ty)
            .add(">` to the function, or remove it here")
            .panic();
    }
}

/// A stage with state whose state key is the record's key can't read topics where that may be null.
#[track_caller]
pub const fn key_not_null(topic: &'static TopicInfo) {
    if topic.key_nullable {
        Message::new()
            .add("keys of topic ")
            .quoted(Name::of(topic.name))
            .add(
                " may be null, and null has no state of its own: add `key = path::to::fn`, a function that makes the \
                 state key of any record of this stage",
            )
            .panic();
    }
}

/// The parameter at `index` brings no second state, and no output topic that an earlier one has.
#[track_caller]
pub const fn parameter<const MOST: usize>(all: &AllParts<MOST>, index: usize) {
    let parts = all.as_slice();
    let mut later = if parts.len() > 1 { 0 } else { return };
    while later < parts.len() {
        let mut earlier = 0;
        while all.parameter(later) == index && earlier < later {
            pair(&parts[earlier], &parts[later]);
            earlier += 1;
        }
        later += 1;
    }
}

#[track_caller]
const fn pair(earlier: &Part, later: &Part) {
    match (earlier, later) {
        (Part::State(_), Part::State(_)) => Message::new()
            .add("a stage has one state for each key, this is the second: put both into one struct")
            .panic(),
        (Part::Output(earlier), Part::Output(later)) if same(earlier.id, later.id) => Message::new()
            .add("an earlier parameter sends to topic ")
            .quoted(Name::of(later.name))
            .add(" already, and the order between the two would be lost: use that one")
            .panic(),
        _ => {}
    }
}

const fn count_states(parts: &[Part]) -> usize {
    let (mut count, mut n) = (0, 0);
    while n < parts.len() {
        if matches!(parts[n], Part::State(_)) {
            count += 1;
        }
        n += 1;
    }
    count
}
