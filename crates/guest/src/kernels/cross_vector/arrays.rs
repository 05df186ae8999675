//! The arrays that the document's overhead formula counts. They come from the allocator under test.

use super::*;
use core::slice;

/// The shared vector, the sizes, the identity permutation and one shuffled permutation per thread.
pub struct Arrays {
    slots: usize,
    blocks: HarnessTable<*mut u8>,
    /// Holds the arrays' contents instead of the blocks if the allocator's blocks overlap, as the
    /// null allocator's do. The blocks are still allocated and freed.
    aside: Option<HarnessTable<u64>>,
}

const VECTOR: usize = 0;
const SIZES: usize = 1;
const IDENTITY: usize = 2;
const ORDERS: usize = 3;

impl Arrays {
    /// Returns the number of arrays for this many threads.
    pub fn count(threads: usize) -> usize {
        ORDERS + threads
    }

    /// Allocates all arrays; their contents are undefined.
    pub fn allocate(api: &Api, slots: usize, threads: usize) -> Arrays {
        let mut arrays = Arrays {
            slots,
            blocks: HarnessTable::zeroed(Arrays::count(threads)),
            aside: None,
        };
        for index in 0..arrays.blocks.len() {
            let bytes = arrays.bytes_of(index);
            arrays.blocks[index] = api.block(bytes);
        }
        if arrays.overlap() {
            arrays.aside = Some(HarnessTable::zeroed(arrays.blocks.len() * slots));
        }
        arrays
    }

    /// Frees all arrays.
    pub fn free(self, api: &Api) {
        // SAFETY: live blocks, and `self` is the last reference to them.
        self.blocks
            .iter()
            .for_each(|&block| unsafe { (api.free)(block) });
    }

    /// Returns the requested bytes of all arrays.
    pub fn bytes(&self) -> u64 {
        (0..self.blocks.len())
            .map(|index| self.bytes_of(index) as u64)
            .sum()
    }

    /// Returns the vector that all threads share.
    pub fn vector(&mut self) -> &mut [AtomicPtr<u8>] {
        // SAFETY: an array of that many pointers, borrowed like the whole.
        unsafe { slice::from_raw_parts_mut(self.start(VECTOR).cast(), self.slots) }
    }

    /// Returns the size of each slot's block, in bytes.
    pub fn sizes(&mut self) -> &mut [u32] {
        self.numbers(SIZES)
    }

    /// Returns all slots in order.
    pub fn identity(&mut self) -> &mut [u32] {
        self.numbers(IDENTITY)
    }

    /// Returns all slots in the order in which one thread visits them.
    pub fn order(&mut self, thread: usize) -> &mut [u32] {
        self.numbers(ORDERS + thread)
    }

    /// Returns the data that the workers read: vector, sizes, and the order of `thread`.
    pub fn view(&self, thread: usize) -> (&[AtomicPtr<u8>], &[u32], &[u32]) {
        let numbers = |index: usize| self.start(index).cast();
        // SAFETY: filled arrays of that many entries; while borrowed, they change only through
        // atomics.
        unsafe {
            (
                slice::from_raw_parts(self.start(VECTOR).cast(), self.slots),
                slice::from_raw_parts(numbers(SIZES), self.slots),
                slice::from_raw_parts(numbers(ORDERS + thread), self.slots),
            )
        }
    }

    fn numbers(&mut self, index: usize) -> &mut [u32] {
        // SAFETY: an array of that many numbers, borrowed like the whole.
        unsafe { slice::from_raw_parts_mut(self.start(index).cast(), self.slots) }
    }

    fn start(&self, index: usize) -> *mut u8 {
        match &self.aside {
            Some(table) => (&raw const table[index * self.slots]).cast_mut().cast(),
            None => self.blocks[index],
        }
    }

    fn bytes_of(&self, index: usize) -> usize {
        self.slots
            * if index == VECTOR {
                size_of::<AtomicPtr<u8>>()
            } else {
                size_of::<u32>()
            }
    }

    fn overlap(&self) -> bool {
        let range = |index: usize| {
            (
                self.blocks[index] as usize,
                self.blocks[index] as usize + self.bytes_of(index),
            )
        };
        (0..self.blocks.len()).any(|a| {
            let (start, end) = range(a);
            (0..a)
                .map(range)
                .any(|(other_start, other_end)| start < other_end && other_start < end)
        })
    }
}
