//! The guarantee under faults (S3.1, S4, S5), as `make test` tries it: kills, stops, spoilt disks and rebalances by a schedule, on
//! whichever broker the environment names, and every invariant checked.

use flechtwerk_chaos::brokers::Script;
use flechtwerk_chaos::outcome::told;
use flechtwerk_chaos::run::{Options, new_folder, run};
use flechtwerk_chaos::tier::{Name, Overrides};

#[test]
fn kills_zombies_and_spoilt_disks_lose_and_double_nothing() {
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(rand::random);
    let name = if Script::from_env().is_some() { Name::Real } else { Name::Dev };
    let out = new_folder(&std::env::temp_dir(), seed);
    println!("SEED={seed}, tier {name:?}, everything is kept in {} until it has passed", out.display());
    // `make test-quick` has less time.
    let less =
        Overrides { kills: Some(25), network: Some(15), records: Some(50_000), ..Overrides::default() };
    let tier = if cfg!(feature = "rocksdb") { name.tier() } else { name.tier().with(&less) };
    let pipeline = env!("CARGO_BIN_EXE_chaos-pipeline").into();
    let options = Options { tier, seed, out, pipeline, broken: Vec::new() };
    let outcome = run(&options).expect("the rig runs");
    let text = told(&options, &outcome);
    println!("{text}");
    assert!(outcome.holds(), "{text}");
    assert!(outcome.counts(), "{text}");
    // What was looked at is not nothing.
    let figures = &outcome.figures;
    assert_eq!(figures.inputs as u64, options.tier.records);
    assert!(figures.canaries > 0 && figures.aborted_outputs > 0 && figures.changes > 0, "{text}");
    assert_eq!(outcome.done.get("kill"), Some(&options.tier.kills), "{text}");
    assert_eq!(outcome.done.get("stop"), Some(&options.tier.stops), "{text}");
    assert!(!cfg!(feature = "rocksdb") || figures.stores > 0, "{text}");
    std::fs::remove_dir_all(&options.out).expect("remove what was kept");
}
