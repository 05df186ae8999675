//! The calls that a player makes. An allocation must return a block and find its slot empty; a free
//! must find a block in its slot, and empties the slot.

use super::player::Player;
use super::touch::Pages;
use super::*;
use crate::api::AlignedOperators;
use crate::check::must_be_aligned;
use heapmark_wire::compiled::PAGES_FROM_BYTES;

impl Player<'_> {
    /// Stores the result of a call, which must be a block, in its slot, which must be empty.
    #[inline(always)]
    pub(super) fn born(&mut self, call: &str, slot: usize, block: *mut u8, size: usize) {
        let block = match block.is_null() {
            true => self.after_null(call, size),
            false => block,
        };
        match self.stage.slots.get(slot) {
            Some(place) if place.get().is_null() => {
                place.set(block);
                self.stage.walk.born(slot, size);
            }
            Some(_) => self.broken("fills a slot that is full: a wait is missing"),
            None => self.broken("names a slot that it does not have"),
        }
        self.tally.checksum += size as u64;
    }

    /// Touches a new block as the program did.
    #[inline(always)]
    pub(super) fn written(&mut self, block: *mut u8, size: usize) {
        // SAFETY: just allocated with this size.
        unsafe { self.stage.touch.write(block, size, self.pages) };
        if size >= PAGES_FROM_BYTES as usize {
            self.pages = Pages::ALL;
        }
    }

    /// Takes a block out of its slot.
    #[inline(always)]
    pub(super) fn dies(&mut self, call: &str, slot: usize) -> *mut u8 {
        match self
            .stage
            .slots
            .get(slot)
            .map(|place| place.replace(ptr::null_mut()))
        {
            Some(block) if !block.is_null() => block,
            _ => self.empty(call),
        }
    }

    pub(super) fn calloc(&mut self, slot: usize, count: usize, size: usize) {
        // SAFETY: an ordinary call; the compiler of the trace has checked that the product does not
        // overflow.
        let block = unsafe { (self.stage.api.calloc)(count, size) };
        self.born("calloc", slot, block, count * size);
        self.written(block, count * size);
        self.tally.calloc += 1;
    }

    pub(super) fn realloc(&mut self, slot: usize, size: usize) {
        let old = self.dies("realloc", slot);
        // SAFETY: a live block, which this thread may move.
        let block = unsafe { (self.stage.api.realloc)(old, size) };
        self.born("realloc", slot, block, size);
        self.written(block, size);
        self.tally.realloc += 1;
    }

    pub(super) fn free_sized(&mut self, slot: usize, size: usize) {
        let block = self.dies("free_sized", slot);
        // SAFETY: a live block, which was requested with this size.
        unsafe { (self.stage.api.free_sized)(block, size, 0) };
        self.tally.free += 1;
    }

    pub(super) fn aligned(&mut self, slot: usize, alignment: usize, size: usize) {
        let mut block = ptr::null_mut();
        // SAFETY: an ordinary call with a place for its result.
        let error = unsafe { (self.stage.api.posix_memalign)(&mut block, alignment, size) };
        if error != 0 || (block.is_null() && size > 0) {
            let (done, thread) = (self.done, self.index);
            let place = format_args!(": operation {done} of thread {thread}");
            self.stage.api.no_aligned(alignment, size, error, place);
        }
        must_be_aligned("posix_memalign", block, alignment, size);
        self.born("posix_memalign", slot, block, size);
        self.written(block, size);
        self.tally.posix_memalign += 1;
    }

    pub(super) fn operator_new(&mut self, slot: usize, size: usize) {
        // SAFETY: an ordinary call.
        let block = unsafe { (self.stage.api.new)(size) };
        self.born("operator new", slot, block, size);
        self.written(block, size);
        self.tally.malloc += 1;
    }

    pub(super) fn delete_sized(&mut self, slot: usize, size: usize) {
        let block = self.dies("operator delete", slot);
        // SAFETY: a live block of `new`, which was requested with this size.
        unsafe { (self.stage.api.delete_sized)(block, size) };
        self.tally.free += 1;
    }

    pub(super) fn new_aligned(&mut self, slot: usize, alignment: usize, size: usize) {
        let Some(AlignedOperators { new, .. }) = self.stage.api.aligned else {
            return self.aligned(slot, alignment, size);
        };
        // SAFETY: an ordinary call.
        let block = unsafe { new(size, alignment) };
        must_be_aligned("operator new", block, alignment, size);
        self.born("operator new", slot, block, size);
        self.written(block, size);
        self.tally.posix_memalign += 1;
    }

    pub(super) fn delete_aligned(&mut self, slot: usize, alignment: usize, size: Option<usize>) {
        let block = self.dies("operator delete", slot);
        // SAFETY: a live block of `new_aligned`, which was requested with this alignment and size.
        unsafe { self.stage.api.delete_aligned(block, alignment, size) };
        self.tally.free += 1;
    }

    /// Allocates one byte after a request of no bytes returned NULL, as a program that needs a block does. No other
    /// request may return NULL.
    #[cold]
    fn after_null(&self, call: &str, size: usize) -> *mut u8 {
        if size > 0 {
            self.no_block(call, size);
        }
        // SAFETY: an ordinary call.
        let block = unsafe { (self.stage.api.malloc)(1) };
        if block.is_null() {
            self.no_block(call, 1);
        }
        block
    }

    #[cold]
    pub(super) fn no_block(&self, call: &str, size: usize) -> ! {
        let KernelWork {
            malloc,
            calloc,
            realloc,
            posix_memalign,
            ..
        } = self.tally;
        let (before, done, thread) = (
            malloc + calloc + realloc + posix_memalign,
            self.done,
            self.index,
        );
        let place = format_args!("operation {done} of thread {thread}, its allocation {before}");
        fail!("oom", "{call} returned NULL for {size} bytes: {place}")
    }

    #[cold]
    pub(super) fn empty(&self, call: &str) -> ! {
        let (done, thread) = (self.done, self.index);
        let why = "its slot is empty: a wait is missing in the compiled trace, or another thread wrote there";
        fail!(
            "error",
            "{call}, operation {done} of thread {thread}: {why}"
        )
    }
}
