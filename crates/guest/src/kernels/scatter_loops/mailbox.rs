//! Batches of blocks on the way from one thread to another.

use super::*;

/// The record of blocks that one thread hands to another. The record belongs to the harness, since
/// the list must stay intact under any allocator. The header and the array of pointers come from
/// the allocator under test.
#[derive(Clone, Copy)]
pub struct Batch {
    pub next: *mut Batch,
    pub header: *mut u8,
    pub pointers: *mut *mut u8,
    pub count: u64,
    /// Requested bytes of blocks, array and header.
    pub bytes: u64,
    /// The thread that allocated the blocks.
    pub producer: usize,
}

/// A lock-free list: any thread pushes, and the list's owner takes all entries at once. Single
/// entries are never taken, so a reused address does no harm (no ABA problem).
#[derive(Default)]
pub struct Mailbox {
    head: AtomicPtr<Batch>,
}

impl Mailbox {
    /// Hands `batch` to the owner.
    ///
    /// # Safety
    /// The batch must belong to the caller alone, and live until the owner has taken it.
    pub unsafe fn push(&self, batch: *mut Batch) {
        let mut head = self.head.load(Relaxed);
        loop {
            // SAFETY: the caller's until the exchange succeeds.
            unsafe { (*batch).next = head };
            match self
                .head
                .compare_exchange_weak(head, batch, Release, Relaxed)
            {
                Ok(_) => return,
                Err(current) => head = current,
            }
        }
    }

    /// Takes all entries, the last one first; null if there are none.
    pub fn take(&self) -> *mut Batch {
        self.head.swap(ptr::null_mut(), Acquire)
    }
}

/// The state of one thread that other threads access.
#[derive(Default)]
pub struct Desk {
    /// Batches for this thread.
    pub received: Mailbox,
    /// Records of this thread's batches that other threads no longer need.
    pub spent: Mailbox,
    /// Bytes allocated by this thread and freed by other threads.
    pub freed_bytes: AtomicU64,
    /// Bytes that this thread has allocated and not itself freed, as last published.
    pub kept_bytes: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_taken_once_and_last_in_first_out() {
        // SAFETY: a batch of nulls and zeros is valid.
        let mut batches: [Batch; 3] = unsafe { core::mem::zeroed() };
        let mailbox = Mailbox::default();
        for (index, batch) in batches.iter_mut().enumerate() {
            batch.producer = index;
            // SAFETY: each is pushed once and outlives the mailbox.
            unsafe { mailbox.push(batch) };
        }
        let (mut next, mut producers) = (mailbox.take(), [9; 3]);
        for producer in &mut producers {
            // SAFETY: three were pushed.
            unsafe { (*producer, next) = ((*next).producer, (*next).next) };
        }
        assert_eq!(producers, [2, 1, 0]);
        assert!(next.is_null() && mailbox.take().is_null());
    }
}
