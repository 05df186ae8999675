//! Moves the pages of the compared libraries and programs to other places in physical memory.
//!
//! The places decide which instructions and which data compete for the same set of a cache. The kernel keeps a file's pages
//! where they are for as long as it caches the file, which is many runs: ten copies of one library took 0.967 to 1.003 of its
//! time in `pair-edge`, with intervals of 0.5 %, and others of them were the fast ones once the files had been read again.
//! So each block begins with new places, and the intervals contain what they are worth.

use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;
use rand::seq::SliceRandom;
use rustix::fs::{Advice, fadvise, fdatasync};
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::path::Path;

/// Advice is about whole pages, and no machine has smaller ones.
const PAGE_BYTES: u64 = 4096;

/// Larger files stay where they are: to read them again in each block would take too long.
const LARGEST_BYTES: u64 = 64 << 20;

/// Has a file's pages read to other places, each to one by chance. Pages that a running process has mapped, as every
/// process has those of the C library, stay where they are.
pub fn place_anew(file: &Path) -> io::Result<()> {
    let file = File::open(file)?;
    let bytes = file.metadata()?.len();
    if bytes > LARGEST_BYTES {
        return Ok(());
    }
    // The kernel drops no page that has still to be written, as those of a library that was just built.
    fdatasync(&file)?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    // A page goes to the place that was given back last. In the order of the file, the pages would change between two
    // arrangements.
    let mut pages: Vec<u64> = (0..bytes.div_ceil(PAGE_BYTES)).collect();
    pages.shuffle(&mut UnwrapErr(SysRng));
    for page in pages {
        let length = NonZeroU64::new(PAGE_BYTES);
        fadvise(&file, page * PAGE_BYTES, length, Advice::WillNeed)?;
    }
    // The first process must not wait for the pages.
    io::copy(&mut file.take(bytes), &mut io::sink())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    use std::os::unix::fs::FileExt;
    use std::ptr::null_mut;

    const PAGES: usize = 64;

    /// Returns the number of the page frame that holds each page of a file, or zeros for a user who may not know.
    fn places(file: &File) -> Vec<u64> {
        let bytes = PAGES * PAGE_BYTES as usize;
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        // SAFETY: a mapping of our own, read within its length and unmapped at the end.
        unsafe {
            let begin = mmap(
                null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                0,
            )
            .unwrap();
            let place = |page: usize| {
                let address = begin.cast::<u8>().add(page * PAGE_BYTES as usize);
                assert_eq!(address.read_volatile(), page as u8);
                let mut entry = [0; 8];
                let offset = address as u64 / PAGE_BYTES * 8;
                pagemap.read_exact_at(&mut entry, offset).unwrap();
                u64::from_ne_bytes(entry) & ((1 << 55) - 1)
            };
            let places = (0..PAGES).map(place).collect();
            munmap(begin, bytes).unwrap();
            places
        }
    }

    #[test]
    fn the_pages_of_a_file_that_was_just_written_go_to_other_places() {
        // Beside the test: a folder for temporary files may lie in memory.
        let beside = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
        let path = folder.path().join("library");
        let pages = (0..PAGES).flat_map(|page| [page as u8; PAGE_BYTES as usize]);
        std::fs::write(&path, pages.collect::<Vec<u8>>()).unwrap();
        let file = File::open(&path).unwrap();
        let before = places(&file);
        place_anew(&path).unwrap();
        let after = places(&file);
        let is_visible = after.iter().any(|place| *place != 0);
        let moved = before
            .iter()
            .zip(&after)
            .filter(|(one, other)| one != other);
        assert!(
            !is_visible || moved.count() > PAGES / 2,
            "{before:?} {after:?}"
        );
    }

    #[test]
    fn a_file_that_is_gone_is_an_error_and_a_large_one_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        assert!(place_anew(&folder.path().join("gone")).is_err());
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(1 << 40).unwrap();
        place_anew(&large).unwrap();
    }
}
