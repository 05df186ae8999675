//! Files that every process of a tree can open, and no other process. `/proc/PID/fd` of heapmark is
//! open only to heapmark's own user, and a program may close inherited descriptors. So the files
//! have names, and processes that run as other users ask for them (`lender`).

use super::lender::Lender;
use super::memory_file::{text, words};
use crate::file::{Draft, WithPath};
use anyhow::{Context, Result};
use std::fs::{File, OpenOptions, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

/// Folders that all users may enter, memory before disks.
const PLACES: [&str; 2] = ["/dev/shm", "/tmp"];

/// A file that is removed with its owner.
pub struct Handed {
    file: File,
    draft: Draft,
    told: String,
    _lender: Lender,
}

impl Handed {
    pub fn new() -> Result<Handed> {
        let [memory, disk] = PLACES.map(PathBuf::from);
        let create_in = |place: PathBuf| -> Result<(Draft, File)> {
            let made = Draft::file(&place.join("handed"), 0o600);
            made.with_path("cannot write into", &place)
        };
        let (draft, file) = create_in(memory)
            .or_else(|_| create_in(disk))
            .or_else(|_| create_in(std::env::temp_dir()))?;
        // Independent of this process's umask.
        file.set_permissions(Permissions::from_mode(0o600))
            .context("cannot set a file's permissions")?;
        let known = file.metadata().context("cannot read a file's number")?;
        let lent = file
            .try_clone()
            .context("cannot duplicate a file descriptor")?;
        // Opened again, so that each process has a write position of its own.
        let lend = move |_, _| {
            // Looked up in this thread's descriptors, because the process's first thread may have others.
            let again = format!("/proc/thread-self/fd/{}", lent.as_raw_fd());
            Ok(Some(
                OpenOptions::new().read(true).append(true).open(again)?,
            ))
        };
        let lender = Lender::new(lend)?;
        let (word, shown) = (&lender.word, draft.path().display());
        Ok(Handed {
            told: format!("{word} {} {} {shown}", known.dev(), known.ino()),
            file,
            draft,
            _lender: lender,
        })
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns all text that was written into the file.
    pub fn text(&self) -> String {
        text(&self.file, 0)
    }

    /// Returns why nothing could be written into the file, if the reason is known.
    pub fn trouble(&self) -> Option<String> {
        let space = rustix::fs::fstatvfs(&self.file).ok()?;
        let path = self.draft.path().display();
        (space.f_bavail == 0).then(|| format!("the disk of the file for it, {path}, is full"))
    }

    /// Returns the numbers at the beginning of the file, eight bytes each.
    pub fn words(&self, count: usize) -> std::io::Result<Vec<u64>> {
        words(&self.file, count)
    }

    /// Returns the text that a process needs to open the file: see `heapmark_wire::lent::LOG`.
    pub fn told(&self) -> String {
        self.told.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::child::own_descriptors;
    use crate::execute::lender::tests::ask;
    use heapmark_wire::lent::{ADDRESS_BYTES, SECRET_BYTES};
    use std::io::Write;

    #[test]
    fn only_its_user_can_open_it_by_its_path_and_it_goes_away() {
        let handed = Handed::new().unwrap();
        let value = handed.told();
        let path = PathBuf::from(value.rsplit(' ').next().unwrap());
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"word")
            .unwrap();
        assert_eq!((handed.text().as_str(), handed.trouble()), ("word", None));
        drop(handed);
        assert!(!path.exists());
    }

    #[test]
    fn a_thread_with_descriptors_of_its_own_lends_its_file() {
        let lends = || {
            own_descriptors();
            // More than other threads have open: there, the number of the file's descriptor means nothing.
            let open: Vec<File> = (0..200).map(|_| File::open("/dev/null").unwrap()).collect();
            let handed = Handed::new().unwrap();
            drop(open);
            let told = handed.told();
            ask(&told, &told[ADDRESS_BYTES..][..SECRET_BYTES], 0)
        };
        assert!(std::thread::spawn(lends).join().unwrap());
    }
}
