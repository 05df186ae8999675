//! One tidy table for every kind of run: `heapmark export --to csv`, read by its columns.

use super::outputs::unpacked;
use std::collections::BTreeMap;

const HEAD: &str = "workload,threads,allocator,metric,label,unit,median,min,max,n,ratio,low,high,verdict,outcome";

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
    lines.iter().filter(|line| line["allocator"] == allocator && line["metric"] == metric).collect()
}

fn number(line: &Line, column: &str) -> f64 {
    line[column].parse().unwrap_or_else(|why| panic!("{column}: {why} in {line:?}"))
}

#[test]
fn a_timed_run_has_times_ratios_intervals_and_verdicts() {
    let all = lines("timed");
    let times = of(&all, "mimalloc3", "ns_per_op");
    assert!(times.len() > 1, "one for each case");
    for line in times {
        assert_eq!((line["unit"].as_str(), line["n"].as_str(), line["outcome"].as_str()), ("ns", "10", "ok"));
        assert!(number(line, "min") <= number(line, "median") && number(line, "median") <= number(line, "max"));
        assert!(number(line, "low") <= number(line, "ratio") && number(line, "ratio") <= number(line, "high"));
        assert_ne!(line["verdict"], "");
    }
    assert_eq!(number(of(&all, "glibc", "ns_per_op")[0], "ratio"), 1.0, "the baseline");
    assert_eq!(of(&all, "null", "ns_per_op")[0]["ratio"], "", "the floor is not compared");
}

/// A quotient of what two columns of the raw samples of glibc's processes sum up to, as a median.
fn of_raw_samples(run: &str, over: &[&str], under: &[&str]) -> f64 {
    let place = unpacked();
    let raw = place.run(&["export", run, "--to", "csv-samples"]).stdout;
    let mut reader = csv::Reader::from_reader(raw.as_bytes());
    let lines: Vec<Line> = reader.deserialize().map(|line| line.unwrap()).collect();
    let mut sums: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    let is_wanted =
        |line: &&Line| line["cell"].starts_with("churn@1/") && line["allocator"] == "glibc" && line["cold"] == "false";
    for line in lines.iter().filter(is_wanted) {
        let sum = |columns: &[&str]| columns.iter().map(|column| number(line, column)).sum::<f64>();
        let [above, below] = sums.entry(line["cell"].as_str()).or_default();
        *above += sum(over);
        *below += sum(under);
    }
    let mut quotients: Vec<f64> = sums.values().map(|[above, below]| above / below).collect();
    quotients.sort_by(f64::total_cmp);
    let middle = quotients.len() / 2;
    (quotients[middle] + quotients[(quotients.len() - 1) / 2]) / 2.0
}

/// The median of a metric of glibc's row.
fn median(run: &str, metric: &str) -> f64 {
    number(of(&lines(run), "glibc", metric)[0], "median")
}

#[test]
fn page_faults_per_operation_are_those_of_the_measured_iterations() {
    let (shown, computed) = (median("timed", "faults_per_op"), of_raw_samples("timed", &["minor_faults"], &["ops"]));
    assert!((shown - computed).abs() <= computed * 1e-9, "{shown} {computed}");
}

#[test]
fn the_kernels_share_is_that_of_the_measured_iterations() {
    let computed = of_raw_samples("timed", &["sys_ns"], &["user_ns", "sys_ns"]);
    let shown = median("timed", "kernel_share");
    assert!((shown - computed).abs() <= computed * 1e-9, "{shown} {computed}");
}

#[test]
fn a_run_that_counted_has_its_events_and_verdicts_by_range() {
    let all = lines("counter");
    let [line] = of(&all, "mimalloc3", "instructions")[..] else { panic!("{all:?}") };
    let [base] = of(&all, "glibc", "instructions")[..] else { panic!("{all:?}") };
    let ratio = number(line, "median") / number(base, "median");
    assert!((number(line, "ratio") - ratio).abs() < 1e-9);
    assert_eq!(line["verdict"], if ratio > 1.01 { "more" } else { "less" });
    assert!(all.iter().all(|line| line["metric"] == "instructions"), "no time of such a run is a result: {all:?}");
}

#[test]
fn a_run_that_timed_calls_has_a_line_for_each_function_and_percentile() {
    let all = lines("latency");
    for function in ["malloc", "free"] {
        let percentiles = ["p50_ns", "p99_ns", "max_ns"].map(|metric| {
            let found = of(&all, "glibc", metric).into_iter().find(|line| line["label"] == function).unwrap();
            (number(found, "median"), number(found, "n"))
        });
        assert!(percentiles.is_sorted_by(|(one, _), (next, _)| one <= next), "{percentiles:?}");
        assert!(percentiles[0].1 > 1000.0, "the calls that were timed");
    }
    assert!(all.iter().all(|line| line["metric"].ends_with("_ns")), "{all:?}");
}

#[test]
fn a_run_that_sampled_memory_has_overheads_and_what_is_retained() {
    let all = lines("retained");
    for metric in ["peak_demand_bytes", "retained_bytes_0_ms", "retained_bytes_5000_ms"] {
        assert_eq!(of(&all, "mimalloc3", metric)[0]["unit"], "bytes", "{metric}");
    }
    assert!(of(&all, "mimalloc3", "retained_bytes_5000_ms").iter().all(|line| !line["verdict"].is_empty()));
    assert!(all.iter().all(|line| !line["metric"].ends_with("per_op")), "no time of such a run is a result");
}

#[test]
fn whole_processes_and_the_users_command_have_the_same_table() {
    for (run, rows) in [("whole", "binary-trees"), ("tried", "perl")] {
        let all = lines(run);
        assert!(of(&all, "glibc", "ns_per_op").iter().any(|line| line["workload"] == rows), "{all:?}");
    }
}
