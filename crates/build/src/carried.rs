//! The files that heapmark needs beside itself: the guest, the recorder, and what `heapmark try`
//! preloads. The binary carries them and unpacks them into the cache when they are needed, so that
//! one copied file is all of heapmark, and no compiler is needed.

use super::cache::{self, preloadable};
use anyhow::{Context, Result, bail};
use heapmark_catalog::file::{self, WithPath, folder_of, weakness};
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// A file that the binary carries.
pub struct Carried {
    file: &'static str,
    /// The environment variable that may name another file to use instead.
    variable: Option<&'static str>,
    content: &'static [u8],
    hash: &'static str,
}

/// Embeds a file that the build script left. The results are statics: a constant would be in the binary once for each crate that names it.
macro_rules! carried {
    ($file:literal, $variable:expr) => {
        Carried {
            file: $file,
            variable: $variable,
            content: include_bytes!(concat!(env!("OUT_DIR"), "/", $file)),
            hash: include_str!(concat!(env!("OUT_DIR"), "/", $file, ".hash")),
        }
    };
}

/// The program that runs under the allocators.
pub static GUEST: Carried = carried!("heapmark-guest", Some("HEAPMARK_GUEST"));

/// The library that is preloaded into programs to record what they allocate.
pub static RECORDER: Carried = carried!("libheapmark_recorder.so", Some("HEAPMARK_RECORDER"));

/// The library that reports which object serves malloc in a process.
pub static WITNESS: Carried = carried!("witness.so", None);

/// The library that times calls of malloc and free.
pub static TIMER: Carried = carried!("time-in-malloc.so", None);

/// The library that counts the sizes that a program requests.
pub static SIZES: Carried = carried!("sizes.so", None);

/// The library that counts what a preloaded allocator would serve.
pub static REACH: Carried = carried!("reach.so", None);

/// The library that ages the heap of a program.
pub static LITTER: Carried = carried!("litter.so", None);

/// The program of `heapmark check`.
pub static CHECKS: Carried = carried!("heapmark-check", None);

/// The program with the checks of `heapmark check` that are written in C++.
pub static CHECKS_IN_CXX: Carried = carried!("heapmark-check-c++", None);

/// The program with the checks that replace operators of C++.
pub static CHECKS_REPLACING: Carried = carried!("heapmark-check-replacing", None);

impl Carried {
    /// Returns the file that the environment variable names; else that of a distribution, in `../lib/heapmark/` relative to this program's
    /// folder; else the carried file, unpacked.
    pub fn find(&self) -> Result<PathBuf> {
        let path = self.look()?;
        if self.file.ends_with(".so") && !preloadable(&path) {
            bail!(
                "LD_PRELOAD takes no path with a space, colon or `$`: move {}",
                path.display()
            );
        }
        Ok(path)
    }

    fn look(&self) -> Result<PathBuf> {
        if let Some(variable) = self.variable
            && let Some(path) = std::env::var_os(variable)
        {
            return named(variable, path);
        }
        match installed(self.file) {
            Some(path) => Ok(path),
            None => self.unpacked(&cache::root()?),
        }
    }

    fn unpacked(&self, root: &Path) -> Result<PathBuf> {
        let path = root.join("carried").join(self.hash).join(self.file);
        if !self.is_whole(&path) {
            self.unpack(&path).with_context(|| {
                format!(
                    "cannot unpack {} (HEAPMARK_CACHE names another place)",
                    path.display()
                )
            })?;
        }
        cache::trusted(&path)?;
        // The kernel's own error would report only that permission is denied.
        if statvfs(&path).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
            bail!(
                "{}: this file system runs no programs (noexec): set HEAPMARK_CACHE to a folder on another",
                path.display()
            );
        }
        Ok(path)
    }

    /// Unpacks the file once, even if several threads need it at the same time: a launcher that was started from this path starts the file
    /// there, and no process can start a file that another thread still has open for writing.
    fn unpack(&self, path: &Path) -> std::io::Result<()> {
        let _alone = cache::lock(folder_of(path))?;
        match self.is_whole(path) {
            true => Ok(()),
            false => file::replace(path, self.content, 0o777),
        }
    }

    /// Returns whether the unpacked file still has the carried content.
    fn is_whole(&self, path: &Path) -> bool {
        let runs = path
            .metadata()
            .is_ok_and(|file| file.permissions().mode() & 0o500 == 0o500);
        runs && std::fs::read(path).is_ok_and(|found| found == self.content)
    }
}

/// Returns a file or folder beside this program in the layout of a distribution, `../lib/heapmark/`, unless another user can exchange it.
pub fn installed(name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let path = program.parent()?.parent()?.join("lib/heapmark").join(name);
    if !path.exists() {
        return None;
    }
    let Some(weakness) = weakness(&path) else {
        return Some(path);
    };
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        eprintln!(
            "warning: {} is not used: {weakness}, so it can be exchanged",
            path.parent().unwrap_or(&path).display()
        );
    });
    None
}

/// Returns the file that an environment variable names.
fn named(variable: &str, path: OsString) -> Result<PathBuf> {
    let path = std::path::absolute(&path).with_path(variable, Path::new(&path))?;
    if !path.is_file() {
        bail!(
            "{}: no file {}: name another or unset the variable",
            variable,
            path.display()
        );
    }
    if let Some(weakness) = weakness(&path) {
        bail!(
            "{variable}={}: {weakness}, so it can be exchanged: name another or unset the variable",
            path.display()
        );
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Barrier;

    #[test]
    fn what_many_threads_unpack_at_a_time_is_written_once() {
        let root = tempfile::tempdir().unwrap();
        let start = Barrier::new(8);
        let unpacked = || {
            start.wait();
            let path = WITNESS.unpacked(root.path()).unwrap();
            path.metadata().unwrap().ino()
        };
        let files: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(unpacked)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(files.iter().all(|file| *file == files[0]), "{files:?}");
    }
}
