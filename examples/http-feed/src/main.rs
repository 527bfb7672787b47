//! `http-feed --help` says what it can do.

flechtwerk::main!(http_feed::HTTP_FEED);
