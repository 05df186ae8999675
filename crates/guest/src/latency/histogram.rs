//! The record of one function's calls: a histogram of times, and the longest call.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use heapmark_wire::{BUCKETS, bucket_of, bucket_range};

/// Number of calls that must lie beyond a percentile.
const BEYOND: u64 = 10;

/// Counts by bucket, all zero in an empty histogram. Written by one thread at a time.
#[repr(transparent)]
pub struct Counts([AtomicU64; BUCKETS]);

impl Counts {
    /// Adds one call.
    #[inline(always)]
    pub fn note(&self, ns: u64) {
        add(&self.0[bucket_of(ns)], 1);
    }

    /// Writes to each bucket, so that no page fault happens later.
    pub fn touch(&self) {
        self.0.iter().for_each(|count| add(count, 0));
    }

    /// Adds the counts of another thread.
    pub fn add(&self, more: &Counts) {
        self.0
            .iter()
            .zip(&more.0)
            .for_each(|(count, more)| add(count, more.load(Relaxed)));
    }

    /// Returns the total number of calls.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// Returns the value at this rank, counted from the smallest: 1 is the minimum.
    fn ranked(&self, rank: u64) -> u64 {
        let mut seen = 0;
        let place = self.0.iter().position(|count| {
            seen += count.load(Relaxed);
            seen >= rank
        });
        place.and_then(bucket_range).map_or(0, |(_, high)| high)
    }

    /// Returns the time that all but one in `one_in` calls do not exceed, or `None` if fewer than
    /// ten calls lie beyond it.
    pub fn percentile(&self, one_in: u64) -> Option<u64> {
        let total = self.total();
        (total >= BEYOND * one_in).then(|| self.ranked(total - total / one_in))
    }

    /// Returns the minimum and the median.
    pub fn least_and_middle(&self) -> (u64, u64) {
        (self.ranked(1), self.ranked(self.total().div_ceil(2).max(1)))
    }
}

/// Adds without an atomic read-modify-write, since no other thread writes.
#[inline(always)]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Relaxed);
}

/// Writes `BUCKET:COUNT` for each bucket that is not empty.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.iter().map(|count| count.load(Relaxed)).enumerate();
        counts
            .filter(|(_, count)| *count > 0)
            .try_for_each(|(bucket, count)| write!(f, " {bucket}:{count}"))
    }
}

/// The longest of some calls.
#[derive(Clone, Copy, Default)]
pub struct LongestCall {
    /// The call's duration in nanoseconds.
    pub ns: u64,
    /// The requested bytes; 0 for free, which is not reported.
    pub bytes: u64,
    /// The call's end, in nanoseconds from the start of the recording.
    pub at_ns: u64,
}

/// The calls of one function; all zero if there are none.
pub struct CallTimes {
    pub counts: Counts,
    pub longest: Cell<LongestCall>,
}

impl CallTimes {
    /// Adds a call; `at_ns` is called only if the call is the longest so far.
    #[inline(always)]
    pub fn note(&self, ns: u64, bytes: u64, at_ns: impl FnOnce() -> u64) {
        self.counts.note(ns);
        if ns > self.longest.get().ns {
            self.longest.set(LongestCall {
                ns,
                bytes,
                at_ns: at_ns(),
            });
        }
    }

    /// Adds the calls of another thread.
    pub fn add(&self, more: &CallTimes) {
        self.counts.add(&more.counts);
        if more.longest.get().ns > self.longest.get().ns {
            self.longest.set(more.longest.get());
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::memory::HarnessTable;
    use std::string::ToString;

    fn tallies() -> HarnessTable<CallTimes> {
        HarnessTable::zeroed(2)
    }

    #[test]
    fn what_is_noted_is_said_by_bucket_and_the_longest_call_with_it() {
        let tallies = tallies();
        let (one, other) = (&tallies[0], &tallies[1]);
        one.note(3, 64, || 10);
        one.note(3, 65, || {
            unreachable!("as long as the longest so far is not longer")
        });
        other.note(1000, 66, || 30);
        one.add(other);
        assert_eq!(
            one.counts.to_string(),
            std::format!(" 3:2 {}:1", bucket_of(1000))
        );
        let longest = one.longest.get();
        assert_eq!((longest.ns, longest.bytes, longest.at_ns), (1000, 66, 30));
    }

    #[test]
    fn a_percentile_needs_ten_calls_beyond_it() {
        let tallies = tallies();
        let counts = &tallies[0].counts;
        (1..=99).for_each(|ns| counts.note(ns));
        assert_eq!(
            (counts.percentile(2), counts.percentile(10)),
            (Some(50), None)
        );
        counts.note(100);
        assert_eq!(
            (counts.percentile(2), counts.percentile(10)),
            (Some(50), Some(90))
        );
    }

    #[test]
    fn the_middle_is_the_lower_one_of_an_even_number() {
        let tallies = tallies();
        let tally = &tallies[0];
        assert_eq!(tally.counts.least_and_middle(), (0, 0));
        [5, 1, 9, 7].iter().for_each(|ns| tally.counts.note(*ns));
        assert_eq!(tally.counts.least_and_middle(), (1, 5));
        tally.counts.note(9);
        assert_eq!(tally.counts.least_and_middle(), (1, 7));
    }
}
