//! The player of one thread's stream, op by op.

use super::order::SeenProgress;
use super::stage::Stage;
use super::touch::Pages;
use super::*;
use heapmark_wire::ReplayProgress;
use heapmark_wire::compiled::{self, Op, Rare};

/// A slot is prefetched into the cache this many ops ahead.
const AHEAD: usize = 8;

/// A playing thread.
pub struct Player<'s> {
    pub(super) stage: &'s Stage<'s>,
    pub(super) index: usize,
    step: &'s ReplayProgress,
    /// Index of the next word, and the start of the current chunk.
    at: usize,
    chunk: usize,
    /// Number of ops done, for which other threads wait.
    pub(super) done: u64,
    /// The pages of the next block that are touched.
    pub(super) pages: Pages,
    pub(super) tally: KernelWork,
    seen: SeenProgress,
}

/// The kind of op that was played.
enum PlayedOp {
    /// One of the program's calls.
    Call,
    /// A word that only the compiled trace needs.
    Word,
    /// The end of the stream, with a flag for whether the thread exits.
    Over(bool),
}

impl<'s> Player<'s> {
    /// Plays the stream of a thread, which begins at this word. Returns the work done, and whether the
    /// recorded thread ended here.
    pub fn stream(stage: &Stage<'_>, index: usize, first: usize) -> (KernelWork, bool) {
        let player = Player {
            stage,
            index,
            step: &stage.order.steps[index],
            at: first,
            chunk: first,
            done: 0,
            pages: Pages::ALL,
            tally: KernelWork::default(),
            seen: SeenProgress::nothing(),
        };
        player.play()
    }

    fn play(mut self) -> (KernelWork, bool) {
        let followed = self.stage.points.peak_of(self.index);
        let (api, words) = (self.stage.api, self.stage.sheet.words);
        // Position and count stay in registers: a value that goes through memory in each op makes a dependency chain as
        // long as the op.
        let (mut at, mut done) = (self.at, 0);
        loop {
            let word = match words.get(at..=at + AHEAD) {
                Some(near) => {
                    self.prefetch(near[AHEAD]);
                    near[0]
                }
                None => self.last_word(at),
            };
            at += 1;
            let (slot, size) = (compiled::slot(word), compiled::size(word));
            // SAFETY of all calls: ordinary calls; a block is freed once, by the thread that the
            // compiled trace's order names.
            match Op::of(word) {
                Op::Malloc => {
                    // SAFETY: see above.
                    let block = unsafe { (api.malloc)(size) };
                    self.born("malloc", slot, block, size);
                    self.written(block, size);
                    self.tally.malloc += 1;
                }
                Op::Free => {
                    let block = self.dies("free", slot);
                    // SAFETY: see above.
                    unsafe { (api.free)(block) };
                    self.tally.free += 1;
                }
                Op::Calloc => self.calloc(slot, 1, size),
                Op::Realloc => self.realloc(slot, size),
                Op::FreeSized => self.free_sized(slot, size),
                Op::New => self.operator_new(slot, size),
                Op::Delete => {
                    let block = self.dies("operator delete", slot);
                    // SAFETY: see above.
                    unsafe { (api.delete)(block) };
                    self.tally.free += 1;
                }
                Op::DeleteSized => self.delete_sized(slot, size),
                Op::Wait => {
                    let (thread, ops) = compiled::wait(word);
                    self.seen.wait(&self.stage.order, self.index, thread, ops);
                    continue;
                }
                Op::Position => {
                    self.stage.order.reach(self.index, compiled::position(word));
                    continue;
                }
                Op::Rare => {
                    self.at = at;
                    let next = self.rare(word);
                    at = self.at;
                    match next {
                        PlayedOp::Call => {}
                        PlayedOp::Word => continue,
                        PlayedOp::Over(exits) => return (self.tally, exits),
                    }
                }
            }
            if self.stage.walk.is_made() {
                self.stage.walk.step(self.stage.slots);
            }
            done += 1;
            self.done = done;
            if followed == done {
                // The peak is noted before other threads can find the op done and continue.
                self.stage.points.at_peak(self.stage.slots, &api);
            }
            self.step.finish(done);
        }
    }

    /// Returns a word near the end of the compiled trace, where there is nothing to prefetch.
    #[cold]
    fn last_word(&self, at: usize) -> u64 {
        match self.stage.sheet.words.get(at) {
            Some(word) => *word,
            None => self.broken("goes on behind its end"),
        }
    }

    /// Returns the next word of the current op.
    fn word(&mut self) -> u64 {
        self.at += 1;
        self.last_word(self.at - 1)
    }

    #[inline(always)]
    fn prefetch(&self, ahead: u64) {
        let slot = self
            .stage
            .slots
            .as_ptr()
            .wrapping_add(compiled::slot(ahead));
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint, which never faults.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(slot.cast());
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a hint, which never faults.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{}]", in(reg) slot, options(nostack, preserves_flags));
        }
    }

    #[inline(never)]
    fn rare(&mut self, word: u64) -> PlayedOp {
        let argument = compiled::size(word);
        let Some(rare) = Rare::of(word) else {
            self.broken("has an op of an unknown number")
        };
        match rare {
            Rare::Jump => {
                let next = self.word() as usize;
                self.stage.sheet.leave(self.chunk..self.at);
                (self.at, self.chunk) = (next, next);
                return PlayedOp::Word;
            }
            Rare::End => return PlayedOp::Over(false),
            Rare::Exit => return PlayedOp::Over(true),
            Rare::Start => {
                if let Some(child) = self.stage.order.steps.get(argument) {
                    child.reach(self.step.position());
                }
                self.stage.create(argument);
            }
            Rare::Pages => {
                self.pages = Pages {
                    count: argument as u32,
                    extent: self.word() as usize,
                };
                return PlayedOp::Word;
            }
            Rare::Clock => {
                let ns = self.word();
                self.sleep_until(ns);
                return PlayedOp::Word;
            }
            Rare::Point => {
                let (volume, live, whole) = (self.word(), self.word(), self.word());
                let touched = if self.stage.touch.is_whole() {
                    whole
                } else {
                    0
                };
                self.stage.points.take(volume, live, touched);
                return PlayedOp::Word;
            }
            Rare::FreeNull => {
                // SAFETY: free takes NULL.
                unsafe { (self.stage.api.free)(ptr::null_mut()) };
            }
            Rare::UsableSize => {
                let block = self
                    .stage
                    .slots
                    .get(argument)
                    .map_or(ptr::null_mut(), |place| place.get());
                if block.is_null() {
                    self.empty("malloc_usable_size");
                }
                // SAFETY: a live block.
                unsafe { (self.stage.api.usable_size)(block) };
            }
            Rare::Mallopt => {
                let (parameter, value) = (self.word(), self.word());
                self.stage.tuning.mallopt(parameter as i32, value as i32);
            }
            Rare::Trim => {
                let pad = self.word() as usize;
                self.stage.tuning.trim(pad);
            }
            Rare::Malloc => {
                let size = self.word() as usize;
                // SAFETY: an ordinary call.
                let block = unsafe { (self.stage.api.malloc)(size) };
                self.born("malloc", argument, block, size);
                self.written(block, size);
                self.tally.malloc += 1;
            }
            Rare::Calloc => {
                let (count, size) = (self.word() as usize, self.word() as usize);
                self.calloc(argument, count, size);
            }
            Rare::Realloc => {
                let size = self.word() as usize;
                self.realloc(argument, size);
            }
            Rare::Aligned => {
                let (alignment, size) = (self.word() as usize, self.word() as usize);
                self.aligned(argument, alignment, size);
            }
            Rare::FreeSized => {
                let size = self.word() as usize;
                self.free_sized(argument, size);
            }
            Rare::New => {
                let size = self.word() as usize;
                self.operator_new(argument, size);
            }
            Rare::DeleteSized => {
                let size = self.word() as usize;
                self.delete_sized(argument, size);
            }
            Rare::NewAligned => {
                let (alignment, size) = (self.word() as usize, self.word() as usize);
                self.new_aligned(argument, alignment, size);
            }
            Rare::DeleteAligned => {
                let alignment = self.word() as usize;
                self.delete_aligned(argument, alignment, None);
            }
            Rare::DeleteAlignedSized => {
                let (alignment, size) = (self.word() as usize, self.word() as usize);
                self.delete_aligned(argument, alignment, Some(size));
            }
        }
        PlayedOp::Call
    }

    /// Sleeps until this much recorded time has passed, at the pace of this replay.
    fn sleep_until(&self, recorded_ns: u64) {
        if self.stage.pace > 0.0 {
            let passed_ns = (recorded_ns as f64 / self.stage.pace) as u64;
            sys::sleep_until(self.stage.began_ns.load(Relaxed) + passed_ns);
        }
    }

    #[cold]
    pub(super) fn broken(&self, what: &str) -> ! {
        let (done, thread) = (self.done, self.index);
        fail!(
            "error",
            "the compiled trace {what}: operation {done} of thread {thread}"
        )
    }
}
