//! Compiles a trace for its replay: tokens become slots, and the recorded order becomes waits of
//! threads.
//!
//! Events are read once, in recorded order; memory grows with the live objects, not with the length
//! of the trace. [`heapmark_wire::compiled`] defines the layout of a compiled trace.

mod ask;
mod compiler;
mod slots;
mod stream;
mod thread_streams;
mod window;

#[cfg(test)]
mod tests;

pub use compiler::compile;

use crate::Reader;
use anyhow::{Context, Result};
use heapmark_wire::compiled::HEAD_WORDS;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The facts about a program, besides its calls, that a replay needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded {
    /// Whether a trace's only thread is the main one if no event identifies the main thread.
    pub one_is_main: bool,
    /// Whether the program has disabled huge pages for itself.
    pub thp_disabled: bool,
}

impl Recorded {
    /// Returns what a trace records about its program.
    pub fn of(reader: &Reader) -> Recorded {
        Recorded {
            one_is_main: !reader.tells_main(),
            thp_disabled: reader.head().number("end.thp-disabled") == Some(1),
        }
    }
}

/// How closely the threads of a replay keep to the recorded order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// A thread waits for what its next op needs.
    Dependent,
    /// Like `Dependent`, and each op waits for its recorded time.
    Timed,
    /// One thread plays at a time.
    Strict,
    /// Like `Strict`, and always by the same thread, which makes all calls.
    Alone,
}

impl Order {
    /// Returns whether ops run one after the other, so that no thread has to wait for an object.
    fn is_strict(self) -> bool {
        matches!(self, Order::Strict | Order::Alone)
    }
}

/// Returns the CRC-32 of all words behind the head of a compiled trace.
pub fn checksum(compiled: &File) -> Result<u32> {
    let mut hash = crc32fast::Hasher::new();
    let mut at = HEAD_WORDS as u64 * 8;
    // A buffer small enough for a core's own cache.
    let mut room = vec![0; 128 << 10];
    loop {
        let read = compiled
            .read_at(&mut room, at)
            .context("cannot read the compiled trace")?;
        if read == 0 {
            return Ok(hash.finalize());
        }
        hash.update(&room[..read]);
        at += read as u64;
    }
}
