//! What counts as interference: the load of other processes, and never what may be the measured
//! process's own doing.

use super::*;
use crate::analyse::interference::disturbed_by;
use crate::plan::Factor;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The stalls of a process that holds more memory than there is, or uses more of the CPU than its
/// limit: all of it its own doing.
const OWN_DOING: Interference = Interference {
    wall_ns: 10_000_000_000,
    cpus: Some(2),
    foreign_cpu_share: Some(0.0),
    new_tasks: None,
    steal_share: Some(0.0),
    cpu_stall_share: Some(0.5),
    memory_stall_share: Some(0.3),
    own_memory_stall_share: Some(0.3),
    swapped_pages: Some(5000),
    throttled_ns: Some(200_000_000),
    throttled_times: Some(3),
};
const QUIET: Interference = Interference {
    cpu_stall_share: Some(0.0),
    memory_stall_share: Some(0.0),
    own_memory_stall_share: Some(0.0),
    swapped_pages: Some(0),
    throttled_ns: Some(0),
    throttled_times: Some(0),
    ..OWN_DOING
};

/// A run of 12 blocks as a session makes it, and its analysis: a part with interference is run
/// again, twice at most. A share of the processes of `greedy` stall themselves and take 40 %
/// longer; other load disturbs a fifth of all parts.
fn scripted(stalling: f64, seed: u64) -> (Analysis, Analysis) {
    let random = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut lab = FakeRun::new(&["glibc", "greedy"], &["larson"], 12).fill(|_, _, _| 20.0);
    let samples: Vec<Record> = lab
        .records
        .extract_if(.., |record| record.purpose == Purpose::Sample)
        .collect();
    for block in 0..12 {
        for attempt in 0..3 {
            let foreign = if random.random::<f64>() < 0.2 {
                0.5
            } else {
                0.0
            };
            let mut quiet = true;
            for sample in samples.iter().filter(|record| record.block == block) {
                let stalls = sample.allocator == "greedy" && random.random::<f64>() < stalling;
                let ns = 20.0
                    * (1.0 + foreign / 4.0)
                    * random.random_range(0.98..1.02)
                    * if stalls { 1.4 } else { 1.0 };
                let own = if stalls { OWN_DOING } else { QUIET };
                let interference = Interference {
                    foreign_cpu_share: Some(foreign),
                    ..own
                };
                quiet &= disturbed_by(&interference).is_empty();
                let cell = sample
                    .cell
                    .replace(&format!("b{block:02}"), &format!("b{block:02}~{attempt}"))
                    .into();
                let measurement = Some(measurement(ns));
                lab.records.push(Record {
                    attempt,
                    cell,
                    measurement,
                    interference: Some(interference),
                    ..sample.clone()
                });
            }
            if quiet {
                break;
            }
        }
    }
    let gated = run(&lab);
    lab.records.retain(|record| record.attempt == 0);
    (gated, run(&lab))
}

/// Repeating a process that stalls itself until it does not would report a true 1.14 as 1.00.
#[test]
fn an_allocator_that_stalls_itself_keeps_its_true_ratio() {
    const RUNS: u64 = 50;
    for stalling in [0.0, 0.2, 0.4, 0.6] {
        let (mut told, mut truth, mut repeated) = (0.0, 0.0, 0);
        for seed in 0..RUNS {
            let (gated, ungated) = scripted(stalling, seed);
            let log = |analysis: &Analysis| {
                numbers(analysis, "greedy").time().ratio.unwrap().ratio.ln() / RUNS as f64
            };
            told += log(&gated);
            truth += log(&ungated);
            repeated += gated.interference.repeated;
        }
        println!(
            "{stalling}: told {:.3}, true {:.3}",
            told.exp(),
            truth.exp()
        );
        assert!(
            (told - truth).abs() < 0.02,
            "{stalling}: told {:.3}, true {:.3}",
            told.exp(),
            truth.exp()
        );
        assert!(repeated > 0, "what others disturbed was made again");
        assert!(stalling < 0.4 || truth > 0.1, "stalls cost time: {truth}");
    }
}

#[test]
fn what_may_be_its_own_doing_disturbs_nothing_and_stands_in_the_row() {
    let mut lab = FakeRun::new(&["glibc", "greedy"], &["larson"], 12).fill(|_, _, _| 20.0);
    for block in [0, 3, 4, 7, 11] {
        lab.cell(&format!("larson@2/b{block:02}/greedy"))
            .interference = Some(OWN_DOING);
    }
    let analysis = run(&lab);
    assert_eq!(
        (
            analysis.interference.disturbed,
            analysis.interference.stalled
        ),
        (0, 5)
    );
    assert_eq!(analysis.interference.stalls["swapping"], 5);
    let stalled = numbers(&analysis, "greedy").stalled.as_ref().unwrap();
    assert_eq!((stalled.samples, stalled.by.len()), (5, 3));
    assert!(numbers(&analysis, "glibc").stalled.is_none());
}

/// Another program of the machine waits for memory, and pages of others are swapped: the process's
/// own control group shows none of it.
#[test]
fn the_own_control_group_knows_better_than_the_machine_who_waited() {
    let stalled = |interference: Interference| {
        let mut lab = FakeRun::new(&["glibc"], &["larson"], 1).fill(|_, _, _| 20.0);
        lab.cell("larson@2/b00/glibc").interference = Some(interference);
        numbers(&run(&lab), "glibc")
            .stalled
            .as_ref()
            .map(|stalled| stalled.by.iter().copied().collect::<Vec<_>>())
    };
    let others = Interference {
        memory_stall_share: Some(0.3),
        swapped_pages: Some(9),
        ..QUIET
    };
    assert_eq!(stalled(others), None);
    assert_eq!(
        stalled(Interference {
            own_memory_stall_share: None,
            ..others
        }),
        Some(vec!["swapping", "waiting for memory"])
    );
    let throttled = Interference {
        throttled_ns: Some(1),
        ..QUIET
    };
    assert_eq!(
        stalled(throttled),
        Some(vec!["the CPU limit of the control group"])
    );
}

/// A row that crashed twice is not run a third time: the quiet attempt has no process of it.
#[test]
fn an_attempt_without_a_row_that_was_given_up_is_complete() {
    let mut lab = FakeRun::new(&["glibc", "crasher"], &["larson"], 1).fill(|_, _, _| 1.0);
    lab = lab.fail("larson@2/b00/crasher", crash());
    let first = lab.cell("larson@2/b00/glibc");
    first.interference = Some(others(0.9, 0.0));
    let second = Record {
        attempt: 1,
        cell: "larson@2/b00~1/glibc".into(),
        measurement: Some(measurement(2.0)),
        interference: Some(QUIET),
        ..first.clone()
    };
    lab.records.push(second);
    let analysis = run(&lab);
    assert!(close(numbers(&analysis, "glibc").time().spread.median, 2.0));
    assert_eq!(analysis.interference.disturbed, 0);
    assert!(!row(&analysis, "crasher").has_run());
}

/// The second attempt at what a record is of, which takes twice as long.
fn again(record: &Record) -> Record {
    Record {
        attempt: 1,
        cell: record.cell.replace("b00", "b00~1").into(),
        measurement: Some(measurement(2.0)),
        ..record.clone()
    }
}

#[test]
fn of_a_part_that_was_interrupted_the_whole_attempt_counts_and_was_not_disturbed() {
    let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 1).fill(|_, _, _| 1.0);
    let is_sample = |record: &&Record| record.purpose == Purpose::Sample;
    let whole: Vec<Record> = lab.records.iter().filter(is_sample).map(again).collect();
    assert_eq!(whole.len(), 2);
    lab = lab.without(|record| &*record.cell == "larson@2/b00/hoard");
    lab.records.extend(whole);
    let analysis = run(&lab);
    for row in ["glibc", "hoard"] {
        assert!(close(numbers(&analysis, row).time().spread.median, 2.0));
    }
    assert_eq!(analysis.interference.repeated, 0);
}

/// Both run one after the other and are run again as one: a pair from two attempts would be none.
#[test]
fn a_case_and_the_same_under_a_factor_count_from_one_attempt() {
    let mut lab = FakeRun::new(&["glibc"], &["larson"], 1);
    let aged = lab.run.plan.cases[0].under(Factor::Age(50));
    lab.run.plan.cases.push(aged);
    lab = lab.fill(|_, _, _| 1.0);
    let is_sample = |record: &&Record| record.purpose == Purpose::Sample;
    let second: Vec<Record> = lab.records.iter().filter(is_sample).map(again).collect();
    lab.records.extend(second);
    lab.cell("larson-aged@2/b00/glibc").interference = Some(others(0.9, 0.0));
    let analysis = run(&lab);
    for case in &analysis.cases {
        let median = case.rows[0].time().spread.median;
        assert!(close(median, 2.0), "{}: {median}", case.workload);
    }
    let seen = &analysis.interference;
    assert_eq!((seen.parts, seen.repeated, seen.disturbed), (1, 1, 0));
}

/// Two attempts of one part, and which of them counts.
fn chosen(attempts: [Interference; 2]) -> usize {
    let mut lab = FakeRun::new(&["glibc"], &["larson"], 1).fill(|_, _, _| 1.0);
    let first = lab.cell("larson@2/b00/glibc");
    first.interference = Some(attempts[0]);
    let second = Record {
        attempt: 1,
        cell: "larson@2/b00~1/glibc".into(),
        measurement: Some(measurement(2.0)),
        interference: Some(attempts[1]),
        ..first.clone()
    };
    lab.records.push(second);
    numbers(&run(&lab), "glibc").time().spread.median as usize - 1
}

fn others(foreign: f64, steal: f64) -> Interference {
    Interference {
        foreign_cpu_share: Some(foreign),
        steal_share: Some(steal),
        ..QUIET
    }
}

#[test]
fn the_quietest_attempt_is_the_one_whose_worst_cause_is_least() {
    assert_eq!(
        chosen([others(0.01, 0.80), others(0.02, 0.11)]),
        1,
        "by steal"
    );
    assert_eq!(
        chosen([others(0.02, 0.11), others(0.01, 0.80)]),
        0,
        "by steal"
    );
    assert_eq!(
        chosen([others(0.90, 0.0), others(0.30, 0.05)]),
        1,
        "by other programs"
    );
    // Each as a share of its limit: 0.5 of a core are twice as much, 0.15 of steal one and a half
    // times.
    assert_eq!(chosen([others(0.5, 0.0), others(0.0, 0.15)]), 1);
    assert_eq!(chosen([others(0.3, 0.0), others(0.0, 0.15)]), 0);
    // Stalls that may be its own doing are not weighed.
    let stalled = Interference {
        foreign_cpu_share: Some(0.3),
        ..OWN_DOING
    };
    assert_eq!(chosen([stalled, others(0.4, 0.0)]), 0);
    assert_eq!(
        chosen([others(0.4, 0.0), OWN_DOING]),
        1,
        "held up by itself, and left alone by others"
    );
}

#[test]
fn the_ends_of_its_own_threads_are_no_other_program() {
    let of = |new_tasks| {
        disturbed_by(&Interference {
            wall_ns: 1_000_000_000,
            foreign_cpu_share: Some(0.6),
            new_tasks,
            ..QUIET
        })
    };
    assert_eq!(of(Some(48_000)), [""; 0]);
    assert_eq!(of(Some(1000)), ["other programs"]);
    assert_eq!(of(None), ["other programs"]);
}

#[test]
fn what_disturbs_two_cpus_leaves_room_on_64() {
    let of = |cpus, share| {
        disturbed_by(&Interference {
            cpus,
            foreign_cpu_share: Some(share),
            ..QUIET
        })
    };
    assert_eq!(
        (of(Some(1), 0.3), of(Some(2), 0.3), of(None, 0.3)),
        (
            vec!["other programs"],
            vec!["other programs"],
            vec!["other programs"]
        )
    );
    assert_eq!(
        (
            of(Some(2), 0.2).len(),
            of(Some(64), 0.3).len(),
            of(Some(64), 7.9).len(),
            of(Some(64), 8.1).len()
        ),
        (0, 0, 0, 1)
    );
}

/// CPU time is counted in ticks of 10 ms: a process of 20 ms beside an idle machine was seen with 0.5
/// of a core of others as often as with -0.5.
#[test]
fn what_the_clock_ticks_can_make_up_is_no_interference() {
    let of = |wall_ms: u64, share| {
        let interference = Interference {
            wall_ns: wall_ms * 1_000_000,
            foreign_cpu_share: Some(share),
            ..QUIET
        };
        !disturbed_by(&interference).is_empty()
    };
    assert_eq!([of(20, 0.5), of(20, 1.2)], [false, false], "two ticks");
    assert_eq!(
        [of(20, 1.3), of(200, 0.34), of(200, 0.36)],
        [true, false, true]
    );
    let stolen = |wall_ms: u64| Interference {
        wall_ns: wall_ms * 1_000_000,
        steal_share: Some(10.0 / wall_ms as f64),
        ..QUIET
    };
    assert!(disturbed_by(&stolen(20)).is_empty(), "one tick");
}

/// As it was stored before a process's CPUs were distinguished from the machine's.
#[test]
fn runs_of_before_are_read_by_what_they_know() {
    let stored = r#"{"wall_ns":340000000,"foreign_cpu_share":0.31,"steal_share":0.0,"cpu_stall_share":0.2,
        "memory_stall_share":0.4,"swapped_pages":12,"throttled_ns":7,"throttled_times":1}"#;
    let old: Interference = serde_json::from_str(stored).unwrap();
    assert_eq!((old.cpus, old.own_memory_stall_share), (None, None));
    assert_eq!(disturbed_by(&old), ["other programs"]);
    // Its stalls alone made such a part run again: now its first attempt counts.
    let stalled = Interference {
        foreign_cpu_share: Some(0.1),
        ..old
    };
    assert_eq!(
        chosen([
            stalled,
            Interference {
                foreign_cpu_share: Some(0.0),
                ..Interference::default()
            }
        ]),
        0
    );
}
