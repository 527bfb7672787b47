//! Threads of simulated processes, as coroutines: one runs at a time, up to where it waits, and what it waits for is the
//! scheduler's choice. A coroutine is used again for the next thread, since its stack is what costs.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use generator::{Generator, Gn};

/// Words of a stack; only what is touched costs memory.
const STACK: usize = 1 << 16;

type Work = Box<dyn FnOnce() + Send>;

/// What a coroutine says when it gives control back.
enum Step {
    Waits,
    Ended(Option<Box<dyn std::any::Any + Send>>),
}

/// The unwinding of a thread whose process was killed.
struct Killed;

thread_local! {
    static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
    static IDLE: RefCell<Vec<Coroutine>> = const { RefCell::new(Vec::new()) };
    static KILLING: Cell<bool> = const { Cell::new(false) };
}

struct Coroutine(Generator<'static, (), Step>);

impl Coroutine {
    fn new() -> Coroutine {
        Coroutine(Gn::<()>::new_opt(STACK, || {
            loop {
                let work = WORK.with_borrow_mut(Option::take);
                let ended = work.and_then(|work| catch_unwind(AssertUnwindSafe(work)).err());
                give_back(Step::Ended(ended.filter(|panic| !panic.is::<Killed>())));
            }
        }))
    }
}

#[allow(deprecated, reason = "what waits is deep inside code that has no scope to pass on")]
fn give_back(step: Step) {
    generator::yield_with(step);
}

/// Gives control back to the scheduler until it resumes this thread. Unwinds where the process was killed.
pub(crate) fn pause() {
    give_back(Step::Waits);
    if KILLING.get() {
        resume_unwind(Box::new(Killed));
    }
}

/// True while the threads of a process are ended by force.
pub(crate) fn is_killing() -> bool {
    KILLING.get()
}

/// A thread that has begun or is about to.
pub(crate) struct Thread {
    work: Option<Work>,
    coroutine: Option<Coroutine>,
}

impl Thread {
    pub(crate) fn new(work: Work) -> Thread {
        Thread { work: Some(work), coroutine: None }
    }

    /// Runs it up to where it waits; false once it has ended. Its panic is passed on.
    pub(crate) fn resume(&mut self) -> bool {
        if let Some(work) = self.work.take() {
            WORK.set(Some(work));
            self.coroutine = Some(IDLE.with_borrow_mut(Vec::pop).unwrap_or_else(Coroutine::new));
        }
        let Some(coroutine) = &mut self.coroutine else { return false };
        match coroutine.0.resume() {
            Some(Step::Waits) => true,
            Some(Step::Ended(panic)) => {
                if let Some(coroutine) = self.coroutine.take() {
                    IDLE.with_borrow_mut(|idle| idle.push(coroutine));
                }
                if let Some(panic) = panic {
                    resume_unwind(panic);
                }
                false
            }
            None => false,
        }
    }

    /// SIGKILL: its stack is unwound, which frees what it holds, and nothing else of it is seen.
    pub(crate) fn kill(mut self) {
        self.work = None;
        if self.coroutine.is_some() {
            KILLING.set(true);
            self.resume();
            KILLING.set(false);
        }
    }
}
