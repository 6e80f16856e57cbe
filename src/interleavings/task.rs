//! Tasks, and the callers beside them, as the model checker sees them: each is a thread of the model.

use crate::interleavings::at_once;
use loom::thread::{self, Thread};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Takes the place of [`crate::sync::spawn`]: a task has a runtime that is shut down as soon as the task has to wait.
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    GOING.with_borrow_mut(|going| going.tasks += 1);
    beside(move || {
        // As every runtime does. Meanwhile all threads of the model seem to panic, for they are one thread's coroutines.
        let ended = catch_unwind(AssertUnwindSafe(|| at_once(task)));
        if let Err(panic) = ended
            && !panic.is::<Wanted>()
        {
            resume_unwind(panic);
        }
    });
}

/// A panic that a model wants: the end of its task and of nothing else.
pub(crate) struct Wanted;

/// Does this work in a thread of its own.
pub(crate) fn beside(work: impl FnOnce() + Send + 'static) {
    GOING.with_borrow_mut(|going| going.threads += 1);
    thread::spawn(move || {
        work();
        let waiting = GOING.with_borrow_mut(|going| {
            going.threads -= 1;
            going.waiting.take_if(|_| going.threads == 0)
        });
        if let Some(waiting) = waiting {
            waiting.unpark();
        }
    });
}

/// Waits for the end of every other thread, and says how many tasks were begun since it was last asked.
///
/// Joins would say the same, and make the model checker try the orders in which threads end.
pub(crate) fn all_ended() -> usize {
    let going_on = GOING.with_borrow_mut(|going| {
        going.waiting = (going.threads > 0).then(thread::current);
        going.threads > 0
    });
    if going_on {
        thread::park();
    }
    GOING.with_borrow_mut(|going| std::mem::take(&mut going.tasks))
}

/// Waits for the future. Where nobody wakes it, the model checker says that all threads hang.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        thread::park();
    }
}

/// Begins a model: what an earlier one left counts no more.
pub(crate) fn none_yet() {
    GOING.set(Going::NONE);
}

/// The model checker counts any wake of a thread as the one that it waits for, also where it waits for a lock. So a thread
/// is woken only while it is parked: `block_on` drops no future that waits, and `at_once` leaves no waker.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

struct Going {
    threads: usize,
    tasks: usize,
    waiting: Option<Thread>,
}

impl Going {
    const NONE: Going = Going { threads: 0, tasks: 0, waiting: None };
}

thread_local! {
    static GOING: RefCell<Going> = const { RefCell::new(Going::NONE) };
}
