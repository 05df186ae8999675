//! The two files that heapmark needs beside itself, the guest and the recorder. The binary carries
//! both and unpacks them into the cache when they are needed, so that one copied file is all of
//! heapmark.

use super::cache;
use crate::file::{self, WithPath};
use anyhow::{Context, Result, bail};
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One of these files.
pub struct Carried {
    file: &'static str,
    /// The environment variable that names another one.
    variable: &'static str,
    content: &'static [u8],
    hash: &'static str,
}

/// The program that runs under the allocators.
pub const GUEST: Carried = Carried {
    file: "heapmark-guest",
    variable: "HEAPMARK_GUEST",
    content: include_bytes!(env!("HEAPMARK_CARRIED_GUEST")),
    hash: env!("HEAPMARK_CARRIED_GUEST_HASH"),
};

/// The library that is preloaded into programs to record what they allocate.
pub const RECORDER: Carried = Carried {
    file: "libheapmark_recorder.so",
    variable: "HEAPMARK_RECORDER",
    content: include_bytes!(env!("HEAPMARK_CARRIED_RECORDER")),
    hash: env!("HEAPMARK_CARRIED_RECORDER_HASH"),
};

impl Carried {
    /// The file that the environment names; that of a distribution, `../lib/heapmark/` from the
    /// folder of this program; otherwise the carried one, unpacked.
    pub fn find(&self) -> Result<PathBuf> {
        if let Some(path) = std::env::var_os(self.variable) {
            return self.named(path);
        }
        match std::env::current_exe()
            .ok()
            .and_then(|own| self.installed(&own))
        {
            Some(path) => Ok(path),
            None => self.unpacked(&cache::root()?),
        }
    }

    fn named(&self, path: OsString) -> Result<PathBuf> {
        let path = std::path::absolute(&path).with_path(self.variable, Path::new(&path))?;
        if !path.is_file() {
            bail!(
                "{}: no file {}: name another or unset the variable",
                self.variable,
                path.display()
            );
        }
        Ok(path)
    }

    fn installed(&self, own: &Path) -> Option<PathBuf> {
        let folder = own.parent()?.parent()?.join("lib/heapmark");
        Some(folder.join(self.file)).filter(|path| path.is_file())
    }

    fn unpacked(&self, root: &Path) -> Result<PathBuf> {
        let path = root.join("carried").join(self.hash).join(self.file);
        if !self.is_whole(&path) {
            let folder = path.parent().unwrap_or(root);
            cache::make(root)
                .and_then(|()| file::make_folder(folder))
                .and_then(|_| file::replace(&path, self.content, 0o777))
                .with_context(|| {
                    format!(
                        "cannot unpack {} (HEAPMARK_CACHE names another place)",
                        path.display()
                    )
                })?;
        }
        // The kernel would only say that it is not permitted.
        if statvfs(&path).is_ok_and(|it| it.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
            bail!(
                "{}: this file system runs no programs (noexec): set HEAPMARK_CACHE to a folder on another",
                path.display()
            );
        }
        Ok(path)
    }

    /// Whether what was unpacked is still what was carried.
    fn is_whole(&self, path: &Path) -> bool {
        let runs = path
            .metadata()
            .is_ok_and(|file| file.permissions().mode() & 0o500 == 0o500);
        runs && std::fs::read(path).is_ok_and(|found| found == self.content)
    }
}
