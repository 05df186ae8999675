//! `pin`: one survivor per window of addresses keeps the whole window: the worst case of allocators
//! with slabs, spans or superblocks, found without knowing their insides.

use super::shape::{Blocks, Shape, ShapeThread, StampedBlock};
use super::{Kernel, MemoryPoints};
use crate::bench::Bench;
use crate::memory::HarnessTable;
use core::cell::Cell;

pub const KERNEL: Kernel = Kernel {
    name: "pin",
    calls: &["malloc", "free"],
    parameters: &["window", "smallest", "largest", "volume", "thread"],
    memory: MemoryPoints::OwnOnly,
    has_floor: false,
    run,
};

/// Most size classes; allocators have some hundred.
const MOST_CLASSES: usize = 4096;

struct PinContext {
    shape: Shape,
    blocks: Blocks,
    windows: Windows,
    /// Classes that have been played, over all rounds.
    played: Cell<u32>,
    /// The first size of each class, as far as they are known.
    classes: HarnessTable<Cell<usize>>,
    class_count: Cell<usize>,
    smallest: usize,
    largest: usize,
    volume: usize,
    survivors: Cell<usize>,
    /// The allocator does not report usable sizes, so the classes are assumed.
    assumed: Cell<bool>,
}

// SAFETY: one worker.
unsafe impl Sync for PinContext {}

fn run(bench: &mut Bench) {
    let smallest = bench.count("smallest").max(16).next_multiple_of(16);
    let (largest, volume) = (bench.count("largest"), bench.count("volume"));
    // As if each size that is asked about were a class, and each block survived.
    let sizes = || {
        core::iter::successors(Some(smallest), |size| Some(after(*size)))
            .take_while(|size| *size <= largest)
    };
    let most: usize = sizes().map(|size| volume / size).sum();
    let class = volume / smallest;
    let tables = (most + class) * size_of::<StampedBlock>() + 4 * class * size_of::<(usize, u32)>();
    bench.needs((tables + sizes().count() * volume) as u64);
    let context = PinContext {
        shape: Shape::new(bench, 1, sizes().count().min(MOST_CLASSES)),
        blocks: Blocks::new(most + class),
        windows: Windows::new(bench.count("window").max(1), class),
        played: Cell::new(0),
        classes: HarnessTable::zeroed(MOST_CLASSES),
        class_count: Cell::new(0),
        smallest,
        largest,
        volume,
        survivors: Cell::new(0),
        assumed: Cell::new(false),
    };
    bench.begin();
    for round in bench.rounds() {
        context.shape.points.begin();
        let team = bench.gather(&context, |context, _| context.play());
        let began = team.release();
        bench.join(round, team, &began);
        bench.record(round, began.elapsed(), 0, context.class_count.get() as u64);
    }
    context.shape.account(bench, None);
    context.shape.tell_worst(bench);
    bench.figure("classes", context.class_count.get() as f64);
    bench.figure("survivors", context.survivors.get() as f64);
    bench.note(
        "size_classes",
        if context.assumed.get() {
            "assumed"
        } else {
            "asked"
        },
    );
}

/// The next size that is asked about.
fn after(size: usize) -> usize {
    if size < 1024 {
        size + 16
    } else {
        size + size / 16 / 16 * 16
    }
}

impl PinContext {
    fn play(&self) {
        let thread = self.shape.thread(0);
        self.find_classes(&thread);
        let room = self.volume / self.smallest;
        let mut survivors = self.blocks.list(room, self.blocks.all().len() - room);
        for size in self.classes[..self.class_count.get()].iter().map(Cell::get) {
            let class = self.played.get() + 1;
            self.played.set(class);
            let mut blocks = self.blocks.list(0, self.volume / size);
            while !blocks.is_full() {
                blocks.push(thread.allocate(size, blocks.len() as u32));
            }
            self.shape.point();
            for block in blocks.iter() {
                if self.windows.is_first(block.address().addr(), class) {
                    survivors.push(block);
                } else {
                    thread.free(block);
                }
            }
        }
        self.survivors.set(survivors.len());
        survivors.clear(&thread);
    }

    /// A usable size that no smaller request has is a new class.
    fn find_classes(&self, thread: &ShapeThread) {
        let (mut size, mut known) = (self.smallest, 0);
        self.class_count.set(0);
        while size <= self.largest && self.class_count.get() < MOST_CLASSES {
            let block = thread.allocate(size, 0);
            // SAFETY: live.
            let usable = unsafe { (self.shape.api.usable_size)(block.address()) };
            thread.free(block);
            self.assumed.set(usable == 0);
            if usable == 0 || usable > known {
                self.classes[self.class_count.get()].set(size);
                self.class_count.set(self.class_count.get() + 1);
                known = usable;
            }
            // A quarter larger, if nothing can be asked.
            size = if usable == 0 {
                (size + size / 4).next_multiple_of(16)
            } else {
                after(size)
            };
        }
    }
}

/// The windows of addresses in which a block of a class has been seen.
struct Windows {
    bytes: usize,
    /// A window's number, and the last class that was seen there. Entries of other classes count as
    /// empty.
    seen: HarnessTable<Cell<(usize, u32)>>,
}

impl Windows {
    /// For this many blocks of a class.
    fn new(bytes: usize, blocks: usize) -> Windows {
        Windows {
            bytes,
            seen: HarnessTable::zeroed((2 * blocks).next_power_of_two()),
        }
    }

    fn is_first(&self, address: usize, class: u32) -> bool {
        let window = address / self.bytes;
        let mask = self.seen.len() - 1;
        let mut place = window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & mask;
        loop {
            match self.seen[place].get() {
                (known, of) if of == class && known == window => return false,
                (_, of) if of == class => place = (place + 1) & mask,
                _ => {
                    self.seen[place].set((window, class));
                    return true;
                }
            }
        }
    }
}
