//! The folder of scores. They are large and can be made again: beyond a size, those go that were used the longest ago. A score that
//! somebody uses is locked by them, and stays.

use super::whole;
use crate::build::cache;
use anyhow::{Context, Result};
use heapmark_wire::score::Head;
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// One of a thousand million calls takes most of it.
const MOST_BYTES: u64 = 10 << 30;

/// The folder.
pub struct Shelf {
    folder: PathBuf,
    most_bytes: u64,
}

/// A score that is being written; it goes where it does not get its name.
pub(super) struct Unfinished {
    path: PathBuf,
    pub file: File,
}

impl Shelf {
    /// Where it is, there or not.
    pub fn find() -> Result<Shelf> {
        Ok(Shelf { folder: cache::root()?.join("scores"), most_bytes: MOST_BYTES })
    }

    /// The folder's name.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How large it gets, unless all of it is used at once.
    pub fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// What is in it.
    pub fn bytes(&self) -> u64 {
        self.files().iter().map(|(_, bytes, _)| bytes).sum()
    }

    pub(super) fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.score"))
    }

    /// A score that is there and whole. It stays as long as the file is open.
    pub(super) fn take(&self, key: &str) -> Option<(File, Head)> {
        let file = {
            let _only = self.lock().ok()?;
            let file = File::open(self.path(key)).ok()?;
            file.lock_shared().ok()?;
            file
        };
        let head = whole(&file)?;
        // Somebody else's file cannot be marked; it only goes earlier.
        let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
        Some((file, head))
    }

    /// A place to write a score in.
    pub(super) fn begin(&self, key: &str) -> Result<Unfinished> {
        let path = self.folder.join(format!(".{key}.{}", std::process::id()));
        let begin = || -> std::io::Result<File> {
            let _only = self.lock()?;
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
            file.lock_shared()?;
            Ok(file)
        };
        let file = begin().with_context(|| self.cannot())?;
        Ok(Unfinished { path, file })
    }

    /// Gives a score its name, and makes room for it. It stays as long as the file is open.
    pub(super) fn keep(&self, key: &str, unfinished: Unfinished) -> Result<File> {
        let path = self.path(key);
        let _only = self.lock().with_context(|| self.cannot())?;
        // Who came first may use that one by its name already, and it is the same.
        if let Some(file) = File::open(&path).ok().filter(|file| whole(file).is_some() && file.lock_shared().is_ok()) {
            return Ok(file);
        }
        fs::rename(&unfinished.path, &path).with_context(|| self.cannot())?;
        let file = unfinished.file.try_clone().with_context(|| self.cannot())?;
        self.make_room();
        Ok(file)
    }

    /// Removes what nobody uses: what was never finished, and what was used the longest ago, until the rest is small enough.
    fn make_room(&self) {
        let mut files = self.files();
        files.sort_by_key(|(_, _, used)| *used);
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (path, length, _) in files {
            let is_score = path.extension().is_some_and(|ending| ending == "score");
            let is_used = || File::open(&path).is_ok_and(|file| file.try_lock().is_err());
            if (bytes > self.most_bytes || !is_score) && !is_used() && fs::remove_file(&path).is_ok() {
                bytes -= length;
            }
        }
    }

    /// Files, their lengths, and when they were used.
    fn files(&self) -> Vec<(PathBuf, u64, SystemTime)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let file = |entry: fs::DirEntry| {
            let known = entry.metadata().ok().filter(|known| known.is_file())?;
            Some((entry.path(), known.len(), known.modified().ok()?))
        };
        entries.filter_map(file).collect()
    }

    /// Nobody looks for a score while another names or removes one.
    fn lock(&self) -> std::io::Result<File> {
        fs::create_dir_all(&self.folder)?;
        // Beside it: the folder may be deleted whenever somebody likes.
        let file = File::options().create(true).truncate(false).write(true).open(self.folder.with_extension("lock"))?;
        file.lock()?;
        Ok(file)
    }

    fn cannot(&self) -> String {
        format!("cannot write into {}: choose another place with HEAPMARK_CACHE", self.folder.display())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It is not there any more where it got its name.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::score::{Order, compile};
    use crate::trace::{Event, Fault};
    use std::time::Duration;

    fn shelf(folder: &Path, most_bytes: u64) -> Shelf {
        Shelf { folder: folder.join("scores"), most_bytes }
    }

    /// A score of one call, as old as that; gives its length.
    fn keep(shelf: &Shelf, key: &str, age_s: u64) -> (File, u64) {
        let unfinished = shelf.begin(key).unwrap();
        let file = unfinished.file.try_clone().unwrap();
        let events = [Ok::<_, Fault>((0, Event::Malloc { size: 8, operator: false }))];
        compile(events.into_iter(), Order::Dependent, file).unwrap();
        let used = SystemTime::now() - Duration::from_secs(age_s);
        unfinished.file.set_times(FileTimes::new().set_modified(used)).unwrap();
        let file = shelf.keep(key, unfinished).unwrap();
        let length = file.metadata().unwrap().len();
        (file, length)
    }

    #[test]
    fn what_was_used_the_longest_ago_goes_first_and_what_is_used_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (used, length) = keep(&shelf(folder.path(), 1 << 20), "oldest", 400);
        // Room for three.
        let shelf = shelf(folder.path(), 3 * length);
        drop(keep(&shelf, "old", 300));
        drop(keep(&shelf, "touched", 350));
        drop(shelf.take("touched").unwrap());
        drop(keep(&shelf, "new", 100));
        let there = || ["oldest", "old", "touched", "new", "newest"].map(|key| shelf.path(key).exists());
        assert_eq!(there(), [true, false, true, true, false]);
        assert_eq!(shelf.bytes(), 3 * length);
        drop(used);
        drop(keep(&shelf, "newest", 0));
        assert_eq!(there(), [false, false, true, true, true]);
    }

    #[test]
    fn what_was_never_finished_goes_unless_somebody_is_at_it() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = shelf(folder.path(), 1 << 20);
        let at_it = shelf.begin("at-it").unwrap();
        let left = shelf.folder().join(".left.1");
        fs::write(&left, "half").unwrap();
        drop(keep(&shelf, "a", 0));
        assert!(!left.exists() && at_it.path.exists());
        drop(at_it);
        assert_eq!(shelf.files().len(), 1);
    }

    #[test]
    fn a_score_of_the_same_name_is_not_replaced_under_whoever_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = shelf(folder.path(), 0);
        let (first, _) = keep(&shelf, "a", 0);
        let (second, _) = keep(&shelf, "a", 0);
        assert!(shelf.path("a").exists());
        drop(first);
        keep(&shelf, "b", 0);
        assert!(shelf.path("a").exists(), "the second still uses it");
        drop(second);
        keep(&shelf, "c", 0);
        assert!(!shelf.path("a").exists());
    }
}
