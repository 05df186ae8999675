//! Chooses the slot of each object. A thread first reuses its own freed slots, the last one first:
//! its program order makes that safe. Otherwise it takes slots that another thread freed long ago,
//! and must wait for those frees.

use super::thread_streams::Moment;
use crate::grown::grown;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A freed slot rests for this many frees before another thread gets it: by then the thread that
/// freed it is past that op, so that the other one hardly waits.
const QUARANTINE: u64 = 65_536;
/// The number of slots that are taken over at a time, with one wait.
const BATCH: usize = 64;

/// A freed slot, with the time of its free: as a count of the owner's ops, and as a count of all frees.
#[derive(Clone, Copy)]
struct Freed {
    slot: u32,
    ops: u64,
    number: u64,
}

#[derive(Default)]
struct Own {
    /// Freed slots, in the order of their frees.
    freed: VecDeque<Freed>,
    /// Whether the thread's oldest slot has an entry among the donors.
    is_donor: bool,
}

/// The slots of a compiled trace.
#[derive(Default)]
pub struct Slots {
    threads: Vec<Own>,
    /// Threads, ordered by the number of their oldest free at the time they were entered here.
    donors: BinaryHeap<Reverse<(u64, u32)>>,
    frees: u64,
    pub used: u64,
}

impl Slots {
    fn own(&mut self, thread: u32) -> &mut Own {
        grown(&mut self.threads, thread as usize)
    }

    /// Returns a slot for an object of a thread that has done this many ops, and what the thread
    /// must wait for before it fills the slot.
    pub fn take(&mut self, thread: u32, ops: u64) -> (u32, Option<Moment>) {
        let wait = if self.own(thread).freed.is_empty() {
            self.take_over(thread, ops)
        } else {
            None
        };
        if let Some(freed) = self.own(thread).freed.pop_back() {
            return (freed.slot, wait);
        }
        self.used += 1;
        ((self.used - 1) as u32, None)
    }

    /// Takes back a slot that a thread has freed with this op.
    pub fn give(&mut self, thread: u32, slot: u32, ops: u64) {
        self.frees += 1;
        let number = self.frees;
        let slots = self.own(thread);
        slots.freed.push_back(Freed { slot, ops, number });
        if !slots.is_donor {
            self.enter(thread);
        }
    }

    /// Enters a thread among the donors by its oldest slot, if it has one.
    fn enter(&mut self, thread: u32) {
        let slots = self.own(thread);
        let entry = slots
            .freed
            .front()
            .map(|freed| Reverse((freed.number, thread)));
        slots.is_donor = entry.is_some();
        self.donors.extend(entry);
    }

    /// Takes over the oldest slots of the thread that has the oldest one; returns that thread and
    /// how many ops it must have done.
    fn take_over(&mut self, thread: u32, ops: u64) -> Option<Moment> {
        while let Some(&Reverse((number, donor))) = self.donors.peek() {
            if self.frees < number + QUARANTINE {
                return None;
            }
            self.donors.pop();
            let frees = self.frees;
            let slots = self.own(donor);
            let count = slots
                .freed
                .iter()
                .take(BATCH)
                .take_while(|freed| frees >= freed.number + QUARANTINE)
                .count();
            let batch: Vec<Freed> = slots.freed.drain(..count).collect();
            self.enter(donor);
            if let Some(until) = batch.iter().map(|freed| freed.ops).max() {
                // From now on the slots belong to this thread, as if it had freed them itself. The
                // wait is over once the thread's next op is done.
                self.own(thread)
                    .freed
                    .extend(batch.into_iter().map(|freed| Freed {
                        ops: ops + 1,
                        number: frees,
                        ..freed
                    }));
                return Some((donor, until));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_uses_its_own_last_slot_first_and_no_other_threads_before_it_has_rested() {
        let mut slots = Slots::default();
        let taken: Vec<u32> = (0..3).map(|_| slots.take(0, 0).0).collect();
        assert_eq!(taken, [0, 1, 2]);
        slots.give(1, 0, 1);
        slots.give(0, 2, 4);
        assert_eq!(
            [slots.take(0, 5), slots.take(0, 6)],
            [(2, None), (3, None)],
            "slot 0 rests"
        );
        for number in 0..QUARANTINE {
            slots.give(2, 4 + number as u32, number);
        }
        assert_eq!(slots.take(0, 7), (0, Some((1, 1))));
        assert_eq!(slots.used, 4);
    }

    #[test]
    fn an_older_entry_of_a_donor_does_not_hide_the_younger_ones() {
        let mut slots = Slots::default();
        for number in 0..3 * QUARANTINE {
            let (slot, wait) = slots.take(0, number);
            assert!(wait.is_none_or(|(donor, ops)| donor == 1 && ops <= number));
            slots.give(1, slot, number + 1);
        }
        assert!(
            slots.used <= QUARANTINE + 2 * BATCH as u64,
            "{}",
            slots.used
        );
    }
}
