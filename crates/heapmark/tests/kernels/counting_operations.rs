//! The kernels of operations make the calls that their parameters imply, as a preloaded library counts them.

use crate::counter::Counter;

/// One thread that is the main one or a worker, and more.
const TEAMS: [(u32, &str); 4] = [
    (1, "thread=main"),
    (1, "thread=worker"),
    (2, "thread=worker"),
    (3, "thread=worker"),
];

#[test]
fn pairs_at_an_edge_are_three_more_than_on_the_clock() {
    let counter = Counter::new();
    for (threads, thread) in TEAMS {
        for (pairs, kept) in [(1, true), (7, false), (250, true)] {
            let (pairs_set, kept_set) = (format!("pairs={pairs}"), format!("kept={kept}"));
            for size in ["size=2", "size=300000"] {
                let set = [&pairs_set, &kept_set, size, thread];
                let blocks = u64::from(threads) * (pairs + 3 + u64::from(kept));
                counter.expect("pair-edge", threads, &set, 1, 2, 3 * blocks);
            }
        }
    }
}
