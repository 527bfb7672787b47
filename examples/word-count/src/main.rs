//! `word-count --help` says what it can do.

flechtwerk::main!(word_count::WORD_COUNT);
