//! `zalloc` (ZA): every thread allocates zeroed blocks and, if requested, writes their cache lines
//! back to memory, as a program on persistent memory must.

mod write_back;

use super::*;
use write_back::WriteBack;

pub const KERNEL: Kernel = Kernel {
    calls: &["malloc", "calloc", "free"],
    ..Kernel::timed(
        "zalloc",
        &["blocks", "size", "zeroing", "write-back", "free", "thread"],
        run,
    )
};

/// How a block is zeroed.
#[derive(Clone, Copy, PartialEq)]
enum Zeroing {
    Memset,
    Calloc,
    /// Blocks are not zeroed, which measures the bare calls.
    None,
}

struct ZallocContext {
    api: Api,
    size: usize,
    zeroing: Zeroing,
    write_back: WriteBack,
    immediate: bool,
    blocks: usize,
    /// Distance from one worker's entries of `kept` to the next worker's: whole cache lines.
    stride: usize,
    kept: HarnessTable<AtomicPtr<u8>>,
    works: Works,
}

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
    let shared = ZallocContext {
        api: bench.api,
        size,
        zeroing,
        write_back,
        immediate,
        stride,
        blocks,
        kept: HarnessTable::zeroed(bench.threads * stride),
        works: Works::new(bench),
    };
    let calls = (bench.threads * blocks) as u64;
    let plan = LapPlan {
        teams: 1,
        laps: 1,
        ops: if immediate { 2 * calls } else { calls },
        expected: KernelWork {
            free: calls,
            ..shared.made(calls)
        },
    };
    let seen = laps::run(bench, &shared, &shared.works, &plan);
    bench.requested_peak((bench.threads * live * size) as u64);
    // The iteration's time is that of the slowest thread; the document's author reported this
    // average.
    let mean_ns = seen.mean_ns as f64 / seen.measured.max(1) as f64;
    bench.figure("thread_mean_ns", mean_ns);
    bench.note("write_back", write_back.word());
}

impl Load for ZallocContext {
    fn timed(&self, worker: usize, _lap: usize) {
        let Api {
            malloc,
            free,
            calloc,
            ..
        } = self.api;
        let places = self.own(worker);
        let (mut freed, mut bytes) = (0u64, 0u64);
        for place in places {
            // SAFETY: an ordinary call.
            let block = unsafe {
                if self.zeroing == Zeroing::Calloc {
                    calloc(1, self.size)
                } else {
                    malloc(self.size)
                }
            };
            if block.is_null() && self.size > 0 {
                report::no_block("malloc or calloc", self.size);
            }
            if self.zeroing == Zeroing::Memset {
                // No compiler turns malloc and these writes into a calloc, since the target of the
                // pointer to malloc is unknown at compile time.
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
                place.store(block, Relaxed);
            }
        }
        let work = KernelWork {
            free: freed,
            checksum: bytes,
            ..self.made(self.blocks as u64)
        };
        self.works.add(worker, work);
    }

    fn after(&self, worker: usize, _lap: usize) {
        if self.immediate {
            return;
        }
        for block in self.own(worker) {
            // SAFETY: a live block of this worker, released once.
            unsafe { (self.api.free)(block.load(Relaxed)) };
        }
        let freed = KernelWork {
            free: self.blocks as u64,
            ..KernelWork::default()
        };
        self.works.add(worker, freed);
    }
}

impl ZallocContext {
    /// Returns the work of this many calls that allocate a block.
    fn made(&self, calls: u64) -> KernelWork {
        let is_calloc = self.zeroing == Zeroing::Calloc;
        KernelWork {
            malloc: if is_calloc { 0 } else { calls },
            calloc: if is_calloc { calls } else { 0 },
            checksum: calls * self.size as u64,
            ..KernelWork::default()
        }
    }

    /// Returns the places for all blocks of a worker.
    fn own(&self, worker: usize) -> &[AtomicPtr<u8>] {
        &self.kept[worker * self.stride..][..self.blocks]
    }
}
