//! The start of a measured phase, for which threads wait.

use super::wait::wait_until;
use crate::measured::Moment;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Release},
};

/// A gate at which threads wait until all have arrived and the clock has started.
#[derive(Default)]
pub struct Gate {
    arrived: AtomicU32,
    open: AtomicU32,
}

impl Gate {
    /// Counts the calling thread in and waits for the start.
    pub fn wait(&self) {
        self.arrived.fetch_add(1, AcqRel);
        wait_until(|| self.open.load(Acquire) == 1);
    }

    /// Returns once that many threads wait; called by the main thread.
    pub fn all_here(&self, threads: usize) {
        wait_until(|| self.arrived.load(Acquire) as usize == threads);
    }

    /// Starts the clock, then the threads; called by the main thread.
    pub fn open(&self) -> Moment {
        let moment = Moment::start();
        self.let_go();
        moment
    }

    /// Starts the threads, but no clock; called by the main thread.
    pub fn let_go(&self) {
        self.open.store(1, Release);
    }
}
