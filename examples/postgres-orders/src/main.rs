//! `postgres-orders --help` says what it can do.

flechtwerk::main!(postgres_orders::POSTGRES_ORDERS);
