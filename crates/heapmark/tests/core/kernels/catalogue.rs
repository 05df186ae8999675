//! Everything in the data folders is fit for use: it is read, and every workload runs to a verified end at its quick size.

use crate::kernels::counter::case;
use crate::support::{CATALOG, Place, of_purpose, samples, word};

/// Every kernel and every set of parameters, with as little work as shows that it ends well.
pub const LITTLE_WORK: [&str; 38] = [
    "scatter*.loops=2",
    "scatter*.blocks=2000",
    "scatter*.ops=200",
    "same-thread*.volume=1000000",
    "cross-vector*.volume=1000000",
    "larson*.incarnations=5",
    "larson*.rounds=5",
    "cache-*.iterations=5",
    "cache-*.rw=1000",
    "speed*.objects=2000",
    "memory*.objects=2000",
    "memory*.round=2000",
    "fan-in*.operations=2000",
    "relay*.batches=500",
    "traverse*.litter=3000000",
    "traverse*.nodes=2000",
    "steady*.live=1000000",
    "steady*.operations=3000",
    "start*.starts=2",
    "late-free*.blocks=2000",
    "pair-edge*.pairs=1",
    "grow*.ladders=1",
    "grow*.teams=1",
    "grow*.limit=20000",
    "batch-order*.pairs=100",
    "batch-order*.batch=25",
    "medium*.replacements=30",
    "medium*.slots=20",
    "large.replacements=2",
    "large.slots=1",
    "aligned*.slots=20",
    "aligned*.replacements=100",
    "glibc-thread*.replacements=1000",
    "calloc*.replacements=10",
    "calloc*.slots=2",
    "hot-ring*.pairs=1000",
    "open-loop*.requests=300",
    "zalloc-pmdk.pool-bytes=67108864",
];

/// Most of it is waiting: in thirds, beside each other.
#[test]
fn every_workload_ends_ok_on_glibc_and_on_the_null_allocator() {
    std::thread::scope(|scope| {
        for third in 0..3 {
            scope.spawn(move || workloads_end_ok("3", third, 3));
        }
    });
}

#[test]
#[ignore = "make test-all"]
fn so_does_every_workload_on_one_thread() {
    workloads_end_ok("1", 0, 1);
}

/// Every so many-th workload.
fn workloads_end_ok(threads: &str, first: usize, step: usize) {
    let place = Place::new();
    let listed = place.run(&["list", "workloads", "--format", "json"]);
    let all: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).unwrap();
    // The programs of binary-trees have a test of their own.
    let is_for_memory = |name: &str| {
        let mut all = CATALOG.workloads.iter();
        let found = all.find(|workload| workload.name == name);
        found.unwrap().is_for_memory()
    };
    let names: Vec<&str> = all
        .iter()
        .filter(|one| word(one, "document") != "BT")
        .map(|workload| word(workload, "name"))
        // glibc before 2.43 frees no block by its size; `operations` has what does.
        .filter(|name| !is_for_memory(name) && *name != "sized")
        .collect();
    assert!(names.len() >= 40, "{}", names.len());
    let names: Vec<&str> = names.into_iter().skip(first).step_by(step).collect();
    let chosen = names.join(",");
    // What nothing in a selection has is refused.
    let is_of = |change: &&&str| {
        let (pattern, _) = change.split_once('.').unwrap();
        let is_named = |name: &&str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *name == pattern,
        };
        names.iter().any(is_named)
    };
    let set = LITTLE_WORK.iter().filter(is_of);
    let set = set.flat_map(|change| ["--set", change]);
    let flags = [
        "run",
        "-w",
        &chosen,
        "-a",
        "glibc,null",
        "-t",
        threads,
        "--blocks",
        "1",
        "--target-ms",
        "1",
        "--no-repeat",
        "-o",
        "run",
    ];
    let end = place.run(&flags.into_iter().chain(set).collect::<Vec<_>>());
    assert!(
        matches!(end.code, Some(0 | 4)),
        "{}{}",
        end.stdout,
        end.stderr
    );
    let records = samples(&place.at("run"));
    // Rows of programs end `absent` where their library or their device is not there.
    let failed = records
        .iter()
        .filter(|record| record["outcome"]["kind"] != "ok");
    let wrong: Vec<_> = failed
        .filter(|record| !word(record, "allocator").starts_with("PMDK:"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for name in names {
        let of = |purpose| of_purpose(&records, purpose);
        let all = [of("check"), of("sample")].concat();
        let ran = all
            .iter()
            .filter(|record| word(record, "workload") == name)
            .count();
        // glibc checked and measured, null measured if it can be; or the rows of a program.
        let least = 2 + usize::from(case(name, 1, &[]).has_floor());
        assert!(ran >= least, "{name} ran {ran} times");
    }
}

#[test]
fn every_workload_of_memory_ends_ok_on_glibc() {
    let place = Place::new();
    let small = [
        "robson.live=262144",
        "ladder*.volume=65536",
        "pin*.volume=65536",
        "shift.live=65536",
        "stranded.iterations=4",
        "ratchet*.requests=16",
        "ratchet*.blocks=500",
        "ratchet*.idle-ms=10",
        "chain.blocks=100",
        "idle-return*.burst=262144",
        "idle-return*.idle-ms=20",
        "fork-cow*.heap=262144",
        "thread-churn*.generations=10",
    ];
    let of_memory = CATALOG
        .workloads
        .iter()
        .filter(|workload| workload.is_for_memory());
    let names: Vec<&str> = of_memory.map(|workload| workload.name.as_str()).collect();
    assert!(names.len() >= 15, "{names:?}");
    let chosen = names.join(",");
    let set = small.iter().flat_map(|change| ["--set", change]);
    let flags = [
        "run", "-w", &chosen, "-a", "glibc", "-t", "1", "--blocks", "1", "-o", "run",
    ];
    let end = place.run(&flags.into_iter().chain(set).collect::<Vec<_>>());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    for name in names {
        for purpose in ["check", "memory"] {
            let of = of_purpose(&records, purpose);
            let ran = of.iter().filter(|record| word(record, "workload") == name);
            assert_eq!(ran.count(), 1, "{name} {purpose}");
        }
    }
}

#[test]
fn every_suite_has_a_plan() {
    let place = Place::new();
    let listed = place.run(&["list", "suites", "--format", "json"]);
    let suites: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert!(suites.len() >= 9, "{suites:?}");
    assert!(suites.iter().any(|suite| word(suite, "name") == "quick"));
    let has_a_plan = |suite| {
        let name = word(suite, "name");
        let end = place.run(&["run", name, "--dry-run", "--cells", "--seed", "1"]);
        assert_eq!(end.code, Some(0), "{name}: {}", end.stderr);
        let first = |line: &str| line.contains("@1/b00") && line.contains("/glibc ");
        assert!(end.stdout.lines().any(first), "{}", end.stdout);
        let mut lines = end.stdout.lines();
        assert!(lines.any(|line| line.starts_with("workloads ")), "{name}");
    };
    std::thread::scope(|scope| {
        for some in suites.chunks(suites.len().div_ceil(4)) {
            scope.spawn(|| some.iter().for_each(has_a_plan));
        }
    });
}

#[test]
fn the_pages_of_allocators_workloads_and_metrics_name_all_of_them() {
    let place = Place::new();
    for (what, marks) in [
        ("allocators", [("| [", "]("); 2]),
        ("workloads", [("### ", "\n"), ("- **", "**: ")]),
        ("metrics", [("| `", "`"); 2]),
    ] {
        let page = place.run(&["list", what, "--markdown"]).stdout;
        let listed = place.run(&["list", what, "--format", "json"]).stdout;
        let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
        assert!(listed.len() > 20, "{listed:?}");
        let key = if what == "metrics" { "key" } else { "name" };
        // The null allocator is none to choose.
        let shown = listed.iter().filter(|one| one["tier"] != "floor");
        for name in shown.map(|one| word(one, key)) {
            let is_named = |(before, after)| page.contains(&format!("{before}{name}{after}"));
            assert!(marks.into_iter().any(is_named), "{what}: {name}");
        }
    }
}
