//! The place of each thread's tallies: a seat of its own, which another thread gets once this thread has ended. Taking
//! a seat needs no lock and no allocation, and touches the seat's pages before anything is timed.

use super::histogram::CallTimes;
use crate::memory::HarnessTable;
use crate::rng::SplitMix;
use crate::wrapped::FUNCTIONS;
use core::cell::Cell;
use core::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

/// Number of threads that can live at a time. An unused seat is only address space.
const MOST_SEATS: usize = 4096;

/// The tallies of one thread. Only the thread that has set `taken` uses the cells until `taken` is unset. A seat that
/// was never used is all zero.
#[repr(align(128))]
pub struct ThreadSlot {
    taken: AtomicBool,
    touched: Cell<bool>,
    /// Draws the gaps between the timed calls.
    random: Cell<SplitMix>,
    pub tallies: [CallTimes; FUNCTIONS.len()],
}

impl ThreadSlot {
    /// Draws the number of calls until the next timed one. Every gap from 1 to 2K - 1 is equally likely, so that no
    /// pattern of calls can hide between the steps, and K is the mean.
    pub fn gap(&self, every: u32) -> u32 {
        let mut random = self.random.take();
        let gap = 1 + random.below(2 * every - 1);
        self.random.set(random);
        gap
    }

    /// Frees the seat of a thread that has ended; the thread's counts stay.
    pub fn leave(&self) {
        self.taken.store(false, Release);
    }
}

/// The seats of all threads.
pub struct ThreadSlots(HarnessTable<ThreadSlot>);

impl ThreadSlots {
    pub fn new() -> ThreadSlots {
        ThreadSlots(HarnessTable::reserved(MOST_SEATS))
    }

    /// Takes a seat for the calling thread; returns `None` if all seats are taken.
    pub fn take(&self, seed: u64) -> Option<&ThreadSlot> {
        let free =
            |seat: &&ThreadSlot| !seat.taken.load(Relaxed) && !seat.taken.swap(true, Acquire);
        let (index, seat) = self.0.iter().enumerate().find(|(_, seat)| free(seat))?;
        if !seat.touched.replace(true) {
            seat.tallies.iter().for_each(|tally| tally.counts.touch());
            seat.random.set(SplitMix::new(seed, index as u64));
        }
        Some(seat)
    }

    /// Returns all seats that were ever used. A seat is taken only if all seats before it have been used.
    pub fn used(&self) -> impl Iterator<Item = &ThreadSlot> {
        self.0.iter().take_while(|seat| seat.touched.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_taken_once_and_given_to_the_next_with_its_counts() {
        let seats = ThreadSlots::new();
        let (first, second) = (seats.take(1).unwrap(), seats.take(1).unwrap());
        first.tallies[0].note(5, 0, || 0);
        second.tallies[0].note(6, 0, || 0);
        first.leave();
        let again = seats.take(1).unwrap();
        assert!(core::ptr::eq(again, first) && !core::ptr::eq(second, first));
        again.tallies[0].note(7, 0, || 0);
        assert_eq!(seats.used().count(), 2);
        assert_eq!(again.tallies[0].counts.least_and_middle(), (5, 5));
    }

    #[test]
    fn gaps_have_the_mean_that_was_asked_for_and_one_is_every_call() {
        let seats = ThreadSlots::new();
        let seat = seats.take(7).unwrap();
        assert!((0..1000).all(|_| seat.gap(1) == 1));
        let gaps: u64 = (0..100_000).map(|_| u64::from(seat.gap(16))).sum();
        assert!((1_580_000..1_620_000).contains(&gaps), "{gaps}");
    }
}
