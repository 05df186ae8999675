//! Which files a command writes below its folder: two of its processes that run at the same time would write to the
//! same ones.

use crate::catalog::folder::listing;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The number of files after which the walk ends: it would take longer than the command.
const MOST: usize = 200_000;

/// What changes when a file is written: its inode, size and times.
type Seen = (u64, u64, i64, i64);

/// The files below a folder at one moment.
pub struct Files(BTreeMap<PathBuf, Seen>);

impl Files {
    /// Lists the files below a folder. Links count as files, and are not followed.
    pub fn below(folder: &Path) -> Files {
        let mut seen = BTreeMap::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop().filter(|_| seen.len() < MOST) {
            for path in listing(folder) {
                let Ok(metadata) = path.symlink_metadata() else {
                    continue;
                };
                if metadata.is_dir() {
                    folders.push(path);
                } else {
                    let of_file = (
                        metadata.ino(),
                        metadata.size(),
                        metadata.mtime(),
                        metadata.mtime_nsec(),
                    );
                    seen.insert(path, of_file);
                }
            }
        }
        Files(seen)
    }

    /// Returns a file that was made, changed or removed between the two moments.
    pub fn changed(&self, then: &Files) -> Option<PathBuf> {
        let other = |(path, seen): &(&PathBuf, &Seen)| then.0.get(*path) != Some(*seen);
        let gone = self.0.iter().find(other);
        let made = || then.0.iter().find(|(path, _)| !self.0.contains_key(*path));
        gone.or_else(made).map(|(path, _)| path.clone())
    }
}
