//! `memory` makes exactly the calls that its parameters imply, as a preloaded library counts them.

use crate::kernels::counter::Counter;
use heapmark::execute::Outcome;

#[test]
fn memory_makes_the_calls_that_its_objects_imply() {
    let counter = Counter::new();
    // Producers, consumers of each, objects, whom they are counted for, round -> objects in all. The thread count of the
    // case follows from the first two: 2, 3 and 3 threads, then 6.
    let cases = [
        (1, 1, 1000, "consumer", 1000, 1000),
        (1, 1, 77, "producer", 10, 77),
        (1, 2, 1000, "consumer", 300, 2000),
        (1, 2, 77, "producer", 1, 77),
        // A fourth of 5 objects is 2, 1, 1 and 1.
        (1, 4, 5, "producer", 2, 5),
        (2, 2, 500, "consumer", 500, 2000),
        (2, 2, 501, "producer", 64, 1002),
        // A consumer that waits for more than it will get takes what there is.
        (3, 1, 10, "consumer", 1_000_000, 30),
    ];
    for (producers, consumers, objects, n_per, round, all) in cases {
        let set = [
            format!("producers={producers}"),
            format!("consumers={consumers}"),
            format!("objects={objects}"),
            format!("n-per={n_per}"),
            format!("round={round}"),
        ];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        counter.expect("memory", 1, &set, 1, 2, 3 * all);
        let more = [
            "distribution=uniform",
            "min-size=1",
            "max-size=9000",
            "step=1000",
            "touch=true",
            "sample=per-op",
        ];
        counter.expect("memory", 1, &[&set[..], &more].concat(), 0, 1, all);
    }
    // 4 producers x 4 consumers x 100.
    counter.expect(
        "memory-4x4",
        1,
        &["objects=100", "round=100"],
        0,
        2,
        2 * 1600,
    );
}

#[test]
fn more_objects_than_there_is_memory_for_are_refused_before_they_are_allocated() {
    for objects in ["objects=1000000000000", "objects=18446744073709551615"] {
        let (counted, outcome, _) = Counter::new().run("memory-4x4", 1, &[objects], 0, 1);
        assert!(
            matches!(&outcome, Outcome::Unsupported { why } if why.contains("needs about")),
            "{outcome:?}"
        );
        assert_eq!(counted, [0; 5]);
    }
}

#[test]
fn odd_sizes_and_many_threads_survive() {
    let counter = Counter::new();
    for (producers, consumers) in [
        ("producers=1", "consumers=1"),
        ("producers=16", "consumers=31"),
    ] {
        for size in ["0", "1", "4096"] {
            let (min, max) = (format!("min-size={size}"), format!("max-size={size}"));
            let set = [
                producers,
                consumers,
                &min,
                &max,
                "objects=1",
                "n-per=producer",
                "touch=true",
            ];
            let (_, outcome, _) = counter.run("memory", 1, &set, 1, 1);
            assert_eq!(outcome, Outcome::Ok, "{set:?}");
        }
    }
}
