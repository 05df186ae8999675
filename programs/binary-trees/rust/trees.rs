//! Binary trees in Rust: a node owns its children in boxes, so dropping the root releases the whole tree, immediately
//! and in compiler-generated code. The system's allocator serves the boxes: the malloc that is preloaded.

mod probe;

use probe::{MIN_DEPTH, Probe};
use std::alloc::System;
use std::mem::forget;

#[global_allocator]
static ALLOCATOR: System = System;

struct Node {
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

// The only place that makes nodes. A second one for leaves, all zero, would be compiled to calloc.
fn build(depth: u32) -> Box<Node> {
    let (left, right) = match depth {
        0 => (None, None),
        _ => (Some(build(depth - 1)), Some(build(depth - 1))),
    };
    Box::new(Node { left, right })
}

fn checksum(node: &Node) -> u64 {
    match (&node.left, &node.right) {
        (Some(left), Some(right)) => 1 + checksum(left) + checksum(right),
        _ => 1,
    }
}

fn build_check_release(probe: &mut Probe, depth: u32) -> u64 {
    let start = probe.clock();
    let tree = build(depth);
    probe.built(depth, start);
    let check = checksum(&tree);
    let start = probe.clock();
    drop(tree);
    probe.released(depth, start);
    check
}

fn main() {
    let mut probe = Probe::from_arguments();
    let max = probe.max_depth;

    let stretch = max + 1;
    println!("stretch tree of depth {stretch}\t check: {}", build_check_release(&mut probe, stretch));

    let long_lived = build(max);

    for depth in (MIN_DEPTH..=max).step_by(2) {
        let trees = 1u64 << (max - depth + MIN_DEPTH);
        let sum: u64 = (0..trees).map(|_| build_check_release(&mut probe, depth)).sum();
        println!("{trees}\t trees of depth {depth}\t check: {sum}");
    }

    println!("long lived tree of depth {max}\t check: {}", checksum(&long_lived));
    forget(long_lived); // never released: the process ends with it
    probe.report();
}
