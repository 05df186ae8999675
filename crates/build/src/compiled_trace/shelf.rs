//! The folder of compiled traces. They are large and can be rebuilt: above a size limit, the least
//! recently used ones are removed. A process that uses a compiled trace holds a lock on it, which
//! keeps it; files without one of our names are kept too.

use super::whole;
use crate::cache;
use anyhow::{Context, Result};
use std::fs::{self, File, FileTimes};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The size limit: a compiled trace of a billion calls takes up most of it.
const MOST_BYTES: u64 = 10 << 30;

/// The folder of compiled traces, and its size limit.
pub struct Shelf {
    folder: PathBuf,
    most_bytes: u64,
}

/// A compiled trace that is being written; the file is removed unless it gets its final name.
pub struct Unfinished {
    path: PathBuf,
    pub file: File,
}

impl Shelf {
    /// Finds the folder, whether it exists or not.
    pub fn find() -> Result<Shelf> {
        Ok(Shelf {
            folder: cache::root()?.join("compiled-traces"),
            most_bytes: MOST_BYTES,
        })
    }

    /// Returns the folder's path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the size limit in bytes, which is exceeded only if all traces are in use at once.
    pub fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Returns the size of all compiled traces in bytes, finished or not.
    pub fn bytes(&self) -> u64 {
        self.files().iter().map(|(_, bytes, _)| bytes).sum()
    }

    pub(super) fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.compiled"))
    }

    /// Opens a compiled trace if it exists and is intact. The trace is kept while the file is open.
    pub(super) fn take(&self, key: &str) -> Option<(File, heapmark_wire::compiled::CompiledHead)> {
        let opened = || -> io::Result<File> {
            let _only = self.lock()?;
            let file = File::open(self.path(key))?;
            file.lock_shared()?;
            Ok(file)
        };
        let file = opened().ok()?;
        let head = whole(&file)?;
        // Another user's file cannot be marked as used; the only effect is that it is removed earlier.
        let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
        Some((file, head))
    }

    /// Begins a compiled trace, with the same permissions as the trace that it is made from.
    pub(super) fn begin(&self, key: &str, mode: u32) -> Result<Unfinished> {
        // The process's number would not do: processes of several containers may have the same one.
        let number = RandomState::new().build_hasher().finish();
        let path = self.folder.join(format!(".{key}.{number}"));
        let begin = || -> io::Result<File> {
            let _only = self.lock()?;
            let file = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&path)?;
            file.lock_shared()?;
            Ok(file)
        };
        let file = begin().with_context(|| self.cannot())?;
        Ok(Unfinished { path, file })
    }

    /// Gives a compiled trace its name, and removes old traces if needed. The trace is kept while the file is open.
    pub(super) fn keep(&self, key: &str, unfinished: Unfinished) -> Result<File> {
        let keep = || -> io::Result<File> {
            let path = self.path(key);
            let _only = self.lock()?;
            // Another process may have finished the same trace first, and may already be using it under its name.
            if let Ok(file) = File::open(&path)
                && whole(&file).is_some()
                && file.lock_shared().is_ok()
            {
                return Ok(file);
            }
            fs::rename(&unfinished.path, &path)?;
            let file = unfinished.file.try_clone()?;
            self.make_room();
            Ok(file)
        };
        keep().with_context(|| self.cannot())
    }

    /// Removes files that are not in use: unfinished ones, and the least recently used traces until
    /// the rest is below the limit.
    fn make_room(&self) {
        let mut files = self.files();
        files.sort_by_key(|(_, _, used)| *used);
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (path, length, _) in files {
            let is_finished = kind(&path) == Some(ShelfFile::CompiledTrace);
            let is_used = || File::open(&path).is_ok_and(|file| file.try_lock().is_err());
            if (bytes > self.most_bytes || !is_finished)
                && !is_used()
                && fs::remove_file(&path).is_ok()
            {
                bytes -= length;
            }
        }
    }

    /// Returns the files that have one of our names, with their lengths in bytes and the times of their last use.
    fn files(&self) -> Vec<(PathBuf, u64, SystemTime)> {
        let file = |path: PathBuf| {
            kind(&path)?;
            let known = path.symlink_metadata().ok()?;
            let used = known.modified().ok()?;
            known.is_file().then_some((path, known.len(), used))
        };
        heapmark_catalog::folder::listing(&self.folder)
            .filter_map(file)
            .collect()
    }

    /// Takes the lock that is held while a process opens, names or removes a compiled trace.
    fn lock(&self) -> io::Result<File> {
        cache::make(&self.folder)?;
        // The lock is beside the folder, because the user may delete the folder at any time.
        let file = cache::lock_file(&self.folder.with_extension("lock"))?;
        file.lock()?;
        Ok(file)
    }

    fn cannot(&self) -> String {
        format!(
            "cannot write into {}: choose another place with HEAPMARK_CACHE",
            self.folder.display()
        )
    }
}

/// Kinds of files that have one of our names.
#[derive(PartialEq)]
enum ShelfFile {
    /// A finished compiled trace, named `KEY.compiled`.
    CompiledTrace,
    /// A compiled trace that is being written, named `.KEY.NUMBER`.
    Unfinished,
}

/// Returns the kind of a file, by its name. The folder may be a user's own, with other files in it.
fn kind(path: &Path) -> Option<ShelfFile> {
    let name = path.file_name()?.to_str()?;
    let is_key = |text: &str| {
        text.len() == 12 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    match name.split('.').collect::<Vec<_>>()[..] {
        [key, "compiled"] if is_key(key) => Some(ShelfFile::CompiledTrace),
        ["", key, number] if is_key(key) && is_number(number) => Some(ShelfFile::Unfinished),
        _ => None,
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // The file no longer exists under this path if it got its final name.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_catalog::file::PUBLIC;
    use heapmark_trace::compile::{Order, Recorded, compile};
    use heapmark_trace::{Event, Fault};
    use std::time::Duration;

    const OLDEST: &str = "00000000000a";
    const OLD: &str = "00000000000b";
    const TOUCHED: &str = "00000000000c";
    const NEW: &str = "00000000000d";
    const NEWEST: &str = "00000000000e";

    fn shelf(folder: &Path, most_bytes: u64) -> Shelf {
        Shelf {
            folder: folder.join("compiled-traces"),
            most_bytes,
        }
    }

    /// Stores a compiled trace of one call, last used `age_s` seconds ago; returns its length.
    fn keep(shelf: &Shelf, key: &str, age_s: u64) -> (File, u64) {
        let unfinished = shelf.begin(key, PUBLIC).unwrap();
        let file = unfinished.file.try_clone().unwrap();
        let events = [Ok::<_, Fault>((
            0,
            Event::Malloc {
                size: 8,
                operator: false,
            },
        ))];
        compile(
            &mut events.into_iter(),
            Order::Dependent,
            Recorded::default(),
            file,
        )
        .unwrap();
        let used = SystemTime::now() - Duration::from_secs(age_s);
        unfinished
            .file
            .set_times(FileTimes::new().set_modified(used))
            .unwrap();
        let file = shelf.keep(key, unfinished).unwrap();
        let length = file.metadata().unwrap().len();
        (file, length)
    }

    /// Stops using a compiled trace. A process that another test starts holds files that were open when it was forked,
    /// until it executes its program.
    fn let_go(shelf: &Shelf, key: &str, file: File) {
        drop(file);
        // The lock of this look must not be left to such a process, either.
        let is_used = |file: File| file.try_lock().is_err() || file.unlock().is_err();
        while File::open(shelf.path(key)).is_ok_and(is_used) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_was_used_the_longest_ago_goes_first_and_what_is_used_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (used, length) = keep(&shelf(folder.path(), 1 << 20), OLDEST, 400);
        // Space for three compiled traces.
        let shelf = shelf(folder.path(), 3 * length);
        for (key, age_s) in [(OLD, 300), (TOUCHED, 350)] {
            let (file, _) = keep(&shelf, key, age_s);
            let_go(&shelf, key, file);
        }
        let_go(&shelf, TOUCHED, shelf.take(TOUCHED).unwrap().0);
        let_go(&shelf, NEW, keep(&shelf, NEW, 100).0);
        let there = || [OLDEST, OLD, TOUCHED, NEW, NEWEST].map(|key| shelf.path(key).exists());
        assert_eq!(there(), [true, false, true, true, false]);
        assert_eq!(shelf.bytes(), 3 * length);
        let_go(&shelf, OLDEST, used);
        drop(keep(&shelf, NEWEST, 0));
        assert_eq!(there(), [false, false, true, true, true]);
    }

    #[test]
    fn what_was_never_finished_goes_unless_it_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = shelf(folder.path(), 1 << 20);
        let at_it = shelf.begin(OLD, PUBLIC).unwrap();
        let left = shelf.folder().join(format!(".{OLDEST}.1"));
        fs::write(&left, "half").unwrap();
        drop(keep(&shelf, NEW, 0));
        assert!(!left.exists() && at_it.path.exists());
        drop(at_it);
        assert_eq!(shelf.files().len(), 1);
    }

    #[test]
    fn two_that_make_the_same_compiled_trace_write_into_files_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = shelf(folder.path(), 1 << 20);
        let [first, second] = [0, 1].map(|_| shelf.begin(OLD, PUBLIC).unwrap());
        assert_ne!(first.path, second.path);
        assert!(first.path.exists() && second.path.exists());
        // What a killed process leaves behind is known by its name.
        assert_eq!(shelf.files().len(), 2);
    }

    #[test]
    fn files_of_others_stay_whatever_they_are_called_and_however_full_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = shelf(folder.path(), 0);
        fs::create_dir(shelf.folder()).unwrap();
        let names = [
            "final-results.txt",
            "song.compiled",
            "00000000000A.compiled",
            ".00000000000a.x",
            "00000000000a.1",
            ".notes",
        ];
        names
            .iter()
            .for_each(|name| fs::write(shelf.folder().join(name), "theirs").unwrap());
        let_go(&shelf, OLD, keep(&shelf, OLD, 300).0);
        drop(keep(&shelf, NEW, 0));
        assert!(!shelf.path(OLD).exists());
        for name in names {
            assert_eq!(
                fs::read_to_string(shelf.folder().join(name)).unwrap(),
                "theirs",
                "{name}"
            );
        }
        fs::remove_file(shelf.path(NEW)).unwrap();
        assert_eq!(shelf.bytes(), 0);
    }

    #[test]
    fn a_score_is_as_private_as_what_it_is_made_of() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = shelf(folder.path(), 1 << 20);
        let unfinished = shelf.begin(OLD, 0o600).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &unfinished.path.metadata().unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_compiled_trace_in_use_is_not_replaced_by_one_of_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = shelf(folder.path(), 0);
        let (first, _) = keep(&shelf, OLD, 0);
        let (second, _) = keep(&shelf, OLD, 0);
        assert!(shelf.path(OLD).exists());
        drop(first);
        keep(&shelf, NEW, 0);
        assert!(shelf.path(OLD).exists(), "the second still uses it");
        let_go(&shelf, OLD, second);
        keep(&shelf, NEWEST, 0);
        assert!(!shelf.path(OLD).exists());
    }
}
