//! Reads `/proc` and `/sys`: the machine's own, or a folder with copies of them. A missing file
//! yields no value.

use anyhow::{Result, bail};
use std::fs::{File, read_dir, read_to_string};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The variable that names a folder with `proc` and `sys` to read in place of the machine's: made
/// for tests, or copied from another machine.
pub const VARIABLE: &str = "HEAPMARK_MACHINE_ROOT";

/// The folder that paths like `proc/stat` are relative to.
pub struct Root(PathBuf);

impl Root {
    /// Returns the root of this machine, or the folder that [`VARIABLE`] names.
    pub fn find() -> Result<Root> {
        let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
            return Ok(Root::machine());
        };
        if !folder.join("proc").is_dir() {
            bail!(
                "{VARIABLE} names {}, which holds no `proc`: give a folder with `proc` and `sys`, or unset it",
                folder.display()
            );
        }
        Ok(Root(folder))
    }

    /// Returns the root of this machine's own files.
    pub fn machine() -> Root {
        Root("/".into())
    }

    /// Returns a root with copies of `proc` and `sys` in a folder.
    pub fn at(folder: &Path) -> Root {
        Root(folder.into())
    }

    /// Returns the folder, if it is not this machine's root.
    pub fn planted(&self) -> Option<&Path> {
        (self.0 != Path::new("/")).then_some(self.0.as_path())
    }

    /// Returns the path of a file below the root.
    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file.trim_start_matches('/'))
    }

    /// Returns the text of a file, trimmed; `None` if it is empty or cannot be read.
    pub fn text(&self, file: &str) -> Option<String> {
        let text = read_to_string(self.path(file)).ok()?;
        Some(text.trim().to_string()).filter(|text| !text.is_empty())
    }

    /// Returns the number that a file holds.
    pub fn number<T: FromStr>(&self, file: &str) -> Option<T> {
        self.text(file)?.parse().ok()
    }

    /// Returns the value of `key:` in a file of lines `key: value`.
    pub fn field(&self, file: &str, key: &str) -> Option<String> {
        self.text(file)?.lines().find_map(|line| {
            let value = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
            Some(value.trim().to_string())
        })
    }

    /// Returns a size from /proc/meminfo, in bytes.
    pub fn memory_bytes(&self, key: &str) -> Option<u64> {
        let value = self.field("proc/meminfo", key)?;
        Some(value.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    }

    /// Returns the selected word of a file such as `[always] madvise never`: it is in brackets.
    pub fn chosen(&self, file: &str) -> Option<String> {
        let text = self.text(file)?;
        let (chosen, _) = text.split_once('[')?.1.split_once(']')?;
        Some(chosen.into())
    }

    /// Returns the names in a folder that start with `start`, sorted.
    pub fn names(&self, folder: &str, start: &str) -> Vec<String> {
        let entries = read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with(start))
            .collect();
        names.sort();
        names
    }
}

/// Rereads a kernel file that is kept open, since opening a file costs as much as reading it.
pub(crate) fn reread<'t>(mut file: &File, text: &'t mut String) -> Option<&'t str> {
    text.clear();
    file.rewind().ok()?;
    file.read_to_string(text).ok()?;
    Some(text)
}
