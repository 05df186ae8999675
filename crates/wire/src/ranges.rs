//! Ranges of the address space that are not the allocator's: a guest publishes them, and its host
//! reads them while it runs.

use core::sync::atomic::{AtomicU64, Ordering};

/// Address ranges that can be published at a time: 1024 stacks and the harness's tables.
const RANGES: usize = 4096;

/// All published ranges. All zero means none.
#[repr(C)]
pub struct Ranges([Slot; RANGES]);

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
    /// Tables of the harness, the shared page.
    Harness = 2,
}

impl RangeKind {
    /// Its name in texts.
    pub fn word(self) -> &'static str {
        match self {
            RangeKind::Stack => "stack",
            RangeKind::Harness => "harness",
        }
    }

    /// The kind of this name.
    pub fn from_word(word: &str) -> Option<RangeKind> {
        [RangeKind::Stack, RangeKind::Harness]
            .into_iter()
            .find(|kind| kind.word() == word)
    }
}

/// A range of the address space that is not the allocator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// First address, on a page boundary.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Its contents.
    pub kind: RangeKind,
}

impl Ranges {
    /// Publishes a range. If there is no slot, it is left out, and counts as the allocator's.
    pub fn know(&self, range: Known) {
        let tagged = range.start & !0xfff | range.kind as u64;
        let free = |slot: &&Slot| {
            slot.start
                .compare_exchange(0, tagged, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        if let Some(slot) = self.0.iter().find(free) {
            slot.end.store(range.end, Ordering::Release);
        }
    }

    /// Called before the range that starts here is unmapped.
    pub fn forget(&self, start: u64) {
        let ours = |slot: &&Slot| {
            slot.start.load(Ordering::Relaxed) & !0xfff == start
                && slot.end.load(Ordering::Acquire) != 0
        };
        if let Some(slot) = self.0.iter().find(ours) {
            slot.end.store(0, Ordering::Release);
            slot.start.store(0, Ordering::Release);
        }
    }

    /// The ranges published now. One that changes while it is read is left out.
    pub fn known(&self) -> impl Iterator<Item = Known> {
        self.0.iter().filter_map(|slot| {
            let end = slot.end.load(Ordering::Acquire);
            let tagged = slot.start.load(Ordering::Acquire);
            let kind = [RangeKind::Stack, RangeKind::Harness]
                .into_iter()
                .find(|kind| *kind as u64 == tagged & 0xfff)?;
            let start = tagged & !0xfff;
            (start < end && slot.end.load(Ordering::Acquire) == end).then_some(Known {
                start,
                end,
                kind,
            })
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
