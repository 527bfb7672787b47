//! The same as `proxy`, on three nodes: coordinators and leaders are different ones, and each has an address of its own. And Kafka's
//! own client behind the proxy: it speaks newer versions than librdkafka.

use std::collections::BTreeSet;
use std::time::Duration;

use flechtwerk_proxy::{Action, ApiKey, Proxy, Rule};
use flechtwerk_tests::network::SCENARIOS;
use flechtwerk_tests::{Cluster, Proxied};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const NODES: i32 = 3;

/// All scenarios, side by side on one cluster, and the client beside them.
#[test]
fn requests_broken_on_three_nodes() {
    let cluster = &Cluster::start(NODES as u32);
    std::thread::scope(|scope| {
        let mut running = vec![("kafka's own client", scope.spawn(|| kafkas_own_client(cluster)))];
        for (name, scenario) in SCENARIOS {
            let run = move || {
                let proxied = Proxied::on(cluster, NODES, RIG);
                assert_eq!(proxied.proxy.nodes().len(), NODES as usize, "{name}");
                scenario(proxied);
            };
            running.push((name, scope.spawn(run)));
        }
        let ended = running.into_iter().map(|(name, one)| (name, one.join()));
        let failed: Vec<_> = ended.filter(|(_, result)| result.is_err()).map(|(name, _)| name).collect();
        assert!(failed.is_empty(), "failed, as told above: {failed:?}");
    });
}

/// It is told one address of the proxy, and reaches all three nodes through it: no address of a broker is in any answer, of
/// versions that are as new as the broker's own.
fn kafkas_own_client(cluster: &Cluster) {
    let first = cluster.kafka.brokers.split(',').next().expect("a node");
    let proxy = Proxy::start(&[first]).expect("a proxy");
    let topic = "through-the-proxy";
    cluster.create_topic(topic, 30, 1);
    let led: BTreeSet<i32> = (0..30).map(|partition| cluster.leader(topic, partition)).collect();
    assert_eq!(led.len(), NODES as usize, "each node leads a partition");
    let passed = |api: ApiKey| {
        let on = |node| Rule::on(api).node(node).always().then(Action::Delay(Duration::ZERO));
        (1..=NODES).map(|node| proxy.rule(on(node))).collect::<Vec<_>>()
    };
    let rules = [passed(ApiKey::Produce), passed(ApiKey::Fetch)];

    let lines: Vec<String> = (0..300).map(|number| format!("line {number}")).collect();
    let to = ["--bootstrap-server", &proxy.bootstrap(), "--topic", topic];
    // A batch of its own for each line, or one partition would get them all.
    let small = ["producer", "--producer-property", "batch.size=1", "--producer-property", "linger.ms=0"];
    cluster.tool(&[&small, &to[..]].concat(), &lines.join("\n"));
    let read = ["consumer", "--from-beginning", "--max-messages", "300", "--timeout-ms", "60000"];
    let printed = cluster.tool(&[&read, &to[..]].concat(), "");
    let of = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(of(printed.lines().collect()), of(lines.iter().map(String::as_str).collect()));

    for (rules, api, with_addresses) in [(&rules[0], ApiKey::Produce, 10), (&rules[1], ApiKey::Fetch, 16)] {
        for (node, rule) in (1..).zip(rules) {
            assert!(rule.fired() > 0, "{api:?} went past the proxy to node {node}");
        }
        let log = proxy.log();
        let requests = log.iter().filter_map(|event| event.request.as_ref());
        let versions: BTreeSet<i16> =
            requests.filter(|one| one.api() == Some(api)).map(|one| one.version).collect();
        assert!(versions.iter().all(|one| *one >= with_addresses), "{api:?} of versions {versions:?}");
        eprintln!("{api:?} of versions {versions:?}");
    }
}
