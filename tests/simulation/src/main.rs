//! `make simulate`: many histories, or one again.

fn main() {
    let seed: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1);
    let n: u64 = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(1);
    for seed in seed..seed + n {
        let outcome = flechtwerk_simulation::play(&flechtwerk_simulation::Plan::of(seed), &[], n == 1);
        if n == 1 {
            for line in &outcome.trace {
                println!("{line}");
            }
        }
        if n == 1 || !outcome.violations.is_empty() {
            println!("{seed}: {} commits, {:?}, {:#?}", outcome.commits, outcome.time, outcome.violations);
        }
    }
}
