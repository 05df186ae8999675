//! Batches of blocks: made for another thread, sent, received and freed.

use super::super::mailbox::Batch;
use super::*;

impl ScatterWorker<'_> {
    /// Step 5: frees the batches that other threads have sent: the blocks one by one, then the
    /// array and the header.
    pub(super) fn free_batches(&mut self, mut batch: *mut Batch) {
        let free = self.shared.api.free;
        while !batch.is_null() {
            // SAFETY: a record that was pushed for this thread and taken once.
            let Batch {
                next,
                header,
                pointers,
                count,
                bytes,
                producer,
            } = unsafe { *batch };
            let mut marked_bytes = 0;
            for entry in 0..count as usize {
                // SAFETY: within the array, which holds live blocks, each with its size in front if
                // they are `marked`.
                unsafe {
                    let block = *pointers.add(entry);
                    if self.shared.marked {
                        marked_bytes += u64::from(size_in(block));
                    }
                    free(block);
                }
            }
            let own_bytes = size_of::<Batch>() as u64 + count * size_of::<*mut u8>() as u64;
            if self.shared.marked && self.holds && marked_bytes + own_bytes != bytes {
                lost_its_size(format_args!(
                    "a size in front of one of {count} live blocks that were handed over"
                ));
            }
            // SAFETY: live blocks.
            unsafe {
                free(pointers.cast());
                free(header);
            }
            self.tally.frees += count + 2;
            let desk = &self.shared.desks[producer];
            desk.freed_bytes.fetch_add(bytes, Relaxed);
            // SAFETY: this thread no longer uses the record.
            unsafe { desk.spent.push(batch) };
            batch = next;
        }
    }

    /// Step 7: makes a batch of new blocks for another thread.
    pub(super) fn pack(&mut self, allocations: u64) -> *mut Batch {
        let count = if self.shared.legacy {
            allocations
        } else {
            allocations / 4
        };
        let batch = self.record();
        let array_bytes = count as usize * size_of::<*mut u8>();
        let header = self.shared.api.allocate(size_of::<Batch>());
        let mut pointers: *mut *mut u8 = self.shared.api.allocate(array_bytes).cast();
        if !self.holds {
            // SAFETY: records are this thread's own, and each has a place aside.
            pointers = unsafe {
                let record = batch.offset_from_unsigned(self.room.batches);
                self.room
                    .batches_aside
                    .add(record * self.room.most_in_batch)
            };
        }
        let mut bytes = (size_of::<Batch>() + array_bytes) as u64;
        for entry in 0..count as usize {
            let size = self.shared.sizes[self.size_at];
            self.size_at = advance(self.size_at, 1, tables::SIZES);
            let block = self.block(size);
            bytes += u64::from(size);
            // SAFETY: within the array.
            unsafe { pointers.add(entry).write_volatile(block) };
        }
        let filled = Batch {
            next: ptr::null_mut(),
            header,
            pointers,
            count,
            bytes,
            producer: self.index,
        };
        // SAFETY: the header is large enough for a record, and the record is this thread's until it
        // is sent.
        unsafe {
            header.cast::<Batch>().write_volatile(filled);
            *batch = filled;
        }
        self.kept_bytes += bytes;
        self.tally.allocations += count + 2;
        self.tally.beyond_steps += count + 2;
        self.tally.batches += 1;
        batch
    }

    /// Step 9: sends a batch to the next thread in turn.
    pub(super) fn send(&mut self, batch: *mut Batch) {
        self.target = advance(self.target, 1, self.shared.threads);
        if self.target == self.index {
            self.target = advance(self.target, 1, self.shared.threads);
        }
        // SAFETY: the batch is this thread's, which no longer touches it.
        unsafe { self.shared.desks[self.target].received.push(batch) };
    }

    /// Returns a record that is not in use: either a fresh record or one that has come back.
    fn record(&mut self) -> *mut Batch {
        if self.stock.is_null() {
            self.stock = self.shared.desks[self.index].spent.take();
        }
        if self.stock.is_null() {
            self.fresh_batches += 1;
            // SAFETY: there is a record for each batch of a sequence, and records return before the
            // next sequence.
            return unsafe { self.room.batches.add(self.fresh_batches - 1) };
        }
        let batch = self.stock;
        // SAFETY: records in stock are this thread's.
        self.stock = unsafe { (*batch).next };
        batch
    }

    pub(super) fn drain(&mut self) {
        let received = self.shared.desks[self.index].received.take();
        if !received.is_null() {
            self.timed(|worker| worker.free_batches(received));
        }
    }
}
