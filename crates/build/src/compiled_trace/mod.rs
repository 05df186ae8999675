//! Compiles a trace into a file that the guest can map, and caches it by a hash of its inputs.
//! Several heapmark processes do not disturb each other: a compiled trace gets its final name only
//! when it is complete.

mod shelf;

pub use shelf::Shelf;

use super::cache;
use anyhow::{Context, Result, anyhow, bail};
use heapmark_trace::compile::{Order, Recorded, checksum, compile};
use heapmark_trace::{Done, Event, Fault, Reader, events_of};
use heapmark_wire::compiled::{CompiledHead, HEAD_WORDS, MAGIC};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Fingerprint that changes when the trace compiler may produce different output for the same
/// trace.
const COMPILER: &str = env!("HEAPMARK_COMPILED_TRACE_SOURCES");

/// A compiled trace that is ready; its file is kept while this value exists.
pub struct CompiledTrace {
    /// The trace's file.
    pub path: PathBuf,
    /// The head of the file.
    pub head: CompiledHead,
    _in_use: File,
}

/// Estimated bytes of a compiled trace per event: a few events take none, a few take more.
const BYTES_AN_EVENT: u64 = 8;
/// The page size in which a compiled trace counts touched pages.
const PAGE: u64 = 4096;

/// Returns the compiled trace of the trace with this hash. If it must be compiled first, calls
/// `told` with its approximate size and its folder. `done` counts the bytes of the trace that have
/// been read.
pub fn compiled_trace(
    trace: &Path,
    sha256: &str,
    order: Order,
    done: Done,
    told: impl FnOnce(u64, &Path),
) -> Result<CompiledTrace> {
    let shelf = Shelf::find()?;
    let key = cache::short_hash([
        sha256,
        &format!("{order:?}"),
        &format!("{MAGIC:x}"),
        COMPILER,
    ]);
    let path = shelf.path(&key);
    if let Some((_in_use, head)) = shelf.take(&key) {
        return Ok(CompiledTrace {
            path,
            head,
            _in_use,
        });
    }
    let unfinished = shelf.begin(&key, heapmark_catalog::file::mode_of([trace]))?;
    let file = unfinished
        .file
        .try_clone()
        .context("cannot open a compiled trace twice")?;
    let reader = Reader::watched(trace, done).map_err(|fault| anyhow!(fault));
    let compiled = reader.and_then(|reader| {
        let bytes = BYTES_AN_EVENT * events_of(trace)?;
        told(bytes, shelf.folder());
        has_room(bytes, free_bytes(&file), shelf.folder())?;
        let page = reader
            .head()
            .get("page-bytes")
            .and_then(|bytes| bytes.parse().ok())
            .unwrap_or(PAGE);
        let program = Recorded::of(&reader);
        let mut events = reader.map(|record| in_pages(record, page));
        compile(&mut events, order, program, file)
    });
    let head = compiled.with_context(|| format!("{} cannot be replayed", trace.display()))?;
    let _in_use = shelf.keep(&key, unfinished)?;
    Ok(CompiledTrace {
        path,
        head,
        _in_use,
    })
}

/// Returns how many bytes a user may still write on a file's file system, if that is known.
fn free_bytes(file: &File) -> Option<u64> {
    let disk = rustix::fs::fstatvfs(file).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Refuses a trace whose compiled form would not fit on the disk.
fn has_room(bytes: u64, free_bytes: Option<u64>, folder: &Path) -> Result<()> {
    match free_bytes {
        Some(free) if free < bytes => bail!(
            "its compiled trace takes some {} MiB, and {} MiB are free where {} lies: choose another place with HEAPMARK_CACHE",
            bytes >> 20,
            free >> 20,
            folder.display()
        ),
        _ => Ok(()),
    }
}

/// Converts an event's touched pages, which are counted in pages of the recording machine.
fn in_pages(record: Result<(u32, Event), Fault>, page: u64) -> Result<(u32, Event), Fault> {
    record.map(|(thread, mut event)| {
        if let Event::Touch {
            resident_pages,
            extent_pages,
            pages,
            ..
        } = &mut event
        {
            for count in [resident_pages, extent_pages, pages] {
                *count = count.saturating_mul((page / PAGE).max(1));
            }
        }
        (thread, event)
    })
}

/// Returns the head of a compiled trace; `None` if the file is damaged.
fn whole(file: &File) -> Option<CompiledHead> {
    let mut bytes = [0; HEAD_WORDS * 8];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let (words, _) = bytes.as_chunks::<8>();
    let words = std::array::from_fn(|word| u64::from_ne_bytes(words[word]));
    let head = CompiledHead::of_words(&words).ok()?;
    let is_whole = file.metadata().ok()?.len() == head.words * 8
        && u64::from(checksum(file).ok()?) == head.checksum;
    is_whole.then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_trace::Token;

    #[test]
    fn a_compiled_trace_that_the_disk_has_no_room_for_is_refused_before_it_is_begun() {
        let folder = Path::new("/cache/compiled-traces");
        assert!(
            has_room(8 << 20, Some(8 << 20), folder).is_ok()
                && has_room(u64::MAX, None, folder).is_ok()
        );
        let refusal = has_room(8 << 30, Some(5 << 20), folder)
            .unwrap_err()
            .to_string();
        assert!(
            refusal.starts_with(
                "its compiled trace takes some 8192 MiB, and 5 MiB are free where /cache/compiled-traces lies"
            ),
            "{refusal}"
        );
        assert!(free_bytes(&tempfile::tempfile().unwrap()).is_some());
    }

    #[test]
    fn touched_pages_of_a_machine_with_larger_ones_are_counted_as_those_of_4_kib() {
        let touch = |resident_pages, pages| {
            (
                3,
                Event::Touch {
                    token: Token {
                        thread: 3,
                        index: 7,
                    },
                    resident_pages,
                    extent_pages: resident_pages,
                    pages,
                },
            )
        };
        assert_eq!(in_pages(Ok(touch(2, 16)), 64 << 10), Ok(touch(32, 256)));
        assert_eq!(in_pages(Ok(touch(2, 16)), 4096), Ok(touch(2, 16)));
        assert_eq!(
            in_pages(Ok(touch(u64::MAX, 1)), 16 << 10),
            Ok(touch(u64::MAX, 4))
        );
    }
}
