//! A short run of each fuzz target, with seeds that stay. The long one is the program of this crate.

use flechtwerk_fuzz::{Played, input, play, targets};

const INPUTS: u64 = 2_000;

#[test]
fn what_is_good_is_read() {
    for target in targets() {
        for bytes in (target.good)() {
            let mut played = Played::default();
            play(target, &bytes, &mut played);
            // A secret in the settings file is refused, and is there to be kept to oneself; an old version has its limits.
            let refused = bytes.starts_with(b"sasl_password") || target.name == "settings";
            assert!(played.good == 1 || refused || target.name == "state", "{}: {bytes:?}", target.name);
        }
    }
}

#[test]
fn what_lies_does_no_harm() {
    for target in targets() {
        let mut played = Played::default();
        (0..INPUTS).for_each(|seed| play(target, &input(target, seed), &mut played));
        assert!(played.good > 0, "{}: nothing was read", target.name);
        assert!(played.refused > 0 || target.name == "bytes", "{}: nothing was refused", target.name);
    }
}
