//! `pin`: one survivor per window of addresses keeps the whole window: the worst case for
//! allocators with slabs, spans or superblocks, found without knowledge of their internals.

use super::*;
use crate::started;

pub const KERNEL: Kernel = Kernel::of_memory(
    "pin",
    &[
        "window", "windows", "smallest", "largest", "volume", "thread",
    ],
    run,
);

/// Maximum number of size classes; allocators have a few hundred.
const MOST_CLASSES: usize = 4096;
/// Window sizes that are tried in search of the worst one.
const WINDOWS: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, 1 << 20];
/// Minimum number of windows of a class: fewer would show the allocator's fixed cost instead.
const LEAST_WINDOWS: usize = 16;

struct PinContext {
    shape: Shape,
    blocks: Blocks,
    windows: Windows,
    /// Number of classes that have been played, over all rounds.
    played: Cell<u32>,
    /// The smallest size of each class found so far.
    classes: HarnessTable<Cell<usize>>,
    class_count: Cell<usize>,
    smallest: usize,
    largest: usize,
    volume: Cell<usize>,
    /// Highest resident heap at any point, in bytes.
    most_heap: Cell<u64>,
    survivors: Cell<usize>,
    /// Whether the classes are assumed, because the allocator does not report usable sizes.
    assumed: Cell<bool>,
}

fn run(bench: &mut Bench) {
    let smallest = bench.count("smallest").max(16).next_multiple_of(16);
    let (largest, volume) = (bench.count("largest"), bench.count("volume"));
    let window = bench.count("window").max(1);
    let others: &[usize] = match bench.parameter("windows") {
        "all" => &WINDOWS,
        _ => &[],
    };
    let most_volume = others.iter().map(|other| LEAST_WINDOWS * other);
    let most_volume = most_volume.fold(volume, usize::max);
    // The upper bound assumes that each size that is tried is a class of its own, and that each
    // block survives.
    let sizes = || {
        core::iter::successors(Some(smallest), |size| Some(after(*size)))
            .take_while(|size| *size <= largest)
    };
    let most: usize = sizes().map(|size| most_volume / size).sum();
    let class = most_volume / smallest;
    let tables = (most + class) * size_of::<StampedBlock>() + 4 * class * size_of::<(usize, u32)>();
    // The estimate assumes that no memory is reused. Allocators for which more than 3/4 of the
    // sizes are classes merge free blocks.
    bench.needs((tables + sizes().count() * most_volume * 3 / 4) as u64);
    let context = InTurn(PinContext {
        shape: Shape::new(bench, 1, sizes().count().min(MOST_CLASSES)),
        blocks: Blocks::new(most + class),
        windows: Windows::new(window, class),
        played: Cell::new(0),
        classes: HarnessTable::zeroed(MOST_CLASSES),
        class_count: Cell::new(0),
        smallest,
        largest,
        volume: Cell::new(volume),
        most_heap: Cell::new(0),
        survivors: Cell::new(0),
        assumed: Cell::new(false),
    });
    let ratios = HarnessTable::<Cell<f64>>::shared(others.len());
    bench.begin();
    if context.shape.points.wanted() {
        for (ratio, &other) in ratios.iter().zip(others) {
            context.play_apart(other, ratio);
        }
    }
    let body = |context: &InTurn<PinContext>, _| context.play();
    let ops = || context.class_count.get() as u64;
    context.shape.play(bench, &context, body, ops);
    context.shape.account(bench, None);
    context.shape.tell_worst(bench);
    if context.shape.points.wanted() {
        tell_windows(bench, others, &ratios);
    }
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

fn tell_windows(bench: &Bench, windows: &[usize], ratios: &[Cell<f64>]) {
    let played = || windows.iter().zip(ratios.iter().map(Cell::get));
    for (window, ratio) in played() {
        bench.figure(format_args!("peak_over_peak_{}_kib", window >> 10), ratio);
    }
    let worst = played().max_by(|(_, one), (_, other)| one.total_cmp(other));
    if let Some((window, _)) = worst {
        bench.figure("worst_window_bytes", *window as f64);
    }
}

/// Returns the next size to try.
fn after(size: usize) -> usize {
    if size < 1024 {
        size + 16
    } else {
        size + size / 16 / 16 * 16
    }
}

impl PinContext {
    /// Plays with another window in a child of this process, whose heap is as fresh as this
    /// process's.
    fn play_apart(&self, window: usize, ratio: &Cell<f64>) {
        // SAFETY: no other thread exists; the child ends without returning.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            fail!("error", "fork failed");
        }
        if pid == 0 {
            self.windows.bytes.set(window);
            self.volume
                .set(self.volume.get().max(LEAST_WINDOWS * window));
            self.shape.points.begin();
            self.play();
            ratio.set(self.most_heap.get() as f64 / self.shape.most_live().max(1) as f64);
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) }
        }
        started::must_have_worked(
            started::end_of(pid, 0).unwrap_or_default(),
            "a forked child",
        );
    }

    fn play(&self) {
        let thread = self.shape.thread(0);
        self.find_classes(&thread);
        let room = self.volume.get() / self.smallest;
        let mut survivors = self.blocks.list(room, self.blocks.all().len() - room);
        for size in self.classes[..self.class_count.get()].iter().map(Cell::get) {
            let class = self.played.get() + 1;
            self.played.set(class);
            let mut blocks = self.blocks.list(0, self.volume.get() / size);
            while !blocks.is_full() {
                blocks.push(thread.allocate(size, blocks.len() as u32));
            }
            let heap = self.shape.point();
            self.most_heap.set(self.most_heap.get().max(heap));
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

    /// Finds the size classes: a usable size that no smaller request has is a new class.
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
            // Without usable sizes, each class is assumed to be a quarter larger than the last one.
            size = if usable == 0 {
                (size + size / 4).next_multiple_of(16)
            } else {
                after(size)
            };
        }
    }
}

/// The windows of addresses in which a block of a class has been found.
struct Windows {
    bytes: Cell<usize>,
    /// Each window's number, and the last class that was found there. Entries of other classes
    /// count as empty.
    seen: HarnessTable<Cell<(usize, u32)>>,
}

impl Windows {
    /// Makes windows of this many bytes, with room for this many blocks of a class.
    fn new(bytes: usize, blocks: usize) -> Windows {
        Windows {
            bytes: Cell::new(bytes),
            seen: HarnessTable::zeroed((2 * blocks).next_power_of_two()),
        }
    }

    fn is_first(&self, address: usize, class: u32) -> bool {
        let window = address / self.bytes.get();
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
