//! cross-vector and scatter-loops make exactly the calls that their parameters imply, as a preloaded library counts them.

use crate::kernels::counter::{Counter, Counts};
use heapmark::execute::Outcome;

/// For loads in which it is a race who allocates: the guest must say what the library counted, and all must be freed.
fn agrees(
    counter: &Counter,
    workload: &str,
    threads: u32,
    set: &[&str],
    iterations: u32,
) -> Counts {
    let (counted, outcome, said) = counter.run(workload, threads, set, 0, iterations);
    assert_eq!(
        outcome,
        Outcome::Ok,
        "{workload}, {threads} threads, {set:?}"
    );
    assert_eq!(said, counted, "{workload}, {threads} threads, {set:?}");
    assert_eq!(
        counted[0] + counted[4],
        counted[1],
        "{workload}, {threads} threads, {set:?}"
    );
    counted
}

#[test]
fn cross_vector_alone_fills_in_odd_passes_and_empties_in_even_ones() {
    let counter = Counter::new();
    for counting in ["counting=padded", "counting=exact"] {
        // 100,000 / (500 / 2) = 400 slots; five of ten passes fill them. With the vector, the sizes and two permutations.
        counter.expect(
            "cross-vector",
            1,
            &["volume=100000", counting],
            1,
            2,
            3 * (5 * 400 + 4),
        );
        // 1,000,000 / (5000 / 2) = 400; passes 1, 3 and 5 of 5, and the clearing frees what the last one left.
        counter.expect(
            "cross-vector-5000",
            1,
            &["volume=1000000", "passes=5", counting],
            0,
            1,
            3 * 400 + 4,
        );
    }
}

#[test]
fn cross_vector_says_what_the_library_counted() {
    let counter = Counter::new();
    for threads in [2, 3] {
        for counting in ["counting=padded", "counting=exact"] {
            for (volume, slots) in [("volume=1000000", 4000), ("volume=5000", 20)] {
                let counted = agrees(
                    &counter,
                    "cross-vector",
                    threads,
                    &[volume, "passes=7", counting],
                    2,
                );
                // No pass allocates more than once for a slot, and the first thread's first pass leaves none untouched.
                let arrays = u64::from(3 + threads);
                assert!(
                    counted[0] <= 2 * (arrays + u64::from(threads) * 7 * slots),
                    "{counted:?}"
                );
                assert!(counted[0] >= 2 * (arrays + slots), "{counted:?}");
            }
        }
    }
}

#[test]
fn scatter_loops_makes_the_calls_that_its_count_table_implies() {
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        let each = u64::from(threads);
        // 311 loops use each entry of the allocation counts once: 65.28 % on average, 20302 in all. Two sequences and a slot
        // array in each of two generations.
        let set = ["loops=311", "ops=100", "blocks=500", "cross-rate=0"];
        counter.expect(
            "scatter-1",
            threads,
            &set,
            1,
            1,
            2 * each * 2 * (2 * 20302 + 1),
        );
        let set = [
            "loops=622",
            "ops=200",
            "blocks=77",
            "cross-rate=0",
            "mode=fixed",
            "min-size=24",
        ];
        counter.expect(
            "scatter-4",
            threads,
            &set,
            0,
            1,
            each * 2 * (2 * 2 * 2 * 20302 + 1),
        );
    }
    // One thread hands nothing over, whatever the parameter says.
    let set = ["loops=311", "ops=100", "blocks=500", "cross-rate=1"];
    counter.expect("scatter-mimalloc-bench", 1, &set, 0, 1, 2 * (2 * 20302 + 1));
}

#[test]
fn legacy_scatter_loops_fills_all_slots_and_asks_for_alignment_two_times_in_three() {
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        let each = u64::from(threads);
        // One loop meets no slot twice, and what it leaves empty is filled: 1000 small blocks in each of two sequences, of
        // which the 1st, 4th, ... 1999th need no alignment. And the slot array.
        let set = ["loops=1", "ops=100", "blocks=1000", "cross-rate=0"];
        let (counted, outcome, said) = counter.run("scatter-legacy-1", threads, &set, 0, 1);
        assert_eq!(
            (outcome, counted),
            (
                Outcome::Ok,
                [each * 2 * 668, each * 2 * 2001, 0, 0, each * 2 * 1333]
            )
        );
        assert_eq!(said, counted);
        // Sizes from 4096 on are not aligned: 10,000 + 10,000 bytes, the smallest added twice.
        let set = [
            "loops=1",
            "ops=100",
            "blocks=1000",
            "cross-rate=0",
            "min-size=10000",
            "max-size=20000",
        ];
        counter.expect("scatter-legacy-2", threads, &set, 0, 2, 2 * each * 2 * 2001);
    }
}

#[test]
fn scatter_loops_that_hand_blocks_over_say_what_the_library_counted() {
    let counter = Counter::new();
    for threads in [2, 3] {
        for workload in ["scatter-2", "scatter-legacy-2"] {
            for (rate, floor) in [("cross-rate=1", 1000), ("cross-rate=3", 300)] {
                let set = ["loops=311", "ops=100", "blocks=500", rate];
                let counted = agrees(&counter, workload, threads, &set, 1);
                // More than the loops' own steps: batches were handed over.
                let own = u64::from(threads) * 2 * (2 * 20302 + 1);
                assert!(
                    counted[0] + counted[4] > own + floor,
                    "{workload} {counted:?}"
                );
            }
        }
    }
}

#[test]
fn a_sequence_that_reaches_its_cap_ends_and_is_still_accounted_for() {
    let counter = Counter::new();
    for workload in ["scatter-1", "scatter-legacy-1"] {
        let set = ["cap-seconds=0", "loops=1000", "ops=1000", "blocks=500"];
        let counted = agrees(&counter, workload, 2, &set, 1);
        // One loop of each sequence: at most 990 steps, and the fill of 500.
        assert!(
            counted[1] < 2 * 2 * 2 * (990 + 990 + 500 + 3),
            "{workload} {counted:?}"
        );
    }
}

#[test]
fn odd_sizes_and_more_threads_than_slots_survive() {
    let counter = Counter::new();
    for threads in [1, 64, 512] {
        for set in [
            ["max-size=0", "volume=1"],
            ["max-size=1", "volume=3"],
            ["max-size=9000", "volume=45000"],
        ] {
            agrees(&counter, "cross-vector", threads, &set, 2);
        }
        for workload in ["scatter-1", "scatter-legacy-5"] {
            for (min, max) in [
                ("min-size=0", "max-size=0"),
                ("min-size=0", "max-size=1"),
                ("min-size=5", "max-size=5"),
            ] {
                let set = [min, max, "blocks=1", "loops=5", "ops=10"];
                agrees(&counter, workload, threads, &set, 1);
            }
        }
    }
}
