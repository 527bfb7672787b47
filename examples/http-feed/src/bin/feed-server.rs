//! The server of the example, to try it with: some feeds that grow while it runs.

use std::time::Duration;

use clap::Parser;
use http_feed::server::FeedServer;

/// Serves growing feeds of items as pages of JSON.
#[derive(Parser)]
struct Arguments {
    /// Where to listen; port 0 is a free one.
    #[arg(long, default_value = "127.0.0.1:8017")]
    listen: String,
    /// Names of the feeds.
    #[arg(long, default_value = "news,weather", value_delimiter = ',')]
    feeds: Vec<String>,
    /// Items of each feed at the start; one comes in every second.
    #[arg(long, default_value_t = 250)]
    items: u64,
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    let server = FeedServer::start(&arguments.listen)?;
    for feed in &arguments.feeds {
        server.add(feed, arguments.items);
        println!("{}", server.url(feed));
    }
    loop {
        std::thread::sleep(Duration::from_secs(1));
        arguments.feeds.iter().for_each(|feed| server.add(feed, 1));
    }
}
