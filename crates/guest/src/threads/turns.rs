//! Threads that work one at a time, in an order that the main thread decides: what they leave in
//! memory then follows from that order, and not from the scheduler.

use super::wait::{Semaphore, wait_until};
use crate::bench::Bench;
use crate::heap_points::HeapPoints;
use crate::memory::{HarnessTable, Padded};
use crate::retained;
use core::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// The turns of some threads; none if they race.
pub struct Turns {
    seats: HarnessTable<Padded<TurnSeat>>,
    /// Posted at the end of each turn.
    over: Semaphore,
}

/// Of one thread.
#[derive(Default)]
struct TurnSeat {
    due: Semaphore,
    has_left: AtomicBool,
}

impl Turns {
    /// Of all threads if memory is measured and the parameter `order` says so; otherwise they race.
    pub fn of(bench: &Bench) -> Turns {
        let threads = match bench.parameter("order") {
            "turns" if retained::is_wanted() => bench.threads,
            _ => 0,
        };
        Turns::among(threads)
    }

    /// Of so many threads; with none, all race.
    pub fn among(threads: usize) -> Turns {
        Turns {
            seats: HarnessTable::zeroed(threads),
            over: Semaphore::default(),
        }
    }

    /// Whether there are any.
    pub fn are_taken(&self) -> bool {
        !self.seats.is_empty()
    }

    /// For a thread, before its first work.
    pub fn begin(&self, worker: usize) {
        if self.are_taken() {
            self.seats[worker].due.wait();
        }
    }

    /// For a thread that cannot go on: others work until this is done.
    pub fn wait(&self, worker: usize, done: impl Fn() -> bool) {
        if !self.are_taken() {
            return wait_until(done);
        }
        while !done() {
            self.pass(worker);
        }
    }

    /// For a thread that has done its share: its turn ends.
    pub fn pass(&self, worker: usize) {
        if self.are_taken() {
            self.over.post();
            self.seats[worker].due.wait();
        }
    }

    /// For a thread, after its last work.
    pub fn leave(&self, worker: usize) {
        if self.are_taken() {
            self.seats[worker].has_left.store(true, Release);
            self.over.post();
        }
    }

    /// By the main thread: gives one turn to each of these, in this order. Returns whether any of
    /// them still had work.
    pub fn give(&self, workers: impl Iterator<Item = usize>) -> bool {
        let mut any = false;
        for worker in workers {
            let seat = &self.seats[worker];
            if !seat.has_left.load(Acquire) {
                seat.due.post();
                self.over.wait();
                any = true;
            }
        }
        any
    }

    /// By the main thread, between turns: takes a point, and gives up if it is impossible. While
    /// threads race, what is live changes too fast to tell.
    pub fn point(&self, points: &HeapPoints, volume: u64, live: u64) -> u64 {
        if self.are_taken() {
            points.take_touched(volume, live, live)
        } else {
            points.take(volume, live)
        }
    }

    /// For the main thread, before another round of the same threads.
    pub fn again(&self) {
        for seat in &self.seats[..] {
            seat.has_left.store(false, Release);
        }
    }
}
