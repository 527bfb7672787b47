//! The pipeline of the tests of codecs.

flechtwerk::main!(flechtwerk_tests::stages_codecs::CODECS);
