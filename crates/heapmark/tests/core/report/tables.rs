//! One tidy table for every kind of run: `heapmark export --to csv`, read by its columns.

use crate::support::stored::{stored, unpacked};
use std::collections::BTreeMap;

const HEAD: &str =
    "workload,threads,allocator,metric,label,unit,median,min,max,n,ratio,low,high,verdict,outcome";

type Line = BTreeMap<String, String>;

/// The lines of a stored run.
fn lines(run: &str) -> Vec<Line> {
    let place = unpacked();
    let end = place.run(&["export", run, "--to", "csv"]);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{run}");
    assert_eq!(end.stdout.lines().next(), Some(HEAD), "{run}");
    let mut reader = csv::Reader::from_reader(end.stdout.as_bytes());
    reader.deserialize().map(|line| line.unwrap()).collect()
}

/// The lines of an allocator that have this metric.
fn of<'a>(lines: &'a [Line], allocator: &str, metric: &str) -> Vec<&'a Line> {
    lines
        .iter()
        .filter(|line| line["allocator"] == allocator && line["metric"] == metric)
        .collect()
}

fn number(line: &Line, column: &str) -> f64 {
    line[column]
        .parse()
        .unwrap_or_else(|why| panic!("{column}: {why} in {line:?}"))
}

/// Most parts of this run were disturbed, and all of another one.
#[test]
fn the_answer_has_the_named_rows_own_interval_and_says_how_noisy_the_run_was() {
    let place = unpacked();
    let sentence = |run: &str| {
        let end = place.run(&["export", run, "--to", "md"]);
        end.stdout.lines().next().unwrap_or_default().to_owned()
    };
    let tried = sentence("tried");
    let all = lines("tried");
    let own = of(&all, "mimalloc3", "ns_per_op")[0];
    let named = format!(
        r"mimalloc3 ({:.3} \[{:.3}, {:.3}\]) may be",
        number(own, "ratio"),
        number(own, "low"),
        number(own, "high")
    );
    assert!(tried.contains(&named), "{named} in {tried}");
    assert!(
        tried.starts_with("**Noisy run: 6 of 10 parts were disturbed each time (other programs). "),
        "{tried}"
    );
    let timed = sentence("timed");
    let by_cpu = "so no winner is named by wall time. By CPU time: mimalloc3 (3.6.0, 2026) is the fastest here";
    assert!(
        timed.starts_with("**Noisy run: 40 of 40 parts") && timed.contains(by_cpu),
        "{timed}"
    );
}

#[test]
fn a_timed_run_has_times_ratios_intervals_and_verdicts() {
    let all = lines("timed");
    let times = of(&all, "mimalloc3", "ns_per_op");
    assert!(times.len() > 1, "one for each case");
    for line in times {
        assert_eq!(
            (
                line["unit"].as_str(),
                line["n"].as_str(),
                line["outcome"].as_str()
            ),
            ("ns", "10", "ok")
        );
        assert!(
            number(line, "min") <= number(line, "median")
                && number(line, "median") <= number(line, "max")
        );
        assert!(
            number(line, "low") <= number(line, "ratio")
                && number(line, "ratio") <= number(line, "high")
        );
        assert_ne!(line["verdict"], "");
    }
    assert_eq!(
        number(of(&all, "glibc", "ns_per_op")[0], "ratio"),
        1.0,
        "the baseline"
    );
    assert_eq!(
        of(&all, "null", "ns_per_op")[0]["ratio"],
        "",
        "the floor is not compared"
    );
}

/// A metric of glibc's row in a real run, and the median of the same quotient, from what the columns
/// of the raw samples sum up to in each process.
fn shown_and_computed(metric: &str, over: &[&str], under: &[&str]) -> (f64, f64) {
    let place = stored();
    let read = |format: &str| -> Vec<Line> {
        let text = place.run(&["export", "run", "--to", format]).stdout;
        csv::Reader::from_reader(text.as_bytes())
            .deserialize()
            .map(|line| line.unwrap())
            .collect()
    };
    let mut sums: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for line in read("csv-samples")
        .iter()
        .filter(|line| line["cold"] == "false")
    {
        let sum = |columns: &[&str]| {
            columns
                .iter()
                .map(|column| number(line, column))
                .sum::<f64>()
        };
        let [above, below] = sums.entry(line["cell"].clone()).or_default();
        *above += sum(over);
        *below += sum(under);
    }
    let mut quotients: Vec<f64> = sums.values().map(|[above, below]| above / below).collect();
    quotients.sort_by(f64::total_cmp);
    assert_eq!(quotients.len(), 3, "one for each block");
    (
        number(of(&read("csv"), "glibc", metric)[0], "median"),
        quotients[1],
    )
}

#[test]
fn page_faults_per_operation_are_those_of_the_measured_iterations() {
    let (shown, computed) = shown_and_computed("faults_per_op", &["minor_faults"], &["ops"]);
    assert!(
        (shown - computed).abs() <= computed * 1e-9,
        "{shown} {computed}"
    );
}

#[test]
fn the_kernels_share_is_that_of_the_measured_iterations() {
    let (shown, computed) = shown_and_computed("kernel_share", &["sys_ns"], &["user_ns", "sys_ns"]);
    assert!(
        (shown - computed).abs() <= computed * 1e-9,
        "{shown} {computed}"
    );
}

#[test]
fn a_run_that_counted_has_its_events_and_verdicts_by_range() {
    let all = lines("counter");
    let [line] = of(&all, "mimalloc3", "instructions")[..] else {
        panic!("{all:?}")
    };
    let [base] = of(&all, "glibc", "instructions")[..] else {
        panic!("{all:?}")
    };
    let ratio = number(line, "median") / number(base, "median");
    assert!((number(line, "ratio") - ratio).abs() < 1e-9);
    assert_eq!(line["verdict"], if ratio > 1.01 { "more" } else { "less" });
    assert!(
        all.iter().all(|line| line["metric"] == "instructions"),
        "no time of such a run is a result: {all:?}"
    );
}

#[test]
fn a_run_that_timed_calls_has_a_line_for_each_function_and_percentile() {
    let all = lines("latency");
    for function in ["malloc", "free"] {
        let percentiles = ["p50_ns", "p99_ns", "max_ns"].map(|metric| {
            let found = of(&all, "glibc", metric)
                .into_iter()
                .find(|line| line["label"] == function)
                .unwrap();
            (number(found, "median"), number(found, "n"))
        });
        assert!(
            percentiles.is_sorted_by(|(one, _), (next, _)| one <= next),
            "{percentiles:?}"
        );
        assert!(percentiles[0].1 > 1000.0, "the calls that were timed");
    }
    assert!(
        all.iter().all(|line| line["metric"].ends_with("_ns")),
        "{all:?}"
    );
}

#[test]
fn a_run_that_sampled_memory_has_overheads_and_what_is_retained() {
    let all = lines("retained");
    for metric in [
        "peak_demand_bytes",
        "retained_bytes_0_ms",
        "retained_bytes_5000_ms",
    ] {
        assert_eq!(
            of(&all, "mimalloc3", metric)[0]["unit"],
            "bytes",
            "{metric}"
        );
    }
    assert!(
        of(&all, "mimalloc3", "retained_bytes_5000_ms")
            .iter()
            .all(|line| !line["verdict"].is_empty())
    );
    assert!(
        all.iter().all(|line| !line["metric"].ends_with("per_op")),
        "no time of such a run is a result"
    );
}

#[test]
fn whole_processes_and_the_users_command_have_the_same_table() {
    for (run, rows) in [("whole", "binary-trees"), ("tried", "perl")] {
        let all = lines(run);
        assert!(
            of(&all, "glibc", "ns_per_op")
                .iter()
                .any(|line| line["workload"] == rows),
            "{all:?}"
        );
        let [wall] = of(&all, "glibc", "wall_ns")[..] else {
            panic!("{all:?}")
        };
        let [cpu] = of(&all, "glibc", "cpu_ns")[..] else {
            panic!("{all:?}")
        };
        assert_eq!((&*wall["ratio"], &wall["n"]), ("1.0", &cpu["n"]));
    }
    let whole = lines("whole");
    let longest = of(&whole, "Nim:ORC", "longest_pause_ns")[0];
    assert_eq!(longest["n"], "1", "its check reported it, not the samples");
    assert_eq!(number(of(&whole, "Nim:ORC", "startup_ns")[0], "n"), 2.0);
    assert!(
        lines("timed")
            .iter()
            .all(|line| line["metric"] != "wall_ns"),
        "no row of operations is a process"
    );
}
