//! The pipeline of the tests of tables and resources.

flechtwerk::main!(flechtwerk_tests::stages_shared::SHARED);
