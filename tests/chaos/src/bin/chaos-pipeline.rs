//! The pipeline that the rig runs, kills and stops. `chaos-pipeline --help` says what it can do.

flechtwerk::main!(flechtwerk_chaos::pipeline::CHAOS);
