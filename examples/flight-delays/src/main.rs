//! `flight-delays --help` says what it can do.

flechtwerk::main!(flight_delays::FLIGHT_DELAYS);
