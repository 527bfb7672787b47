//! A stage in two versions of its program: the state of the first is read by the second.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

use crate::pipeline::{Joined, Words};

/// What both do: `look` reads the state, everything else adds one to it.
macro_rules! aged {
    ($state:ident) => {
        /// Says what there is.
        #[transformer(inputs = [Words], state = $state)]
        pub async fn aged(
            word: Record<Words>,
            state: &mut State<$state>,
            out: &mut Out<Joined>,
        ) -> flechtwerk::Result {
            if word.value != "look" {
                state.get_or_insert_default().add();
            }
            out.send(word.key, state.as_ref().map_or("nothing".into(), $state::text));
            Ok(())
        }
    };
}

/// The first version of the program.
pub mod first {
    use super::*;

    /// Version 1.
    #[derive(State, Serialize, Deserialize, Default)]
    pub struct Tally {
        pub(super) n: u64,
    }

    impl Tally {
        fn add(&mut self) {
            self.n += 1;
        }

        fn text(&self) -> String {
            format!("{}", self.n)
        }
    }

    aged!(Tally);
}

/// The one after the next: a version 2 was never run.
pub mod later {
    use super::*;

    /// Version 2.
    #[derive(State, Serialize, Deserialize)]
    #[state(version = 2)]
    pub struct Halves {
        halves: u64,
    }

    /// Version 3.
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(
        version = 3,
        upgrade_from(1 = first::Tally, with = in_halves),
        upgrade_from(2 = Halves, with = with_origin),
    )]
    pub struct Origin {
        halves: u64,
        old: bool,
    }

    /// Fails at one count.
    fn in_halves(tally: first::Tally) -> Result<Halves, String> {
        match tally.n {
            3 => Err("three can't be upgraded".into()),
            n => Ok(Halves { halves: 2 * n }),
        }
    }

    fn with_origin(halves: Halves) -> Origin {
        Origin { halves: halves.halves, old: true }
    }

    impl Origin {
        fn add(&mut self) {
            self.halves += 2;
        }

        fn text(&self) -> String {
            format!("{} halves, {}", self.halves, if self.old { "upgraded" } else { "new" })
        }
    }

    aged!(Origin);
}

flechtwerk::pipeline!(
    /// Under the names of the other rig, for what its changelogs hold.
    pub RIG_LATER = "rig": [later::aged]
);
