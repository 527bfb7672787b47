//! Checks of one stage. Each is called in a constant whose expression is shown at the user's tokens that it is about.

use super::super::{InputCheck, Part, Share, TopicInfo};
use super::text::{Message, Name, same};

/// Every topic that the input type takes stands in `inputs`. The other way round is checked by types.
#[track_caller]
pub const fn inputs_complete(ty: &str, inputs: &[InputCheck]) {
    let takes = inputs[0].takes;
    if takes.len() <= inputs.len() {
        return;
    }
    let mut n = 0;
    while n < takes.len() {
        let mut m = 0;
        while m < inputs.len() && !same(inputs[m].info.id, takes[n].id) {
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
pub const fn input_once(inputs: &[InputCheck], index: usize) {
    let mut n = 0;
    while n < index {
        if same(inputs[n].info.id, inputs[index].info.id) {
            Message::new()
                .add("topic ")
                .quoted(Name::of(inputs[n].info.name))
                .add(" stands in `inputs` twice, and a stage reads each topic once: remove one")
                .panic();
        }
        n += 1;
    }
}

/// A stage that says `state = ..` has a parameter for it.
#[track_caller]
pub const fn state_taken(ty: &str, parameters: &[&'static [Part]]) {
    if !any_state(parameters) {
        Message::new()
            .add("the attribute says `state = ")
            .add(ty)
            .add("`, but no parameter takes it: add `state: &mut State<")
            .add(ty)
            .add(">` to the function, or remove it here")
            .panic();
    }
}

/// A parameter of a stage that says nothing of a state keeps none.
#[track_caller]
pub const fn state_said(parts: &'static [Part]) {
    let mut n = 0;
    while n < parts.len() {
        if let Part::State(state) = &parts[n] {
            Message::new()
                .add("the function takes a `State<")
                .add(state.type_name)
                .add(">`, of which the attribute says nothing: add `state = ")
                .add(state.type_name)
                .add("` to it, since a stage with state has a store and a changelog topic")
                .panic();
        }
        n += 1;
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
pub const fn parameter(parameters: &[&'static [Part]], index: usize) {
    let mine = parameters[index];
    let mut n = 0;
    while n < mine.len() {
        let mut before = 0;
        while before <= index {
            let end = if before < index { parameters[before].len() } else { n };
            let mut m = 0;
            while m < end {
                pair(&parameters[before][m], &mine[n]);
                m += 1;
            }
            before += 1;
        }
        n += 1;
    }
}

/// The tables of a parameter are none of the stage's inputs.
#[track_caller]
pub const fn not_an_input(inputs: &[InputCheck], shares: &[Share]) {
    let mut n = 0;
    while n < shares.len() {
        if let Share::Table(table) = shares[n] {
            let mut m = 0;
            while m < inputs.len() {
                if same(inputs[m].info.id, table.topic.id) {
                    Message::new()
                        .add("topic ")
                        .quoted(Name::of(table.topic.name))
                        .add(" is an input of this stage already, and would be read twice, with different results: keep \
                              what you need of it in the stage's state, or let another stage write the table's topic")
                        .panic();
                }
                m += 1;
            }
        }
        n += 1;
    }
}

#[track_caller]
const fn pair(earlier: &Part, later: &Part) {
    match (earlier, later) {
        (Part::State(_), Part::State(_)) => Message::new()
            .add("a stage has one state for each key, this is the second: put both into one struct")
            .panic(),
        (Part::Timers, Part::Timers) => Message::new()
            .add("the timers of a key are one thing, this is the second parameter for them: use the first")
            .panic(),
        (Part::Output(earlier), Part::Output(later)) if same(earlier.id, later.id) => Message::new()
            .add("an earlier parameter sends to topic ")
            .quoted(Name::of(later.name))
            .add(" already, and the order between the two would be lost: use that one")
            .panic(),
        _ => {}
    }
}

/// Nothing else of the stage reads or writes the topic of its dead letters.
#[track_caller]
pub const fn dead_letters_apart(
    topic: &'static TopicInfo,
    inputs: &[InputCheck],
    parameters: &[&'static [Part]],
) {
    let mut n = 0;
    while n < inputs.len() {
        if same(inputs[n].info.id, topic.id) {
            Message::new()
                .add("this stage reads topic ")
                .quoted(Name::of(topic.name))
                .add(" itself, so a dead letter would come back to it for ever: name a topic that is for dead letters alone")
                .panic();
        }
        n += 1;
    }
    n = 0;
    while n < parameters.len() {
        let mut m = 0;
        while m < parameters[n].len() {
            if let Part::Output(output) = parameters[n][m]
                && same(output.id, topic.id)
            {
                Message::new()
                    .add("a parameter of this stage sends to topic ")
                    .quoted(Name::of(topic.name))
                    .add(
                        " as well, and who reads it could not tell its records from dead letters: name a topic that is \
                         for dead letters alone",
                    )
                    .panic();
            }
            m += 1;
        }
        n += 1;
    }
}

/// A stage that says `on_timer = ..` has a parameter to set timers with.
#[track_caller]
pub const fn timers_taken(function: &str, parameters: &[&'static [Part]]) {
    if !any_timers(parameters) {
        Message::new()
            .add("the attribute says `on_timer = ")
            .add(function)
            .add(
                "`, but no parameter sets timers, so none would ever fire: add `timers: &mut Timers` to both functions, or \
                 remove it here",
            )
            .panic();
    }
}

/// A transformer that takes timers names a function for them.
#[track_caller]
pub const fn timers_heard(parameters: &[&'static [Part]], index: usize) {
    if any_timers(&[parameters[index]]) {
        Message::new()
            .add(
                "this stage sets timers, and nothing says what happens when they fire: add `on_timer = path::to::fn` to the \
                 attribute, an async function with the parameters of this one, but for a `Timer` in the place of the record",
            )
            .panic();
    }
}

/// An extractor takes no timers.
#[track_caller]
pub const fn no_timers(parameters: &[&'static [Part]], index: usize) {
    if any_timers(&[parameters[index]]) {
        Message::new()
            .add(
                "an extractor has no timers, since the clock calls it anyway: remove the parameter, and return \
                 `Next::After(duration)` to be called at another time than `poll_interval` says",
            )
            .panic();
    }
}

const fn any_timers(parameters: &[&'static [Part]]) -> bool {
    let mut n = 0;
    while n < parameters.len() {
        let mut m = 0;
        while m < parameters[n].len() {
            if matches!(parameters[n][m], Part::Timers) {
                return true;
            }
            m += 1;
        }
        n += 1;
    }
    false
}

const fn any_state(parameters: &[&'static [Part]]) -> bool {
    let mut n = 0;
    while n < parameters.len() {
        let mut m = 0;
        while m < parameters[n].len() {
            if matches!(parameters[n][m], Part::State(_)) {
                return true;
            }
            m += 1;
        }
        n += 1;
    }
    false
}
