//! Where `/proc` and `/sys` are read: the machine's own, or a folder that holds copies of them. What is not there is not told.

use anyhow::{Result, bail};
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Names a folder with `proc` and `sys` to look at in place of the machine's: a planted machine for tests, or a copy of another.
pub const VARIABLE: &str = "HEAPMARK_MACHINE_ROOT";

/// The folder that paths like `proc/stat` begin in.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// This machine, or what [`VARIABLE`] names.
    pub fn find() -> Result<Root> {
        match std::env::var_os(VARIABLE) {
            None => Ok(Root::machine()),
            Some(folder) if Path::new(&folder).join("proc").is_dir() => Ok(Root(folder.into())),
            Some(folder) => bail!(
                "{VARIABLE} names {}, which holds no `proc`: give a folder with `proc` and `sys`, or unset it",
                Path::new(&folder).display()
            ),
        }
    }

    /// This machine.
    pub fn machine() -> Root {
        Root("/".into())
    }

    /// Copies in a folder.
    pub fn at(folder: &Path) -> Root {
        Root(folder.into())
    }

    /// The folder, where it is not this machine's.
    pub fn planted(&self) -> Option<&Path> {
        (self.0 != Path::new("/")).then_some(self.0.as_path())
    }

    /// The path of a file below it.
    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file.trim_start_matches('/'))
    }

    /// What a file says, without blanks around it; `None` where it says nothing.
    pub fn text(&self, file: &str) -> Option<String> {
        let text = read_to_string(self.path(file)).ok()?;
        Some(text.trim().to_string()).filter(|text| !text.is_empty())
    }

    /// A file that holds one number.
    pub fn number<T: FromStr>(&self, file: &str) -> Option<T> {
        self.text(file)?.parse().ok()
    }

    /// The value behind `key:` in a file of such lines.
    pub fn field(&self, file: &str, key: &str) -> Option<String> {
        let text = self.text(file)?;
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'))?;
        Some(value.trim().to_string())
    }

    /// A size of /proc/meminfo.
    pub fn memory_bytes(&self, key: &str) -> Option<u64> {
        let value = self.field("proc/meminfo", key)?;
        Some(value.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    }

    /// `[always] madvise never`: the chosen word stands in brackets.
    pub fn chosen(&self, file: &str) -> Option<String> {
        Some(self.text(file)?.split_once('[')?.1.split_once(']')?.0.to_string())
    }

    /// Names in a folder that begin like this, sorted.
    pub fn names(&self, folder: &str, start: &str) -> Vec<String> {
        let entries = read_dir(self.path(folder)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
        names.sort();
        names
    }

    /// What these files say, each different answer once, in sorted order: `performance, powersave`.
    pub fn all(&self, files: impl Iterator<Item = String>) -> Option<String> {
        let mut told: Vec<String> = files.filter_map(|file| self.text(&file)).collect();
        told.sort();
        told.dedup();
        (!told.is_empty()).then(|| told.join(", "))
    }
}
