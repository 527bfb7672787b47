//! `enrich-orders --help` says what it can do.

flechtwerk::main!(enrich_orders::ENRICH_ORDERS);
