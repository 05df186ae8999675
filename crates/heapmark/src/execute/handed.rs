//! Files that every process of a tree can open by path and append to, whatever user it runs as.
//! `/proc/PID/fd` of heapmark is open only to heapmark's own user, and a program may close
//! inherited descriptors.

use super::memory_file::{text, words};
use crate::catalog::folder::listing;
use anyhow::{Context, Result};
use rustix::process::geteuid;
use std::fs::{File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Folders that all users may read, memory before disks.
const PLACES: [&str; 2] = ["/dev/shm", "/tmp"];
/// Prefix of the file names.
const PREFIX: &str = "heapmark-handed-";

/// A file that is removed with its owner. It is locked while the owner lives.
pub struct Handed {
    file: File,
    path: PathBuf,
}

impl Handed {
    /// A new file of this mode: `0o622` is for processes that only write.
    pub fn new(mode: u32) -> Result<Handed> {
        let [memory, disk] = PLACES.map(PathBuf::from);
        let create_in = |place: PathBuf| {
            sweep(&place);
            create(&place, mode)
        };
        create_in(memory)
            .or_else(|_| create_in(disk))
            .or_else(|_| create_in(std::env::temp_dir()))
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// All that was written into it.
    pub fn text(&self) -> String {
        text(&self.file, 0)
    }

    /// Why nothing could be written into it by its path, if that shows.
    pub fn trouble(&self) -> Option<String> {
        let path = self.path.display();
        let own = self.file.metadata().ok()?;
        let there = self.path.metadata();
        if !there.is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())) {
            return Some(format!("something has removed the file for it, {path}"));
        }
        let space = rustix::fs::fstatvfs(&self.file).ok()?;
        (space.f_bavail == 0).then(|| format!("the disk of the file for it, {path}, is full"))
    }

    /// The numbers at its beginning, eight bytes each.
    pub fn words(&self, count: usize) -> std::io::Result<Vec<u64>> {
        words(&self.file, count)
    }

    pub fn path(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn create(place: &Path, mode: u32) -> Result<Handed> {
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
        // Another heapmark may just have taken it for a file of a dead process.
        if file.metadata().with_context(context)?.nlink() == 0 {
            continue;
        }
        // Independent of this process's umask.
        file.set_permissions(Permissions::from_mode(mode))
            .with_context(context)?;
        return Ok(Handed { file, path });
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
    use std::io::Write;

    #[test]
    fn others_can_write_into_it_by_its_path_and_it_goes_away() {
        let handed = Handed::new(0o622).unwrap();
        let path = PathBuf::from(handed.path());
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o622);
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"word")
            .unwrap();
        assert_eq!((handed.text().as_str(), handed.trouble()), ("word", None));
        std::fs::remove_file(&path).unwrap();
        assert!(handed.trouble().unwrap().contains("has removed the file"));
        let handed = Handed::new(0o622).unwrap();
        let path = PathBuf::from(handed.path());
        drop(handed);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_one_left_behind_is_removed_and_a_living_ones_is_not() {
        let place = tempfile::tempdir().unwrap();
        let alive = create(place.path(), 0o622).unwrap();
        let dead = place.path().join(format!("{PREFIX}1-1"));
        let foreign = place.path().join(format!("{PREFIX}my-notes"));
        File::create(&dead)
            .and_then(|_| File::create(&foreign))
            .unwrap();
        sweep(place.path());
        assert!(!dead.exists() && foreign.exists() && Path::new(&alive.path()).exists());
    }
}
