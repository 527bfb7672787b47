//! A later version of the program `rig`.

flechtwerk::main!(flechtwerk_tests::stages_upgrade::RIG_LATER);
