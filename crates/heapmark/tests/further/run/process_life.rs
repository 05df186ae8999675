//! What starts of processes ask of the machine, through the built binary: a reservation, a file and a call that were planted are
//! found, and a process that starts under another allocator is no result. What an allocator does to late calls of free is an outcome.

use crate::run::memory_shapes::medians;
use crate::support::{End, Place, of_purpose, samples, word};
use serde_json::Value;

const GIB: f64 = (1u64 << 30) as f64;

#[test]
fn what_a_start_reserves_opens_and_calls_is_found_by_its_name() {
    let place = Place::new();
    let allocators = format!(
        "glibc,own={},reserver={},inspector={}",
        place.compile("own", &[]).display(),
        place.fake("reserver").display(),
        place.fake("inspector").display()
    );
    let flags = [
        "--retained",
        "--set",
        "start*.starts=3",
        "--set",
        "start-threads.own-threads=2",
    ];
    let end = place.run_block("run", "start,start-threads", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let medians = medians(&place, "run");
    let of =
        |allocator: &str, metric: &str| medians[&["start", allocator, metric].map(str::to_owned)];
    // `own` reserves 16 GiB that it may write to; limits are found to 1 %.
    let limits = [
        ("glibc", "smallest_address_space_bytes", 0.0..0.1),
        ("own", "smallest_address_space_bytes", 16.0..16.2),
        ("reserver", "smallest_address_space_bytes", 80.0..80.9),
        ("own", "smallest_data_bytes", 16.0..16.2),
        ("reserver", "smallest_data_bytes", 16.0..16.2),
        ("own", "start_mapped_bytes", 16.0..16.1),
        ("reserver", "start_mapped_bytes", 80.0..80.1),
        // Nothing of either is set aside.
        ("own", "start_commit_bytes", 0.0..0.1),
        ("reserver", "start_commit_bytes", 0.0..0.1),
    ];
    for (allocator, metric, expected) in limits {
        let found = of(allocator, metric) / GIB;
        assert!(expected.contains(&found), "{allocator} {metric}: {found}");
    }
    let more = |metric: &str| of("inspector", metric) - of("own", metric);
    assert_eq!(more("start_system_calls"), 3.0);
    assert_eq!(more("start_kernel_files"), 1.0);
    assert_eq!(
        of("reserver", "start_mappings") - of("own", "start_mappings"),
        1.0
    );
    let line = |rows: &str| {
        let mut lines = end.stdout.lines();
        let line = lines.find(|line| {
            line.trim_start()
                .starts_with(&format!("{rows}: also calls"))
        });
        line.unwrap_or_else(|| panic!("{rows}: {}", end.stdout))
    };
    let told = line("inspector");
    assert!(
        told.contains("sysinfo") && told.contains("; opens /proc/cpuinfo"),
        "{told}"
    );
    // Those that ask the same share a line.
    let told = line("own, reserver");
    assert!(
        !told.contains("sysinfo") && !told.contains("opens"),
        "{told}"
    );
    // Threads have stacks, and the calls that make them.
    let threads = |metric: &str| {
        medians[&["start-threads", "glibc", metric].map(str::to_owned)] - of("glibc", metric)
    };
    assert!(threads("start_system_calls") > 2.0 && threads("start_mappings") >= 2.0);
}

#[test]
fn what_a_third_of_the_starts_need_more_is_not_in_the_smallest_limit() {
    let place = Place::new();
    let count = format!("-DFILE=\"{}\"", place.at("processes").display());
    let allocators = format!(
        "keeper={},moody={}",
        place.compile("keeper", &[]).display(),
        place.compile("moody", &[count.into()]).display()
    );
    let flags = [
        "--retained",
        "--set",
        "start.starts=2",
        "--baseline",
        "keeper",
    ];
    let end = place.run_block("run", "start", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let medians = medians(&place, "run");
    for metric in ["smallest_address_space_bytes", "smallest_data_bytes"] {
        let [keeper, moody] =
            ["keeper", "moody"].map(|name| medians[&["start", name, metric].map(str::to_owned)]);
        let ratio = moody / keeper;
        // The smallest is some hundred KiB of data, of which a step is a page: 2 MB would be many times that.
        assert!((0.95..1.05).contains(&ratio), "{metric}: {moody}, {keeper}");
    }
}

/// Start and end of each process with this purpose, sorted by start.
fn spans_ns(records: &[Value], purpose: &str) -> Vec<(i128, i128)> {
    let span_ns = |record: &&Value| {
        let began: jiff::Timestamp = word(record, "started").parse().unwrap();
        let began_ns = began.as_nanosecond();
        let lasted_ns = record["usage"]["wall_ns"].as_i64().unwrap();
        (began_ns, began_ns + i128::from(lasted_ns))
    };
    let mut spans: Vec<_> = of_purpose(records, purpose).iter().map(span_ns).collect();
    spans.sort_unstable();
    spans
}

#[test]
fn nothing_runs_beside_a_process_that_reports_times() {
    let place = Place::new();
    let allocators = format!("glibc,own={}", place.compile("own", &[]).display());
    let small = [
        "--set",
        "start.starts=2",
        "--set",
        "late-free.blocks=200",
        "--set",
        "thread-churn.generations=20",
        "--set",
        "fork-cow.heap=1048576",
    ];
    let workloads = "start,late-free,thread-churn,fork-cow";
    let flags = [&["--retained"], &small[..]].concat();
    let end = place.run_block("run", workloads, &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let spans = spans_ns(&samples(&place.at("run")), "memory");
    assert_eq!(spans.len(), 8, "{spans:?}");
    let one_by_one = spans.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    assert!(one_by_one, "{spans:?}");
}

#[test]
fn more_files_than_can_be_named_are_no_number() {
    let place = Place::new();
    let allocators = format!("glibc,snoop={}", place.fake("snoop").display());
    let flags = ["--retained", "--set", "start.starts=2"];
    let end = place.run_block("run", "start", &allocators, &flags);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let why = "opens more than 128 kernel files";
    assert!(end.says(why), "{}", end.stdout);
}

#[test]
fn a_process_that_starts_under_another_allocator_is_no_result() {
    let place = Place::new();
    let [hermit, honest] = ["hermit", "honest"].map(|name| place.fake(name).display().to_string());
    let allocators = format!("glibc,hermit={hermit},honest={honest}");
    let flags = ["--set", "start.starts=2"];
    let end = place.run_block("run", "start", &allocators, &flags);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let outcomes = |name: &str| -> Vec<String> {
        let own = records
            .iter()
            .filter(|record| word(record, "allocator") == name);
        own.map(|record| record["outcome"].to_string()).collect()
    };
    assert!(outcomes("hermit").iter().all(|told| {
        told.contains("not-loaded")
            && told.contains("the malloc of a started process is another library's")
    }));
    assert!(outcomes("glibc").iter().all(|told| told.contains("ok")));
    assert!(!of_purpose(&records, "sample").is_empty());
}

/// A run of all kinds of late calls of free, by allocator.
fn late_free(place: &Place, fake: &str, flags: &[&str]) -> End {
    let allocators = format!("glibc,planted={}", place.fake(fake).display());
    let small = [
        "--set",
        "late-free*.blocks=200",
        "--set",
        "late-free*.processes=1",
    ];
    let flags = [&small[..], flags].concat();
    place.run_block(fake, "late-free*", &allocators, &flags)
}

const LATE: [&str; 4] = [
    "late-free",
    "late-free-destructor",
    "late-free-key",
    "late-free-key-again",
];

#[test]
fn a_free_that_is_slow_at_the_end_is_found_where_the_allocator_is_at_its_end() {
    let place = Place::new();
    let end = late_free(&place, "late_sleeper", &["--retained"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let medians = medians(&place, "late_sleeper");
    for workload in LATE {
        let of = |metric: &str| medians[&[workload, "planted", metric].map(str::to_owned)];
        // The functions of atexit run before the library's destructor. The others wait a millisecond for each block.
        let is_late = workload != "late-free";
        assert_eq!(of("late_free_ns") >= 1e6, is_late, "{workload}");
        assert!(of("early_free_ns") < 1e6, "{workload}");
        let ratio = of("late_free_ns") / of("early_free_ns");
        assert!((of("late_free_ratio") / ratio - 1.0).abs() < 1e-9);
    }
}

#[test]
fn an_allocator_that_fails_at_its_end_has_no_number() {
    let place = Place::new();
    for (fake, fails, outcome) in [
        ("late_breaker", &LATE[1..], "SIGABRT"),
        // It ends the process: in its destructor, before what comes after all destructors.
        ("quitter", &LATE[1..2], "ended after 0 blocks of 200"),
    ] {
        let end = late_free(&place, fake, &[]);
        assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
        let records = samples(&place.at(fake));
        for workload in LATE {
            let own = records.iter().filter(|record| {
                word(record, "allocator") == "planted" && word(record, "workload") == workload
            });
            let outcomes: Vec<String> = own.map(|record| record["outcome"].to_string()).collect();
            let expected = if fails.contains(&workload) {
                outcome
            } else {
                "\"ok\""
            };
            assert!(
                !outcomes.is_empty() && outcomes.iter().all(|told| told.contains(expected)),
                "{fake} {workload}: {outcomes:?}"
            );
        }
    }
}
