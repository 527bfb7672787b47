//! Random histories hold the guarantee, get through their input, and catch machines and drivers that are broken
//! on purpose.

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::world::{Broken, Violation, World};

fn play(broken: Broken, history: &[u8]) -> Result<usize, Violation> {
    let mut world = World::new(broken);
    for byte in history {
        world.step(*byte)?;
    }
    world.settle()?;
    Ok(world.commits)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn no_history_loses_or_doubles_a_record(history in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Err(violation) = play(Broken::Nothing, &history) {
            return Err(TestCaseError::fail(violation));
        }
    }
}

#[test]
fn long_histories_commit_a_lot_and_stay_exact() {
    let mut commits = 0;
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let history: Vec<u8> = (0..3000).map(|_| random.random()).collect();
        commits +=
            play(Broken::Nothing, &history).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
    }
    assert!(commits > 300 * 10, "the histories hardly did anything: {commits} commits");
}

/// Each of these would lose or double records on a cluster; the same histories must notice.
#[test]
fn broken_drivers_are_caught() {
    for broken in [
        Broken::OffsetsBeforeFence,
        Broken::NoFence,
        Broken::StoreBeforeCommit,
        Broken::StampWithoutOwner,
        Broken::NoStampsAfterFence,
        Broken::StaleStoreReused,
        Broken::PositionTooFar,
    ] {
        let caught = (0..3000).find(|seed| {
            let mut random = StdRng::seed_from_u64(*seed);
            let history: Vec<u8> = (0..800).map(|_| random.random()).collect();
            play(broken, &history).is_err()
        });
        assert!(caught.is_some(), "{broken:?} was not caught");
    }
}
