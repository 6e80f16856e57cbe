//! Letters in a file, a line of JSON each.

use crate::dead_letter::disk::{Disk, RealDisk};
use crate::dead_letter::letter::DeadLetter;
use crate::dead_letter::lines::{self, Listing, Tombstone};
use crate::dead_letter::sink::{DeadLetterSink, StoreFuture, on_a_thread_of_its_own};
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;

/// A file of letters, a line of JSON each, which is only ever appended to.
///
/// A letter is acknowledged as stored when its data is on the disk, and the file's name too; a crash loses none of those. A line that a crash or a full disk tore is passed over when the file is read, and harms none that
/// comes after it: every line is written with a line end before it too, which is why empty ones stand between them.
/// Several processes of one machine may append to one file; not over a network file system, whose appends are not atomic.
/// On a Lambda the disk goes with the sandbox: there a queue is the better sink.
///
/// The file is opened for every append, so one that was moved away is made anew. That is also how it is kept short: move it
/// away when [`count`](FileSink::count) is 0. It is made readable for its owner alone, for letters hold bodies.
///
/// Clones are the same file. All that touches the disk runs on the runtime's threads for blocking work.
#[derive(Clone)]
pub struct FileSink(Arc<Inner>);

struct Inner {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// One writer at a time.
    writing: Mutex<()>,
}

impl FileSink {
    /// Opens the file, or makes it, so that one that cannot be had is found at the start. Blocks for a moment.
    ///
    /// # Errors
    /// Where it cannot be opened, made or synced; its directory must be there.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<FileSink> {
        FileSink::on(Box::new(RealDisk), path.into())
    }

    fn on(disk: Box<dyn Disk>, path: PathBuf) -> io::Result<FileSink> {
        disk.open(&path)?;
        disk.sync_directory_of(&path)?;
        Ok(FileSink(Arc::new(Inner { path, disk, writing: Mutex::new(()) })))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The letters that are not acknowledged, the oldest first, with their bodies.
    ///
    /// # Errors
    /// Where the file cannot be read. One that is not there is empty.
    pub async fn list(&self) -> io::Result<Listing> {
        let (letters, skipped_lines) = self.read(|letter| letter).await?;
        Ok(Listing { letters, skipped_lines })
    }

    /// How many letters are not acknowledged: a gauge for an alarm.
    ///
    /// # Errors
    /// Where the file cannot be read. One that is not there is empty.
    pub async fn count(&self) -> io::Result<usize> {
        self.read(drop).await.map(|(letters, _)| letters.len())
    }

    /// How long the oldest letter that is not acknowledged has been waiting at `now`: a gauge for an alarm. None if there is
    /// none.
    ///
    /// # Errors
    /// Where the file cannot be read. One that is not there is empty.
    pub async fn oldest_age(&self, now: SystemTime) -> io::Result<Option<Duration>> {
        let (times, _) = self.read(|letter| letter.created_at).await?;
        Ok(times.into_iter().min().map(|oldest| now.duration_since(oldest).unwrap_or(Duration::ZERO)))
    }

    /// Takes a letter off the list, after its replay went well, by a line of its own. An id that is not on the list is let
    /// pass.
    ///
    /// # Errors
    /// Where the line cannot be written: the letter is then still on the list.
    pub async fn acknowledge(&self, id: &str) -> io::Result<()> {
        self.append(Tombstone { acknowledged: id.to_owned() }).await
    }

    async fn append<T: Serialize + Send + 'static>(&self, line: T) -> io::Result<()> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.append(&line)).await
    }

    async fn read<T: Send + 'static>(&self, keep: fn(DeadLetter) -> T) -> io::Result<(Vec<T>, usize)> {
        let inner = Arc::clone(&self.0);
        blocking(move || match File::open(&inner.path) {
            Ok(file) => lines::read(BufReader::new(file), keep),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok((Vec::new(), 0)),
            Err(error) => Err(error),
        })
        .await
    }
}

impl DeadLetterSink for FileSink {
    fn store(&self, letter: DeadLetter) -> StoreFuture<'_> {
        Box::pin(async move { Ok(self.append(letter).await?) })
    }
}

impl fmt::Debug for FileSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileSink").field(&self.0.path).finish()
    }
}

impl Inner {
    /// Appends one line with one write, and returns when it is on the disk.
    fn append(&self, line: &impl Serialize) -> io::Result<()> {
        // The line's own beginning, so that what another process tore in the meantime does not run into it.
        let mut bytes = vec![b'\n'];
        serde_json::to_writer(&mut bytes, line).map_err(io::Error::from)?;
        bytes.push(b'\n');
        lines::check_length(bytes.len())?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = self.disk.open(&self.path)?;
        let written = loop {
            match file.write(&bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        // The rest is not sent after it: another process may have written in between.
        if written < bytes.len() {
            return Err(io::Error::new(ErrorKind::WriteZero, "the line was torn: is the disk full?"));
        }
        file.sync_data()?;
        // Every time: whoever made the file, this process or another, may not have come so far as to make its name safe.
        self.disk.sync_directory_of(&self.path)
    }
}

/// Off the runtime's own threads where there is a runtime.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match Handle::try_current() {
        Ok(_) if on_a_thread_of_its_own() => work(),
        Ok(runtime) => runtime.spawn_blocking(work).await.map_err(io::Error::other)?,
        Err(_) => work(),
    }
}

#[cfg(test)]
mod tests;
