//! Walks over the slots that free and replace blocks.

use super::*;

/// Below this size, the program that the document describes requests blocks without alignment,
/// aligned to 8 bytes, and aligned to 16 bytes in turn.
const ALIGNED_BELOW: u32 = 4096;

/// Bytes at the front of a block that hold the block's size, unless the block is smaller.
pub const MARK_BYTES: u32 = size_of::<u32>() as u32;

/// The changes that a walk over slots made.
#[derive(Clone, Copy, Default)]
struct Change {
    freed: u64,
    /// Allocated minus freed bytes, modulo 2^64, kept as one number because two would need more
    /// registers than the calls leave.
    kept_bytes: u64,
}

impl ScatterWorker<'_> {
    /// Step 4: walks over slots and empties those that are occupied.
    pub(super) fn free_some(&mut self, steps: u64) {
        let (mut at, mut change) = (self.free_at, Change::default());
        for _ in 0..steps {
            self.empty(at, &mut change);
            at = advance(at, self.free_stride, self.shared.blocks);
        }
        self.free_at = at;
        self.tally.free_steps += steps;
        self.note(change);
    }

    /// Step 6: walks over slots and puts a new block into each.
    pub(super) fn replace_some(&mut self, steps: u64) {
        let (mut at, mut size_at, mut change) = (self.allocate_at, self.size_at, Change::default());
        for _ in 0..steps {
            self.empty(at, &mut change);
            let size = self.shared.sizes[size_at];
            self.put(at, size);
            change.kept_bytes = change.kept_bytes.wrapping_add(u64::from(size));
            size_at = advance(size_at, 1, tables::SIZES);
            at = advance(at, self.allocate_stride, self.shared.blocks);
        }
        (self.allocate_at, self.size_at) = (at, size_at);
        self.tally.allocations += steps;
        self.tally.allocation_steps += steps;
        self.note(change);
    }

    /// Fills every empty slot before memory is sampled (legacy version).
    pub(super) fn fill(&mut self) {
        for slot in 0..self.shared.blocks {
            if self.held[slot] == 0 {
                let size = self.shared.fill_sizes[self.size_at];
                self.size_at = advance(self.size_at, 1, tables::SIZES);
                self.put(slot, size);
                self.kept_bytes += u64::from(size);
                self.tally.allocations += 1;
                self.tally.beyond_steps += 1;
            }
        }
    }

    /// Frees every occupied slot.
    pub(super) fn release(&mut self) {
        let mut change = Change::default();
        (0..self.shared.blocks).for_each(|slot| self.empty(slot, &mut change));
        self.tally.released += change.freed;
        self.note(change);
    }

    fn note(&mut self, change: Change) {
        self.kept_bytes = self.kept_bytes.wrapping_add(change.kept_bytes);
        self.tally.frees += change.freed;
    }

    /// Empties a slot, if it is occupied. A slot is empty once `held` is 0; the slot's pointer
    /// stays until the next block.
    #[inline(always)]
    fn empty(&mut self, slot: usize, change: &mut Change) {
        let held = core::mem::take(&mut self.held[slot]);
        if held != 0 {
            // SAFETY: the slot's own entry.
            let block = unsafe { *self.slots.add(slot) };
            // SAFETY: the block that was stored there, with its size in front if it is large
            // enough.
            unsafe {
                if held > MARK_BYTES && size_in(block) != held - 1 && self.holds {
                    lost_its_size(format_args!(
                        "the size in front of a live block of {} bytes",
                        held - 1
                    ));
                }
                (self.shared.api.free)(block);
            }
            change.freed += 1;
            change.kept_bytes = change.kept_bytes.wrapping_sub(u64::from(held - 1));
        }
    }

    #[inline(always)]
    fn put(&mut self, slot: usize, size: u32) {
        let block = self.block(size);
        // SAFETY: the slot's own entry.
        unsafe { *self.slots.add(slot) = block };
        self.held[slot] = size + 1;
    }

    /// Allocates and touches a block: its size in front, a byte on every further page, and the last
    /// byte.
    #[inline(always)]
    pub(super) fn block(&mut self, size: u32) -> *mut u8 {
        let block = if self.shared.legacy && size < ALIGNED_BELOW {
            self.aligned(size as usize)
        } else {
            self.shared.api.allocate(size as usize)
        };
        // SAFETY: all within the block.
        unsafe {
            if size >= MARK_BYTES {
                block.cast::<u32>().write_volatile(size);
            }
            // `step_by` is not used: for the many blocks below a page, its set-up takes longer than
            // the rest.
            let mut offset = 4096;
            while offset < size as usize {
                block.add(offset).write_volatile(1);
                offset += 4096;
            }
            if size > 0 {
                block.add(size as usize - 1).write_volatile(1);
            }
        }
        block
    }

    /// Requests small blocks as the legacy version does: without alignment, aligned to 8 bytes, to
    /// 16 bytes, and so on in turn.
    fn aligned(&mut self, size: usize) -> *mut u8 {
        let turn = self.alignment_turn;
        self.alignment_turn = if turn == 2 { 0 } else { turn + 1 };
        if turn == 0 {
            return self.shared.api.allocate(size);
        }
        self.tally.aligned += 1;
        let mut block = ptr::null_mut();
        let alignment = 8 * usize::from(turn);
        // SAFETY: an ordinary call.
        let error = unsafe { (self.shared.api.posix_memalign)(&mut block, alignment, size) };
        if error != 0 || (block.is_null() && size > 0) {
            self.shared
                .api
                .no_aligned(alignment, size, error, format_args!(""));
        }
        block
    }
}
