//! The start of a measured phase, for which threads wait.

use super::wait::wait_until;
use crate::measured::Moment;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Release},
};

/// Threads wait here until all have arrived and the clock has started.
#[derive(Default)]
pub struct Gate {
    arrived: AtomicU32,
    open: AtomicU32,
}

impl Gate {
    /// Called by the threads: counts the caller in and waits for the start.
    pub fn wait(&self) {
        self.arrived.fetch_add(1, AcqRel);
        wait_until(|| self.open.load(Acquire) == 1);
    }

    /// Called by the main thread: returns once that many threads wait.
    pub fn all_here(&self, threads: usize) {
        wait_until(|| self.arrived.load(Acquire) as usize == threads);
    }

    /// Called by the main thread: starts the clock, then the threads.
    pub fn open(&self) -> Moment {
        let moment = Moment::start();
        self.let_go();
        moment
    }

    /// Called by the main thread: starts the threads, and no clock.
    pub fn let_go(&self) {
        self.open.store(1, Release);
    }
}
