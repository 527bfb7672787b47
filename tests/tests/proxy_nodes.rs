//! The same as `proxy`, on three nodes: coordinators and leaders are different ones, and each has an address of its own.

use flechtwerk_tests::network::SCENARIOS;
use flechtwerk_tests::{Cluster, Proxied};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const NODES: i32 = 3;

/// All scenarios, side by side on one cluster.
#[test]
fn requests_broken_on_three_nodes() {
    let cluster = Cluster::start(NODES as u32);
    std::thread::scope(|scope| {
        let running = SCENARIOS.iter().map(|(name, scenario)| {
            let cluster = &cluster;
            let run = move || {
                let proxied = Proxied::on(cluster, NODES, RIG);
                assert_eq!(proxied.proxy.nodes().len(), NODES as usize, "{name}");
                scenario(proxied);
            };
            (name, scope.spawn(run))
        });
        let running: Vec<_> = running.collect();
        let failed: Vec<_> =
            running.into_iter().filter_map(|(name, one)| one.join().err().map(|_| name)).collect();
        assert!(failed.is_empty(), "failed, as told above: {failed:?}");
    });
}
