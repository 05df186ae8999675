//! The kernel `open-loop`: what it calls, that all loads of a run come from one number, and that a planted stall delays
//! more requests than it hits.

use crate::kernels::counter::Counter;
use crate::support::{Place, of_purpose, samples, word};
use heapmark::execute::Outcome;
use serde_json::Value;
use std::collections::BTreeSet;

/// No request sleeps: all are due at once, or so often that none has to wait for its time.
const PACES: [&str; 2] = ["capacity=0", "capacity=4000000000"];

#[test]
fn each_request_is_made_once_in_each_loop() {
    let counter = Counter::new();
    for capacity in PACES {
        for threads in [1, 2, 3] {
            // A request of one block, the one that it replaces and a reply, with and without a payload.
            for (requests, payload, blocks) in [(50, 1, 4), (301, u32::MAX, 3)] {
                let requests_set = format!("requests={requests}");
                let payload = format!("payload={payload}");
                let set = [capacity, &requests_set, &payload, "blocks=0", "heap=1"];
                let each = 1 + 2 * blocks * requests;
                // One cold round and two more.
                let pairs = 3 * u64::from(threads) * each;
                counter.expect("open-loop", threads, &set, 1, 2, pairs);
            }
        }
    }
    // 1,000,000 bytes of a mean of 376.8 are 2653 blocks, or 1326 of each of two threads.
    for (threads, kept) in [(1, 2653), (2, 2 * 1326)] {
        let set = ["requests=1", "payload=1", "blocks=0", "heap=1000000"];
        let pairs = kept + u64::from(threads) * 2 * 4;
        counter.expect("open-loop", threads, &set, 0, 1, pairs);
    }
}

#[test]
fn requests_have_as_many_blocks_as_the_mean_says() {
    let counter = Counter::new();
    let set = ["requests=2000", "payload=4294967295", "blocks=20", "heap=1"];
    let (counted, outcome, said) = counter.run("open-loop", 1, &set, 0, 1);
    assert_eq!((outcome, said), (Outcome::Ok, counted));
    // 21 on average, with a standard deviation of 20.5; beside them a reply, and the block that is replaced.
    let mean = (counted[0] as f64 - 1.0) / 4000.0 - 2.0;
    assert!((19.0..23.0).contains(&mean), "{mean}");
}

/// The figures of each timed process of a workload under an allocator.
fn figures<'a>(records: &'a [Value], workload: &str, allocator: &str) -> Vec<&'a Value> {
    let timed = of_purpose(records, "sample").into_iter();
    let own = timed.filter(|it| it["workload"] == workload && it["allocator"] == allocator);
    own.map(|record| &record["measurement"]["figures"])
        .collect()
}

#[test]
fn one_process_of_the_baseline_decides_all_rates_and_a_resumed_run_keeps_them() {
    let place = Place::new();
    let flags = [
        "-t",
        "1",
        "--set",
        "open-loop*.requests=2000",
        "--set",
        "open-loop*.heap=100000",
        "--no-repeat",
    ];
    let all = ["open-loop-30", "open-loop", "open-loop-80"];
    let end = place.run_block("run", &all.join(","), "glibc,null", &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(end.stdout.contains("  p99  "), "{}", end.stdout);
    let rates = |records: &[Value]| {
        let of = |workload: &str| -> BTreeSet<u64> {
            let rows = ["glibc", "null"].map(|name| figures(records, workload, name));
            let rates = rows.concat().into_iter();
            rates
                .map(|one| one["open_due_per_s"].as_f64().unwrap().to_bits())
                .collect()
        };
        all.map(|workload| {
            let rates = of(workload);
            assert_eq!(rates.len(), 1, "{workload}: all rows have one rate");
            rates.into_iter().map(f64::from_bits).sum::<f64>()
        })
    };
    let records = samples(&place.at("run"));
    let calibrations = of_purpose(&records, "calibration");
    assert_eq!(calibrations.len(), 1);
    let iteration = &calibrations[0]["measurement"]["iterations"];
    let walls = iteration.as_array().unwrap().iter();
    let rounds: Vec<u64> = walls.map(|one| one["wall_ns"].as_u64().unwrap()).collect();
    assert_eq!(rounds.len(), 3);
    // The closed loop twice, in the fastest round.
    let fastest_ns = rounds.into_iter().min().unwrap();
    let capacity = (4000.0 * 1e9 / fastest_ns as f64).floor();
    let first = rates(&records);
    for (rate, share) in first.into_iter().zip([0.3, 0.6, 0.8]) {
        let ratio = rate / (capacity * share);
        assert!((ratio - 1.0).abs() < 1e-9, "{rate}, {capacity}, {share}");
    }
    for name in ["glibc", "null"] {
        for one in figures(&records, "open-loop", name) {
            // Of 10,000 requests ten would lie beyond.
            assert!(one["open_p99_ns"].as_f64() > Some(0.0), "{name}: {one}");
            assert!(one["open_p99_9_ns"].is_null(), "{name}: {one}");
            assert!(one["open_max_ns"].as_f64() >= one["open_p99_ns"].as_f64());
        }
    }
    // All processes of the blocks once more.
    let path = place.at("run/samples.jsonl");
    let lines = std::fs::read_to_string(&path).unwrap();
    let kept: String = lines
        .lines()
        .filter(|line| !line.contains("\"purpose\":\"sample\""))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(kept.lines().count() < lines.lines().count());
    std::fs::write(&path, kept).unwrap();
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let again = samples(&place.at("run"));
    assert_eq!(of_purpose(&again, "calibration").len(), 1);
    assert_eq!(rates(&again), first);
    let page = place.run(&["report", "run", "-o", "page.html"]);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    let page = std::fs::read_to_string(place.at("page.html")).unwrap();
    assert!(page.contains("Latency over load"));
}

#[test]
fn a_stall_delays_all_requests_that_are_due_meanwhile() {
    let place = Place::new();
    let allocators = format!("glibc,staller={}", place.fake("staller").display());
    // It sleeps 5 ms in each 4000th call: of some 23 of each request that are 11 stalls in a loop. 10,000 requests are due
    // in a second, so 50 wait for each of them, 40 for more than 1 ms.
    let flags = [
        "-t",
        "1",
        "--set",
        "open-loop.requests=2000",
        "--set",
        "open-loop.capacity=20000",
        "--set",
        "open-loop.load=50",
        "--set",
        "open-loop.heap=1",
        "--no-repeat",
    ];
    let end = place.run_block("run", "open-loop", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    assert!(
        of_purpose(&records, "calibration").is_empty(),
        "it is given"
    );
    let rows = figures(&records, "open-loop", "staller");
    assert!(!rows.is_empty(), "{}", end.stdout);
    for one in rows {
        let figure = |name: &str| one[name].as_f64().unwrap();
        assert_eq!(figure("open_due_per_s"), 10_000.0);
        let late = 2000.0 * figure("open_late_share");
        assert!(late >= 250.0, "{late} of 11 stalls were late");
        assert!(figure("open_p99_ns") >= 4e6, "{one}");
        assert!(figure("closed_max_ns") >= 5e6, "{one}");
    }
}

#[test]
fn what_does_not_hold_its_bytes_is_a_wrong_result() {
    let place = Place::new();
    let allocators = format!("glibc,scribbler={}", place.fake("scribbler").display());
    let flags = ["--set", "open-loop.requests=500", "--no-repeat"];
    let end = place.run_block("run", "open-loop", &allocators, &flags);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let own = records.iter().filter(|it| it["allocator"] == "scribbler");
    let kinds: BTreeSet<&str> = own.map(|it| word(&it["outcome"], "kind")).collect();
    assert!(kinds.contains("wrong-result"), "{kinds:?}");
}
