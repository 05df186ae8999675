//! `fork-cow`: how much of its parent's heap a forked child copies while it works: a save in the
//! background, a server that forks its workers, a test runner.

use super::*;
use crate::memory;
use crate::started;

pub const KERNEL: Kernel = Kernel {
    memory: MemoryPoints::OwnOnlyAlone,
    ..Kernel::of_memory("fork-cow", &["heap", "classes", "child", "parent"], run)
};

/// Number of malloc and free pairs made by a child that makes pairs.
const PAIRS: usize = 1000;
/// A child that frees some blocks frees those whose number is a multiple of this.
const SOME: usize = 64;
/// A parent that writes replaces one block in this many.
const REPLACED: usize = 100;
/// Number of these replacements that are timed as the first writes after the fork.
const FIRST_WRITES: usize = 1000;

/// State that both processes share; all other memory is copied on write.
#[derive(Default)]
struct Told {
    forked: AtomicU32,
    done: AtomicU32,
    /// Bytes that the child copied while it worked, and bytes that it freed.
    copied: Cell<u64>,
    freed: Cell<u64>,
}

struct ForkContext<'a> {
    shape: Shape,
    blocks: Blocks,
    told: &'a Told,
    fork_ns: Cell<u64>,
    first_writes_ns: Cell<u64>,
    parent_copied: Cell<u64>,
}

fn run(bench: &mut Bench) {
    // Called here first, since the reason for a failure would be lost in a child.
    written_bytes();
    let heap = bench.count("heap");
    let classes = bench.sizes();
    let mut random = SplitMix::new(bench.seed, 0);
    let mut count = 0;
    let mut bytes = 0;
    while bytes < heap {
        bytes += classes.draw(&mut random).max(1) as usize;
        count += 1;
    }
    bench.needs((4 * heap + count * size_of::<StampedBlock>()) as u64);
    let shared_state = HarnessTable::<Told>::shared(1);
    let context = ForkContext {
        shape: Shape::new(bench, 1, 2),
        blocks: Blocks::shared(count),
        told: &shared_state[0],
        fork_ns: Cell::new(0),
        first_writes_ns: Cell::new(0),
        parent_copied: Cell::new(0),
    };
    let (child, parent) = (bench.parameter("child"), bench.parameter("parent"));
    let thread = context.shape.thread(0);
    bench.begin();
    for round in bench.rounds() {
        context.shape.points.begin();
        let began = crate::measured::Moment::start();
        let mut random = SplitMix::new(bench.seed, 0);
        for (place, block) in context.blocks.all().iter().enumerate() {
            let size = classes.draw(&mut random).max(1);
            block.set(thread.allocate(size as usize, place as u32));
        }
        context.shape.point();
        context.fork(&thread, child, parent == "write");
        context.shape.point();
        context
            .blocks
            .all()
            .iter()
            .for_each(|block| thread.free(block.get()));
        bench.record(round, began.elapsed(), 2 * count as u64);
    }
    context.shape.account(bench, None);
    if context.shape.points.wanted() {
        let (copied, freed) = (shared_state[0].copied.get(), shared_state[0].freed.get());
        bench.figure("copied_bytes", copied as f64);
        bench.figure("parent_copied_bytes", context.parent_copied.get() as f64);
        if freed > 0 {
            bench.figure("copy_amplification", copied as f64 / freed as f64);
        }
        bench.figure("fork_ns", context.fork_ns.get() as f64);
        let first_writes_ns = context.first_writes_ns.get();
        if first_writes_ns > 0 {
            bench.figure("first_writes_ns", first_writes_ns as f64);
        }
    }
}

/// Returns the bytes of memory that only this process has and has written to. Ends the process if
/// the kernel does not report them.
fn written_bytes() -> u64 {
    memory::private_dirty_bytes().unwrap_or_else(|| {
        fail!(
            "unsupported",
            "the kernel does not tell how much a process has copied: Private_Dirty in /proc/self/smaps_rollup"
        )
    })
}

impl ForkContext<'_> {
    /// Forks a child, and returns when it has ended.
    fn fork(&self, thread: &ShapeThread, child: &str, parent_writes: bool) {
        self.told.forked.store(0, Relaxed);
        self.told.done.store(0, Relaxed);
        let start_ns = now_ns();
        // The C library's own `fork` is called, so that the allocator's handlers run.
        // SAFETY: no other thread exists; the child ends without returning.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            fail!("error", "fork failed");
        }
        if pid == 0 {
            let before = written_bytes();
            let freed = self.work(thread, child);
            self.told.copied.set(written_bytes().saturating_sub(before));
            self.told.freed.set(freed);
            self.told.done.store(1, Release);
            // The parent's writes copy pages only while the child still shares them.
            while self.told.forked.load(Acquire) == 0 {
                sys::sleep_ms(1);
            }
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) }
        }
        self.fork_ns.set(now_ns() - start_ns);
        let is_done = || self.told.done.load(Acquire) != 0;
        let mut end = None;
        while !is_done() && end.is_none() {
            sys::sleep_ms(1);
            end = started::end_of(pid, libc::WNOHANG);
        }
        let before = written_bytes();
        if parent_writes {
            let start_ns = now_ns();
            for (written, block) in self.blocks.all().iter().step_by(REPLACED).enumerate() {
                if written == FIRST_WRITES {
                    self.first_writes_ns.set(now_ns() - start_ns);
                }
                let old = block.get();
                block.set(thread.allocate(old.size(), old.stamp()));
                thread.free(old);
            }
        }
        self.parent_copied
            .set(written_bytes().saturating_sub(before));
        self.told.forked.store(1, Release);
        let end = end.or_else(|| started::end_of(pid, 0)).unwrap_or_default();
        started::must_have_worked(end, "a forked child");
        if !is_done() {
            fail!("wrong-result", "the forked child ended before its work");
        }
    }

    /// Does the child's work and returns the bytes that the child freed.
    fn work(&self, thread: &ShapeThread, child: &str) -> u64 {
        let blocks = self.blocks.all();
        let free = |step: usize| {
            let blocks = blocks.iter().step_by(step).map(Cell::get);
            blocks
                .map(|block| {
                    thread.free(block);
                    block.size() as u64
                })
                .sum()
        };
        match child {
            "pairs" => {
                (0..PAIRS).for_each(|pair| thread.free(thread.allocate(100, pair as u32)));
                0
            }
            "free-64th" => free(SOME),
            "free-all" => free(1),
            "read" => {
                // SAFETY: all are live.
                let broken = blocks
                    .iter()
                    .filter(|block| !unsafe { block.get().is_intact() })
                    .count();
                if broken > 0 {
                    fail!(
                        "wrong-result",
                        "the child sees {broken} blocks that hold something else"
                    );
                }
                0
            }
            _ => 0,
        }
    }
}
