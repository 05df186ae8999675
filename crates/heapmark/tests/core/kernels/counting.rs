//! Each kernel makes exactly the calls that its parameters imply, as a preloaded library counts them. What is expected is
//! worked out here from the parameters, not taken from the kernels' own account of themselves.

use crate::kernels::counter::Counter;
use heapmark::execute::Outcome;

#[test]
fn same_thread_makes_the_calls_that_volume_and_max_size_imply() {
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        for layout in ["layout=interleaved", "layout=block"] {
            // 100,000 / (500 / 2) = 400 blocks and the two arrays, in each of 1 + 2 iterations.
            let set = ["volume=100000", layout];
            counter.expect("same-thread", threads, &set, 1, 2, 3 * (400 + 2));
            // 1,000,000 / (5000 / 2) = 400; sizes start at 1, so that free never gets NULL.
            let set = [
                "volume=1000000",
                "min-size=1",
                "max-size=5000",
                "touch=false",
                layout,
            ];
            counter.expect("same-thread", threads, &set, 0, 1, 402);
        }
    }
}

#[test]
fn larson_makes_the_calls_that_its_incarnations_imply() {
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        let slots = u64::from(threads);
        // Warm-up: every entry once, then four times as many replacements. Then 5 incarnations of 10 x 10 pairs.
        let set = ["chunks=10", "rounds=10", "incarnations=5"];
        counter.expect(
            "larson",
            threads,
            &set,
            1,
            2,
            slots * (5 * 10 + 3 * 5 * 100),
        );
        let set = ["chunks=100", "rounds=3", "incarnations=1"];
        counter.expect(
            "larson-mimalloc-bench",
            threads,
            &set,
            0,
            1,
            slots * (5 * 100 + 300),
        );
        // A body that does nothing allocates nothing.
        counter.expect(
            "larson-threads",
            threads,
            &["incarnations=20"],
            0,
            1,
            slots * 5 * 10,
        );
    }
}

#[test]
fn larson_by_time_says_what_the_library_counted() {
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        let (counted, outcome, said) =
            counter.run("larson-hoard", threads, &["seconds=0.05"], 0, 1);
        assert_eq!(outcome, Outcome::Ok);
        assert_eq!(said, counted);
        assert_eq!(counted[0], counted[1]);
        assert!(counted[0] > u64::from(threads) * 5 * 1000, "{counted:?}");
    }
}

#[test]
fn churn_makes_the_calls_that_its_objects_imply() {
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        for workload in ["churn", "churn-private"] {
            let per_round = u64::from(threads) * 1000;
            counter.expect(workload, threads, &["objects=1000"], 1, 2, 3 * per_round);
            let set = [
                "objects=77",
                "spots=3",
                "pad=false",
                "distribution=uniform",
                "min-size=1",
                "max-size=9",
                "step=2",
            ];
            counter.expect(workload, threads, &set, 0, 1, u64::from(threads) * 77);
        }
    }
}

#[test]
fn odd_sizes_and_more_threads_than_work_survive() {
    let counter = Counter::new();
    for threads in [1, 64] {
        for max in ["max-size=0", "max-size=1"] {
            let (_, outcome, said) = counter.run("same-thread", threads, &["volume=10", max], 0, 2);
            assert_eq!(
                (outcome, said[0]),
                (Outcome::Ok, 2 * (10 + 2)),
                "{threads} threads, {max}"
            );
        }
        for (min, max) in [("min=0", "max=1"), ("min=1", "max=1"), ("min=64", "max=64")] {
            let (_, outcome, _) = counter.run(
                "larson",
                threads,
                &[min, max, "chunks=1", "incarnations=2"],
                0,
                2,
            );
            assert_eq!(outcome, Outcome::Ok, "{threads} threads, {min} {max}");
        }
        for size in ["0", "1", "4096"] {
            let (min, max) = (format!("min-size={size}"), format!("max-size={size}"));
            let set = [&min, &max, "objects=10", "spots=1"];
            let (_, outcome, _) = counter.run("churn", threads, &set, 0, 2);
            assert_eq!(outcome, Outcome::Ok, "{threads} threads, size {size}");
        }
    }
}

#[test]
fn calls_that_no_parameter_implies_are_seen() {
    // The exercise after the clock is not part of the kernel: 512 blocks, half of them replaced.
    let (counted, outcome, said) =
        Counter::new().run_with("churn", 1, &["objects=100"], 0, 1, true);
    assert_eq!(outcome, Outcome::Ok);
    assert_eq!(said[0], 100);
    assert_eq!(counted[0], 100 + 512 + 256);
}
