//! The kept state of a log: never trusted, though it has a CRC.

use proptest::prelude::*;

use super::*;
use crate::log::LogConfig;
use crate::log::state::LogState;

fn encoded() -> Vec<u8> {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    for sequence in 0..7 {
        append(&mut log, &Batch::transactional((1, 0, sequence), vec![record("a", "1")]));
        append(&mut log, &Batch::transactional((2, 0, sequence), vec![record("b", "1")]));
        log.append_marker(1, 0, sequence % 2 == 0, 0, NOW).unwrap();
        log.set_leader_epoch(sequence);
    }
    log.delete_records(2).unwrap();
    assert_eq!(LogState::decode(&log.state.encode()), Some(log.state.clone()));
    log.state.encode()
}

#[test]
fn a_state_that_is_cut_off_is_refused() {
    let bytes = encoded();
    for end in 0..bytes.len() {
        assert_eq!(LogState::decode(&bytes[..end]), None);
    }
    assert_eq!(LogState::decode(&[bytes.as_slice(), &[0]].concat()), None);
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_state_is_survived(at in any::<prop::sample::Index>(), new in proptest::collection::vec(any::<u8>(), 1..9)) {
        let mut bytes = encoded();
        let at = at.index(bytes.len());
        for (place, new) in bytes[at..].iter_mut().zip(&new) {
            *place = *new;
        }
        let _ = LogState::decode(&bytes);
        let _ = LogState::decode(&new);
    }
}
