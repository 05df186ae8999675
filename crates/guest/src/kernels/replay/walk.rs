//! Reads blocks between the calls, as a program reads the blocks that it got. With these reads, the time of a replay
//! also depends on where the allocator put the blocks.

use crate::memory::HarnessTable;
use core::cell::Cell;

/// Maximum number of slots to look at for each block that is read, since most slots may be empty.
const MOST_SLOTS: usize = 8;

/// A walk over the live blocks in the order of their slots, which is roughly the order in which the program got them.
pub struct Walk {
    /// Number of blocks that are read after each call.
    reads: usize,
    /// The next slot to look at.
    at: Cell<usize>,
    /// Whether each slot holds a block without bytes; empty if nothing is read.
    without_bytes: HarnessTable<Cell<bool>>,
}

impl Walk {
    /// Makes a walk over this many slots.
    pub fn new(reads: usize, slots: usize) -> Walk {
        Walk {
            reads,
            at: Cell::new(0),
            without_bytes: HarnessTable::shared(if reads > 0 { slots } else { 0 }),
        }
    }

    /// Returns whether any block is read.
    #[inline(always)]
    pub fn is_made(&self) -> bool {
        self.reads > 0
    }

    /// Notes whether a slot's new block has any bytes.
    #[inline(always)]
    pub fn born(&self, slot: usize, size: usize) {
        if let Some(place) = self.without_bytes.get(slot) {
            place.set(size == 0);
        }
    }

    /// Reads the next blocks. Each read waits for the one before it, as if each block led to the next.
    #[inline(never)]
    pub fn step(&self, slots: &[Cell<*mut u8>]) {
        let (mut at, mut left) = (self.at.get(), self.reads);
        for _ in 0..MOST_SLOTS * self.reads {
            if at >= slots.len() {
                at = 0;
            }
            let block = slots[at].get();
            if !block.is_null() && !self.without_bytes[at].get() {
                // SAFETY: the block is live and has a byte.
                at += nothing_of(unsafe { block.read_volatile() });
                left -= 1;
            }
            at += 1;
            if left == 0 {
                break;
            }
        }
        self.at.set(at);
    }
}

/// Returns zero, but only once the byte has been read.
#[inline(always)]
fn nothing_of(byte: u8) -> usize {
    let mut nothing = usize::from(byte);
    // SAFETY: changes one register. Unlike an exclusive or of the register with itself, the instruction waits for the
    // register's value.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("and {0}, 0", inout(reg) nothing, options(nomem, nostack));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("and {0}, {0}, xzr", inout(reg) nothing, options(nomem, nostack));
    }
    nothing
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;

    #[test]
    fn blocks_are_read_in_the_order_of_their_slots_and_what_has_no_byte_is_not() {
        let mut bytes = [1u8, 2];
        let [first, last] = [0, 1].map(|place| ptr::from_mut(&mut bytes[place]));
        // Nothing may be read at this address.
        let without_bytes = ptr::without_provenance_mut(16);
        let slots = [first, ptr::null_mut(), without_bytes, last].map(Cell::new);
        let walk = Walk::new(1, slots.len());
        for (slot, size) in [(0, 1), (2, 0), (3, 1)] {
            walk.born(slot, size);
        }
        let after = || {
            walk.step(&slots);
            walk.at.get()
        };
        assert_eq!([after(), after(), after()], [1, 4, 1]);
        // The slot is used again.
        slots[2].set(last);
        walk.born(2, 1);
        assert_eq!(after(), 3);
        slots.iter().for_each(|slot| slot.set(ptr::null_mut()));
        walk.step(&slots);
        assert!(!Walk::new(0, 4).is_made());
    }
}
