//! Whole claims: several checks, distributions, runs and sizes.

use super::*;
use crate::document::{Measure, Threads};
use Verdict::{DoesNotHold, Holds, NotTestable, Unclear};
use heapmark_core::execute::TurnsTaken;
use heapmark_core::plan::Turns;

const AHEAD: &str = r#"checks = [{ kind = "below", who = ["a"], than = ["b"] }]"#;

#[test]
fn the_worst_of_several_checks_decides() {
    let points: &[Point] = &[
        ("a", "churn@1", 10.0),
        ("b", "churn@1", 20.0),
        ("c", "churn@1", 10.05),
    ];
    let verdict = |second: &str| {
        let check = format!(r#"{{ kind = "below", who = ["a"], than = ["b"] }}, {second}"#);
        Stage::of(points, 5).verdict(&check)
    };
    assert_eq!(
        verdict(r#"{ kind = "above", who = ["b"], than = ["c"] }"#),
        Holds
    );
    assert_eq!(
        verdict(r#"{ kind = "below", who = ["a"], than = ["c"] }"#),
        Unclear
    );
    assert_eq!(
        verdict(r#"{ kind = "below", who = ["a"], than = ["d"] }"#),
        NotTestable
    );
    assert_eq!(
        verdict(r#"{ kind = "below", who = ["b"], than = ["a", "d"] }"#),
        DoesNotHold
    );
}

#[test]
fn distributions_are_judged_apart_and_a_claim_on_which_they_differ_is_unclear() {
    let claim = document(&format!(
        "workloads = [\"churn\"]\ndistributions = [\"fisher\", \"uniform\"]\n{AHEAD}"
    ));
    let run = |distribution: &str, a: f64| {
        Stage::of(&[("a", "churn@1", a), ("b", "churn@1", 20.0)], 5)
            .with("churn", "distribution", distribution)
            .measured
    };
    let judge = |runs: &[Measured]| judge_document(&claim, runs);
    let both = judge(&[run("fisher", 10.0), run("uniform", 10.0)]);
    assert_eq!(
        (both.verdict, both.notes.len(), both.parts[1].place.as_str()),
        (Holds, 0, "churn@1 (uniform)")
    );
    let differ = judge(&[run("fisher", 10.0), run("uniform", 40.0)]);
    assert_eq!(differ.verdict, Unclear);
    assert_eq!(
        differ.notes,
        ["holds under fisher", "does not hold under uniform"]
    );
    // Level under one, and so open: it may be the one that the document means.
    let open = judge(&[run("fisher", 20.0), run("uniform", 40.0)]);
    assert_eq!(
        (open.verdict, &open.notes[..]),
        (
            Unclear,
            &[
                "unclear under fisher".to_owned(),
                "does not hold under uniform".to_owned()
            ][..]
        )
    );
    let one = judge(&[run("fisher", 10.0)]);
    assert_eq!(
        (one.verdict, one.notes),
        (Holds, vec!["not run under uniform".to_string()])
    );
    let none = judge(&[Stage::of(&[("a", "churn@1", 10.0), ("b", "churn@1", 20.0)], 5).measured]);
    assert_eq!(none.verdict, NotTestable);
}

#[test]
fn the_first_run_that_has_a_row_counts_and_other_machines_and_sizes_do_not() {
    let run = |row: &str, ns: f64| Stage::of(&[(row, "churn@1", ns)], 5);
    let check = r#"{ kind = "below", who = ["a"], than = ["b"] }"#;
    let judge = |runs: &[Measured]| judge_runs(check, runs).verdict;
    assert_eq!(
        judge(&[
            run("a", 10.0).measured,
            run("b", 20.0).measured,
            run("b", 5.0).measured
        ]),
        Holds
    );
    let mut other = run("b", 20.0).measured;
    other
        .head
        .machine
        .insert("cpu_model".into(), "Difference engine".into());
    assert_eq!(judge(&[run("a", 10.0).measured, other]), NotTestable);
    let larger = run("b", 20.0).with("churn", "objects", "5");
    assert_eq!(
        judge(&[run("a", 10.0).measured, larger.measured]),
        NotTestable
    );
}

#[test]
fn each_document_is_judged_by_the_machine_that_ran_its_workloads() {
    let of = |workload: &str| document(&format!("workloads = [\"{workload}\"]\n{AHEAD}"));
    let run = |workload: &str, machine: &str, b: f64| {
        let place = format!("{workload}@1");
        let mut run = Stage::of(&[("a", &place, 10.0), ("b", &place, b)], 5).measured;
        let facts = &mut run.head.machine;
        facts.insert("cpu_model".into(), machine.into());
        run
    };
    let runs = [
        run("churn", "Abacus", 20.0),
        run("larson", "Difference engine", 20.0),
        // Another machine's later run of a document's workload is not mixed in.
        run("churn", "Difference engine", 5.0),
    ];
    let verdict = |workload| judge_document(&of(workload), &runs).verdict;
    assert_eq!((verdict("churn"), verdict("larson")), (Holds, Holds));
    assert_eq!(verdict("speed"), NotTestable);
}

#[test]
fn of_machines_with_equal_threads_the_one_with_the_documents_sizes_decides() {
    let catalog = Catalog::load().unwrap();
    let of = |stage: Stage, machine: &str, cpus: &str| {
        let mut run = stage.measured;
        let facts = [("cpu_model", machine), ("usable_cpus", cpus)];
        let facts = facts.map(|(key, value)| (key.into(), value.into()));
        run.head.machine.extend(facts);
        run
    };
    let at = |place: &str, b: f64| Stage::of(&[("a", place, 10.0), ("b", place, b)], 5);
    let claim = document(&format!("workloads = [\"churn\"]\n{AHEAD}"));
    let decides = |place: &str| {
        let share = at(place, 5.0).with("churn", "objects", "7");
        let runs = [
            of(at("churn@1", 20.0), "Abacus", "8"),
            of(share, "Difference engine", "16"),
        ];
        let evidence = Evidence::new(&catalog.workloads, &runs);
        let judged = judge(std::slice::from_ref(&claim), &evidence).remove(0);
        (judged.verdict, judged.machine.unwrap_or_default())
    };
    let of_few = (Holds, "Abacus, 8 usable CPUs".to_string());
    let of_many = (DoesNotHold, "Difference engine, 16 usable CPUs".to_string());
    assert_eq!(decides("churn@1"), of_few);
    assert_eq!(decides("churn@16"), of_many);
}

#[test]
fn a_row_that_failed_has_no_numbers_and_says_why() {
    let good = || Stage::of(&[("a", "churn@1", 10.0), ("b", "churn@1", 20.0)], 5);
    let failed = || {
        let mut stage = good();
        let mut records = stage.measured.records.iter_mut();
        records.find(|it| it.allocator == "b").unwrap().outcome = crash();
        stage
    };
    let check = r#"{ kind = "below", who = ["a"], than = ["b"] }"#;
    // Another run in which it did not fail does not make it good.
    for runs in [
        vec![failed().measured],
        vec![failed().measured, good().measured],
    ] {
        let judged = judge_runs(check, &runs);
        assert_eq!(judged.verdict, NotTestable);
        let parts = format!("{:?}", judged.parts);
        assert!(parts.contains("crash 1 of 5"), "{parts}");
        let evidence = Evidence::new(&[], &runs);
        let spots = evidence.spots("churn", Threads::Any, None).unwrap();
        let all = evidence.allocators(&spots[0], &Measure::Time);
        let names: Vec<&str> = all.iter().map(|it| it.row.as_str()).collect();
        assert_eq!(names, ["a"]);
    }
}

#[test]
fn an_explanation_stands_only_where_it_does_not_hold_and_sizes_are_said() {
    let catalog = Catalog::load().unwrap();
    let claim = document(&format!(
        "workloads = [\"churn\"]\nexplain = \"newer\"\nexplain-measured = \"slower\"\n{AHEAD}"
    ));
    let judge = |a: f64| {
        let run = Stage::of(&[("a", "churn@1", a), ("b", "churn@1", 20.0)], 5)
            .with("churn", "objects", "7")
            .measured;
        let runs = [run];
        let evidence = Evidence::new(&catalog.workloads, &runs);
        judge(std::slice::from_ref(&claim), &evidence).remove(0)
    };
    assert_eq!(
        (judge(10.0).explain, judge(40.0).explain),
        (None, Some("newer".to_string()))
    );
    let reason = |a: f64| crate::report::one_reason(&judge(a));
    assert!(reason(40.0).ends_with("measured: slower; supposed: newer"));
    assert!(!reason(10.0).contains("measured"));
    assert_eq!(judge(10.0).sizes, ["objects = 7 (the document: 100000)"]);
}

#[test]
fn what_cannot_show_a_claim_neither_confirms_nor_refutes_it() {
    let judge = |key: &str, a: f64| {
        let claim = document(&format!("workloads = [\"churn\"]\n{key}\n{AHEAD}"));
        let run = Stage::of(&[("a", "churn@1", a), ("b", "churn@1", 20.0)], 5).measured;
        judge_document(&claim, &[run])
    };
    for (key, why) in [
        (
            "not-comparable = \"of another system\"",
            "not comparable: of another system",
        ),
        (
            "least-threads = 4\ndocument-threads = 48",
            "a curve does not show with 1 threads on cores of their own: it takes 4 (document: 48)",
        ),
    ] {
        for a in [10.0, 40.0] {
            let judged = judge(key, a);
            assert_eq!(judged.verdict, NotTestable);
            let first = &judged.parts[0].said[0];
            assert_eq!(*first, Said::Words(why.into()));
            assert!(
                judged.parts.len() > 1,
                "what was measured stays in the files"
            );
        }
    }
    assert_eq!(judge("least-threads = 1", 10.0).verdict, Holds);
    assert_eq!(judge("least-threads = 1", 40.0).verdict, DoesNotHold);
}

#[test]
fn a_row_that_keeps_more_cores_busy_than_are_usable_has_no_value() {
    let judge = |cores: u32, checks: &str| {
        let mut claim = document(&format!("workloads = [\"churn\"]\nchecks = [{checks}]"));
        claim.rows.get_mut("b").unwrap().cores = cores;
        let points: &[Point] = &[
            ("a", "churn@1", 10.0),
            ("b", "churn@1", 20.0),
            ("c", "churn@1", 20.0),
        ];
        judge_document(&claim, &[Stage::of(points, 5).measured])
    };
    // The machine has 8 cores.
    let named = r#"{ kind = "below", who = ["a"], than = ["b"] }"#;
    assert_eq!(judge(8, named).verdict, Holds);
    assert_eq!(judge(9, named).verdict, NotTestable);
    let all = judge(9, r#"{ kind = "below", who = ["a"] }"#);
    assert_eq!(all.verdict, Holds);
    assert!(
        all.missing.contains(&"b (keeps 9 cores busy)".to_string()),
        "{:?}",
        all.missing
    );
}

#[test]
fn the_machine_with_most_cores_decides_if_the_claim_can_be_judged_there() {
    let claim = document(&format!(
        "threads = \"each\"\nworkloads = [\"churn\"]\n{AHEAD}"
    ));
    let run = |cpus: &str, rows: &[Point]| {
        let mut run = Stage::of(rows, 5).measured;
        let facts = &mut run.head.machine;
        facts.insert("usable_cpus".into(), cpus.into());
        run
    };
    let small = || run("2", &[("a", "churn@2", 10.0), ("b", "churn@2", 20.0)]);
    let large = run("16", &[("a", "churn@10", 40.0), ("b", "churn@10", 20.0)]);
    let judged = judge_document(&claim, &[small(), large]);
    assert_eq!(
        (judged.verdict_words().as_str(), judged.machine.as_deref()),
        (
            "does not hold at 10 threads (document: 1)",
            Some("Abacus, 16 usable CPUs")
        )
    );
    // Without a row that the claim names, it decides nothing.
    let large = run("16", &[("a", "churn@10", 40.0)]);
    let judged = judge_document(&claim, &[small(), large]);
    assert_eq!(
        (judged.verdict, judged.machine.as_deref()),
        (Holds, Some("Abacus, 2 usable CPUs"))
    );
    assert_eq!(judge_document(&claim, &[small()]).machine, None);
}

#[test]
fn what_shows_why_a_claim_does_not_hold_is_said_with_it() {
    let claim = document(&format!(
        "measured = [\"minor-faults\"]\nread-off = true\nworkloads = [\"churn\"]\n{AHEAD}"
    ));
    let judge = |a: f64| {
        let mut run = Stage::of(&[("a", "churn@1", a), ("b", "churn@1", 20.0)], 5).measured;
        let of_a = run.records.iter_mut().filter(|it| it.allocator == "a");
        for measurement in of_a.filter_map(|it| it.measurement.as_mut()) {
            for one in &mut measurement.iterations {
                one.minor_faults = 1_600_000;
            }
        }
        judge_document(&claim, &[run])
    };
    let judged = judge(40.0);
    let faults: Vec<(&str, f64)> = (judged.measured.iter())
        .map(|it| (it.row.as_str(), it.median))
        .collect();
    assert_eq!(faults, [("a", 1_600_000.0), ("b", 0.0)]);
    assert_eq!(judged.says, "so (read off a table: in no sentence)");
    assert!(judge(10.0).measured.is_empty());
}

#[test]
fn a_claim_that_does_not_hold_is_checked_with_the_settings_of_its_time_if_they_were_measured() {
    let mut claim = document(&format!("workloads = [\"churn\"]\n{AHEAD}"));
    claim.rows.get_mut("b").unwrap().as_then = Some("d".into());
    let judge = |points: &[Point]| {
        let run = Stage::of(points, 5).measured;
        judge_document(&claim, &[run])
    };
    let point = |row, ns| (row, "churn@1", ns);
    let (a, b, then) = (point("a", 20.0), point("b", 10.0), point("d", 40.0));
    let changed = judge(&[a, b, then]);
    let as_then = changed.as_then.unwrap();
    assert_eq!((changed.verdict, as_then.verdict), (DoesNotHold, Holds));
    assert_eq!(as_then.rows, ["d"]);
    for points in [&[a, b][..], &[a, point("b", 30.0), then]] {
        assert!(judge(points).as_then.is_none());
    }
}

#[test]
fn published_figures_and_ours_stand_in_the_same_columns() {
    let figure = "[[figures]]\ntitle = \"\"\nworkload = \"churn\"\nthreads = [1, 8]\nmeasures = [\"time\"]\nreference = \"a\"\n\
                  rows = [{ row = \"a\", values = [5, 6] }, { row = \"d\", values = [7, 8] }]\n";
    let mut document = document(&format!("workloads = [\"churn\"]\n{AHEAD}"));
    document.figures = toml::from_str::<toml::Table>(figure).unwrap()["figures"]
        .clone()
        .try_into()
        .unwrap();
    let runs = [Stage::of(&[("a", "churn@1", 10.0), ("a", "churn@2", 20.0)], 5).measured];
    let table = reproduced(&document, &document.figures[0], &Evidence::new(&[], &runs));
    let columns: Vec<u32> = table.columns.iter().map(|(threads, _)| *threads).collect();
    assert_eq!(columns, [1, 2, 8]);
    let [a, d] = &table.rows[..] else { panic!() };
    assert_eq!(
        (&a.published, &d.published),
        (
            &vec![Some(5.0), None, Some(6.0)],
            &vec![Some(7.0), None, Some(8.0)]
        )
    );
    let ours: Vec<bool> = a.ours.iter().map(Option::is_some).collect();
    assert_eq!(
        (ours, d.ours.iter().flatten().count()),
        (vec![true, true, false], 0)
    );
    let catalog = Catalog::load().unwrap();
    let sizes = |of_one: &str, of_two: &str| {
        let run = |place, objects| {
            let stage = Stage::of(&[("a", place, 10.0)], 5);
            stage.with("churn", "objects", objects).measured
        };
        let runs = [run("churn@1", of_one), run("churn@2", of_two)];
        let evidence = Evidence::new(&catalog.workloads, &runs);
        reproduced(&document, &document.figures[0], &evidence).sizes
    };
    let of_document = "(the document: 100000)";
    assert_eq!(sizes("7", "7"), [format!("objects = 7 {of_document}")]);
    assert_eq!(
        sizes("8", "7"),
        [
            format!("objects = 7 {of_document} with 2 threads"),
            format!("objects = 8 {of_document} with 1 thread"),
        ]
    );
}

#[test]
fn rows_that_took_turns_compare_by_their_duets() {
    // In each duet the machine has another speed; `a` has five ninths of the baseline's time in its own, and `c` all of it.
    let speeds = [1.0, 1.4, 0.8, 1.9, 1.2];
    let in_turns = |ns: f64, part: u32, block: usize| {
        let turns = TurnsTaken {
            by: Turns::Stop,
            cpu: 0,
            at_once: 1,
            runs: 1,
            slice_ns: 10_000_000,
            turn_ns: Some(10_000_000),
        };
        Measurement {
            turns: Some(turns),
            ..measurement(ns * speeds[(block + 2 * part as usize) % 5])
        }
    };
    let mut stage = Stage::new();
    for (row, ns, parts) in [
        ("b", 9.0, vec![0, 1]),
        ("a", 5.0, vec![0]),
        ("c", 9.0, vec![1]),
    ] {
        for part in parts {
            let of_block = |block| in_turns(ns * noise(row, block as u32), part, block);
            let from = stage.measured.records.len();
            stage = stage.processes(row, "churn@1", (0..5).map(of_block).collect());
            for record in &mut stage.measured.records[from..] {
                record.part = part;
            }
        }
    }
    stage.measured.head.plan.baseline = "b".into();
    let runs = [stage.measured];
    let verdict = |check: &str| judge_runs(check, &runs).verdict;
    for than in ["b", "c"] {
        let check = format!(r#"{{ kind = "below", who = ["a"], than = ["{than}"] }}"#);
        assert_eq!(verdict(&check), Holds, "{check}");
    }
    assert_eq!(
        verdict(
            r#"{ kind = "between", who = ["c"], over = { who = "b" }, bounds = [0.97, 1.03] }"#
        ),
        Holds
    );
}
