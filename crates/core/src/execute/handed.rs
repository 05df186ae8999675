//! Files that every process of a tree can open, and no other process. `/proc/PID/fd` of heapmark is
//! open only to heapmark's own user, and a program may close inherited descriptors. So the files
//! have names, and processes that run as other users ask for them (`lender`).

use super::lender::Lender;
use super::memory_file::{text, words};
use crate::catalog::folder::listing;
use anyhow::{Context, Result};
use rustix::process::geteuid;
use std::fs::{File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Folders that all users may enter, memory before disks.
const PLACES: [&str; 2] = ["/dev/shm", "/tmp"];
/// Prefix of the file names.
const PREFIX: &str = "heapmark-handed-";

/// A file that is removed with its owner, and locked while the owner lives.
pub struct Handed {
    file: File,
    path: PathBuf,
    told: String,
    _lender: Lender,
}

impl Handed {
    pub fn new() -> Result<Handed> {
        let [memory, disk] = PLACES.map(PathBuf::from);
        let create_in = |place: PathBuf| {
            sweep(&place);
            create(&place)
        };
        let (file, path) = create_in(memory)
            .or_else(|_| create_in(disk))
            .or_else(|_| create_in(std::env::temp_dir()))?;
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
        let (word, shown) = (&lender.word, path.display());
        Ok(Handed {
            told: format!("{word} {} {} {shown}", known.dev(), known.ino()),
            file,
            path,
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
        let path = self.path.display();
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

impl Drop for Handed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn create(place: &Path) -> Result<(File, PathBuf)> {
    loop {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        let path = place.join(format!("{PREFIX}{}-{now}", std::process::id()));
        let context = || format!("cannot write {}", path.display());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            file => file.with_context(context)?,
        };
        file.lock().with_context(context)?;
        // Another heapmark may have removed this file just now, as one that a dead process left behind.
        if file.metadata().with_context(context)?.nlink() == 0 {
            continue;
        }
        // Independent of this process's umask.
        file.set_permissions(Permissions::from_mode(0o600))
            .with_context(context)?;
        return Ok((file, path));
    }
}

/// Removes files that killed heapmark processes of this user left behind.
fn sweep(place: &Path) {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'))
            .is_some_and(|(owner, now)| is_number(owner) && is_number(now))
            && path
                .symlink_metadata()
                .is_ok_and(|file| file.is_file() && file.uid() == geteuid().as_raw())
    };
    for path in listing(place).filter(is_ours) {
        // Keep the lock until the file is removed: its owner may be about to lock it.
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(&path);
        }
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

    #[test]
    fn what_a_killed_one_left_behind_is_removed_and_a_living_ones_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (_locked, alive) = create(place.path()).unwrap();
        let dead = place.path().join(format!("{PREFIX}1-1"));
        let foreign = place.path().join(format!("{PREFIX}my-notes"));
        File::create(&dead)
            .and_then(|_| File::create(&foreign))
            .unwrap();
        sweep(place.path());
        assert!(!dead.exists() && foreign.exists() && alive.exists());
    }
}
