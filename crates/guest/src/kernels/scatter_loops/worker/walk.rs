//! Walks over the slots: what is freed, and what is put there.

use super::super::tables;
use super::{Worker, advance, lost_its_size, malloc, size_in};
use crate::fail;
use core::ptr;

/// The program as the document describes it asks for no alignment, 8 and 16 in turn below this size.
const ALIGNED_BELOW: u32 = 4096;

/// A block's size stands in front of it, in so many bytes, unless it has less.
pub const MARK_BYTES: u32 = size_of::<u32>() as u32;

/// What a walk over slots has changed.
#[derive(Clone, Copy, Default)]
struct Change {
    freed: u64,
    /// Allocated minus freed, modulo 2^64. One number: with two, a walk has more of them than the calls leave registers.
    kept_bytes: u64,
}

impl Worker<'_> {
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

    /// The legacy state fills every empty slot before memory is sampled.
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

    /// Every occupied slot is freed.
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

    /// A slot is empty once `held` says so; its pointer stays until the next block.
    #[inline(always)]
    fn empty(&mut self, slot: usize, change: &mut Change) {
        let held = core::mem::take(&mut self.held[slot]);
        if held != 0 {
            // SAFETY: the slot's own entry.
            let block = unsafe { *self.slots.add(slot) };
            // SAFETY: the block that was put there, with its size in front if it has room for it.
            unsafe {
                if held > MARK_BYTES && size_in(block) != held - 1 && self.holds {
                    lost_its_size(format_args!("the size in front of a live block of {} bytes", held - 1));
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

    /// A new block, touched: its size in front, a byte on every further page, and the last byte.
    #[inline(always)]
    pub(super) fn block(&mut self, size: u32) -> *mut u8 {
        let block = if self.shared.legacy && size < ALIGNED_BELOW {
            self.aligned(size as usize)
        } else {
            malloc(&self.shared.api, size as usize)
        };
        // SAFETY: all within the block.
        unsafe {
            if size >= MARK_BYTES {
                block.cast::<u32>().write_volatile(size);
            }
            // Not `step_by`: for the many blocks below a page its set-up takes longer than the rest.
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

    /// As the legacy state asks for small blocks: without alignment, aligned to 8 bytes, to 16 bytes, and again.
    fn aligned(&mut self, size: usize) -> *mut u8 {
        let turn = self.alignment_turn;
        self.alignment_turn = if turn == 2 { 0 } else { turn + 1 };
        if turn == 0 {
            return malloc(&self.shared.api, size);
        }
        self.tally.aligned += 1;
        let mut block = ptr::null_mut();
        let alignment = 8 * usize::from(turn);
        // SAFETY: an ordinary call.
        let error = unsafe { (self.shared.api.posix_memalign)(&mut block, alignment, size) };
        if error != 0 || (block.is_null() && size > 0) {
            fail::no_aligned(&self.shared.api, alignment, size, error, format_args!(""));
        }
        block
    }
}
