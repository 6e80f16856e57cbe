//! What a subscriber was told, for tests that nothing secret is.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A writer whose clones share what was written.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<u8>>>);

impl Seen {
    /// All that was written.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
