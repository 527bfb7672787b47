//! Lists and descriptions.

use super::*;

#[test]
fn a_transaction_is_described() {
    let mut f = Fixture::new();
    assert_eq!(f.transactions.describe("x"), Err(ErrorCode::TransactionalIdNotFound));
    let producer = f.init().unwrap();
    assert_eq!(f.describe().start, -1);
    f.pass(5);
    f.add(producer, 0);
    f.add_group(producer, "g");
    let described = f.describe();
    assert_eq!(described.state.name(), "Ongoing");
    assert_eq!((described.producer, described.timeout_ms), (producer, TIMEOUT));
    assert_eq!(described.start, f.now.wall);
    assert_eq!(described.partitions, [TopicPartition::new("t", 0)]);
    assert_eq!(described.groups, ["g"]);
}

#[test]
fn transactions_are_listed_by_state_producer_and_age() {
    let mut f = Fixture::new();
    let x = f.init().unwrap();
    let y = f.request(&init("y", NONE)).unwrap();
    f.add(x, 0);
    f.pass(1_000);
    let names = |f: &Fixture, filter: ListFilter| -> Vec<String> {
        let listed = f.transactions.list(f.now, &filter).transactions;
        listed.into_iter().map(|listed| listed.transactional_id).collect()
    };
    assert_eq!(names(&f, ListFilter::default()), ["x", "y"]);
    let states = |states: &[&str]| ListFilter {
        states: states.iter().map(|state| (*state).to_owned()).collect(),
        ..ListFilter::default()
    };
    assert_eq!(names(&f, states(&["Ongoing"])), ["x"]);
    assert_eq!(names(&f, states(&["Ongoing", "Empty"])), ["x", "y"]);
    assert_eq!(names(&f, states(&["PrepareCommit"])), [""; 0]);
    assert_eq!(names(&f, ListFilter { producer_ids: vec![y.id], ..ListFilter::default() }), ["y"]);
    let open = |duration_ms| ListFilter { duration_ms, ..states(&["Ongoing"]) };
    assert_eq!(names(&f, open(999)), ["x"]);
    assert_eq!(names(&f, open(1_000)), [""; 0]);
    let listed = f.transactions.list(f.now, &states(&["Ongoing", "ongoing", "Nonsense"]));
    assert_eq!(listed.unknown_states, ["ongoing", "Nonsense"]);
    assert_eq!(listed.transactions.len(), 1);
    assert_eq!(listed.transactions[0].state, TransactionState::Ongoing);
    assert_eq!(listed.transactions[0].producer_id, x.id);
    assert_eq!(names(&f, states(&["Nonsense"])), [""; 0], "an unknown state is the state of none");
}

#[test]
fn states_have_the_names_of_the_wire() {
    for state in TransactionState::ALL {
        assert_eq!(TransactionState::from_name(state.name()), Some(state));
        assert_eq!(state.to_string(), state.name());
    }
    assert_eq!(TransactionState::from_name("Nonsense"), None);
}
