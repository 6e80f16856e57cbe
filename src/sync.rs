//! The atomics, locks, channels and tasks that calls on several threads share. A model checker can take their place, to try
//! every order of the small cases: see `interleavings`.

#[cfg(all(test, interleavings))]
pub(crate) use crate::interleavings::{task::spawn, watch};
#[cfg(all(test, interleavings))]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64},
};
#[cfg(not(all(test, interleavings)))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64},
};
#[cfg(not(all(test, interleavings)))]
pub(crate) use tokio::sync::watch;

/// Runs it in a task of its own, or drops it where there is no runtime.
#[cfg(not(all(test, interleavings)))]
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        drop(runtime.spawn(task));
    }
}
