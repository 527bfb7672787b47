//! `fraud --help` says what it can do.

flechtwerk::main!(fraud::FRAUD);
