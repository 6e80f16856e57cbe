//! What a `tracing` subscriber wrote, kept for a test to read.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A writer whose clones are one text.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// All that was written so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    /// Forgets what was written.
    #[allow(dead_code, reason = "not every test crate forgets")]
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// A writer of the same text, as a subscriber wants it.
    pub(crate) fn writer(&self) -> impl Fn() -> Log + Send + Sync + 'static + use<> {
        let log = self.clone();
        move || log.clone()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
