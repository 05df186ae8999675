//! The page of memory that host and guest share.

use super::child::inherits;
use super::memory_file::mapped_file;
use anyhow::{Context, Result, anyhow};
use heapmark_wire::{Page, Phase};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

/// The memory file that host and guest share.
pub struct SharedPage {
    file: File,
    address: *mut Page,
}

impl SharedPage {
    pub fn new(job: &str) -> Result<SharedPage> {
        let file = mapped_file("heapmark-page", size_of::<Page>())?;
        let no_place = std::ptr::null_mut();
        let bytes = size_of::<Page>();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh shared mapping of a file of that size; zeroed memory is a valid page.
        let address = unsafe { mmap(no_place, bytes, protection, MapFlags::SHARED, &file, 0) }
            .context("cannot map a memory file")?
            .cast();
        let page = SharedPage { address, file };
        let bytes = job.len();
        page.page()
            .set_job(job)
            .map_err(|_| anyhow!("the job's {bytes} bytes do not fit into the shared page"))?;
        Ok(page)
    }

    /// Adds the page's path, as the guest expects it, to the command that starts the guest, which inherits the page.
    pub fn to(&self, command: &mut Command) {
        inherits(command, &self.file);
        command
            .arg(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
    }

    pub fn page(&self) -> &Page {
        // SAFETY: mapped by `new` until drop; readers of what the guest writes there allow for torn
        // text.
        unsafe { &*self.address }
    }

    pub fn phase(&self) -> Phase {
        self.page().phase()
    }

    /// Returns the report so far; empty if it is not valid UTF-8. The report is copied, because
    /// processes that a guest has left running may still write to the page.
    pub fn report(&self) -> String {
        String::from_utf8(self.page().report().collect()).unwrap_or_default()
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no reference is left.
        let _ = unsafe { munmap(self.address.cast(), size_of::<Page>()) };
    }
}
