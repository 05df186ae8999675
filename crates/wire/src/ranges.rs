//! Ranges of the address space that are not the allocator's: a guest publishes them, and its host
//! reads them while it runs.

use crate::high_water::HighWater;
use core::sync::atomic::{AtomicU64, Ordering};

/// Number of address ranges that can be published at a time: enough for 1024 stacks and the harness's tables.
const RANGES: usize = 4096;

/// All published ranges. If all bytes are zero, no range is published.
#[repr(C)]
pub struct Ranges {
    slots: [Slot; RANGES],
    private: HighWater,
    all: HighWater,
}

/// One published range. `end` is 0 while the slot is free or being written.
#[repr(C)]
struct Slot {
    /// Address and, in the bits below the page size, the kind plus one; 0 = free.
    start: AtomicU64,
    end: AtomicU64,
}

/// The contents of a range that is not the allocator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// The stack of a worker.
    Stack = 1,
    /// Tables of the harness.
    Harness = 2,
    /// Tables that are not private to the process or not writable: the shared page, a compiled trace.
    Shared = 3,
}

const KINDS: [RangeKind; 3] = [RangeKind::Stack, RangeKind::Harness, RangeKind::Shared];

impl RangeKind {
    /// The kind's name in texts.
    pub fn word(self) -> &'static str {
        match self {
            RangeKind::Stack => "stack",
            RangeKind::Harness => "harness",
            RangeKind::Shared => "shared",
        }
    }

    /// The kind of this name.
    pub fn from_word(word: &str) -> Option<RangeKind> {
        KINDS.into_iter().find(|kind| kind.word() == word)
    }
}

/// A range of the address space that is not the allocator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// First address, on a page boundary.
    pub start: u64,
    /// First address after the range.
    pub end: u64,
    /// The range's contents.
    pub kind: RangeKind,
}

impl Ranges {
    /// Publishes a range. If no slot is free, the range is left out, and counts as the allocator's.
    pub fn know(&self, range: Known) {
        let tagged = range.start & !0xfff | range.kind as u64;
        let free = |slot: &&Slot| {
            slot.start
                .compare_exchange(0, tagged, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        if let Some(slot) = self.slots.iter().find(free) {
            slot.end.store(range.end, Ordering::Release);
            self.count(range, 1);
        }
    }

    fn count(&self, range: Known, sign: i64) {
        let bytes = sign * (range.end - range.start) as i64;
        self.all.grow(bytes);
        if range.kind != RangeKind::Shared {
            self.private.grow(bytes);
        }
    }

    /// The most bytes that were known at a time, in all ranges and in private ones.
    pub fn most_bytes(&self) -> (u64, u64) {
        (self.all.most(), self.private.most())
    }

    /// Removes the range that starts here; called before the range is unmapped.
    pub fn forget(&self, start: u64) {
        let ours = |slot: &&Slot| {
            slot.start.load(Ordering::Relaxed) & !0xfff == start
                && slot.end.load(Ordering::Acquire) != 0
        };
        if let Some(slot) = self.slots.iter().find(ours) {
            if let Some(range) = slot.known() {
                self.count(range, -1);
            }
            slot.end.store(0, Ordering::Release);
            slot.start.store(0, Ordering::Release);
        }
    }

    /// The ranges published now. A range that changes while it is read is left out.
    pub fn known(&self) -> impl Iterator<Item = Known> {
        self.slots.iter().filter_map(Slot::known)
    }
}

impl Slot {
    fn known(&self) -> Option<Known> {
        let end = self.end.load(Ordering::Acquire);
        let tagged = self.start.load(Ordering::Acquire);
        let kind = KINDS
            .into_iter()
            .find(|kind| *kind as u64 == tagged & 0xfff)?;
        let start = tagged & !0xfff;
        (start < end && self.end.load(Ordering::Acquire) == end).then_some(Known {
            start,
            end,
            kind,
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn ranges() -> Box<Ranges> {
        // SAFETY: zeroed memory is a valid value.
        unsafe { Box::<Ranges>::new_zeroed().assume_init() }
    }

    #[test]
    fn ranges_are_known_until_they_are_forgotten_and_their_places_used_again() {
        let ranges = ranges();
        let stack = Known {
            start: 0x7000,
            end: 0x9000,
            kind: RangeKind::Stack,
        };
        let table = Known {
            start: 0x2000,
            end: 0x2001,
            kind: RangeKind::Harness,
        };
        ranges.know(stack);
        ranges.know(table);
        assert_eq!(ranges.known().collect::<Vec<_>>(), [stack, table]);
        ranges.forget(0x7000);
        assert_eq!(ranges.known().collect::<Vec<_>>(), [table]);
        for round in 1..2 * RANGES as u64 {
            ranges.know(Known {
                start: round << 16,
                end: (round << 16) + 1,
                kind: RangeKind::Harness,
            });
            ranges.forget(round << 16);
        }
        assert_eq!(ranges.known().collect::<Vec<_>>(), [table]);
    }

    #[test]
    fn the_most_that_was_known_at_a_time_is_counted_also_if_it_is_forgotten_before_it_is_looked_at()
    {
        let ranges = ranges();
        let range = |start, end, kind| Known { start, end, kind };
        ranges.know(range(0x1000, 0x2000, RangeKind::Shared));
        for start in [0x3000, 0x5000] {
            ranges.know(range(start, start + 0x2000, RangeKind::Stack));
        }
        ranges.forget(0x3000);
        ranges.forget(0x5000);
        ranges.know(range(0x3000, 0x6000, RangeKind::Harness));
        assert_eq!(ranges.most_bytes(), (0x5000, 0x4000));
    }

    #[test]
    fn borders_of_larger_pages_are_known_as_they_are() {
        for page in [16 << 10, 64 << 10] {
            let ranges = ranges();
            let range = Known {
                start: 3 * page,
                end: 5 * page,
                kind: RangeKind::Harness,
            };
            ranges.know(range);
            assert_eq!(ranges.known().collect::<Vec<_>>(), [range]);
            ranges.forget(range.start);
            assert_eq!(ranges.known().count(), 0);
        }
    }

    #[test]
    fn a_range_without_room_is_left_out() {
        let ranges = ranges();
        (1..=RANGES as u64 + 5).for_each(|n| {
            ranges.know(Known {
                start: n << 12,
                end: (n + 1) << 12,
                kind: RangeKind::Stack,
            });
        });
        assert_eq!(ranges.known().count(), RANGES);
    }
}
