//! Other tools' files by values: what they contain, and what they must not.

use super::*;
use crate::execute::{Measurement, TurnsTaken};
use crate::plan::{Target, Turns};
use serde_json::{Value, json};

const FOREIGN: [Format; 5] = [
    Format::Bmf,
    Format::GithubActionSmaller,
    Format::GithubActionBigger,
    Format::GoogleBenchmark,
    Format::Hyperfine,
];

/// The first block of hoard takes longer than the others.
fn lab() -> FakeRun {
    FakeRun::new(&["glibc", "hoard"], &["larson"], 4).fill(|_, name, block| match (name, block) {
        ("glibc", _) => 20.0,
        (_, 0) => 60.0,
        _ => 40.0,
    })
}

fn parsed(format: Format, lab: &FakeRun) -> Value {
    serde_json::from_str(&exported(format, lab)).unwrap()
}

#[test]
fn bencher_gets_medians_between_least_and_greatest() {
    let metric = |value: f64, low: f64, high: f64| json!({"value": value, "lower_value": low, "upper_value": high});
    let glibc = json!({
        "cpu-time": metric(12.5, 12.5, 12.5), "latency": metric(20.0, 20.0, 20.0),
        "peak-rss": {"value": 14_680_064.0}, "throughput": metric(1e8, 1e8, 1e8),
    });
    let all = parsed(Format::Bmf, &lab());
    assert_eq!(all.as_object().unwrap().len(), 2);
    assert_eq!(all["larson@2/glibc"], glibc);
    assert_eq!(all["larson@2/hoard"]["latency"], metric(40.0, 40.0, 60.0));
}

#[test]
fn the_github_action_gets_one_direction_per_file() {
    let list = |format| parsed(format, &lab()).as_array().unwrap().clone();
    let (smaller, bigger) = (
        list(Format::GithubActionSmaller),
        list(Format::GithubActionBigger),
    );
    let names = |list: &[Value]| {
        list.iter()
            .map(|one| one["name"].as_str().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&smaller)[..3],
        [
            "larson@2/glibc: time",
            "larson@2/glibc: CPU time",
            "larson@2/glibc: peak RSS"
        ]
        .map(String::from)
    );
    assert_eq!(
        names(&bigger),
        ["larson@2/glibc: throughput", "larson@2/hoard: throughput"].map(String::from)
    );
    let time = json!({
        "name": "larson@2/hoard: time", "unit": "ns/op", "value": 40.0, "range": "40.0 to 60.0",
        "extra": "median of 4 processes",
    });
    assert_eq!(smaller[3], time);
}

#[test]
fn google_benchmark_gets_a_repetition_per_process_and_aggregates() {
    let document = parsed(Format::GoogleBenchmark, &lab());
    let all = document["benchmarks"].as_array().unwrap();
    let of = |name: &str| {
        all.iter()
            .filter(|one| one["name"] == name)
            .collect::<Vec<_>>()
    };
    let times = |name: &str| {
        of(name)
            .iter()
            .map(|one| one["real_time"].as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (all.len(), times("larson@2/hoard")),
        (2 * (4 + 3), vec![60.0, 40.0, 40.0, 40.0])
    );
    assert_eq!(
        (times("larson@2/hoard_mean"), times("larson@2/hoard_median")),
        (vec![45.0], vec![40.0])
    );
    assert_eq!(times("larson@2/hoard_stddev"), [10.0]);
    let second = of("larson@2/hoard")[1];
    let expected = json!({
        "name": "larson@2/hoard", "family_index": 0, "per_family_instance_index": 1, "run_name": "larson@2/hoard",
        "run_type": "iteration", "repetitions": 4, "repetition_index": 1, "threads": 2, "iterations": 2_000_000,
        "real_time": 40.0, "cpu_time": 25.0, "time_unit": "ns", "items_per_second": 5e7,
    });
    assert_eq!(*second, expected);
    assert_eq!(document["context"]["cpu"], "Abacus 2");
    let single = FakeRun::new(&["glibc"], &["larson"], 1).fill(|_, _, _| 20.0);
    let single = parsed(Format::GoogleBenchmark, &single);
    assert_eq!(
        single["benchmarks"].as_array().unwrap().len(),
        1,
        "one repetition has no aggregates"
    );
}

#[test]
fn hyperfine_gets_measured_phases_in_seconds() {
    let document = parsed(Format::Hyperfine, &lab());
    let hoard = &document["results"][1];
    for (key, value) in [
        ("mean", 0.045),
        ("stddev", 0.01),
        ("user", 0.045),
        ("system", 0.01125),
    ] {
        assert!(
            (hoard[key].as_f64().unwrap() - value).abs() < 1e-12,
            "{key}: {hoard}"
        );
    }
    let expected = json!({
        "command": "larson@2/hoard", "mean": hoard["mean"], "stddev": hoard["stddev"], "median": 0.04,
        "user": hoard["user"], "system": hoard["system"], "min": 0.04, "max": 0.06, "times": [0.06, 0.04, 0.04, 0.04],
        "memory_usage_byte": [14_680_064, 14_680_064, 14_680_064, 14_680_064], "exit_codes": [0, 0, 0, 0],
        "parameters": {"workload": "larson", "threads": "2", "allocator": "hoard"},
    });
    assert_eq!(*hoard, expected);
    let single = FakeRun::new(&["glibc"], &["larson"], 1).fill(|_, _, _| 20.0);
    assert_eq!(
        parsed(Format::Hyperfine, &single)["results"][0]["stddev"],
        Value::Null
    );
}

#[test]
fn hyperfine_gets_the_code_with_which_a_command_always_exits() {
    let mut lab = lab();
    let code =
        |lab: &FakeRun| parsed(Format::Hyperfine, lab)["results"][0]["exit_codes"][0].clone();
    assert_eq!(code(&lab), 0);
    lab.run.plan.cases[0].target = Target::Command(Box::default());
    let check = lab.cell("larson@2/check/glibc");
    let notes = [("exit_code".to_owned(), "3".to_owned())];
    check.measurement = Some(Measurement {
        notes: notes.into_iter().collect(),
        ..Measurement::default()
    });
    assert_eq!(code(&lab), 3);
}

/// Three processes took the turns of each duet; the other side's turns are in their wall time.
#[test]
fn of_what_took_turns_hyperfine_gets_the_cpu_time_of_one_process() {
    let mut lab = lab();
    let records = lab.records.iter_mut();
    for measurement in records.filter_map(|record| record.measurement.as_mut()) {
        measurement.turns = Some(TurnsTaken {
            by: Turns::Stop,
            cpu: 0,
            at_once: 1,
            runs: 3,
            slice_ns: 20_000_000,
            turn_ns: None,
        });
    }
    let document = parsed(Format::Hyperfine, &lab);
    let hoard = &document["results"][1];
    let number = |key: &str| hoard[key].as_f64().unwrap();
    assert!((number("user") - 0.015).abs() < 1e-12, "{hoard}");
    let cpu = number("user") + number("system");
    assert!((number("mean") - cpu).abs() < 1e-12, "{hoard}");
}

#[test]
fn a_row_that_is_not_ok_is_in_no_file_and_is_counted() {
    let mut lab = lab();
    let crashed = lab.cell("larson@2/b03/hoard");
    // A measurement next to a crash breaks the store's promise; it must still not be printed.
    (crashed.outcome, crashed.measurement) = (crash(), Some(measurement(13.0)));
    for format in FOREIGN {
        let file = export(format, &lab.run, &lab.records).unwrap();
        let text = String::from_utf8(file.bytes).unwrap();
        assert!(
            text.contains("larson@2/glibc") && !text.contains("hoard"),
            "{text}"
        );
        let note = format!(
            "1 of 2 rows left out: {} cannot represent them; csv-rows has the reasons",
            format.name()
        );
        assert_eq!(file.note, Some(note));
    }
    let lab = lab.fail("larson@2/b00/glibc", crash());
    for format in FOREIGN {
        let error = export(format, &lab.run, &lab.records)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("no row of this run fits into") && error.contains(format.name()),
            "{error}"
        );
    }
}

#[test]
fn a_process_without_cpu_time_is_no_repetition_of_no_time() {
    let mut lab = lab();
    for iteration in &mut lab
        .cell("larson@2/b01/glibc")
        .measurement
        .as_mut()
        .unwrap()
        .iterations
    {
        (iteration.user_ns, iteration.sys_ns) = (0, 0);
    }
    let file = export(Format::GoogleBenchmark, &lab.run, &lab.records).unwrap();
    assert!(file.note.unwrap().starts_with("1 of 2 rows left out"));
    assert!(!String::from_utf8(file.bytes).unwrap().contains("glibc"));
    assert!(
        export(Format::Bmf, &lab.run, &lab.records)
            .unwrap()
            .note
            .is_none()
    );
}

#[test]
fn odd_names_stay_one_name_each() {
    let odd = "\"quo,ted\"\n\u{1b}[31m{}";
    let lab = FakeRun::new(&["glibc", odd, "glibc\u{7}"], &["larson"], 3).fill(|_, _, _| 20.0);
    for format in FOREIGN {
        let file = export(format, &lab.run, &lab.records).unwrap();
        let text = String::from_utf8(file.bytes).unwrap();
        let _: Value = serde_json::from_str(&text).unwrap();
        assert!(
            text.contains(r#"larson@2/\"quo,ted\" [31m{}"#) && !text.contains('\u{1b}'),
            "{text}"
        );
        assert!(
            file.note.unwrap().starts_with("1 of 3 rows left out"),
            "two rows of one name"
        );
    }
}
