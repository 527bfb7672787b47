//! The pipelines of the behaviour tests.

flechtwerk::main!(flechtwerk_tests::pipeline::RIG);
