flechtwerk::main!(word_count::WORD_COUNT);
