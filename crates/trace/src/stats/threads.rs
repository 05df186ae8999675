//! What each thread allocates and frees, and whose objects it frees.

use crate::grown::grown;
use foldhash::fast::RandomState;
use serde::Serialize;
use std::collections::HashMap;

/// The number of pairs of threads that are reported; all others are only in the threads' own
/// counts.
const MOST_PAIRS: usize = 100;
/// The most pairs that are counted at once: in programs with more, no pair stands out.
const MOST_COUNTED: usize = 1 << 16;

/// A thread of the trace.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Thread {
    /// The thread's number.
    pub thread: u32,
    /// Objects that the thread allocated.
    pub allocations: u64,
    /// Bytes of the objects that the thread allocated.
    pub allocated_bytes: u64,
    /// Objects that the thread freed.
    pub frees: u64,
    /// Frees of blocks that other threads had allocated.
    pub frees_of_others: u64,
    /// Objects that the thread allocated and other threads freed.
    pub freed_by_others: u64,
    /// The time of the thread's first event, in nanoseconds.
    pub first_ns: u64,
    /// The time of the thread's last event, in nanoseconds.
    pub last_ns: u64,
}

/// A pair of threads of which one frees what the other allocated.
#[derive(Clone, Copy, Serialize)]
pub struct Pair {
    /// The thread that allocated the objects.
    pub owner: u32,
    /// The thread that freed the objects.
    pub by: u32,
    /// How often the thread `by` freed an object of the thread `owner`.
    pub frees: u64,
}

/// The counts of all threads, updated with each event.
#[derive(Default)]
pub struct Threads {
    threads: Vec<Option<Thread>>,
    pairs: HashMap<(u32, u32), u64, RandomState>,
}

impl Threads {
    fn seen(&mut self, thread: u32, ns: u64) -> &mut Thread {
        let known = grown(&mut self.threads, thread as usize).get_or_insert(Thread {
            thread,
            first_ns: ns,
            ..Thread::default()
        });
        known.last_ns = ns;
        known
    }

    pub fn allocate(&mut self, thread: u32, size: u64, ns: u64) {
        let counts = self.seen(thread, ns);
        counts.allocations += 1;
        counts.allocated_bytes = counts.allocated_bytes.saturating_add(size);
    }

    pub fn free(&mut self, thread: u32, owner: u32, ns: u64) {
        let counts = self.seen(thread, ns);
        counts.frees += 1;
        if thread == owner {
            return;
        }
        counts.frees_of_others += 1;
        // The owner already has counts, unless the object is inherited.
        if let Some(Some(owner)) = self.threads.get_mut(owner as usize) {
            owner.freed_by_others += 1;
        }
        if self.pairs.len() < MOST_COUNTED || self.pairs.contains_key(&(owner, thread)) {
            *self.pairs.entry((owner, thread)).or_default() += 1;
        }
    }

    pub fn end(self) -> (Vec<Thread>, Vec<Pair>) {
        let mut pairs: Vec<Pair> = self
            .pairs
            .into_iter()
            .map(|((owner, by), frees)| Pair { owner, by, frees })
            .collect();
        pairs.sort_unstable_by_key(|pair| (std::cmp::Reverse(pair.frees), pair.owner, pair.by));
        pairs.truncate(MOST_PAIRS);
        (self.threads.into_iter().flatten().collect(), pairs)
    }
}
