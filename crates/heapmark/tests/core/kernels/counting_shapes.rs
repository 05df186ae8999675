//! The kernels of memory shapes make the calls that their parameters imply, as a preloaded library counts them, and all that
//! they allocate is freed.

use crate::kernels::counter::{Counter, Counts};
use heapmark::execute::Outcome;
use heapmark_guest::rng::SplitMix;

/// Calls that follow from the parameters.
fn expect(counter: &Counter, workload: &str, threads: u32, set: &[&str], pairs: u64) {
    counter.expect(workload, threads, set, 0, 1, pairs);
}

/// Calls that depend on addresses or draws: the library counts what the kernel reports, and as many frees.
fn agrees(counter: &Counter, workload: &str, threads: u32, set: &[&str]) -> Counts {
    let (counted, outcome, said) = counter.run(workload, threads, set, 0, 1);
    let what = format!("{workload}, {threads} threads, {set:?}");
    assert_eq!(outcome, Outcome::Ok, "{what}");
    assert_eq!(counted, said, "{what}");
    assert_eq!(counted[0], counted[1], "{what}");
    counted
}

#[test]
fn ladders_have_all_their_rungs_on_each_thread() {
    let counter = Counter::new();
    for thread in ["thread=main", "thread=worker"] {
        let set = ["smallest=32", "largest=1024", "volume=10000", thread];
        // 10000 / 32, / 64 ... / 1024, each rounded down.
        expect(&counter, "ladder", 1, &set, 312 + 156 + 78 + 39 + 19 + 9);
    }
    for threads in [2, 3] {
        let set = ["smallest=17", "largest=100", "volume=1000", "thread=worker"];
        let pairs = u64::from(threads) * (58 + 29 + 14);
        expect(&counter, "ladder", threads, &set, pairs);
    }
    expect(&counter, "ladder-17", 1, &["largest=17", "volume=100"], 5);
}

#[test]
fn stranded_small_blocks_are_freed_at_last() {
    let counter = Counter::new();
    let set = ["large=100000", "small=1000", "iterations=7", "keep=5"];
    expect(&counter, "stranded", 1, &set, 7 * (1 + 110));
    // The block that survives is the last one.
    let set = ["large=50", "small=16", "iterations=2", "keep=1000"];
    expect(&counter, "stranded", 1, &set, 2 * (1 + 13));
}

#[test]
fn large_aligned_blocks_and_as_many_small_ones_are_freed_at_last() {
    let counter = Counter::new();
    for thread in ["thread=main", "thread=worker"] {
        for (large, iterations) in [("large=100000", 7), ("large=1", 1)] {
            let iterations_set = format!("iterations={iterations}");
            let set = [large, "small=25", &iterations_set, thread];
            let (counted, outcome, said) = counter.run("aligned-churn", 1, &set, 0, 1);
            assert_eq!(outcome, Outcome::Ok, "{set:?}");
            let calls = [iterations, 2 * iterations, 0, 0, iterations];
            assert_eq!(counted, calls, "{set:?}");
            assert_eq!(said, counted, "{set:?}");
        }
    }
}

#[test]
fn requests_of_a_pool_free_their_blocks_and_their_table() {
    let counter = Counter::new();
    for (pool, concurrent, requests) in [(1, 1, 5), (2, 1, 40), (3, 2, 40), (5, 5, 11)] {
        let set = [
            format!("pool={pool}"),
            format!("concurrent={concurrent}"),
            format!("requests={requests}"),
            "blocks=300".into(),
            "pin=7".into(),
            "pins=50".into(),
        ];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        // Whole batches of requests at a time.
        let requests = requests / concurrent * concurrent;
        expect(&counter, "ratchet", 1, &set, requests * 301);
    }
    let set = ["pool=2", "requests=3", "blocks=100"];
    expect(&counter, "ratchet-fleet", 1, &set, 3 * 101);
}

#[test]
fn each_link_of_a_chain_allocates_one_set() {
    let counter = Counter::new();
    for links in [1, 2, 3] {
        let set = [&format!("links={links}"), "blocks=100"];
        expect(&counter, "chain", 1, &set, links * 100);
    }
    let set = ["links=9", "blocks=1", "min-size=0", "max-size=0"];
    expect(&counter, "chain", 1, &set, 9);
}

#[test]
fn a_fan_in_frees_what_was_handed_over_and_what_was_left() {
    let counter = Counter::new();
    for producers in [1, 2, 3] {
        let all = producers * (20 + 3000);
        let pairs = [
            ("virgin", 0),
            ("allocates", 1),
            ("works", producers * 3000 / 64),
        ];
        for (consumer, own) in pairs {
            let set = [
                &format!("producers={producers}"),
                "live=20",
                "queue=16",
                "operations=3000",
                &format!("consumer={consumer}"),
            ];
            expect(&counter, "fan-in", 1, &set, all + own);
        }
    }
    let set = ["producers=1", "live=1", "queue=1", "operations=100"];
    expect(&counter, "fan-in-fleet", 1, &set, 101);
}

#[test]
fn a_relay_frees_each_message_after_the_hops_that_its_queues_imply() {
    let counter = Counter::new();
    for (producers, proxies, consumers) in [(1, 1, 1), (2, 1, 2), (3, 4, 1)] {
        for link in ["table", "inside"] {
            let set = [
                format!("producers={producers}"),
                format!("proxies={proxies}"),
                format!("consumers={consumers}"),
                "batches=500".into(),
                "outstanding=100".into(),
                format!("link={link}"),
            ];
            let set: Vec<&str> = set.iter().map(String::as_str).collect();
            let (counted, attempt) = counter.attempt("relay", 1, &set, 0, 1, false);
            assert_eq!(attempt.outcome, Outcome::Ok, "{set:?}: {}", attempt.report);
            let measurement = attempt.measurement.unwrap();
            let [made, freed, ..] = counted;
            assert_eq!(
                [made, freed],
                [measurement.calls["malloc"], measurement.calls["free"]]
            );
            // 1 to 16 messages in each batch.
            let batches = producers * 500;
            assert!(
                made == freed && (batches..=16 * batches).contains(&made),
                "{made}"
            );
            let hops = measurement.figures["hops_per_batch"];
            let most = f64::from(1 + proxies);
            assert!((1.0..=most).contains(&hops), "{hops}");
            if proxies == 1 {
                // One in so many batches is posted to the proxy first.
                let expected = 1.0 + 1.0 / f64::from(consumers as u32 + 1);
                assert!((hops - expected).abs() < 0.1, "{hops}, expected {expected}");
            }
        }
    }
}

#[test]
fn a_proxy_draws_by_the_seed_and_by_its_number() {
    let set = [
        "producers=1",
        "proxies=2",
        "consumers=1",
        "batches=500",
        "outstanding=100",
    ];
    let (_, attempt) = Counter::new().attempt("relay", 1, &set, 0, 1, false);
    assert_eq!(attempt.outcome, Outcome::Ok, "{}", attempt.report);
    let hops = attempt.measurement.unwrap().figures["hops_per_batch"];
    // The seed of these jobs is 42. A batch is drawn by its length, its size, and its first queue.
    let mut random = SplitMix::new(42, 0);
    let mut first_queues = [0_usize; 3];
    for _ in 0..500 {
        let [_, _, queue] = [16, 4, 3].map(|below| random.below(below));
        first_queues[queue as usize] += 1;
    }
    // The proxy of queue 2 is the last of four threads; some of its batches go to the other proxy first.
    let mut random = SplitMix::new(42, 3);
    let twice = (0..first_queues[2])
        .filter(|_| random.below(2) == 1)
        .count();
    let posts = 500 + first_queues[1] + first_queues[2] + twice;
    assert_eq!((hops * 500.0).round(), posts as f64);
}

#[test]
fn bursts_come_twice_whatever_happens_between_them() {
    let counter = Counter::new();
    for makers in ["makers=end", "makers=stay"] {
        for threads in [1, 2, 3] {
            let set = ["burst=300000", "survivor=7", makers];
            let first = agrees(&counter, "idle-return", threads, &set);
            assert_eq!(first[0] % 2, 0, "{first:?}");
            assert_eq!(agrees(&counter, "idle-return", threads, &set), first);
        }
        agrees(&counter, "idle-return-tick", 2, &["burst=100000", makers]);
        agrees(&counter, "idle-return-busy", 2, &["burst=100000", makers]);
    }
}

#[test]
fn a_child_frees_what_it_inherits_and_the_parent_frees_all_of_its_own() {
    let counter = Counter::new();
    for count in [64, 1000] {
        let heap = format!("heap={}", 100 * count);
        for (child, of_child) in [
            ("child=idle", [0, 0]),
            ("child=read", [0, 0]),
            ("child=pairs", [1000, 1000]),
            ("child=free-64th", [0, u64::div_ceil(count, 64)]),
            ("child=free-all", [0, count]),
        ] {
            for (parent, of_parent) in [("parent=idle", 0), ("parent=write", count.div_ceil(100))] {
                let set = [heap.as_str(), child, parent];
                let (counted, outcome, said) = counter.run("fork-cow", 1, &set, 0, 1);
                assert_eq!(outcome, Outcome::Ok, "{set:?}");
                let own = count + of_parent;
                assert_eq!(said, [own, own, 0, 0, 0], "{set:?}");
                // The library counts both processes.
                let [mallocs, frees] = of_child;
                assert_eq!(counted, [own + mallocs, own + frees, 0, 0, 0], "{set:?}");
            }
        }
    }
}

#[test]
fn each_start_makes_its_calls_on_each_of_its_threads() {
    let counter = Counter::new();
    for own_threads in [0, 1, 2, 3] {
        for (starts, blocks) in [(1, 1), (4, 250)] {
            let set = [
                format!("starts={starts}"),
                format!("blocks={blocks}"),
                format!("own-threads={own_threads}"),
                "distribution=fleet".into(),
            ];
            let set: Vec<&str> = set.iter().map(String::as_str).collect();
            let pairs = starts * blocks * own_threads.max(1);
            expect(&counter, "start", 1, &set, pairs);
        }
    }
    let set = ["own-threads=257", "starts=1"];
    let (_, outcome, _) = counter.run("start", 1, &set, 0, 1);
    assert!(matches!(outcome, Outcome::Error { .. }), "{outcome:?}");
}

#[test]
fn what_is_freed_late_is_freed_early_as_often() {
    let counter = Counter::new();
    for place in [
        "place=atexit",
        "place=destructor",
        "place=key",
        "place=key-again",
    ] {
        for (processes, blocks) in [(1, 1), (3, 250)] {
            let (processes_set, blocks_set) =
                (format!("processes={processes}"), format!("blocks={blocks}"));
            let set = [place, &processes_set, &blocks_set];
            expect(&counter, "late-free", 1, &set, 2 * processes * blocks);
        }
    }
}

#[test]
fn threads_that_come_and_go_leave_nothing_at_last() {
    let counter = Counter::new();
    for at_once in [1, 2, 3] {
        for leaves in ["leaves=none", "leaves=some", "leaves=all"] {
            for blocks in [1, 250] {
                let set = [
                    format!("at-once={at_once}"),
                    format!("blocks={blocks}"),
                    "generations=5".into(),
                    leaves.into(),
                ];
                let set: Vec<&str> = set.iter().map(String::as_str).collect();
                expect(&counter, "thread-churn", 1, &set, 5 * at_once * blocks);
            }
        }
    }
}

#[test]
fn shapes_that_follow_addresses_free_all_and_repeat_their_draws() {
    let counter = Counter::new();
    for set in [["live=65536", "steps=5"], ["live=100000", "steps=9"]] {
        let counted = agrees(&counter, "robson", 1, &set);
        assert!(counted[0] >= 65536 / 32, "{counted:?}");
    }
    for window in ["window=4096", "window=65536"] {
        let set = [window, "largest=2000", "volume=100000"];
        let counted = agrees(&counter, "pin", 1, &set);
        assert!(counted[0] > 100_000 / 16, "{counted:?}");
    }
    for (threads, thread) in [(1, "main"), (1, "worker"), (2, "worker"), (3, "worker")] {
        for turnover in ["turnover=1", "turnover=3"] {
            let thread = format!("thread={thread}");
            let set = ["live=60000", "octaves=4", "cycles=2", turnover, &thread];
            let once = agrees(&counter, "shift", threads, &set);
            assert_eq!(agrees(&counter, "shift", threads, &set), once);
        }
    }
}

#[test]
fn traversed_nodes_and_what_aged_their_heap_are_freed() {
    let counter = Counter::new();
    for (threads, thread) in [(1, "main"), (1, "worker"), (2, "worker"), (3, "worker")] {
        let thread = format!("thread={thread}");
        let fresh = |structure: &str, nodes: u64, blocks_per_node: u64| {
            let (nodes_set, structure) =
                (format!("nodes={nodes}"), format!("structure={structure}"));
            let set = [nodes_set.as_str(), &structure, &thread];
            // And the table from which the nodes are reached.
            let pairs = u64::from(threads) * (nodes * blocks_per_node + 1);
            expect(&counter, "traverse-fresh", threads, &set, pairs);
        };
        fresh("list", 100, 1);
        fresh("tree", 333, 1);
        fresh("hash", 333, 1);
        fresh("records", 100, 2);
        for workload in ["traverse", "traverse-records"] {
            let set = ["nodes=500", "litter=3000000", "passes=2", &thread];
            let once = agrees(&counter, workload, threads, &set);
            // Filled once and replaced three times, with blocks of 377 bytes on average.
            assert!(once[0] > 4 * 3_000_000 / 500, "{once:?}");
            assert_eq!(agrees(&counter, workload, threads, &set), once);
        }
    }
}

#[test]
fn a_steady_heap_makes_the_births_of_its_schedule_and_frees_all_of_them() {
    let counter = Counter::new();
    // Blocks of each of 1, 2, 3 threads that live at the start: what the mixture says of the live bytes.
    let cases = [
        ("live=2000000", 5000, [2322, 1174, 792]),
        ("live=500000", 777, [601, 314, 218]),
    ];
    for (live, operations, survivors) in cases {
        for (threads, survivors) in (1u32..).zip(survivors) {
            let operations_set = format!("operations={operations}");
            let pairs = u64::from(threads) * (survivors + 2 * operations);
            let set = [live, &operations_set];
            expect(&counter, "steady", threads, &set, pairs);
            let more = ["touch=ends", "use=3", "remote=100"];
            let set = [&set[..], &more].concat();
            expect(&counter, "steady", threads, &set, pairs);
            if threads == 1 {
                let set = [live, &operations_set, "thread=main", "use=0"];
                expect(&counter, "steady", 1, &set, pairs);
            }
        }
    }
}

#[test]
fn a_steady_heap_of_a_table_makes_exactly_its_births() {
    let counter = Counter::new();
    let place = tempfile::tempdir().unwrap();
    let set = |name: &str, text: &str| {
        let file = place.path().join(name);
        std::fs::write(&file, text).unwrap();
        format!("model={}", file.display())
    };
    // A block lives until 40 others of the process were born after it. At any time 40 live; with
    // three threads each has 13, and a fraction.
    let joint = set(
        "joint.csv",
        "size,lifetime_bytes,weight,remote\n48,1968,7,50\n",
    );
    // Each of 3 births per second lives for 20 seconds on average: 60 blocks.
    let rates = set("rates.csv", "16, 1.0, 20\n128, 2.0, 40\n");
    for (model, survivors) in [(&joint, [40, 20, 13]), (&rates, [60, 30, 20])] {
        for (threads, survivors) in (1u32..).zip(survivors) {
            let pairs = u64::from(threads) * (survivors + 2 * 1500);
            expect(
                &counter,
                "steady",
                threads,
                &[model, "operations=1500"],
                pairs,
            );
        }
    }
}
