//! What a fleet shares, in a redis-server of each test's own.

mod breaker;
mod calls;
mod limit;
mod scripts;
mod server;
mod trouble;
