//! What a file of letters promises, on a disk that keeps a diary and on a real one.

use super::*;
use crate::dead_letter::disk::Log;
use crate::dead_letter::letter::tests::letter;
use std::fs;

/// A disk that writes down what is asked of it, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    done: Vec<&'static str>,
    is_there: bool,
    bytes: Vec<u8>,
    fails: &'static str,
    takes_at_most: Option<usize>,
    /// What another process gets in just before the next write.
    torn_before_the_next: &'static [u8],
}

impl Diary {
    fn does(&self, what: &'static str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.done.push(what);
        if state.fails == what { Err(io::Error::other(what)) } else { Ok(()) }
    }

    fn read(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap().done)
    }

    fn sink(&self) -> FileSink {
        FileSink::on(Box::new(self.clone()), "letters.jsonl".into()).unwrap()
    }
}

impl Disk for Diary {
    fn open(&self, _: &Path) -> io::Result<Box<dyn Log>> {
        let made = !std::mem::replace(&mut self.0.lock().unwrap().is_there, true);
        self.does(if made { "made" } else { "opened" })?;
        Ok(Box::new(self.clone()))
    }

    fn sync_directory_of(&self, _: &Path) -> io::Result<()> {
        self.does("directory synced")
    }
}

impl Log for Diary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.does("written")?;
        let mut state = self.0.lock().unwrap();
        let torn = std::mem::take(&mut state.torn_before_the_next);
        state.bytes.extend(torn);
        let taken = bytes.len().min(state.takes_at_most.unwrap_or(usize::MAX));
        state.bytes.extend(&bytes[..taken]);
        Ok(taken)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.does("data synced")
    }
}

#[tokio::test]
async fn data_and_the_file_s_name_are_synced_before_a_letter_is_acknowledged() {
    let diary = Diary::default();
    let sink = diary.sink();
    assert_eq!(diary.read(), ["made", "directory synced"]);
    sink.store(letter("a")).await.unwrap();
    assert_eq!(diary.read(), ["opened", "written", "data synced", "directory synced"]);
    sink.acknowledge("a").await.unwrap();
    assert_eq!(diary.read(), ["opened", "written", "data synced", "directory synced"]);
    // Somebody moved the file away.
    diary.0.lock().unwrap().is_there = false;
    sink.store(letter("b")).await.unwrap();
    assert_eq!(diary.read(), ["made", "written", "data synced", "directory synced"]);
}

#[tokio::test]
async fn a_name_that_whoever_made_the_file_did_not_make_safe_is_made_safe_with_the_next_letter() {
    let diary = Diary::default();
    let (mine, other) = (diary.sink(), diary.sink());
    {
        // The file was moved away, and the disk is full for a moment: it is made, and nothing is stored.
        let mut state = diary.0.lock().unwrap();
        (state.is_there, state.fails) = (false, "written");
    }
    other.store(letter("a")).await.unwrap_err();
    diary.0.lock().unwrap().fails = "";
    diary.read();
    for sink in [other, mine] {
        sink.store(letter("b")).await.unwrap();
        assert_eq!(diary.read(), ["opened", "written", "data synced", "directory synced"]);
    }
}

#[tokio::test]
async fn nothing_that_fails_is_acknowledged() {
    for fails in ["opened", "written", "data synced"] {
        let diary = Diary::default();
        let sink = diary.sink();
        diary.0.lock().unwrap().fails = fails;
        assert_eq!(sink.store(letter("a")).await.unwrap_err().to_string(), fails);
    }
    let diary = Diary::default();
    let sink = diary.sink();
    {
        let mut state = diary.0.lock().unwrap();
        (state.is_there, state.fails) = (false, "directory synced");
    }
    sink.store(letter("a")).await.unwrap_err();
    assert!(FileSink::on(Box::new(diary), "letters.jsonl".into()).is_err());
}

#[tokio::test]
async fn a_short_write_is_not_acknowledged_and_its_torn_line_harms_no_other() {
    let diary = Diary::default();
    let sink = diary.sink();
    sink.store(letter("a")).await.unwrap();
    diary.0.lock().unwrap().takes_at_most = Some(30);
    assert!(sink.store(letter("b")).await.unwrap_err().to_string().contains("torn"));
    diary.0.lock().unwrap().takes_at_most = None;
    sink.store(letter("c")).await.unwrap();
    let bytes = diary.0.lock().unwrap().bytes.clone();
    let (ids, skipped) = lines::read(&*bytes, |letter| letter.id).unwrap();
    assert_eq!((ids, skipped), (vec!["a".to_owned(), "c".to_owned()], 1));
}

#[tokio::test]
async fn a_line_that_another_process_tears_at_the_last_moment_harms_no_letter_after_it() {
    let diary = Diary::default();
    let (mine, other) = (diary.sink(), diary.sink());
    mine.store(letter("a")).await.unwrap();
    // The disk is full for a moment, after `other` has opened the file and before it writes.
    diary.0.lock().unwrap().torn_before_the_next = b"\n{\"schema_version\":1,\"id\":\"torn";
    other.store(letter("b")).await.unwrap();
    let bytes = diary.0.lock().unwrap().bytes.clone();
    let (ids, skipped) = lines::read(&*bytes, |letter| letter.id).unwrap();
    assert_eq!((ids, skipped), (vec!["a".to_owned(), "b".to_owned()], 1));
}

/// A directory of the test's own, gone when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("eastwest-file-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn what_is_stored_is_listed_counted_and_aged_until_it_is_acknowledged() {
    let scratch = Scratch::new("listed");
    let sink = FileSink::open(scratch.0.join("letters.jsonl")).unwrap();
    let (old, mut young) = (letter("old"), letter("young"));
    young.created_at += Duration::from_secs(60);
    for letter in [&young, &old] {
        sink.store(letter.clone()).await.unwrap();
    }
    let now = old.created_at + Duration::from_secs(100);
    assert_eq!(sink.list().await.unwrap().letters, [young.clone(), old]);
    assert_eq!(sink.count().await.unwrap(), 2);
    assert_eq!(sink.oldest_age(now).await.unwrap(), Some(Duration::from_secs(100)));
    sink.acknowledge("old").await.unwrap();
    assert_eq!(sink.oldest_age(now).await.unwrap(), Some(Duration::from_secs(40)));
    sink.acknowledge("young").await.unwrap();
    assert_eq!((sink.count().await.unwrap(), sink.oldest_age(now).await.unwrap()), (0, None));
    // Another process finds the same.
    let again = FileSink::open(sink.path()).unwrap();
    assert_eq!(again.list().await.unwrap(), Listing::default());
}

#[tokio::test]
async fn a_line_that_a_crash_tore_is_closed_off_by_the_next_append() {
    let scratch = Scratch::new("torn");
    let path = scratch.0.join("letters.jsonl");
    fs::write(&path, b"{\"schema_version\":1,\"id\":\"torn").unwrap();
    let sink = FileSink::open(&path).unwrap();
    assert_eq!(sink.list().await.unwrap(), Listing::default());
    sink.store(letter("a")).await.unwrap();
    let listing = sink.list().await.unwrap();
    assert_eq!((listing.letters, listing.skipped_lines), (vec![letter("a")], 1));
}

#[tokio::test]
async fn a_file_that_was_moved_away_is_made_anew() {
    let scratch = Scratch::new("moved");
    let path = scratch.0.join("letters.jsonl");
    let sink = FileSink::open(&path).unwrap();
    sink.store(letter("a")).await.unwrap();
    fs::rename(&path, scratch.0.join("old")).unwrap();
    assert_eq!(sink.count().await.unwrap(), 0);
    sink.store(letter("b")).await.unwrap();
    assert_eq!(sink.list().await.unwrap().letters, [letter("b")]);
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("mode");
    let sink = FileSink::open(scratch.0.join("letters.jsonl")).unwrap();
    assert_eq!(fs::metadata(sink.path()).unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn a_file_that_cannot_be_had_is_found_at_the_start() {
    assert!(FileSink::open("/no/such/directory/letters.jsonl").is_err());
    assert!(FileSink::open(std::env::temp_dir()).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_writers_tear_no_line_of_each_other() {
    let scratch = Scratch::new("several");
    let path = scratch.0.join("letters.jsonl");
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        // Not clones: each has a lock of its own, as another process has.
        let sink = FileSink::open(&path).unwrap();
        writers.spawn(async move {
            for number in 0..10 {
                sink.store(letter(&format!("{writer}-{number}"))).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let listing = FileSink::open(&path).unwrap().list().await.unwrap();
    assert_eq!((listing.letters.len(), listing.skipped_lines), (40, 0));
}
