//! The atomics and locks that calls on several threads share. A model checker can take their place, to try every order of the
//! small cases: see `interleavings`.

#[cfg(not(all(test, interleavings)))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64},
};

#[cfg(all(test, interleavings))]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64},
};
