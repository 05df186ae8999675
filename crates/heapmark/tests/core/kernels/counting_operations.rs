//! The kernels of operations make the calls that their parameters imply, as a preloaded library counts them.

use crate::kernels::counter::{Counter, Counts};
use heapmark::execute::Outcome;

/// One thread that is the main one or a worker, and more.
const TEAMS: [(u32, &str); 4] = [
    (1, "thread=main"),
    (1, "thread=worker"),
    (2, "thread=worker"),
    (3, "thread=worker"),
];

/// One cold round and two more, of which each thread makes these calls in each.
fn expect(counter: &Counter, workload: &str, threads: u32, set: &[&str], each: Counts) {
    let (counted, outcome, said) = counter.run(workload, threads, set, 1, 2);
    let what = format!("{workload}, {threads} threads, {set:?}");
    assert_eq!(outcome, Outcome::Ok, "{what}");
    let all = each.map(|calls| 3 * u64::from(threads) * calls);
    assert_eq!(counted, all, "{what}");
    assert_eq!(said, counted, "{what}");
}

#[test]
fn pairs_at_an_edge_are_three_more_than_on_the_clock() {
    let counter = Counter::new();
    for (threads, thread) in TEAMS {
        for (pairs, kept) in [(1, true), (7, false), (250, true)] {
            let (pairs_set, kept_set) = (format!("pairs={pairs}"), format!("kept={kept}"));
            for size in ["size=2", "size=300000"] {
                let set = [&pairs_set, &kept_set, size, thread];
                let blocks = pairs + 3 + u64::from(kept);
                expect(
                    &counter,
                    "pair-edge",
                    threads,
                    &set,
                    [blocks, blocks, 0, 0, 0],
                );
            }
        }
    }
}

#[test]
fn blocks_grow_by_each_step_up_to_the_limit_and_back_by_halves() {
    let counter = Counter::new();
    // Steps up from 16 to 1000 bytes, and down from the last one.
    for (step, up, down) in [
        ("8-bytes", 123, 5),
        ("64-bytes", 15, 5),
        ("double", 5, 5),
        ("fourfold", 2, 4),
    ] {
        for (threads, thread) in TEAMS {
            let step = format!("step={step}");
            let set = [
                "from=16",
                "limit=1000",
                &step,
                "ladders=3",
                "neighbours=0",
                "between=false",
                thread,
            ];
            expect(
                &counter,
                "grow",
                threads,
                &set,
                [3, 3, 0, 3 * (up + down), 0],
            );
            let set = [
                "from=16",
                "limit=1000",
                &step,
                "ladders=2",
                "neighbours=4",
                "between=true",
                "teams=2",
                thread,
            ];
            let (blocks, steps) = (2 * 2 * 5 * (1 + up), 2 * 2 * 5 * (up + down));
            expect(
                &counter,
                "grow",
                threads,
                &set,
                [blocks, blocks, 0, steps, 0],
            );
        }
    }
}

#[test]
fn batches_are_filled_once_more_than_on_the_clock() {
    let counter = Counter::new();
    for (threads, thread) in TEAMS {
        for order in ["fifo", "lifo", "random", "stride", "half"] {
            for frees in ["owner", "next"] {
                let (order_set, frees) = (format!("order={order}"), format!("frees={frees}"));
                for (batch, pairs, times) in [(25, 99, 3), (400, 1, 1)] {
                    let (batch_set, pairs) = (format!("batch={batch}"), format!("pairs={pairs}"));
                    let set = [&order_set, &frees, &batch_set, &pairs, thread];
                    let twice = if order == "half" { batch / 2 } else { 0 };
                    let blocks = (times + 1) * (batch + twice);
                    expect(
                        &counter,
                        "batch-order",
                        threads,
                        &set,
                        [blocks, blocks, 0, 0, 0],
                    );
                }
            }
        }
    }
    let blocks = 5 * 25 + 2 * (100 + 400 + 1600 + 4096 + 65_536);
    expect(
        &counter,
        "batch-order",
        1,
        &["pairs=100"],
        [blocks, blocks, 0, 0, 0],
    );
}

#[test]
fn slots_are_filled_replaced_and_emptied() {
    let counter = Counter::new();
    for (threads, thread) in TEAMS {
        for (slots, replacements) in [(1, 5), (8, 20)] {
            let (slots_set, replacements_set) = (
                format!("slots={slots}"),
                format!("replacements={replacements}"),
            );
            let set = [slots_set.as_str(), &replacements_set, thread];
            let blocks = slots + replacements;
            for workload in ["medium", "medium-pow2", "medium-odd", "medium-octaves"] {
                expect(&counter, workload, threads, &set, [blocks, blocks, 0, 0, 0]);
            }
            for workload in ["aligned", "aligned-2m"] {
                expect(&counter, workload, threads, &set, [0, blocks, 0, 0, blocks]);
            }
            // Off the clock all are replaced once more.
            let blocks = blocks + slots;
            expect(
                &counter,
                "calloc-32k",
                threads,
                &set,
                [0, blocks, blocks, 0, 0],
            );
        }
        for (touch, replacements) in [("touch=true", 1), ("touch=false", 9000)] {
            let replacements_set = format!("replacements={replacements}");
            let set = [touch, &replacements_set, thread];
            let blocks = 1024 + replacements;
            expect(
                &counter,
                "glibc-thread",
                threads,
                &set,
                [blocks, blocks, 0, 0, 0],
            );
            expect(
                &counter,
                "glibc-thread-calloc",
                threads,
                &set,
                [0, blocks, blocks, 0, 0],
            );
        }
    }
    expect(
        &counter,
        "large",
        1,
        &["slots=2", "replacements=3"],
        [5, 5, 0, 0, 0],
    );
}

#[test]
fn a_ring_has_one_free_slot() {
    let counter = Counter::new();
    for (threads, thread) in TEAMS {
        for (ring, pairs) in [(1, 1), (4, 10), (64, 7)] {
            for touch in ["touch=true", "touch=false"] {
                let (ring_set, pairs_set) = (format!("ring={ring}"), format!("pairs={pairs}"));
                let set = [&ring_set, &pairs_set, touch, thread];
                let blocks = pairs + ring - 1;
                expect(
                    &counter,
                    "hot-ring",
                    threads,
                    &set,
                    [blocks, blocks, 0, 0, 0],
                );
            }
        }
    }
}
