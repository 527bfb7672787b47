//! `sessions --help` says what it can do.

flechtwerk::main!(sessions::SESSIONS);
