//! What the kernels of operations find, through the built binary: what was planted in a library is in its numbers.

use crate::support::{CATALOG, Place, of_purpose, samples, word};
use serde_json::Value;
use std::collections::BTreeSet;

/// What the timed processes of a workload under an allocator measured.
fn measured<'a>(records: &'a [Value], workload: &str, allocator: &str) -> Vec<&'a Value> {
    let timed = of_purpose(records, "sample").into_iter();
    timed
        .filter(|record| record["workload"] == workload && record["allocator"] == allocator)
        .map(|record| &record["measurement"])
        .collect()
}

/// Asserts how many page faults an operation of a workload takes under an allocator, in each round of its timed processes.
#[track_caller]
fn faults_of_an_operation_are(records: &[Value], expected: &[(&str, &str, f64)]) {
    for (workload, allocator, faults) in expected {
        let rounds = measured(records, workload, allocator)
            .into_iter()
            .flat_map(|one| one["iterations"].as_array().unwrap());
        let mut seen = 0;
        for round in rounds {
            let number = |key: &str| round[key].as_f64().unwrap();
            // What threads of any process have, and what the memory of a library grows by.
            let beyond = number("minor_faults") - faults * number("ops");
            assert!(
                (0.0..20.0 + 0.01 * number("ops")).contains(&beyond),
                "{workload} {allocator}: {round}"
            );
            seen += 1;
        }
        assert!(seen > 0, "{workload} {allocator}");
    }
}

#[test]
fn a_pair_faults_on_each_page_if_the_block_comes_from_the_kernel_each_time() {
    let place = Place::new();
    let allocators = format!(
        "glibc,own={},returner={}",
        place.compile("own", &[]).display(),
        place.fake("returner").display()
    );
    // Two threads would share the freed block or need a second one, as their turns come.
    let fewer = "pair-edge*.pairs=20";
    let flags = ["--set", fewer, "--thp", "never", "--no-repeat", "-t", "1"];
    let end = place.run_block("run", "pair-edge,pair-edge-32m", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // glibc's own head of a block moves its last byte into one more page.
    let faults = [
        ("pair-edge", "own", 0.0),
        ("pair-edge", "returner", 200.0),
        ("pair-edge-32m", "own", 0.0),
        ("pair-edge-32m", "returner", 8192.0),
        ("pair-edge-32m", "glibc", 8193.0),
    ];
    faults_of_an_operation_are(&samples(&place.at("run")), &faults);
}

#[test]
fn replacements_and_rings_fault_on_each_page_that_goes_back_to_the_kernel() {
    let place = Place::new();
    let allocators = format!(
        "own={},returner={}",
        place.compile("own", &[]).display(),
        place.fake("returner").display()
    );
    let flags = [
        "--set",
        "medium.smallest=65536",
        "--set",
        "medium.largest=65536",
        "--set",
        "medium.replacements=1000",
        "--set",
        "hot-ring-32k.touch=true",
        "--set",
        "hot-ring-32k.pairs=1000",
        "--no-repeat",
        "-t",
        "1",
    ];
    let end = place.run_block("run", "medium,hot-ring-32k", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // An operation of `medium` is one of two calls.
    let faults = [
        ("medium", "own", 0.0),
        ("medium", "returner", 16.0 / 2.0),
        ("hot-ring-32k", "own", 0.0),
        ("hot-ring-32k", "returner", 8.0),
    ];
    faults_of_an_operation_are(&samples(&place.at("run")), &faults);
}

#[test]
fn a_mapping_for_each_block_is_seen_although_no_block_is_written() {
    let place = Place::new();
    let allocators = format!(
        "own={},keeper={}",
        place.compile("own", &[]).display(),
        place.compile("keeper", &[]).display()
    );
    let fewer = "glibc-thread*.replacements=4000";
    let flags = ["--set", fewer, "--no-repeat", "-t", "1"];
    let workloads = ["glibc-thread", "glibc-thread-calloc"];
    let end = place.run_block("run", &workloads.join(","), &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // The library's own head, at one of two calls.
    let faults = workloads.map(|workload| [(workload, "own", 0.0), (workload, "keeper", 0.5)]);
    faults_of_an_operation_are(&samples(&place.at("run")), faults.as_flattened());
}

#[test]
fn a_cache_of_1000_blocks_ends_between_two_batches() {
    let place = Place::new();
    let allocators = format!(
        "own={},small_cache={}",
        place.compile("own", &[]).display(),
        place.fake("small_cache").display()
    );
    let batches = [
        ("batch-order", 400, 0.0),
        ("batch-order-lifo", 1600, 600.0 / 1600.0),
        ("batch-order-random", 4096, 3096.0 / 4096.0),
        // Of 800 more that fit there is none.
        ("batch-order-half", 1600, 600.0 / 2400.0),
    ];
    let names = batches.map(|(workload, ..)| workload).join(",");
    let mut flags = vec!["--set".into(), "batch-order*.pairs=20000".into()];
    for (workload, batch, _) in batches {
        flags.extend(["--set".into(), format!("{workload}.batch={batch}")]);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    // Threads would share the cache.
    let flags = [&flags[..], &["-t", "1", "--no-repeat"]].concat();
    let end = place.run_block("run", &names, &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let faults = batches
        .map(|(workload, _, faults)| [(workload, "own", 0.0), (workload, "small_cache", faults)]);
    faults_of_an_operation_are(&samples(&place.at("run")), faults.as_flattened());
}

/// No check comes before a cell that is run alone: what is found here a timed process has found.
#[test]
fn a_block_that_changes_while_it_is_live_is_a_wrong_result_of_a_timed_process() {
    let place = Place::new();
    let fakes = ["overlapper", "scribbler", "unzeroed"].map(|name| (name, place.fake(name)));
    let cases: [(&str, u32, &str, &[&str]); 9] = [
        ("pair-edge-kept", 1, "scribbler", &["pairs=40"]),
        ("medium", 1, "overlapper", &["replacements=1000"]),
        ("large", 1, "scribbler", &["replacements=5"]),
        ("batch-order", 1, "overlapper", &["batch=400", "pairs=1"]),
        ("batch-order-half", 1, "scribbler", &["batch=25", "pairs=1"]),
        ("batch-order-next", 2, "overlapper", &["pairs=1"]),
        (
            "glibc-thread",
            1,
            "overlapper",
            &["touch=true", "replacements=1000"],
        ),
        ("hot-ring", 1, "scribbler", &["touch=true", "pairs=1000"]),
        ("calloc-32k", 1, "unzeroed", &["replacements=5"]),
    ];
    for (workload, threads, fake, set) in cases {
        let (_, library) = fakes.iter().find(|(name, _)| *name == fake).unwrap();
        let allocator = format!("{fake}={}", library.display());
        let (threads, cell) = (
            threads.to_string(),
            format!("{workload}@{threads}/b00/{fake}"),
        );
        let set: Vec<String> = set.iter().map(|one| format!("{workload}.{one}")).collect();
        let of = ["run", "-w", workload, "-a", &allocator, "-t", &threads];
        let mut flags = [&of[..], &["--blocks", "1", "--cell", &cell]].concat();
        set.iter().for_each(|one| flags.extend(["--set", one]));
        let end = place.run(&flags);
        assert_eq!(end.code, Some(4), "{cell}: {}{}", end.stdout, end.stderr);
        let outcome = end.stdout.lines().last().unwrap();
        assert!(
            outcome.starts_with("outcome: wrong-result: a block of ")
                && [
                    "does not hold what was written",
                    "is not zero where nothing was written"
                ]
                .iter()
                .any(|end| outcome.ends_with(end)),
            "{cell}: {outcome}"
        );
    }
}

#[test]
fn steps_that_move_a_block_are_told_from_those_that_do_not() {
    let place = Place::new();
    // `own` moves each block, `stayer` none.
    let allocators = format!(
        "glibc,own={},stayer={}",
        place.compile("own", &[]).display(),
        place.fake("stayer").display()
    );
    let flags = [
        "--set",
        "grow*.limit=65536",
        "--set",
        "grow*.ladders=3",
        "--set",
        "grow-threads.teams=2",
        "--no-repeat",
    ];
    let end = place.run_block("run", "grow-double,grow-threads", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    // From 16 bytes to 64 KiB are 12 steps; a move copies 16 ... 32,768 bytes.
    // From 4 KiB to 64 KiB by four are 2 steps; a move copies 4 or 16 KiB.
    let copied = [
        (
            "grow-double",
            f64::from((0..12).map(|step| 16u32 << step).sum::<u32>()) / 12.0,
        ),
        ("grow-threads", f64::from(4096 * (1 + 4)) / 2.0),
    ];
    for (workload, copied) in copied {
        for (allocator, moved) in [("own", 1.0), ("stayer", 0.0)] {
            let measured = measured(&records, workload, allocator);
            assert!(!measured.is_empty(), "{workload} {allocator}");
            for one in measured {
                let figure = |name: &str| one["figures"][name].as_f64().unwrap();
                assert_eq!(figure("moved_share"), moved, "{workload} {allocator}");
                assert_eq!(figure("moved_back_share"), moved, "{workload} {allocator}");
                let expected = moved * copied;
                assert_eq!(
                    figure("copied_bytes_per_step"),
                    expected,
                    "{workload} {allocator}"
                );
            }
        }
    }
}

#[test]
fn pages_that_calloc_writes_are_told_from_those_that_the_kernel_has_zeroed() {
    let place = Place::new();
    // `own` writes each block, `keeper` has a new mapping for each.
    let allocators = format!(
        "glibc,own={},keeper={}",
        place.compile("own", &[]).display(),
        place.compile("keeper", &[]).display()
    );
    let flags = ["--set", "calloc*.replacements=50", "--thp", "never"];
    let flags = [&flags[..], &["--no-repeat", "-t", "1"]].concat();
    let end = place.run_block("run", "calloc,calloc-32k", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    for workload in ["calloc", "calloc-32k"] {
        for (allocator, share) in [("own", 1.0), ("keeper", 0.0)] {
            let measured = measured(&records, workload, allocator);
            assert!(!measured.is_empty(), "{workload} {allocator}");
            for key in ["calloc_resident_share", "calloc_again_resident_share"] {
                let is_so = |one: &&Value| one["figures"][key] == share;
                assert!(measured.iter().all(is_so), "{workload} {allocator} {key}");
            }
        }
    }
}

#[test]
fn a_library_that_knows_no_sizes_is_unsupported_and_one_that_does_is_told_them_in_four_laps() {
    let place = Place::new();
    let allocators = format!(
        "own={},asking={}",
        place.compile("own", &[]).display(),
        place.fake("asking_sized").display()
    );
    let flags = ["-t", "1", "--set", "sized.replacements=2000"];
    let timed = place.run_block("run", "sized", &allocators, &flags);
    let counted = [&flags[..], &["--counter", "kernel", "--no-floor"]].concat();
    let counted = place.run_block("counts", "sized", &allocators, &counted);
    for end in [timed, counted] {
        let said = format!("{}{}", end.stdout, end.stderr);
        assert!(matches!(end.code, Some(0 | 4)), "{said}");
    }
    let records = samples(&place.at("run"));
    let own = records.iter().filter(|record| record["allocator"] == "own");
    let kinds: BTreeSet<&str> = own.map(|record| word(&record["outcome"], "kind")).collect();
    assert_eq!(kinds, BTreeSet::from(["unsupported"]));
    let told = measured(&records, "sized", "asking");
    assert!(!told.is_empty());
    for one in told {
        // Four laps of each kind, and the first one.
        assert_eq!(one["calls"]["malloc"], 9 * (1000 + 2000), "{one}");
        assert!(one["figures"]["sized_ratio"].as_f64() > Some(0.0), "{one}");
    }
    let records = samples(&place.at("counts"));
    let counts = of_purpose(&records, "count").into_iter();
    let mut asked = counts
        .filter(|record| record["allocator"] == "asking")
        .map(|record| &record["measurement"]["figures"]["madvise_per_operation"]);
    let asked = asked.next().and_then(Value::as_f64).unwrap();
    // One of two calls is a free, and four of nine laps tell it the size. What a thread asks for at its end comes on top.
    assert!((0.222..0.232).contains(&asked), "{asked}");
}

#[test]
fn half_an_alignment_is_a_wrong_result() {
    let place = Place::new();
    let allocators = format!("glibc,half={}", place.fake("half_aligned").display());
    let flags = ["--set", "aligned*.replacements=100", "--no-repeat"];
    let end = place.run_block("run", "aligned,aligned-16", &allocators, &flags);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    for (workload, kind) in [("aligned", "wrong-result"), ("aligned-16", "ok")] {
        let of = records
            .iter()
            .filter(|record| record["workload"] == workload && record["allocator"] == "half");
        let kinds: BTreeSet<&str> = of.map(|record| word(&record["outcome"], "kind")).collect();
        assert_eq!(kinds, BTreeSet::from([kind]), "{workload}: {}", end.stdout);
    }
}

#[test]
fn each_alignment_is_there_with_each_size() {
    let catalog = &*CATALOG;
    let cells: BTreeSet<[u32; 2]> = (catalog.workloads.iter())
        .filter(|workload| workload.name.starts_with("aligned-grid-"))
        .map(|workload| {
            let values = workload.values("quick").unwrap();
            ["alignment", "size"].map(|key| values[key].parse().unwrap())
        })
        .collect();
    let alignments = [16, 64, 256, 4096, 65_536, 2_097_152];
    let sizes = [24, 100, 1000, 10_000, 100_000];
    let all = alignments.map(|alignment| sizes.map(|size| [alignment, size]));
    assert_eq!(cells, all.into_iter().flatten().collect());
}

#[test]
fn a_small_block_at_a_page_takes_the_page() {
    let place = Place::new();
    let flags = ["--thp", "never", "-t", "1", "--no-repeat"];
    let end = place.run_block("run", "aligned-grid-4k-24", "glibc", &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let told = measured(&records, "aligned-grid-4k-24", "glibc");
    assert!(!told.is_empty());
    for one in told {
        let overhead = one["figures"]["aligned_overhead"].as_f64().unwrap();
        // What else is resident is less than a megabyte.
        let page = 4096.0 / 24.0;
        assert!((page..1.3 * page).contains(&overhead), "{overhead}");
    }
}

#[test]
fn alignments_that_could_take_half_of_the_memory_are_unsupported() {
    let place = Place::new();
    let flags = ["--set", "aligned.alignment=1073741824", "--no-repeat"];
    let end = place.run_block("run", "aligned", "glibc", &flags);
    assert!(
        end.says("more than half of the"),
        "{}{}",
        end.stdout,
        end.stderr
    );
    let records = samples(&place.at("run"));
    assert!(measured(&records, "aligned", "glibc").is_empty());
}

#[test]
fn a_heap_that_grows_with_each_large_aligned_block_is_called_growing() {
    let place = Place::new();
    let allocators = format!(
        "own={},forgets={}",
        place.fake("own_aligned").display(),
        place.fake("forgets_aligned").display()
    );
    let flags = ["--set", "aligned-churn.large=16777216", "--set"];
    let flags = [&flags[..], &["aligned-churn.iterations=10"]].concat();
    let end = place.run_block("run", "aligned-churn", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let growth = |allocator: &str| {
        let memory = of_purpose(&records, "memory").into_iter();
        let mut own = memory.filter(|record| record["allocator"] == allocator);
        let figures = &own.next().unwrap()["measurement"]["figures"];
        figures["growth_bytes_per_iteration"].as_f64().unwrap()
    };
    // Each has its large block's pages, and one page in which a block of this library begins.
    assert!((16777216.0..16777216.0 + 3.0 * 4096.0).contains(&growth("forgets")));
    let own = growth("own");
    assert!((-4096.0..4096.0).contains(&own), "{own}");
    let growing = end
        .stdout
        .lines()
        .find(|line| line.contains("still growing"))
        .unwrap_or_else(|| panic!("{}", end.stdout));
    assert!(
        growing.contains("forgets (+16.0 MiB)") && !growing.contains("own"),
        "{growing}"
    );
}

#[test]
fn each_batch_has_a_time_of_its_own() {
    let place = Place::new();
    let flags = ["--set", "batch-order*.pairs=100", "--no-repeat"];
    let end = place.run_block("run", "batch-order", "glibc,null", &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    for one in measured(&records, "batch-order", "glibc") {
        for batch in [25, 100, 400, 1600, 4096, 65_536] {
            let name = format!("pair_ns_of_batch_{batch}");
            assert!(one["figures"][&name].as_f64() > Some(0.0), "{name}");
        }
    }
}
