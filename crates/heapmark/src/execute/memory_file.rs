//! Files in memory, without a name: what passes between this process and those that it starts.

use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// A file that holds less is not worth the trouble of giving any of it back.
const MUCH_BYTES: u64 = 16 << 20;
/// How much of a memory file is ever read as text.
const MOST_TEXT_BYTES: u64 = 16 << 20;

/// An unnamed file that goes away with its last user. It grows only: whatever runs beside an allocator may find it.
pub(super) fn memory_file(name: &str) -> Result<File> {
    sealed(create(name, MemfdFlags::CLOEXEC)?, SealFlags::SHRINK)
}

/// As [`memory_file`], and inherited on purpose: a child is told its number.
pub(super) fn inherited_file(name: &str) -> Result<File> {
    sealed(create(name, MemfdFlags::empty())?, SealFlags::SHRINK)
}

/// As [`inherited_file`], of a size that stays: to be mapped. Whoever touched what another process has cut off would die of it.
pub(super) fn mapped_file(name: &str, bytes: usize) -> Result<File> {
    let file = create(name, MemfdFlags::empty())?;
    file.set_len(bytes as u64).context("cannot size a memory file")?;
    sealed(file, SealFlags::SHRINK | SealFlags::GROW)
}

/// For what a process writes to a stream of its own, which it may truncate, as `> /dev/stderr` does.
pub(super) fn stream_file(name: &str) -> Result<File> {
    create(name, MemfdFlags::CLOEXEC)
}

/// For what a measured process writes to stderr.
pub(super) fn stderr_file() -> Result<File> {
    stream_file("heapmark-stderr")
}

fn create(name: &str, flags: MemfdFlags) -> Result<File> {
    Ok(File::from(memfd_create(name, flags | MemfdFlags::ALLOW_SEALING).context("cannot create a memory file")?))
}

/// For ever, and for everybody.
fn sealed(file: File, seals: SealFlags) -> Result<File> {
    fcntl_add_seals(&file, seals | SealFlags::SEAL).context("cannot seal a memory file")?;
    Ok(file)
}

/// What a memory file holds from `start` on, cut where a process wrote without end.
pub(super) fn text(mut file: &File, start: u64) -> String {
    let mut text = Vec::new();
    let _ = file.seek(SeekFrom::Start(start));
    let _ = file.take(MOST_TEXT_BYTES).read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Gives all of it back to the system but the last bytes, where it holds much: for words of which only the last are of interest.
/// The rest reads as zeros from then on.
pub(super) fn keep_last(file: &File, bytes: u64) -> Result<()> {
    let length = file.metadata().context("cannot tell how long a memory file is")?.len();
    if length <= MUCH_BYTES {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, flags, 0, length - bytes).context("cannot give memory back")
}
