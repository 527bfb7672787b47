//! A source for extractors, in the test's own process: it counts what it serves, whatever becomes of it.
//!
//! One request is one line, `NAME CURSOR LIMIT`; the answer is one line with the numbers of the items from the cursor on.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Serves until the process ends.
#[derive(Clone)]
pub struct Source {
    address: String,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// How many items each name has.
    items: Mutex<BTreeMap<String, u64>>,
    /// How often each page was asked for, by name and cursor.
    served: Mutex<BTreeMap<(String, u64), usize>>,
    /// How often each name was asked for.
    asked: Mutex<BTreeMap<String, usize>>,
    requests: AtomicUsize,
    /// Requests under way, and the most there ever were.
    now: AtomicUsize,
    most: AtomicUsize,
    delay: AtomicU64,
    silent: AtomicBool,
}

impl Source {
    /// Starts it on a free port.
    pub fn start() -> Source {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address").to_string();
        let inner = Arc::new(Inner::default());
        let served = inner.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let inner = served.clone();
                // A client that was killed is no error here.
                std::thread::spawn(move || drop(answer(&inner, stream)));
            }
        });
        Source { address, inner }
    }

    /// What a config must say to be served from here.
    pub fn value(&self) -> String {
        format!("source:{}", self.address)
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// From now on, this name has so many items.
    pub fn set(&self, name: &str, items: u64) {
        self.inner.items.lock().expect("the items").insert(name.to_owned(), items);
    }

    /// Each answer takes this long.
    pub fn delay(&self, delay: Duration) {
        self.inner.delay.store(delay.as_millis() as u64, Ordering::SeqCst);
    }

    /// No answer comes any more, or they come again; requests that wait are answered then.
    pub fn silence(&self, silent: bool) {
        self.inner.silent.store(silent, Ordering::SeqCst);
    }

    /// How many requests there were.
    pub fn requests(&self) -> usize {
        self.inner.requests.load(Ordering::SeqCst)
    }

    /// How many requests there were for this name.
    pub fn requests_for(&self, name: &str) -> usize {
        self.inner.asked.lock().expect("the names").get(name).copied().unwrap_or(0)
    }

    /// How many requests there are at this moment.
    pub fn open(&self) -> usize {
        self.inner.now.load(Ordering::SeqCst)
    }

    /// The most requests there were at a time.
    pub fn most(&self) -> usize {
        self.inner.most.load(Ordering::SeqCst)
    }

    /// Pages with items that were served more than once: calls whose page did not count.
    pub fn repeated(&self) -> usize {
        self.inner.served.lock().expect("the pages").values().filter(|times| **times > 1).count()
    }
}

fn answer(inner: &Inner, stream: TcpStream) -> std::io::Result<()> {
    let mut line = String::new();
    BufReader::new(stream.try_clone()?).read_line(&mut line)?;
    inner.requests.fetch_add(1, Ordering::SeqCst);
    let now = inner.now.fetch_add(1, Ordering::SeqCst) + 1;
    inner.most.fetch_max(now, Ordering::SeqCst);
    let page = serve(inner, &line, &stream);
    // Before the answer: who has it may ask again at once.
    inner.now.fetch_sub(1, Ordering::SeqCst);
    page?.map_or(Ok(()), |page| (&stream).write_all(page.as_bytes()))
}

/// The answer; `None` if nobody waits for it any more.
fn serve(inner: &Inner, line: &str, stream: &TcpStream) -> std::io::Result<Option<String>> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let (cursor, limit) = (number(), number());
    *inner.asked.lock().expect("the names").entry(name.clone()).or_default() += 1;
    std::thread::sleep(Duration::from_millis(inner.delay.load(Ordering::SeqCst)));
    // Who asked may be gone: then nobody waits for this any more.
    stream.set_nonblocking(true)?;
    while inner.silent.load(Ordering::SeqCst) {
        if matches!(stream.peek(&mut [0]), Ok(0)) {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    stream.set_nonblocking(false)?;
    let items = inner.items.lock().expect("the items").get(&name).copied().unwrap_or(0);
    let end = items.min(cursor + limit);
    if cursor < end {
        *inner.served.lock().expect("the pages").entry((name, cursor)).or_default() += 1;
    }
    let page: Vec<String> = (cursor..end).map(|item| item.to_string()).collect();
    Ok(Some(page.join(" ") + "\n"))
}
