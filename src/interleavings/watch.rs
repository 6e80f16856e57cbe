//! The watch channel as the model checker sees it: the part of tokio's that this crate uses, and what its documentation promises.
//!
//! tokio tries the orders within its own channel; these models try those of the code around it. One promise is narrower: what is
//! told has to be what was waited for. So nobody can see the end of a channel that has told, and that end is no step.

use loom::sync::{Mutex, MutexGuard};
use std::future::poll_fn;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

/// Makes a channel that keeps its latest value.
pub(crate) fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let kept = Arc::new(Mutex::new(Kept { value, told: false, closed: false, waiting: Vec::new() }));
    (Sender { kept: Arc::clone(&kept), has_told: AtomicBool::new(false) }, Receiver(kept))
}

/// The end that tells; its drop closes the channel.
pub(crate) struct Sender<T> {
    kept: Arc<Mutex<Kept<T>>>,
    has_told: AtomicBool,
}

impl<T> Sender<T> {
    pub(crate) fn subscribe(&self) -> Receiver<T> {
        Receiver(Arc::clone(&self.kept))
    }

    pub(crate) fn send_replace(&self, value: T) -> T {
        self.has_told.store(true, Ordering::Relaxed);
        let mut kept = self.kept.lock().unwrap();
        kept.told = true;
        let old = std::mem::replace(&mut kept.value, value);
        wake_all(kept);
        old
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.has_told.load(Ordering::Relaxed) {
            return;
        }
        let mut kept = self.kept.lock().unwrap();
        kept.closed = true;
        wake_all(kept);
    }
}

/// An end that is told.
pub(crate) struct Receiver<T>(Arc<Mutex<Kept<T>>>);

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Receiver(Arc::clone(&self.0))
    }
}

impl<T> Receiver<T> {
    /// Waits for such a value; one that is there already will do, even if the channel is closed.
    pub(crate) async fn wait_for(&mut self, wanted: impl Fn(&T) -> bool) -> Result<Ref<'_, T>, Closed> {
        let channel = &*self.0;
        poll_fn(|context| look(channel, &wanted, context)).await
    }
}

/// The value, locked while it is looked at.
pub(crate) struct Ref<'a, T>(MutexGuard<'a, Kept<T>>);

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

/// Nothing comes any more.
pub(crate) struct Closed;

pub(crate) struct Kept<T> {
    value: T,
    told: bool,
    closed: bool,
    waiting: Vec<Waker>,
}

fn look<'a, T>(
    channel: &'a Mutex<Kept<T>>,
    wanted: &impl Fn(&T) -> bool,
    context: &Context<'_>,
) -> Poll<Result<Ref<'a, T>, Closed>> {
    let mut kept = channel.lock().unwrap();
    if wanted(&kept.value) {
        return Poll::Ready(Ok(Ref(kept)));
    }
    assert!(!kept.told, "told, and not what was waited for");
    if kept.closed {
        return Poll::Ready(Err(Closed));
    }
    kept.waiting.push(context.waker().clone());
    Poll::Pending
}

fn wake_all<T>(mut kept: MutexGuard<'_, Kept<T>>) {
    let waiting = std::mem::take(&mut kept.waiting);
    drop(kept);
    waiting.into_iter().for_each(Waker::wake);
}
