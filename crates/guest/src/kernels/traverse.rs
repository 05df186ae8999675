//! `traverse`: how long a program takes on memory that the allocator placed. On the clock, nothing is allocated. The
//! program only reads nodes of a list, a tree, a hash table or records, in a heap that other blocks have aged.

use super::*;
use crate::litter::Litter;
use crate::placement::{self, Placement};
use crate::sizes::Sizes;
use core::cell::RefCell;
use core::hint::black_box;

pub const KERNEL: Kernel = Kernel {
    memory: MemoryPoints::Own,
    ..Kernel::of_memory(
        "traverse",
        &[
            "structure",
            "nodes",
            "node",
            "build",
            "age",
            "litter",
            "passes",
            "classes",
            "thread",
        ],
        run,
    )
};

/// Number of other blocks of each thread that live while a structure is built.
const SHORT_LIVED: usize = 64;
/// Strings of records are shorter than this.
const STRING_BELOW: u32 = 512;
/// Maximum number of draws of a string's size if all are too long, since there may be no shorter sizes.
const STRING_DRAWS: usize = 64;
/// Upper bound of a tree's depth: random trees with as many nodes as a workload has are far less deep.
const DEPTH: usize = 256;
/// Blocks in the copies of a structure begin at multiples of this.
const ALIGNMENT: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Structure {
    List,
    Tree,
    Hash,
    Records,
}

/// The header with which the nodes of all structures begin.
#[repr(C)]
#[derive(Clone, Copy)]
struct TraversedNode {
    /// The next node of a list or of a bucket; in a tree, the subtree with the smaller keys.
    next: *mut TraversedNode,
    /// In a tree, the subtree with the larger keys; in a record, its string.
    other: *mut TraversedNode,
    key: u64,
    /// The node's place in the order of a traversal.
    number: u32,
    string_bytes: u32,
}

/// Number of bytes that are read from a node.
const READ_BYTES: usize = 24;

struct TraverseContext {
    shape: Shape,
    structure: Structure,
    nodes: usize,
    node_bytes: usize,
    is_mixed: bool,
    passes: usize,
    sizes: Sizes,
    seed: u64,
    litter: Litter,
    short_lived: Blocks,
    /// Bytes of memory over which the nodes of a scattered copy are spread.
    span: usize,
    meeting: Rendezvous,
    workers: HarnessTable<Padded<Traversal>>,
    found: InTurn<RefCell<Found>>,
}

struct Traversal {
    /// The array from which the worker's nodes are reached.
    roots: Cell<*mut *mut TraversedNode>,
    /// The sum that one pass should read, and the sum that all passes have read.
    sum: Cell<u64>,
    read: Cell<u64>,
    own_ns: Cell<u64>,
}

/// The findings of the first worker in the last round: for its own nodes, and for both copies.
#[derive(Default)]
struct Found {
    placements: [Placement; 3],
    passes_ns: [u64; 3],
    build_ns: u64,
}

fn run(bench: &mut Bench) {
    let threads = bench.threads;
    let structure = match bench.parameter("structure") {
        "tree" => Structure::Tree,
        "hash" => Structure::Hash,
        "records" => Structure::Records,
        _ => Structure::List,
    };
    let nodes = bench.count("nodes").max(1);
    let node_bytes = bench.count("node").max(size_of::<TraversedNode>());
    let passes = bench.count("passes").max(1);
    let litter_bytes = bench.number("litter");
    let sizes = bench.sizes();
    let bytes_each = node_bytes + structure.strings() * STRING_BELOW as usize;
    // The estimate covers the structure, its copies, and tables for counting, as well as the litter and as much memory
    // again for a copy.
    let all = (threads * nodes * (3 * bytes_each + 300)) as u64 + 3 * litter_bytes;
    bench.needs(all + Litter::table_bytes(litter_bytes, &sizes));
    let age = bench.count("age");
    let context = TraverseContext {
        shape: Shape::new(bench, threads, 1),
        structure,
        nodes,
        node_bytes,
        is_mixed: bench.parameter("build") == "mixed",
        passes,
        litter: Litter::new(threads, litter_bytes, age, &sizes, bench.seed),
        sizes,
        seed: bench.seed,
        short_lived: Blocks::new(threads * SHORT_LIVED),
        span: litter_bytes as usize / threads,
        meeting: Rendezvous::new(threads),
        workers: HarnessTable::zeroed(threads),
        found: InTurn::default(),
    };
    bench.begin();
    for round in bench.rounds() {
        context.shape.points.begin();
        // The copies are made after the clock has stopped.
        let span = bench.lap_with_peak(round, &context);
        bench.record(round, span, (threads * nodes * passes) as u64);
    }
    let full_bytes = context.litter.full_bytes();
    context.shape.account_with_peak(bench, None, full_bytes);
    context.tell(bench);
}

impl Structure {
    /// Returns the number of strings of each node.
    fn strings(self) -> usize {
        usize::from(self == Structure::Records)
    }

    /// Returns the number of entries of the table from which the structure's nodes are reached.
    fn roots(self, nodes: usize) -> usize {
        match self {
            Structure::List | Structure::Tree => 1,
            Structure::Hash => nodes.next_power_of_two(),
            Structure::Records => nodes,
        }
    }

    /// Calls `visit` with each node. `visit` may free the node, since the node's links have been read by then.
    ///
    /// # Safety
    /// All nodes are live.
    #[inline(always)]
    unsafe fn walk(self, roots: &[*mut TraversedNode], mut visit: impl FnMut(*mut TraversedNode)) {
        match self {
            Structure::List | Structure::Hash => {
                for &root in roots {
                    let mut node = root;
                    while !node.is_null() {
                        // SAFETY: live.
                        let next = unsafe { (*node).next };
                        visit(node);
                        node = next;
                    }
                }
            }
            Structure::Tree => {
                let mut waiting = [ptr::null_mut(); DEPTH];
                waiting[0] = roots[0];
                let mut depth = 1;
                while depth > 0 {
                    depth -= 1;
                    let node: *mut TraversedNode = waiting[depth];
                    // SAFETY: live.
                    let children = unsafe { [(*node).other, (*node).next] };
                    for child in children {
                        if !child.is_null() {
                            waiting[depth] = child;
                            depth += 1;
                        }
                    }
                    visit(node);
                }
            }
            Structure::Records => roots.iter().for_each(|&node| visit(node)),
        }
    }

    /// Returns the sum of the values that a program reads from all nodes.
    ///
    /// # Safety
    /// All nodes are live.
    unsafe fn read(self, roots: &[*mut TraversedNode]) -> u64 {
        let mut sum = 0u64;
        // SAFETY: all nodes are live, and a record has a string of at least one byte.
        unsafe {
            match self {
                Structure::Records => self.walk(roots, |node| {
                    let string = (*node).other.cast::<u8>();
                    sum = sum.wrapping_add((*node).key + u64::from(*string));
                }),
                _ => self.walk(roots, |node| sum = sum.wrapping_add((*node).key)),
            }
        }
        sum
    }

    /// Returns the placement of the memory that a program reads.
    fn placement(self, roots: &[*mut TraversedNode], nodes: usize) -> Placement {
        placement::of(nodes, |see| {
            // SAFETY: all nodes are live.
            unsafe {
                self.walk(roots, |node| {
                    see(node.addr(), READ_BYTES, true);
                    if self == Structure::Records {
                        see((*node).other.addr(), 1, false);
                    }
                });
            }
        })
    }
}

impl Load for TraverseContext {
    fn before(&self, index: usize, _lap: usize) {
        let thread = self.shape.thread(index);
        self.litter.scatter(index, &thread, &self.sizes);
        let start_ns = now_ns();
        self.build(index, &thread);
        if index == 0 {
            self.found.borrow_mut().build_ns = now_ns() - start_ns;
        }
        self.number(index);
    }

    fn all_here(&self, _lap: usize) {
        self.shape.point();
    }

    fn timed(&self, index: usize, _lap: usize) {
        let worker = &self.workers[index];
        let start_ns = now_ns();
        worker.read.set(self.read_often(self.roots(index)));
        worker.own_ns.set(now_ns() - start_ns);
    }

    fn after(&self, index: usize, _lap: usize) {
        let worker = &self.workers[index];
        let (expected, roots) = (self.all_passes(worker.sum.get()), self.roots(index));
        let of = |roots: &[*mut TraversedNode]| self.structure.placement(roots, self.nodes);
        let mut found = Found {
            placements: [of(roots), Placement::default(), Placement::default()],
            passes_ns: [worker.own_ns.get(), 0, 0],
            ..Found::default()
        };
        let mut is_right = worker.read.get() == expected;
        for (place, is_scattered) in [(1, false), (2, true)] {
            let copy = Copied::of(self, roots, is_scattered);
            // All threads read at once, as they do on the clock.
            self.meeting.wait();
            let start_ns = now_ns();
            is_right &= self.read_often(&copy.roots) == expected;
            found.passes_ns[place] = now_ns() - start_ns;
            self.meeting.wait();
            found.placements[place] = of(&copy.roots);
        }
        if !is_right {
            fail!("wrong-result", "a node does not hold what was written");
        }
        if index == 0 {
            self.found.replace_with(|built| Found {
                build_ns: built.build_ns,
                ..found
            });
        }
        let thread = self.shape.thread(index);
        self.free(index, &thread);
        self.litter.sweep(index, &thread);
    }
}

impl TraverseContext {
    fn roots(&self, index: usize) -> &[*mut TraversedNode] {
        let table = self.workers[index].roots.get();
        // SAFETY: the table has that many entries, written when it was built.
        unsafe { core::slice::from_raw_parts(table, self.structure.roots(self.nodes)) }
    }

    /// Makes all passes of one thread, and returns the sum of the values read.
    fn read_often(&self, roots: &[*mut TraversedNode]) -> u64 {
        let mut sum = 0u64;
        for _ in 0..self.passes {
            // SAFETY: all nodes are live.
            sum = sum.wrapping_add(unsafe { self.structure.read(black_box(roots)) });
        }
        sum
    }

    fn all_passes(&self, sum: u64) -> u64 {
        sum.wrapping_mul(self.passes as u64)
    }

    fn build(&self, index: usize, thread: &ShapeThread) {
        let len = self.structure.roots(self.nodes);
        let table: *mut *mut TraversedNode = thread
            .untouched(len * size_of::<*mut TraversedNode>(), 0)
            .address()
            .cast();
        let mut keys = SplitMix::new(self.seed, index as u64);
        let mut random = SplitMix::new(!self.seed, index as u64);
        let mut others = self.short_lived.all()[index * SHORT_LIVED..][..SHORT_LIVED]
            .iter()
            .cycle();
        let mut others_made = 0;
        let mut end = table;
        let mut sum = 0u64;
        // SAFETY: the table has `len` entries; nodes are live, and hold a `TraversedNode`.
        unsafe {
            table.write_bytes(0, len);
            for number in 0..self.nodes {
                let more = if self.is_mixed { random.below(4) } else { 0 };
                for place in others.by_ref().take(more as usize) {
                    if others_made >= SHORT_LIVED {
                        thread.free(place.get());
                    }
                    let size = self.sizes.draw(&mut random).max(1);
                    place.set(thread.allocate(size as usize, others_made as u32));
                    others_made += 1;
                }
                let node: *mut TraversedNode =
                    thread.untouched(self.node_bytes, 0).address().cast();
                let mut made = TraversedNode {
                    next: ptr::null_mut(),
                    other: ptr::null_mut(),
                    key: keys.next() >> 8,
                    number: 0,
                    string_bytes: 0,
                };
                sum = sum.wrapping_add(made.key);
                let mut link = end;
                match self.structure {
                    Structure::List => end = &raw mut (*node).next,
                    Structure::Tree => {
                        while !(*link).is_null() {
                            let above = *link;
                            link = if made.key < (*above).key {
                                &raw mut (*above).next
                            } else {
                                &raw mut (*above).other
                            };
                        }
                    }
                    Structure::Hash => {
                        link = table.add(made.key as usize & (len - 1));
                        made.next = *link;
                    }
                    Structure::Records => {
                        link = table.add(number);
                        made.string_bytes = self.string_bytes(&mut random);
                        let string = thread.untouched(made.string_bytes as usize, 0).address();
                        string.write_bytes(1, made.string_bytes as usize);
                        made.other = string.cast();
                        sum = sum.wrapping_add(1);
                    }
                }
                node.write(made);
                link.write(node);
            }
        }
        let left = &self.short_lived.all()[index * SHORT_LIVED..];
        left[..others_made.min(SHORT_LIVED)]
            .iter()
            .for_each(|block| thread.free(block.get()));
        let worker = &self.workers[index];
        worker.roots.set(table);
        worker.sum.set(sum);
    }

    /// Numbers the nodes in the order in which they are read.
    fn number(&self, index: usize) {
        let mut number = 0;
        // SAFETY: all nodes are live.
        unsafe {
            self.structure.walk(self.roots(index), |node| {
                (*node).number = number;
                number += 1;
            });
        }
    }

    fn string_bytes(&self, random: &mut SplitMix) -> u32 {
        let mut sizes = (0..STRING_DRAWS).map(|_| self.sizes.draw(random));
        let short = sizes.find(|size| *size < STRING_BELOW);
        short.unwrap_or(STRING_BELOW - 1).max(1)
    }

    fn free(&self, index: usize, thread: &ShapeThread) {
        let release = |address: *mut u8, size: usize| {
            thread.release(StampedBlock::at(address, size as u32, 0));
        };
        let roots = self.roots(index);
        // SAFETY: all nodes are live; a node's links have been read when it is visited.
        unsafe {
            self.structure.walk(roots, |node| {
                if self.structure == Structure::Records {
                    release((*node).other.cast(), (*node).string_bytes as usize);
                }
                release(node.cast(), self.node_bytes);
            });
        }
        release(self.workers[index].roots.get().cast(), size_of_val(roots));
    }

    fn tell(&self, bench: &Bench) {
        let Found {
            placements: [original, packed, scattered],
            passes_ns,
            build_ns,
        } = &*self.found.borrow();
        let figures = [
            ("pages_per_1000_nodes", original.pages_per_1000_nodes),
            ("packed_pages_per_1000_nodes", packed.pages_per_1000_nodes),
            (
                "scattered_pages_per_1000_nodes",
                scattered.pages_per_1000_nodes,
            ),
            ("lines_per_node", original.lines_per_node),
            ("regions_2_mib", f64::from(original.regions)),
            ("successor_within_64_b_share", original.near_shares[0]),
            ("successor_within_4_kib_share", original.near_shares[1]),
            ("successor_within_2_mib_share", original.near_shares[2]),
            ("tlb_64_misses_per_node", original.first_tlb_misses_per_node),
            (
                "tlb_1536_misses_per_node",
                original.second_tlb_misses_per_node,
            ),
            (
                "cache_1_mib_misses_per_node",
                original.cache_misses_per_node,
            ),
        ];
        for (name, value) in figures {
            bench.figure(name, value);
        }
        if !self.shape.points.wanted() {
            let visits = (self.nodes * self.passes) as f64;
            let [original, packed, scattered] = passes_ns.map(|ns| ns as f64 / visits);
            bench.figure("packed_ns_per_node", packed);
            bench.figure("scattered_ns_per_node", scattered);
            bench.figure(
                "placement_share",
                (original - packed) / (scattered - packed),
            );
            bench.figure("build_ns_per_node", *build_ns as f64 / self.nodes as f64);
        }
    }
}

/// A copy of a structure in memory of the harness.
struct Copied {
    roots: HarnessTable<*mut TraversedNode>,
    /// The memory in which the nodes lie.
    _memory: HarnessTable<u8>,
}

impl Copied {
    /// Copies a structure: nodes and strings lie in the order of a traversal without gaps, or scattered over the span.
    fn of(context: &TraverseContext, roots: &[*mut TraversedNode], is_scattered: bool) -> Copied {
        let TraverseContext {
            structure,
            nodes,
            node_bytes,
            ..
        } = *context;
        let pieces = nodes * (1 + structure.strings());
        // Offsets of nodes, then of strings.
        let mut offsets = HarnessTable::<usize>::zeroed(pieces);
        let (mut bytes, mut largest) = (0, 0);
        let mut place = |piece: usize, piece_bytes: usize| {
            offsets[piece] = bytes;
            bytes += piece_bytes.next_multiple_of(ALIGNMENT);
            largest = largest.max(piece_bytes);
        };
        // SAFETY: all nodes are live.
        unsafe {
            structure.walk(roots, |node| {
                let number = (*node).number as usize;
                place(number, node_bytes);
                if structure == Structure::Records {
                    place(nodes + number, (*node).string_bytes as usize);
                }
            });
        }
        if is_scattered {
            let line = |bytes: usize| bytes.next_multiple_of(64);
            let cell = line(largest).max(context.span / pieces / 64 * 64);
            bytes = pieces * cell;
            let mut random = SplitMix::new(context.seed, u64::MAX);
            for piece in 0..pieces {
                offsets[piece] = piece * cell;
                let other = random.below(piece as u32 + 1) as usize;
                offsets.swap(piece, other);
            }
        }
        // Reserved memory has pages as small as those of most heaps.
        let memory = HarnessTable::<u8>::reserved(bytes);
        let start = memory.as_ptr().cast_mut();
        let at = |piece: usize| start.wrapping_add(offsets[piece]);
        // SAFETY: all nodes are live.
        let copied = |node: *mut TraversedNode| match unsafe { node.as_ref() } {
            Some(node) => at(node.number as usize).cast(),
            None => ptr::null_mut(),
        };
        // SAFETY: all nodes are live; each piece has its place in the new memory, aligned.
        unsafe {
            structure.walk(roots, |node| {
                let mut made = TraversedNode {
                    next: copied((*node).next),
                    ..*node
                };
                made.other = if structure == Structure::Records {
                    let string = at(nodes + made.number as usize);
                    string.write_bytes(1, made.string_bytes as usize);
                    string.cast()
                } else {
                    copied(made.other)
                };
                copied(node).write(made);
            });
        }
        let mut table = HarnessTable::<*mut TraversedNode>::zeroed(roots.len());
        for (entry, root) in table.iter_mut().zip(roots) {
            *entry = copied(*root);
        }
        Copied {
            roots: table,
            _memory: memory,
        }
    }
}
