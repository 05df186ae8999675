//! Reading with progress: another thread that shows the progress reads the counter.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A shared count of the bytes that have been read.
#[derive(Clone, Default)]
pub struct Done(Arc<AtomicU64>);

impl Done {
    /// Returns the number of bytes that have been read so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds to the number of bytes that have been read.
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A reader that counts the bytes it reads.
pub struct Watched<R> {
    from: R,
    done: Done,
}

impl<R> Watched<R> {
    /// Counts in `done` what is read from here on.
    pub fn new(from: R, done: Done) -> Watched<R> {
        Watched { from, done }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.from
            .read(room)
            .inspect(|bytes| self.done.add(*bytes as u64))
    }
}
