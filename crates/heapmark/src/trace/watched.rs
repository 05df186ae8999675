//! Reading that tells how far it is: who shows that looks at the number from another thread.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that have been read.
#[derive(Clone, Debug, Default)]
pub struct Done(Arc<AtomicU64>);

impl Done {
    /// So many so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// So many more.
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Something that is read.
pub struct Watched<R> {
    from: R,
    done: Done,
}

impl<R> Watched<R> {
    /// Counts what is read of it from here on.
    pub fn new(from: R, done: Done) -> Watched<R> {
        Watched { from, done }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.from.read(room).inspect(|bytes| self.done.add(*bytes as u64))
    }
}
