//! The gates of a run through the built binary, each with a fault planted that makes it fire; and how many blocks a run makes.

use crate::support::{Place, glibc_again, live, of_purpose, samples, word, words};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command};

/// `SMALL` without the flags that take companions away.
const JOB: [&str; 6] = [
    "-w",
    "churn-private",
    "-t",
    "1",
    "--set",
    "churn-private.objects=5000",
];

fn run(place: &Place, flags: &[&str]) -> crate::support::End {
    place.run(&[&["run", "-o", "run", "--seed", "1"], &JOB[..], flags].concat())
}

#[test]
fn a_copy_that_differs_withholds_every_verdict() {
    let place = Place::new();
    let word = format!("two={},glibc", place.fake("two_faced").display());
    let end = run(
        &place,
        &[
            "-a",
            &word,
            "--baseline",
            "two",
            "--blocks",
            "10",
            "--target-ms",
            "2",
            "--no-repeat",
            "--no-floor",
        ],
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let said = words(&end.stdout);
    assert!(said.contains("No verdict: a copy of two took"), "{said}");
    let rows = place.rows("run");
    let row = |name: &str| rows.iter().find(|row| row["allocator"] == name).unwrap();
    assert_eq!(row("two (copy)")["role"], "aa-copy");
    assert_eq!(row("glibc")["verdict"], "withheld: A/A");
    let honest = Place::new();
    let end = run(
        &honest,
        &[
            "-a",
            "glibc",
            "--blocks",
            "1",
            "--target-ms",
            "2",
            "--no-repeat",
        ],
    );
    assert!(
        !end.stdout.contains("copy"),
        "nothing is compared, so nothing has to be copied: {}",
        end.stdout
    );
}

/// A busy process for each CPU, until dropped.
struct Load(Vec<Child>);

impl Load {
    fn new() -> Load {
        let count = std::thread::available_parallelism().unwrap().get();
        Load(
            (0..count)
                .map(|_| {
                    Command::new("sh")
                        .args(["-c", "while :; do :; done"])
                        .spawn()
                        .unwrap()
                })
                .collect(),
        )
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0
            .iter_mut()
            .for_each(|child| _ = child.kill().and_then(|()| child.wait()));
    }
}

#[test]
fn what_other_programs_disturb_is_flagged_and_run_again() {
    let place = Place::new();
    let load = Load::new();
    // Some ticks in which the kernel counts busy time.
    let end = run(
        &place,
        &[
            "-a",
            "glibc",
            "--blocks",
            "2",
            "--target-ms",
            "50",
            "--no-floor",
            "--no-aa-copy",
        ],
    );
    drop(load);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let records = samples(&place.at("run"));
    let measured: Vec<_> = records
        .iter()
        .filter(|record| word(record, "purpose") == "sample")
        .collect();
    let first = measured.iter().filter(|record| record["attempt"].is_null());
    for record in first {
        assert!(
            record["interference"]["foreign_cpu_share"]
                .as_f64()
                .unwrap()
                > 0.25,
            "{record}"
        );
    }
    let again: Vec<&str> = measured
        .iter()
        .map(|record| word(record, "cell"))
        .filter(|cell| cell.contains('~'))
        .collect();
    assert_eq!(
        again.len(),
        2,
        "as many parts may be run again as were planned: {again:?}"
    );
    let all = place.run(&["show", "--full", "run"]).stdout;
    assert!(all.contains("Interference: 2 parts disturbed"), "{all}");
    assert_eq!(
        place.rows("run")[0]["blocks"],
        "2",
        "an attempt that does not count is no block"
    );
    // Taken up again, it does not begin to repeat anew.
    let before = records.len();
    assert_eq!(place.run(&["run", "--resume", "run"]).code, Some(0));
    assert_eq!(samples(&place.at("run")).len(), before);
}

fn blocks(place: &Place) -> u64 {
    let records = samples(&place.at("run"));
    records
        .iter()
        .filter(|record| word(record, "purpose") == "sample")
        .map(|r| r["block"].as_u64().unwrap())
        .max()
        .unwrap()
        + 1
}

/// A run in which `slow` takes many times as long; how many blocks it made.
fn slow_is_slow(place: &Place, flags: &[&str]) -> (u64, crate::support::End) {
    let word = format!("glibc,slow={}", place.fake("slow").display());
    let tiny = "--set churn-private.objects=200 --target-ms 1 --no-floor --no-aa-copy --no-repeat";
    let tiny: Vec<&str> = tiny.split(' ').collect();
    let end = run(place, &[&["-a", &word], &tiny[..], flags].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    (blocks(place), end)
}

#[test]
fn blocks_and_budget_end_a_run_and_significance_does_not() {
    // So much slower is significant with the tenth block, whatever other programs do by that of CPU time; no interval is that narrow
    // after twelve.
    let place = Place::new();
    let (made, end) = slow_is_slow(&place, &["--precision", "0.01%", "--max-blocks", "12"]);
    assert_eq!(made, 12);
    assert_eq!(
        place
            .rows("run")
            .iter()
            .find(|row| row["allocator"] == "slow")
            .unwrap()["cpu_verdict"],
        "slower",
        "{}",
        end.stdout
    );

    let place = Place::new();
    let (made, end) = slow_is_slow(&place, &["--budget", "1ms"]);
    assert_eq!(made, 1, "no block begins after the budget is used up");
    assert!(
        end.stderr
            .contains("the budget leaves no time for another block"),
        "{}",
        end.stderr
    );
    assert!(end.says("too few for a verdict"), "{}", end.stdout);
}

#[test]
#[ignore = "make test-all"]
fn precision_never_ends_a_run_before_a_verdict_is_possible() {
    let (made, end) = slow_is_slow(&Place::new(), &["--precision", "50%"]);
    assert!(made >= 10, "{made}");
    assert!(
        made == 40 || end.stderr.contains("precise enough"),
        "{}",
        end.stderr
    );
}

#[test]
fn extents_that_make_no_sense_are_refused() {
    let place = Place::new();
    for flags in [
        ["--precision", "0"],
        ["--precision", "wide"],
        ["--budget", "soon"],
        ["--max-blocks", "0"],
    ] {
        let end = run(&place, &flags);
        assert_eq!(end.code, Some(2), "{flags:?}: {}", end.stderr);
        assert!(!place.at("run").exists());
    }
    assert_eq!(
        run(&place, &["--blocks", "3", "--precision", "1%"]).code,
        Some(2)
    );
}

#[test]
fn the_share_of_measured_phases_is_told() {
    let place = Place::new();
    let end = run(
        &place,
        &[
            "-a",
            "glibc",
            "--blocks",
            "1",
            "--target-ms",
            "2",
            "--no-repeat",
        ],
    );
    assert!(
        end.stderr
            .lines()
            .any(|line| line.starts_with("measured phases: ")),
        "{}",
        end.stderr
    );
}

#[test]
fn noise_compares_an_allocator_with_its_copy_and_says_how_many_blocks_it_takes() {
    let place = Place::new();
    let flags = [
        "noise",
        "--blocks",
        "12",
        "--target-ms",
        "1",
        "-w",
        "churn-private",
        "-o",
        "noise",
    ];
    let end = place.run(&flags);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for says in [
        "glibc on churn-private@1 against its own copy",
        "finds a true 5 %",
        "10 blocks: one after the other, wall time",
        "10 blocks: one after the other, CPU time",
        "10 duets: in turns on one CPU, CPU time",
        "blocks by wall time",
    ] {
        assert!(end.says(says), "no {says} in {}", end.stdout);
    }
    // 24 processes: 23 neighbours, and 5 stretches of ten and ten.
    let habits = |habit: &str, comparisons: &str| {
        let lines = end.stdout.lines().filter(|line| line.contains(habit));
        lines
            .filter(|line| line.split_whitespace().any(|word| word == comparisons))
            .count()
    };
    assert_eq!(
        (
            habits("One run of each", "23"),
            habits("means more than 2 %", "5"),
            habits("Welch's t-test", "5")
        ),
        (1, 1, 1),
        "{}",
        end.stdout
    );
    let levels = |blocks: &str, comparisons: &str| {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some(blocks) && words.any(|word| word == comparisons)
        };
        end.stdout.lines().filter(|text| line(text)).count()
    };
    assert_eq!(
        (levels("6", "7"), levels("10", "3"), levels("15", "0")),
        (3, 3, 0),
        "{}",
        end.stdout
    );
    assert_eq!(place.run(&["noise", "-a", "nobody"]).code, Some(2));
    let short = ["noise", "--minutes", "1s", "--target-ms", "2000"];
    let short = place.run(&short);
    assert_eq!(short.code, Some(1), "{}", short.stderr);
    assert!(short.says("give more --minutes"), "{}", short.stdout);
    let fake = format!("v={}", place.fake("honest").display());
    let only = place.run(&[
        "noise",
        "-a",
        &fake,
        "--as",
        "once",
        "--blocks",
        "6",
        "--target-ms",
        "1",
        "-w",
        "churn-private",
    ]);
    assert_eq!(only.code, Some(0), "{}", only.stderr);
    assert!(only.says("One run of each"), "{}", only.stdout);
    for other in ["half-width of", "Welch's t-test", "duets"] {
        assert!(!only.says(other), "{other}: {}", only.stdout);
    }
}

#[test]
fn noise_of_processes_that_crash_is_no_success() {
    let place = Place::new();
    let folder = place.at("config/heapmark/allocators");
    fs::create_dir_all(&folder).unwrap();
    let entry = format!(
        "name = \"mine\"\nfamily = \"mine\"\nabout = \"mine\"\ntier = \"user\"\n\
         source = {{ kind = \"path\", files = [\"{}\"] }}\n",
        place.fake("crasher").display()
    );
    fs::write(folder.join("mine.toml"), entry).unwrap();
    let of_mine = ["noise", "-a", "mine", "-w", "churn-private"];
    let end = place.run(&[&of_mine[..], &["--blocks", "6", "-o", "noise"]].concat());
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
}

#[test]
#[ignore = "make test-all"]
fn a_selftest_has_blocks_for_a_verdict_and_stalls_as_computed() {
    let place = Place::new();
    let few = place.run(&["selftest", "--blocks", "5"]);
    assert_eq!(few.code, Some(2), "{}", few.stderr);
    let end = place.run(&["selftest", "--blocks", "6", "-o", "selftest"]);
    let mut lines = end.stdout.lines().map(str::trim_start);
    let stalls = lines.find(|line| line.starts_with("20 ms of 1000 requests: p99.9 "));
    let stalls = stalls.unwrap();
    assert!(stalls.contains(" ms, computed 19.9 ms; p99 "), "{stalls}");
}

#[test]
fn instructions_repeat_within_a_thousandth_and_tell_allocators_apart() {
    let place = Place::new();
    // Not jemalloc, which asks a clock when to give pages back, nor mimalloc2: their counts differ by 0.1 to 0.3 %.
    let names = ["glibc", "mimalloc3", "rpmalloc"];
    place.ready(&names);
    instructions_tell_apart(&place, &names);
}

#[test]
#[should_panic(expected = "libc served 100 %")]
fn instructions_tell_no_library_from_itself() {
    instructions_tell_apart(&Place::new(), &["glibc", &glibc_again()]);
}

fn instructions_tell_apart(place: &Place, words: &[&str]) {
    let flags = [
        "-a",
        &words.join(","),
        "--counter",
        "callgrind",
        "--set",
        "churn-private.objects=5000",
    ];
    let count = |run: &str| -> BTreeMap<String, f64> {
        let end = place.run(&[&["run", "-o", run, "--seed", "1"], &JOB[..], &flags].concat());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        assert!(end.says("No verdict: this run counted"), "{}", end.stdout);
        let records = samples(&place.at(run));
        let counted = records
            .iter()
            .filter(|record| word(record, "purpose") == "count");
        let figure = |record: &Value| {
            record["measurement"]["figures"]["instructions_per_operation"]
                .as_f64()
                .unwrap()
        };
        counted
            .map(|record| (word(record, "allocator").to_string(), figure(record)))
            .collect()
    };
    let (first, second) = (count("first"), count("second"));
    assert_eq!(
        first.len(),
        words.len() + 1,
        "each allocator and the floor: {first:?}"
    );
    assert_eq!(alike(&first), [] as [(&str, &str); 0], "{first:?}");
    for (name, instructions) in &first {
        assert!(
            !differ(*instructions, second[name]),
            "{name}: {instructions} and {}",
            second[name]
        );
        assert!(
            name == "null" || *instructions > first["null"],
            "{name} needs more than the harness alone: {first:?}"
        );
    }
}

/// Whether two counts differ by more than two of one allocator do.
fn differ(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() > 0.001
}

/// Neighbours in the order of their counts that do not differ.
fn alike(counts: &BTreeMap<String, f64>) -> Vec<(&str, &str)> {
    let mut sorted: Vec<(&String, f64)> = counts.iter().map(|(name, n)| (name, *n)).collect();
    sorted.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let pairs = sorted
        .windows(2)
        .filter(|pair| !differ(pair[0].1, pair[1].1));
    pairs
        .map(|pair| (pair[0].0.as_str(), pair[1].0.as_str()))
        .collect()
}

#[test]
fn counts_that_are_nearly_equal_are_not_told_apart() {
    let counts = [("a", 100.0), ("b", 100.2), ("c", 40.0), ("d", 100.05)];
    let counts = counts.map(|(name, count)| (name.to_string(), count));
    assert_eq!(alike(&counts.into()), [("a", "d")]);
}

/// A figure of each counted process that ended `ok`.
fn counted(place: &Place, figure: &str) -> BTreeMap<String, f64> {
    let records = samples(&place.at("run"));
    let counted = records
        .iter()
        .filter(|record| word(record, "purpose") == "count");
    let told = |record: &Value| {
        Some((
            word(record, "allocator").into(),
            record["measurement"]["figures"][figure].as_f64()?,
        ))
    };
    counted.filter_map(told).collect()
}

#[test]
fn a_planted_call_of_the_kernel_for_each_malloc_is_counted_each_time() {
    let place = Place::new();
    let [asking, toiler] = ["asking", "toiler"].map(|name| place.fake(name));
    let word = format!(
        "asking={},toiler={},glibc",
        asking.display(),
        toiler.display()
    );
    let end = run(
        &place,
        &[
            "-a",
            &word,
            "--counter",
            "kernel",
            "--blocks",
            "1",
            "--no-floor",
        ],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let madvise = counted(&place, "madvise_per_operation");
    // A malloc and a free are two operations; what a thread asks for at its end comes on top.
    assert!((0.5..0.51).contains(&madvise["asking"]), "{madvise:?}");
    assert!(madvise["glibc"] < 0.01, "{madvise:?}");
    // Its thread is older than the filter.
    assert!(madvise["toiler"] > madvise["glibc"], "{madvise:?}");
    assert!(end.says("madvise/M op"), "{}", end.stdout);
}

#[test]
fn what_a_thread_allocates_before_its_clock_starts_is_not_counted() {
    let place = Place::new();
    let allocators = format!("asking={},glibc", place.fake("asking").display());
    let flags = [
        "-t",
        "1",
        "--counter",
        "kernel",
        "--no-floor",
        "--set",
        "hot-ring.ring=64",
        "--set",
        "hot-ring.pairs=100",
    ];
    let end = place.run_block("run", "hot-ring", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // 63 blocks are there before the first pair, which is an operation.
    let madvise = counted(&place, "madvise_per_operation");
    assert_eq!(madvise["asking"], 1.0, "{madvise:?}");
}

#[test]
fn events_are_counted_where_the_machine_lets_us_and_never_0_where_it_does_not() {
    let place = Place::new();
    let end = run(
        &place,
        &[
            "-a",
            "glibc",
            "--counter",
            "perf",
            "--blocks",
            "1",
            "--no-floor",
        ],
    );
    let records = samples(&place.at("run"));
    let record = records
        .iter()
        .find(|record| word(record, "purpose") == "count")
        .unwrap();
    if record["outcome"]["kind"] == "unsupported" {
        return assert!(
            end.says("this machine does not allow counting"),
            "{}",
            end.stdout
        );
    }
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let measurement = &record["measurement"];
    for event in [
        "instructions",
        "cycles",
        "cache_misses",
        "l1d_read_misses",
        "dtlb_read_misses",
        "page_faults",
    ] {
        let count = measurement["figures"][format!("{event}_per_operation")].as_f64();
        let why_not = measurement["notes"][event].as_str();
        assert!(
            count.is_some() != why_not.is_some(),
            "{event}: a count or why there is none: {measurement}"
        );
        assert!(
            event == "page_faults" || count != Some(0.0),
            "{event} cannot be 0: {measurement}"
        );
    }
    // The kernel's own account also holds what came while the counters were switched.
    let iterations = measurement["iterations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["cold"] == false);
    let sums = iterations.fold((0.0, 0.0), |(faults, ops), one| {
        (
            faults + one["minor_faults"].as_f64().unwrap(),
            ops + one["ops"].as_f64().unwrap(),
        )
    });
    // A whole number again, which a quotient times its divisor need not be.
    let faults = (counted(&place, "page_faults_per_operation")["glibc"] * sums.1).round();
    assert!(
        faults <= sums.0 && sums.0 <= faults + 20.0,
        "{faults} and {}",
        sums.0
    );
}

#[test]
fn without_valgrind_a_count_is_unsupported_and_says_what_brings_it() {
    let place = Place::new();
    let flags = [
        "run",
        "-o",
        "run",
        "-a",
        "glibc",
        "--no-floor",
        "--counter",
        "callgrind",
    ];
    let mut command = place.heapmark(&[&flags, &JOB[..]].concat());
    let end = crate::support::End::of(command.env("PATH", place.at("nowhere")).output().unwrap());
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    assert!(end.says("apt-get install valgrind"), "{}", end.stdout);
}

#[test]
fn memory_is_at_hand_before_each_measured_process() {
    let place = Place::new();
    let word = [
        "-w",
        "same-thread",
        "-t",
        "1",
        "--set",
        "same-thread.volume=40000000",
        "--no-floor",
        "--no-aa-copy",
    ];
    let flags = [
        &[
            "run",
            "-o",
            "run",
            "-a",
            "glibc",
            "--blocks",
            "4",
            "--no-repeat",
        ][..],
        &word,
    ]
    .concat();
    let mut child = live::start(&place, &flags);
    // heapmark itself has touched what it gives back to the kernel before each process: its own highest resident set says so.
    let (mut most, mut ended) = (0, false);
    live::wait_for("the end of the run", || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| {
            line.strip_prefix("VmHWM:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        });
        most = most.max(peak.unwrap_or(0) * 1024);
        ended = ended || child.try_wait().unwrap().is_some();
        ended
    });
    let end = live::finish(child);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let records = samples(&place.at("run"));
    let peaks = of_purpose(&records, "sample")
        .into_iter()
        .map(|it| it["measurement"]["peak_rss_bytes"].as_u64().unwrap());
    let least = peaks.min().unwrap();
    assert!(
        least > 40_000_000 && most >= least,
        "{least} bytes in the smallest process, {most} before one"
    );
}
