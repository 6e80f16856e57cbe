//! The few things that a file of letters asks of the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Opens files, and makes their names last.
pub(super) trait Disk: Send + Sync {
    /// Opens a file to append to, and makes it where it is not there; says whether it did.
    fn open(&self, path: &Path) -> io::Result<(Box<dyn Log>, bool)>;
    /// Makes the name of the file outlast a crash.
    fn sync_directory_of(&self, path: &Path) -> io::Result<()>;
}

/// A file that is appended to.
pub(super) trait Log {
    /// Appends with one write; says how much of it went in.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes what was written outlast a crash.
    fn sync_data(&mut self) -> io::Result<()>;
}

/// The real one.
pub(super) struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path) -> io::Result<(Box<dyn Log>, bool)> {
        let mut options = OpenOptions::new();
        options.append(true);
        match options.open(path) {
            Ok(file) => return Ok((Box::new(file), false)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // Bodies are nobody else's business.
            options.mode(0o600);
        }
        // Another process may have been faster: then its file is opened, and its name synced twice.
        options.create(true).open(path).map(|file| (Box::new(file) as Box<dyn Log>, true))
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // Elsewhere a directory is no file that could be opened.
        if cfg!(unix) { File::open(parent.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
    }
}

impl Log for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        Write::flush(self)?;
        File::sync_data(self)
    }
}
