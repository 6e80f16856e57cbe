//! The few things that a file of letters asks of the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Opens files, and makes their names last.
pub(super) trait Disk: Send + Sync {
    /// Opens a file to append to, and makes it where it is not there.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Log>>;
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
    fn open(&self, path: &Path) -> io::Result<Box<dyn Log>> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // Bodies are nobody else's business.
            options.mode(0o600);
        }
        Ok(Box::new(options.open(path)?))
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
