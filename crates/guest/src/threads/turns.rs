//! Threads that work one at a time, in an order that the main thread decides: what the threads
//! leave in memory then follows from that order, not from the scheduler.

use super::wait::{Semaphore, wait_until};
use crate::bench::Bench;
use crate::heap_points::HeapPoints;
use crate::memory::{HarnessTable, Padded};
use crate::retained;
use core::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// The turns of all threads; empty if the threads race.
pub struct Turns {
    seats: HarnessTable<Padded<TurnSeat>>,
    /// Posted at the end of each turn.
    over: Semaphore,
}

/// The turns of one thread.
#[derive(Default)]
struct TurnSeat {
    due: Semaphore,
    has_left: AtomicBool,
}

impl Turns {
    /// Makes turns for all threads if memory is measured and the parameter `order` asks for them.
    /// Otherwise the threads race.
    pub fn of(bench: &Bench) -> Turns {
        let threads = match bench.parameter("order") {
            "turns" if retained::is_wanted() => bench.threads,
            _ => 0,
        };
        Turns::among(threads)
    }

    /// Makes turns for this many threads. If 0, all threads race.
    pub fn among(threads: usize) -> Turns {
        Turns {
            seats: HarnessTable::zeroed(threads),
            over: Semaphore::default(),
        }
    }

    /// Returns whether threads take turns.
    pub fn are_taken(&self) -> bool {
        !self.seats.is_empty()
    }

    /// Waits for the calling thread's first turn; called before the thread's first work.
    pub fn begin(&self, worker: usize) {
        if self.are_taken() {
            self.seats[worker].due.wait();
        }
    }

    /// Lets other threads work until `done` is true; called by a thread that cannot go on.
    pub fn wait(&self, worker: usize, done: impl Fn() -> bool) {
        if !self.are_taken() {
            return wait_until(done);
        }
        while !done() {
            self.pass(worker);
        }
    }

    /// Ends the turn of the calling thread, which has done its share, and waits for the next turn.
    pub fn pass(&self, worker: usize) {
        if self.are_taken() {
            self.over.post();
            self.seats[worker].due.wait();
        }
    }

    /// Ends the calling thread's last turn; called after the thread's last work.
    pub fn leave(&self, worker: usize) {
        if self.are_taken() {
            self.seats[worker].has_left.store(true, Release);
            self.over.post();
        }
    }

    /// Gives one turn to each of these workers, in this order, and returns whether any of them
    /// still had work. Called by the main thread.
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

    /// Takes a point, and ends the process if the reading is impossible. While threads race, live
    /// bytes change too fast for such a check. Called by the main thread between turns.
    pub fn point(&self, points: &HeapPoints, volume: u64, live: u64) -> u64 {
        if self.are_taken() {
            points.take_touched(volume, live, live)
        } else {
            points.take(volume, live)
        }
    }

    /// Readies the turns for another round of the same threads; called by the main thread.
    pub fn again(&self) {
        for seat in &self.seats[..] {
            seat.has_left.store(false, Release);
        }
    }
}
