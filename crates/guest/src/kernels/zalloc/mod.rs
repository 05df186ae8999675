//! `zalloc` (ZA): every thread allocates zeroed blocks and, if requested, writes their cache lines
//! back to memory, as a program on persistent memory must.

mod write_back;

use super::{Kernel, MemoryPoints};
use crate::api::Api;
use crate::bench::{Bench, KernelWork};
use crate::fail;
use crate::memory::{HarnessTable, Padded};
use crate::timed_phases::Load;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, Ordering};
use write_back::WriteBack;

pub const KERNEL: Kernel = Kernel {
    name: "zalloc",
    calls: &["malloc", "calloc", "free"],
    parameters: &["blocks", "size", "zeroing", "write-back", "free", "thread"],
    memory: MemoryPoints::Sampled,
    has_floor: true,
    run,
};

/// How a block is zeroed.
#[derive(Clone, Copy, PartialEq)]
enum Zeroing {
    Memset,
    Calloc,
    /// Not zeroed: the bare calls.
    None,
}

struct ZallocContext<'a> {
    api: Api,
    size: usize,
    zeroing: Zeroing,
    write_back: WriteBack,
    immediate: bool,
    blocks: usize,
    /// Entries of `kept` from one worker to the next: whole cache lines.
    stride: usize,
    kept: &'a [AtomicPtr<u8>],
    tallies: &'a [Padded<Cell<KernelWork>>],
}

// SAFETY: each worker uses its own tally; blocks are atomic.
unsafe impl Sync for ZallocContext<'_> {}

fn run(bench: &mut Bench) {
    let (blocks, size) = (bench.count("blocks"), bench.count("size"));
    let zeroing = match bench.parameter("zeroing") {
        "memset" => Zeroing::Memset,
        "calloc" => Zeroing::Calloc,
        _ => Zeroing::None,
    };
    let write_back = if bench.parameter("write-back") == "clwb" {
        WriteBack::detect()
    } else {
        WriteBack::None
    };
    let immediate = bench.parameter("free") == "immediate";
    let live = if immediate { 1 } else { blocks };
    bench.needs((bench.threads * live) as u64 * (size as u64 + 64));

    let stride = blocks.next_multiple_of(16);
    let kept = HarnessTable::<AtomicPtr<u8>>::zeroed(bench.threads * stride);
    let tallies = HarnessTable::<Padded<Cell<KernelWork>>>::zeroed(bench.threads);
    let shared = ZallocContext {
        api: bench.api,
        size,
        zeroing,
        write_back,
        immediate,
        stride,
        blocks,
        kept: &kept,
        tallies: &tallies,
    };
    let (mut done, mut expected) = (KernelWork::default(), KernelWork::default());
    let (mut mean_ns, mut measured) = (0, 0u32);
    bench.begin();
    for round in bench.rounds() {
        let calls = (bench.threads * blocks) as u64;
        let mut took = None;
        bench.laps(round, 1, &shared, |_, lapse| took = Some(lapse));
        let Some(lapse) = took else { continue };
        bench.record(
            round,
            lapse.span,
            0,
            if immediate { 2 * calls } else { calls },
        );
        if !round.cold {
            mean_ns += lapse.mean_ns;
            measured += 1;
        }
        for Padded(tally) in tallies.iter() {
            done.add(&tally.take());
        }
        *(if zeroing == Zeroing::Calloc {
            &mut expected.calloc
        } else {
            &mut expected.malloc
        }) += calls;
        expected.free += calls;
        expected.checksum += calls * size as u64;
    }
    bench.account(&done, &expected);
    bench.requested_peak((bench.threads * live * size) as u64);
    // The iteration's time is that of the slowest thread; the document's author reported this
    // average.
    bench.figure(
        "thread_mean_ns",
        mean_ns as f64 / f64::from(measured.max(1)),
    );
    bench.note("write_back", write_back.word());
}

impl Load for ZallocContext<'_> {
    fn timed(&self, worker: usize, _lap: usize) {
        let Api {
            malloc,
            free,
            calloc,
            ..
        } = self.api;
        let own = self.own(worker);
        let (mut freed, mut bytes) = (0u64, 0u64);
        for place in own {
            // SAFETY: an ordinary call.
            let block = unsafe {
                if self.zeroing == Zeroing::Calloc {
                    calloc(1, self.size)
                } else {
                    malloc(self.size)
                }
            };
            if block.is_null() && self.size > 0 {
                fail::null("malloc or calloc", self.size);
            }
            if self.zeroing == Zeroing::Memset {
                // No compiler turns this into a calloc: it cannot know the target of the pointer to
                // malloc.
                // SAFETY: the block has that many bytes.
                unsafe { block.write_bytes(0, self.size) };
            }
            // SAFETY: as above.
            unsafe { self.write_back.lines(block, self.size) };
            bytes += self.size as u64;
            if self.immediate {
                // SAFETY: a live block, released once.
                unsafe { free(block) };
                freed += 1;
            } else {
                place.store(block, Ordering::Relaxed);
            }
        }
        let calls = self.blocks as u64;
        let (malloc, calloc) = if self.zeroing == Zeroing::Calloc {
            (0, calls)
        } else {
            (calls, 0)
        };
        self.tallies[worker].0.set(KernelWork {
            malloc,
            calloc,
            free: freed,
            checksum: bytes,
            ..KernelWork::default()
        });
    }

    fn after(&self, worker: usize, _lap: usize) {
        if self.immediate {
            return;
        }
        let mut tally = self.tallies[worker].0.get();
        for block in self.own(worker) {
            // SAFETY: a live block of this worker, released once.
            unsafe { (self.api.free)(block.load(Ordering::Relaxed)) };
            tally.free += 1;
        }
        self.tallies[worker].0.set(tally);
    }
}

impl ZallocContext<'_> {
    /// A place for each block of a worker.
    fn own(&self, worker: usize) -> &[AtomicPtr<u8>] {
        &self.kept[worker * self.stride..][..self.blocks]
    }
}
