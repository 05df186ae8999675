//! Blocks that other threads have handed to a thread to free.

use super::*;
use crate::shape_blocks::StampedBlock;

/// Number of blocks that may wait for one thread.
const ROOM: u64 = 4096;

/// A bounded queue for each thread: any thread pushes, and the queue's owner takes. After Dmitry
/// Vyukov's bounded queue: each place holds the turn for which it is ready.
pub struct Rings {
    places: HarnessTable<RingPlace>,
    ends: HarnessTable<Padded<RingEnds>>,
}

struct RingPlace {
    turn: AtomicU64,
    block: Cell<StampedBlock>,
}

#[derive(Default)]
struct RingEnds {
    /// Number of pushes so far.
    pushed: AtomicU64,
    /// Number of blocks taken so far, which only the owner uses.
    taken: Cell<u64>,
}

impl Rings {
    /// Makes queues for this many threads.
    pub fn new(threads: usize) -> Rings {
        Rings {
            places: HarnessTable::zeroed(threads * ROOM as usize),
            ends: HarnessTable::zeroed(threads),
        }
    }

    fn place(&self, owner: usize, turn: u64) -> &RingPlace {
        &self.places[owner * ROOM as usize + (turn % ROOM) as usize]
    }

    /// Hands a block to the queue's owner. Returns `false` if there is no room.
    pub fn push(&self, owner: usize, block: StampedBlock) -> bool {
        let pushed = &self.ends[owner].pushed;
        let mut turn = pushed.load(Relaxed);
        loop {
            let place = self.place(owner, turn);
            // A place is empty after an even number of turns of its own, and full after an odd
            // number.
            let due = turn / ROOM * 2;
            match place.turn.load(Acquire) {
                ready if ready < due => return false,
                ready if ready > due => turn = pushed.load(Relaxed),
                _ => match pushed.compare_exchange_weak(turn, turn + 1, Relaxed, Relaxed) {
                    Ok(_) => {
                        place.block.set(block);
                        place.turn.store(due + 1, Release);
                        return true;
                    }
                    Err(current) => turn = current,
                },
            }
        }
    }

    /// Takes the next block, if there is one. Only called by the queue's owner.
    pub fn take(&self, owner: usize) -> Option<StampedBlock> {
        let taken = &self.ends[owner].taken;
        let turn = taken.get();
        let place = self.place(owner, turn);
        let due = turn / ROOM * 2;
        if place.turn.load(Acquire) != due + 1 {
            return None;
        }
        let block = place.block.get();
        place.turn.store(due + 2, Release);
        taken.set(turn + 1);
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use core::ptr;

    fn block(stamp: u32) -> StampedBlock {
        StampedBlock::at(ptr::null_mut(), 1, stamp)
    }

    #[test]
    fn what_is_pushed_is_taken_in_order_and_a_full_ring_refuses() {
        let rings = Rings::new(2);
        let mut next = 0;
        for times in [3, ROOM as u32, 5, ROOM as u32] {
            let first = next;
            for _ in 0..times {
                assert!(rings.push(1, block(next)));
                next += 1;
            }
            assert_eq!(rings.push(1, block(0)), times < ROOM as u32);
            let expected = (first..next).chain((times < ROOM as u32).then_some(0));
            for stamp in expected {
                assert_eq!(rings.take(1).map(|block| block.stamp()), Some(stamp));
            }
            assert!(rings.take(1).is_none());
        }
        assert!(rings.take(0).is_none());
    }

    #[test]
    fn blocks_of_several_threads_arrive_once() {
        let rings = Rings::new(1);
        let (each, mut sum) = (20_000u32, 0u64);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let rings = &rings;
                scope.spawn(move || {
                    for number in 0..each {
                        while !rings.push(0, block(3 * number + thread)) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            for _ in 0..3 * each {
                let taken = loop {
                    match rings.take(0) {
                        Some(block) => break block,
                        None => std::thread::yield_now(),
                    }
                };
                sum += u64::from(taken.stamp());
            }
        });
        let all = u64::from(3 * each);
        assert_eq!(sum, all * (all - 1) / 2);
    }
}
