//! As in counting.rs, for `zalloc`, `cache-thrash`, `cache-scratch` and `speed`: what is expected is worked out here from the
//! parameters.

use crate::kernels::counter::{Counter, Counts};
use heapmark::execute::Outcome;

/// Runs it and holds the library's count, and what the guest says, against what is expected.
fn expect(
    counter: &Counter,
    workload: &str,
    threads: u32,
    set: &[&str],
    rounds: (u32, u32),
    expected: Counts,
) {
    let (counted, outcome, said) = counter.run(workload, threads, set, rounds.0, rounds.1);
    assert_eq!(
        outcome,
        Outcome::Ok,
        "{workload}, {threads} threads, {set:?}"
    );
    assert_eq!(counted, expected, "{workload}, {threads} threads, {set:?}");
    assert_eq!(said, counted, "{workload}, {threads} threads, {set:?}");
}

#[test]
fn zalloc_makes_one_call_and_one_free_for_each_block() {
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        let t = u64::from(threads);
        // 1 + 2 iterations of 1024 blocks.
        for workload in ["zalloc", "zalloc-clwb", "zalloc-immediate"] {
            expect(
                &counter,
                workload,
                threads,
                &[],
                (1, 2),
                [3 * 1024 * t, 3 * 1024 * t, 0, 0, 0],
            );
        }
        expect(
            &counter,
            "zalloc-unzeroed",
            threads,
            &["blocks=10"],
            (0, 1),
            [10 * t, 10 * t, 0, 0, 0],
        );
        for workload in ["zalloc-calloc", "zalloc-calloc-clwb"] {
            let set = ["blocks=77", "size=200", "free=immediate"];
            expect(
                &counter,
                workload,
                threads,
                &set,
                (0, 1),
                [0, 77 * t, 77 * t, 0, 0],
            );
        }
    }
}

#[test]
fn false_sharing_kernels_make_the_calls_of_warm_up_given_objects_and_loop() {
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        let t = u64::from(threads);
        // In each of 1 + 2 iterations: 1000 blocks of warm-up and 50 objects for each thread; and one that it is given.
        let set = ["iterations=50", "rw=10", "lead=1"];
        let (thrash, scratch) = (3 * 1050 * t, 3 * 1051 * t);
        expect(
            &counter,
            "cache-thrash",
            threads,
            &set,
            (1, 2),
            [thrash, thrash, 0, 0, 0],
        );
        expect(
            &counter,
            "cache-scratch",
            threads,
            &set,
            (1, 2),
            [scratch, scratch, 0, 0, 0],
        );
        // Blocks of the warm-up that are held at the same time are all freed, also where there are fewer than places.
        for (live, warm_up) in [
            ("warm-up-live=7", "warm-up=30"),
            ("warm-up-live=40", "warm-up=30"),
        ] {
            let set = [
                live,
                warm_up,
                "iterations=5",
                "size=100",
                "rw-mode=total",
                "rw=1",
            ];
            expect(
                &counter,
                "cache-thrash",
                threads,
                &set,
                (0, 1),
                [35 * t, 35 * t, 0, 0, 0],
            );
        }
        // Hoard's profile has no warm-up; 100 objects.
        expect(
            &counter,
            "cache-scratch-hoard",
            threads,
            &["rw=10", "lead=1"],
            (0, 1),
            [101 * t, 101 * t, 0, 0, 0],
        );
    }
}

#[test]
fn objects_that_the_main_thread_keeps_are_counted_and_freed() {
    let counter = Counter::new();
    let set = ["rw=10", "lead=1000"];
    let (counted, outcome, said) = counter.run("cache-scratch-hoard", 1, &set, 0, 2);
    assert_eq!((outcome, said), (Outcome::Ok, counted));
    // Two iterations of 100 objects, one that is given, and below 1000 that are kept: the same number in both.
    let kept = (counted[0] - 2 * 101) / 2;
    assert_eq!(counted, [2 * (101 + kept), 2 * (101 + kept), 0, 0, 0]);
    assert!((1..1000).contains(&kept), "{kept}");
}

#[test]
fn each_chain_makes_its_steps_and_the_calls_around_them() {
    // malloc, free, calloc, realloc for each object: on the clock, and before and after it.
    let chains = [
        ("speed-malloc", [1, 1, 0, 0, 0]),
        ("speed-realloc", [1, 1, 0, 1, 0]),
        ("speed-free", [1, 1, 0, 0, 0]),
        ("speed-calloc", [0, 1, 1, 0, 0]),
        ("speed-malloc-free", [1, 1, 0, 0, 0]),
        ("speed-realloc-free", [1, 1, 0, 1, 0]),
        ("speed-calloc-free", [0, 1, 1, 0, 0]),
        ("speed-malloc-realloc", [1, 1, 0, 1, 0]),
        ("speed-calloc-realloc", [0, 1, 1, 1, 0]),
        ("speed-malloc-realloc-free", [1, 1, 0, 1, 0]),
        ("speed-calloc-realloc-free", [0, 1, 1, 1, 0]),
        ("speed-malloc-realloc-free-calloc", [1, 2, 1, 1, 0]),
        ("speed-malloc-calloc-realloc-free", [1, 2, 1, 1, 0]),
        // The sums of the twelve columns above.
        ("speed-one-process", [8, 13, 5, 7, 0]),
    ];
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        for (workload, per_object) in chains {
            let times = |objects: u64| per_object.map(|calls| calls * objects * u64::from(threads));
            expect(
                &counter,
                workload,
                threads,
                &["objects=100"],
                (1, 2),
                times(3 * 100),
            );
            let set = [
                "objects=33",
                "touch=true",
                "distribution=uniform",
                "min-size=1",
                "max-size=9",
                "step=2",
            ];
            expect(&counter, workload, threads, &set, (0, 1), times(33));
        }
        // realloc and free do without objects of their own: two times N calls of malloc less, and of free.
        let carried = [6, 11, 5, 7, 0].map(|calls| calls * 50 * u64::from(threads));
        expect(
            &counter,
            "speed-one-process",
            threads,
            &["objects=50", "carry-over=true"],
            (0, 1),
            carried,
        );
    }
}

#[test]
fn odd_sizes_and_hundreds_of_threads_survive() {
    let counter = Counter::new();
    let ok = |workload: &str, threads: u32, set: &[&str]| {
        let (_, outcome, _) = counter.run(workload, threads, set, 0, 2);
        assert_eq!(
            outcome,
            Outcome::Ok,
            "{workload}, {threads} threads, {set:?}"
        );
    };
    for threads in [1, 64, 512] {
        for size in ["0", "1", "4097"] {
            let one = format!("size={size}");
            for workload in ["zalloc-clwb", "zalloc-calloc", "zalloc-immediate"] {
                ok(workload, threads, &[&one, "blocks=3"]);
            }
            for workload in ["cache-thrash", "cache-scratch"] {
                ok(
                    workload,
                    threads,
                    &[&one, "iterations=3", "rw=2", "warm-up=1"],
                );
                ok(
                    workload,
                    threads,
                    &[
                        &one,
                        "iterations=1",
                        "rw=1",
                        "rw-mode=total",
                        "warm-up=2",
                        "warm-up-size=0",
                    ],
                );
            }
            let (min, max) = (format!("min-size={size}"), format!("max-size={size}"));
            ok(
                "speed-one-process",
                threads,
                &[&min, &max, "objects=1", "touch=true"],
            );
            ok(
                "speed-malloc-calloc-realloc-free",
                threads,
                &[&min, &max, "objects=5"],
            );
        }
    }
}

#[test]
fn figures_say_what_the_instruction_was_and_where_the_workers_ran() {
    let counter = Counter::new();
    let measurement = |workload: &str, threads, set: &[&str]| {
        counter
            .attempt(workload, threads, set, 0, 1, false)
            .1
            .measurement
            .unwrap()
    };
    let note = |workload| measurement(workload, 1, &[]).notes["write_back"].clone();
    assert_eq!(note("zalloc"), "none");
    assert!(["clwb", "clflushopt", "clflush", "dc-cvac"].contains(&note("zalloc-clwb").as_str()));
    let alone = measurement("cache-thrash", 1, &["rw=1"]);
    assert_eq!(alone.figures["pinned_cores"], 1.0);
    assert!(
        !alone.figures.contains_key("line_overlap"),
        "one thread has no neighbours"
    );
    let more = std::thread::available_parallelism().unwrap().get() as u32 + 1;
    assert_eq!(
        measurement("cache-thrash", more, &["rw=1", "iterations=1"]).figures["pinned_cores"],
        0.0
    );
    let two = measurement("cache-scratch", 2, &["iterations=200", "rw=1000000"]).figures;
    assert!((0.0..=1.0).contains(&two["line_overlap"]), "{two:?}");
    let chains = measurement("speed-one-process", 1, &["objects=50"]).figures;
    assert_eq!(
        chains
            .keys()
            .filter(|name| name.starts_with("ns_per_call_"))
            .count(),
        12
    );
}

#[test]
fn times_per_thread_never_exceed_the_last_threads() {
    let counter = Counter::new();
    for workload in ["zalloc", "speed-malloc-free"] {
        let measurement = counter
            .attempt(workload, 3, &[], 0, 1, false)
            .1
            .measurement
            .unwrap();
        let walls: Vec<u64> = measurement
            .threads
            .iter()
            .map(|thread| thread.wall_ns)
            .collect();
        assert_eq!(walls.iter().max(), Some(&measurement.iterations[0].wall_ns));
        if let Some(mean) = measurement.figures.get("thread_mean_ns") {
            assert!((mean - walls.iter().sum::<u64>() as f64 / 3.0).abs() <= 1.0);
        }
    }
}
