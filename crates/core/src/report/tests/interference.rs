//! Interference in every form of the report.

use super::*;
use crate::store::Record;

/// Another program takes half a core beside these processes.
fn disturb(lab: &mut FakeRun, which: impl Fn(&Record) -> bool) {
    let samples = lab.records.iter_mut();
    for record in samples.filter(|record| record.purpose == Purpose::Sample && which(record)) {
        record.interference =
            serde_json::from_str(r#"{"wall_ns": 10000000000, "foreign_cpu_share": 0.5}"#).unwrap();
    }
}

/// The same beside all.
pub(super) fn disturb_all(lab: &mut FakeRun) {
    disturb(lab, |_| true);
}

/// `quick` takes half of glibc's time, but of CPU time twice as much.
fn two_clocks() -> FakeRun {
    two_clocks_of(&["glibc", "quick"], 1.0)
}

/// The same with a copy of glibc, if it is among the names, that takes so many times its time by both clocks.
fn two_clocks_of(names: &[&str], copy: f64) -> FakeRun {
    let mut lab = FakeRun::new(names, &["larson", "churn"], 12).fill(|_, name, _| match name {
        "quick" => 10.0,
        "glibc (copy)" => 20.0 * copy,
        _ => 20.0,
    });
    for record in &mut lab.records {
        let (Some(measurement), "quick") = (&mut record.measurement, record.allocator.as_str())
        else {
            continue;
        };
        for iteration in &mut measurement.iterations {
            iteration.user_ns *= 4;
            iteration.sys_ns *= 4;
        }
    }
    lab
}

#[test]
fn a_noisy_run_says_so_first_and_names_no_winner_by_wall_time_if_all_was_disturbed() {
    let mut lab = two_clocks();
    let fastest = "quick is the fastest here, over 2 cases: 0.50 of glibc's time";
    assert!(sentence(&lab).starts_with(fastest), "{}", sentence(&lab));
    disturb(&mut lab, |record| record.block < 6);
    assert!(
        sentence(&lab).starts_with(fastest),
        "half is not most: {}",
        sentence(&lab)
    );
    disturb(&mut lab, |record| record.block < 7);
    let most =
        format!("Noisy run: 14 of 24 parts were disturbed each time (other programs). {fastest}");
    assert!(sentence(&lab).starts_with(&most), "{}", sentence(&lab));
    disturb_all(&mut lab);
    let told = sentence(&lab);
    let cpu = "Noisy run: 24 of 24 parts were disturbed each time (other programs), so no winner is named by wall \
               time. By CPU time: glibc, the baseline, is the fastest here, over 2 cases.";
    assert!(told.starts_with(cpu), "{told}");
    let analysis = analyse(&lab.run, &lab.records);
    assert_eq!(
        analysis.overall[0].allocator, "quick",
        "the table keeps wall times"
    );
    for text in [exported(Format::Markdown, &lab), on(WIDE, &lab)] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("Noisy run: 24 of 24 parts"), "{text}");
    }
}

#[test]
fn beside_a_copy_that_differs_in_each_case_a_noisy_run_names_no_winner_by_wall_time_either() {
    let told = |copy: f64| {
        let mut lab = two_clocks_of(&["glibc", "quick", "glibc (copy)"], copy);
        lab.run.plan.aa_copy = lab.run.plan.allocators.pop();
        lab.allocator("glibc (copy)").tier = "aa-copy".into();
        disturb_all(&mut lab);
        sentence(&lab)
    };
    let by_cpu = "By CPU time: glibc, the baseline, is the fastest here, over 2 cases";
    assert!(told(1.2).contains(by_cpu), "{}", told(1.2));
    let none = "No verdict: a copy of glibc took 3.000x the time of glibc itself";
    assert!(told(3.0).contains(none), "{}", told(3.0));
}

/// Five of twelve processes of `greedy` waited for memory.
fn stalled() -> FakeRun {
    let mut lab = FakeRun::new(&["glibc", "greedy"], &["larson"], 12).fill(|_, _, _| 20.0);
    for block in 0..5 {
        lab.cell(&format!("larson@2/b{block:02}/greedy"))
            .interference = serde_json::from_str(
            r#"{"wall_ns": 10000000000, "foreign_cpu_share": 0.0, "memory_stall_share": 0.3}"#,
        )
        .unwrap();
    }
    lab
}

#[test]
fn a_row_says_in_how_many_of_its_processes_it_was_held_up() {
    let lab = stalled();
    let analysis = analyse(&lab.run, &lab.records);
    let page = page(
        &[PageRun {
            name: "r".into(),
            head: &lab.run,
            records: &lab.records,
            series: Vec::new(),
        }],
        None,
        Vec::new(),
    );
    let terminal = on(WIDE, &lab);
    for (form, text) in [
        ("terminal", &terminal),
        ("markdown", &exported(Format::Markdown, &lab)),
        ("page", &page),
    ] {
        assert_eq!(
            text.matches("stalled in 5 of 12").count(),
            1,
            "{form}: {text}"
        );
        assert!(
            text.contains("stalled: processes with stalls (waiting for memory)"),
            "{form}: {text}"
        );
    }
    assert!(
        terminal.contains(
            "Interference: 5 processes stalled by waiting for memory (5) and kept: that may be"
        ),
        "{terminal}"
    );
    let rows = exported(Format::Rows, &lab);
    let lines: Vec<Vec<&str>> = rows.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| lines[0].iter().position(|title| *title == name).unwrap();
    let told = |line: &[&str]| {
        [
            line[column("stalled_samples")].to_owned(),
            line[column("stalled_by")].to_owned(),
        ]
    };
    assert_eq!(
        [told(&lines[1]), told(&lines[2])],
        [
            ["0".into(), String::new()],
            ["5".into(), "waiting for memory".into()]
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&exported(Format::Json, &lab)).unwrap();
    let rows = &json["analysis"]["cases"][0]["rows"];
    assert_eq!(
        rows[1]["state"]["stalled"]["samples"], 5,
        "{}",
        rows[1]["state"]
    );
    assert_eq!(analysis.interference.stalled, 5);
}
