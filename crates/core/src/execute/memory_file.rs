//! Unnamed files in memory, which pass data between heapmark and the processes that it starts.

use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// The smallest size of a file whose memory is worth giving back.
const MUCH_BYTES: u64 = 16 << 20;
/// The most bytes of a memory file that are read as text.
const MOST_TEXT_BYTES: u64 = 16 << 20;

/// Makes an unnamed file that disappears with its last user. The file is sealed against shrinking,
/// because any program that runs with an allocator may open it.
pub fn memory_file(name: &str) -> Result<File> {
    sealed(create(name)?, SealFlags::SHRINK)
}

/// Makes a file like [`memory_file`], but of a fixed size, to be mapped: a process that touches
/// pages which another process has cut off would be killed.
pub fn mapped_file(name: &str, bytes: usize) -> Result<File> {
    let file = create(name)?;
    file.set_len(bytes as u64)
        .context("cannot size a memory file")?;
    sealed(file, SealFlags::SHRINK | SealFlags::GROW)
}

/// Makes a file for what a process writes to its stdout or stderr. The process may truncate it, as
/// `> /dev/stderr` does.
pub fn stream_file(name: &str) -> Result<File> {
    create(name)
}

/// Makes a file that no process inherits by itself: see `child::inherits`.
fn create(name: &str) -> Result<File> {
    Ok(File::from(
        memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .context("cannot create a memory file")?,
    ))
}

/// Seals a file. Seals are permanent, and hold for all processes.
fn sealed(file: File, seals: SealFlags) -> Result<File> {
    fcntl_add_seals(&file, seals | SealFlags::SEAL).context("cannot seal a memory file")?;
    Ok(file)
}

/// Returns the content of a memory file from `start` on, cut off if a process wrote without end.
pub fn text(mut file: &File, start: u64) -> String {
    let mut text = Vec::new();
    let _ = file.seek(SeekFrom::Start(start));
    let _ = file.take(MOST_TEXT_BYTES).read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the numbers at the beginning of a file, eight bytes each, read with one call.
pub fn numbers<const COUNT: usize>(file: &File) -> io::Result<[u64; COUNT]> {
    Ok(words(file, COUNT)?.try_into().unwrap_or([0; COUNT]))
}

/// Works like [`numbers`], for a count that is known only at run time.
pub fn words(file: &File, count: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; 8 * count];
    file.read_exact_at(&mut bytes, 0)?;
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    Ok(bytes.chunks(8).map(word).collect())
}

/// Gives the memory of a large file back to the system, except its last bytes: for text of which
/// only the end matters. The rest reads as zeros from then on.
pub fn keep_last(file: &File, bytes: u64) -> Result<()> {
    let known = file.metadata();
    let length = known
        .context("cannot tell how long a memory file is")?
        .len();
    if length <= MUCH_BYTES {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, flags, 0, length - bytes).context("cannot give memory back")
}
