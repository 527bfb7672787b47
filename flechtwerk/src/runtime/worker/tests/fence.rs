//! The fence: how often it is tried, and when no more.

use super::*;

#[test]
fn a_fence_is_tried_again_for_a_little_longer_each_time() {
    let mut bench = Bench::new(&STAGE, limits());
    let kinds = [ErrorKind::TimedOut, ErrorKind::Fatal, ErrorKind::Abortable, ErrorKind::Retriable];
    bench.cluster.fail("fence", kinds.map(error));
    let (said, seen) = seen(|| bench.ask(fence()));
    let [Said::Event(Event::Fenced { owner })] = &said[..] else { panic!("{said:?}") };
    assert_eq!(owner.len(), 16, "{owner}");
    let fences: Vec<String> =
        bench.cluster.calls().into_iter().filter(|call| call.starts_with("fence")).collect();
    assert_eq!(fences, ["fence 100ms", "fence 200ms", "fence 400ms", "fence 800ms", "fence 1.6s"]);
    assert_eq!(seen.of("flechtwerk_fences_total"), [1.0]);
    assert!(seen.warnings < 2, "not for each: {}", seen.warnings);
    assert_eq!(bench.cluster.inside().producers, 1, "a fresh one for each attempt, and the last one stays");
    // Each owner has a name of its own.
    let again = bench.ask(fence());
    assert!(
        matches!(&again[..], [Said::Event(Event::Fenced { owner: other })] if other != owner),
        "{again:?}"
    );
    bench.cluster.calls();
    bench.ask(Work::DropProducer);
    assert_eq!(bench.cluster.inside().producers, 0);
}

#[test]
fn a_fence_ends_with_the_time_or_the_task_or_where_another_came_after_it() {
    let mut bench = Bench::new(&STAGE, Limits { broker_timeout: Duration::ZERO, ..limits() });
    bench.cluster.fail("create", [passing()]);
    let said = bench.ask(fence());
    assert!(failure(&said).contains("stage sessions: can't fence the previous owner"), "{said:?}");
    let mut bench = Bench::new(&STAGE, limits());
    bench.cluster.fail("fence", [ErrorKind::Hopeless, ErrorKind::Fenced].map(error));
    assert!(matches!(&bench.ask(fence())[..], [Said::Failed(_)]));
    assert!(matches!(&bench.ask(fence())[..], [Said::Event(Event::FenceLost { .. })]));
    bench.thread.cancel.cancel();
    bench.cluster.calls();
    assert_eq!(bench.ask(fence()), []);
    assert!(bench.cluster.calls().is_empty());
}

/// S4.7a: an attempt that lands later would shut out the next owner.
#[test]
fn a_fence_that_is_overtaken_is_not_tried_again() {
    let cluster = Cluster::default();
    let tried = || cluster.count("fence");
    // More than there is time for.
    cluster.fail("fence", (0..100_000).map(|_| passing()));
    let (sender, mut reports) = unbounded_channel();
    let mut worker = Worker::start(Arc::new(context(&STAGE, &cluster, limits())), 0, sender).unwrap();
    let until = Instant::now() + LONG;
    worker.fence();
    while tried() < 2 {
        assert!(Instant::now() < until, "no second attempt");
        std::thread::sleep(Duration::from_millis(1));
    }
    worker.drop_producer();
    worker.ask(Work::ReadOffsets);
    assert_eq!(next(&mut reports), Said::Event(Event::Offsets(Vec::new())));
    // Nor beside the next one, that of the next assignment.
    worker.fence();
    let before = tried();
    while tried() == before {
        assert!(Instant::now() < until, "no attempt");
        std::thread::sleep(Duration::from_millis(1));
    }
    worker.fence();
    cluster.forgive("fence");
    assert!(matches!(next(&mut reports), Said::Event(Event::Fenced { .. })));
    worker.ask(Work::Quit { flush: false });
    assert_eq!(next(&mut reports), Said::Gone, "one fence is told");
    // One that is overtaken before it begins is not tried at all.
    let mut bench = Bench::new(&STAGE, limits());
    let unwanted = Cancel::default();
    unwanted.cancel();
    assert_eq!(bench.ask(Work::Fence { unwanted }), []);
    assert!(bench.cluster.calls().is_empty());
}
