//! Verdicts on rows: with planted differences, copies that differ, high floors, parts and
//! modes.

use super::*;
use crate::analyse::Verdict;

fn called(analysis: &Analysis, name: &str) -> Verdict {
    numbers(analysis, name).time().verdict.unwrap()
}

pub(super) fn with_tier(mut lab: FakeRun, name: &str, tier: &str) -> FakeRun {
    lab.allocator(name).tier = tier.into();
    lab.run.plan.allocators.retain(|known| known != name);
    let place = if tier == "aa-copy" {
        &mut lab.run.plan.aa_copy
    } else {
        &mut lab.run.plan.floor
    };
    *place = Some(name.into());
    lab
}

/// Times by name, each with independent scatter.
fn lab(times: &[(&str, f64)], blocks: u32) -> FakeRun {
    let names: Vec<&str> = times.iter().map(|(name, _)| *name).collect();
    let of = |name: &str| times.iter().find(|(known, _)| *known == name).unwrap().1;
    FakeRun::new(&names, &["larson"], blocks)
        .fill(move |_, name, block| of(name) * noise(name, block))
}

#[test]
fn each_word_has_its_difference() {
    let analysis = run(&lab(
        &[
            ("glibc", 20.0),
            ("half", 10.0),
            ("twice", 40.0),
            ("equal", 20.0),
        ],
        20,
    ));
    assert_eq!(called(&analysis, "half"), Verdict::Faster);
    assert_eq!(called(&analysis, "twice"), Verdict::Slower);
    assert_eq!(called(&analysis, "equal"), Verdict::Same);
    let few = run(&lab(&[("glibc", 20.0), ("half", 10.0)], 3));
    assert!(
        matches!(
            called(&few, "half"),
            Verdict::TooFew {
                blocks_more: Some(3)
            }
        ),
        "{:?}",
        called(&few, "half")
    );
    assert!(
        numbers(&analysis, "glibc").time().verdict.is_none(),
        "nothing is said of the baseline"
    );
}

#[test]
fn a_copy_that_differs_leaves_only_what_differs_by_more() {
    let of = |times: &[(&str, f64)]| run(&with_tier(lab(times, 12), "copy", "aa-copy"));
    let with = |copy, near| {
        of(&[
            ("glibc", 20.0),
            ("half", 10.0),
            ("near", near),
            ("copy", copy),
        ])
    };
    let equal = with(20.0, 19.4);
    assert_eq!(called(&equal, "half"), Verdict::Faster);
    assert_eq!(called(&equal, "near"), Verdict::Faster);
    assert!(
        matches!(equal.conclusion, Conclusion::Fastest(_)),
        "{:?}",
        equal.conclusion
    );
    assert!(
        !equal.cases[0].aa_copy_differs
            && (equal.cases[0].aa_copy.unwrap().ratio - 1.0).abs() < 0.005
    );
    let other = with(21.0, 19.4);
    assert!(other.cases[0].aa_copy_differs);
    assert_eq!(called(&other, "half"), Verdict::Faster);
    assert_eq!(called(&other, "near"), Verdict::AaCopyDiffers);
    assert!(
        matches!(&other.conclusion, Conclusion::Fastest(ranking) if ranking.leader == "half"),
        "{:?}",
        other.conclusion
    );
    // "The same" would be a claim about a small difference.
    assert_eq!(called(&with(20.0, 20.0), "near"), Verdict::Same);
    assert_eq!(called(&with(21.0, 20.0), "near"), Verdict::AaCopyDiffers);
    // Both are further from the baseline than the copy is, and not from each other.
    let doubts = |copy| match with(copy, 9.7).conclusion {
        Conclusion::Unclear(ranking) | Conclusion::Fastest(ranking) => {
            let doubts = ranking.tests.iter().map(|test| test.doubt);
            doubts.collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(doubts(20.0), [None, None]);
    assert_eq!(doubts(21.0), [Some(Doubt::Chance), None]);
    let small = of(&[("glibc", 20.0), ("near", 19.4), ("copy", 21.0)]);
    let Conclusion::Withheld(Withheld::AaCopy { ratio, .. }) = small.conclusion else {
        panic!("{:?}", small.conclusion)
    };
    assert!((ratio.ratio - 1.05).abs() < 0.01);
    // Four blocks are too few to say even that.
    let few = with_tier(
        lab(&[("glibc", 20.0), ("half", 10.0), ("copy", 21.0)], 4),
        "copy",
        "aa-copy",
    );
    let few = run(&few).conclusion;
    assert!(matches!(few, Conclusion::Unclear(_)), "{few:?}");
}

#[test]
fn a_copy_of_a_baseline_without_numbers_withholds_nothing() {
    let times = &[
        ("glibc", 20.0),
        ("half", 10.0),
        ("twice", 40.0),
        ("copy", 20.0),
    ];
    let lab = with_tier(lab(times, 12), "copy", "aa-copy").fail("larson@2/b03/glibc", crash());
    let conclusion = run(&lab).conclusion;
    assert!(
        matches!(conclusion, Conclusion::Fastest(_)),
        "{conclusion:?}"
    );
}

/// Four cases; in some of them the A/A copy takes twice the time, which leaves the ratios in the
/// others right.
#[test]
fn a_case_whose_copy_differs_keeps_its_place_in_what_is_said_over_all() {
    let build = |differs: &'static [&'static str]| {
        let cases = ["w0", "w1", "w2", "w3"];
        let lab = FakeRun::new(&["glibc", "half", "copy"], &cases, 15).fill(
            move |workload, name, block| {
                let ns = match name {
                    "half" if workload == "w3" => 100.0,
                    "half" => 10.0,
                    "copy" if differs.contains(&workload) && workload == "w2" => 10.0,
                    "copy" if differs.contains(&workload) => 40.0,
                    _ => 20.0,
                };
                ns * noise(&format!("{workload}{name}"), block)
            },
        );
        run(&with_tier(lab, "copy", "aa-copy"))
    };
    let ratio = |analysis: &Analysis| (analysis.overall[0].ratio, analysis.overall[0].cases);
    let (all, of_four) = ratio(&build(&[]));
    assert!(
        (all / (0.5f64.powi(3) * 5.0).powf(0.25) - 1.0).abs() < 0.01 && of_four == 4,
        "{all}"
    );
    // In two cases, in opposite directions, so that nothing differs over all.
    let two = build(&["w2", "w3"]);
    assert_eq!(
        two.cases
            .iter()
            .map(|case| case.aa_copy_differs)
            .collect::<Vec<_>>(),
        [false, false, true, true]
    );
    let (again, of_four) = ratio(&two);
    assert!((again / all - 1.0).abs() < 0.01 && of_four == 4, "{again}");
    let verdict = |case: usize| two.cases[case].rows[1].time().verdict;
    assert_eq!(
        [0, 2, 3].map(verdict),
        [Verdict::Faster, Verdict::AaCopyDiffers, Verdict::Slower].map(Some)
    );
    let Conclusion::Fastest(ranking) = &two.conclusion else {
        panic!("{:?}", two.conclusion)
    };
    assert_eq!((ranking.leader.as_str(), ranking.cases), ("half", 4));
    let none = build(&["w0", "w1", "w2", "w3"]);
    assert!(
        matches!(
            none.conclusion,
            Conclusion::Withheld(Withheld::AaCopy { .. })
        ),
        "{:?}",
        none.conclusion
    );
}

#[test]
fn a_floor_of_more_than_half_of_the_fastest_makes_ratios_bounds_and_the_sentence_says_what_was_measured()
 {
    let build = |floor| with_tier(lab(floor, 12), "null", "floor");
    let low = run(&build(&[("glibc", 20.0), ("half", 10.0), ("null", 4.0)]));
    assert_eq!(called(&low, "half"), Verdict::Faster);
    assert!((numbers(&low, "half").net_ns_per_op.unwrap() - 6.0).abs() < 0.2);
    let high = run(&build(&[("glibc", 20.0), ("half", 10.0), ("null", 6.0)]));
    assert_eq!(called(&high, "half"), Verdict::Faster);
    let half = |analysis: &Analysis| {
        let numbers = numbers(analysis, "half");
        (numbers.ratio_is_bound, numbers.time().ratio.unwrap().ratio)
    };
    assert!(!half(&low).0);
    let (is_bound, ratio) = half(&high);
    assert!(is_bound && (ratio - 0.5).abs() < 0.02, "{ratio}");
    let Conclusion::Fastest(ranking) = &high.conclusion else {
        panic!("{:?}", high.conclusion)
    };
    let said = ranking.against_baseline().unwrap().ratio.unwrap().ratio;
    assert!((said - ratio).abs() < 1e-9, "{said}");
}

#[test]
fn a_candidate_is_compared_with_the_baseline_of_its_own_part() {
    let mut lab = lab(&[("glibc", 20.0), ("half", 10.0)], 12);
    // The second part of each block ran while everything took three times as long.
    for record in lab
        .records
        .clone()
        .iter()
        .filter(|record| record.purpose == Purpose::Sample)
    {
        let mut later = record.clone();
        later.part = 1;
        later.cell = later.cell.replace("/b", "/c").into();
        later.measurement = Some(measurement(if record.allocator == "glibc" {
            60.0
        } else {
            30.0
        }));
        match record.allocator.as_str() {
            "glibc" => lab.records.push(later),
            _ => *lab.cell(&record.cell) = later,
        }
    }
    let analysis = run(&lab);
    let half = numbers(&analysis, "half").time().ratio.unwrap();
    assert!(close(half.ratio, 0.5) && half.pairs == 12, "{half:?}");
    assert_eq!(
        (
            numbers(&analysis, "glibc").samples,
            numbers(&analysis, "glibc").blocks
        ),
        (24, 12)
    );
}

#[test]
fn two_modes_are_told_as_two() {
    let lab = FakeRun::new(&["glibc", "torn"], &["larson"], 20).fill(|_, name, block| {
        let slow = name == "torn" && block % 3 == 0;
        noise(name, block) * if slow { 40.0 } else { 20.0 }
    });
    let analysis = run(&lab);
    let modes = numbers(&analysis, "torn").modes.expect("two modes");
    assert!(
        (modes.low - 20.0).abs() < 0.5 && (modes.high - 40.0).abs() < 0.5,
        "{modes:?}"
    );
    assert_eq!((modes.low_count, modes.high_count), (13, 7));
    assert!(numbers(&analysis, "glibc").modes.is_none());
}

#[test]
fn memory_has_words_of_its_own() {
    let mut lab = lab(&[("glibc", 20.0), ("large", 20.0)], 12);
    for record in lab
        .records
        .iter_mut()
        .filter(|record| record.allocator == "large")
    {
        if let Some(measurement) = &mut record.measurement {
            measurement.peak_rss_bytes += 1 << 20;
        }
    }
    let analysis = run(&lab);
    let large = numbers(&analysis, "large");
    assert_eq!(
        (large.time().verdict, large.verdict("grown_bytes")),
        (Some(Verdict::Same), Some(Verdict::Slower))
    );
    assert!(close(
        large.ratio("grown_bytes").unwrap().ratio,
        13.0 / 12.0
    ));
}

#[test]
fn of_several_attempts_the_first_quiet_one_counts() {
    let interference = |share| Interference {
        wall_ns: 10_000_000_000,
        foreign_cpu_share: Some(share),
        ..Interference::default()
    };
    let mut lab = lab(&[("glibc", 20.0), ("half", 10.0)], 12);
    for record in lab
        .records
        .clone()
        .iter()
        .filter(|record| record.block == 3 && record.purpose == Purpose::Sample)
    {
        lab.cell(&record.cell).interference = Some(interference(0.9));
        for (attempt, share) in [(1, 0.4), (2, 0.0)] {
            let mut again = record.clone();
            (again.attempt, again.cell) = (
                attempt,
                record.cell.replace("b03", &format!("b03~{attempt}")).into(),
            );
            again.interference = Some(interference(share));
            again.measurement = Some(measurement(f64::from(attempt) * 1000.0));
            lab.records.push(again);
        }
    }
    let analysis = run(&lab);
    assert_eq!(
        (
            analysis.interference.disturbed,
            analysis.interference.repeated
        ),
        (0, 2)
    );
    assert!(
        close(numbers(&analysis, "half").time().spread.max, 2000.0),
        "the second repetition was quiet"
    );
    let loud = run(&lab.without(|record| record.attempt == 2));
    assert_eq!(
        (
            loud.interference.disturbed,
            loud.interference.causes["other programs"]
        ),
        (1, 1)
    );
    assert!(
        close(numbers(&loud, "half").time().spread.max, 1000.0),
        "the quieter of the two"
    );
}

#[test]
fn what_fails_in_a_part_that_does_not_count_has_failed_all_the_same() {
    let mut lab = lab(&[("glibc", 20.0), ("half", 10.0)], 12);
    for record in lab
        .records
        .clone()
        .iter()
        .filter(|record| record.block == 3 && record.purpose == Purpose::Sample)
    {
        lab.cell(&record.cell).interference = Some(Interference {
            wall_ns: 10_000_000_000,
            foreign_cpu_share: Some(0.9),
            ..Interference::default()
        });
        let (attempt, cell) = (1, record.cell.replace("b03", "b03~1").into());
        lab.records.push(Record {
            attempt,
            cell,
            ..record.clone()
        });
    }
    let cell = lab
        .records
        .iter()
        .find(|record| record.attempt == 0 && record.block == 3 && record.allocator == "half");
    let cell = cell.unwrap().cell.clone();
    let analysis = run(&lab.fail(&cell, crash()));
    let half = row(&analysis, "half");
    assert_eq!(half.failed.as_ref().unwrap().counts, [("crash", 1)]);
}

/// A trace in its first round, and in later ones: of the same trace, or of another one.
fn two_rounds(second_trace: &str) -> Analysis {
    let mut lab = FakeRun::new(&["glibc", "half"], &["trace:a", "trace:b-reuse"], 12)
        .fill(|_, name, block| if name == "half" { 10.0 } else { 20.0 } * noise(name, block));
    for (case, trace, cold) in [(0, "a", 0), (1, second_trace, 1)] {
        let case = &mut lab.run.plan.cases[case];
        case.target = crate::plan::Target::Kernel("replay".into());
        case.parameters.insert("sha256".into(), trace.into());
        case.cold = cold;
    }
    run(&lab)
}

#[test]
fn one_verdict_covers_both_kinds_of_rounds_unless_a_trace_has_both() {
    let apart = two_rounds("a");
    assert!(apart.later_rounds.is_some() && apart.overall.is_empty());
    let together = two_rounds("b");
    assert!(together.later_rounds.is_none());
    assert_eq!(together.overall[0].cases, 2);
}

#[test]
fn all_cases_together_have_memory_user_time_and_verdicts_too() {
    let names = ["glibc", "half", "null"];
    let lab = FakeRun::new(&names, &["w0", "w1"], 12).fill(|workload, name, block| {
        let ns = match (name, workload) {
            ("null", _) => 1.0,
            ("half", "w0") => 10.0,
            ("half", _) => 30.0,
            _ => 20.0,
        };
        ns * noise(&format!("{workload}{name}"), block)
    });
    let lab = with_tier(lab, "null", "floor");
    let analysis = run(&lab);
    let names: Vec<&str> = (analysis.overall.iter())
        .map(|one| one.allocator.as_str())
        .collect();
    assert_eq!(names, ["half", "glibc"], "the fastest first, no floor");
    let [half, glibc] = &analysis.overall[..] else {
        panic!("{names:?}")
    };
    assert_eq!((half.faster, half.slower, half.cases), (1, 1, 2));
    assert_eq!((glibc.faster, glibc.slower), (0, 0));
    assert!(glibc.ratio == 1.0 && glibc.interval.is_none());
    // (10 - 1) / (20 - 1) and (30 - 1) / (20 - 1)
    let alone = half.alone.unwrap();
    let expected = (9.0f64 * 29.0).sqrt() / 19.0;
    assert!((alone.ratio / expected - 1.0).abs() < 0.02, "{alone:?}");
    assert!(half.ratio > alone.ratio && glibc.alone.is_none());
    let user = half.user_ratio.unwrap();
    assert!((user / half.ratio - 1.0).abs() < 0.2, "{user}");
    assert!(half.memory.is_some() && half.kernel_share.is_some_and(|share| share > 0.0));
}

#[test]
fn the_noise_of_the_floor_is_in_what_malloc_alone_takes_and_not_in_what_was_measured() {
    let with = |scatter: f64| {
        let lab = FakeRun::new(&["glibc", "half", "null"], &["w0", "w1"], 12).fill(
            |workload, name, block| {
                let ns = match name {
                    "null" => 5.0 * (1.0 + scatter * [-1.0, 1.0][block as usize % 2]),
                    "half" => 10.0,
                    _ => 20.0,
                };
                ns * noise(&format!("{workload}{name}"), block)
            },
        );
        run(&with_tier(lab, "null", "floor")).overall
    };
    let half_width = |interval: Option<(f64, f64)>| {
        let (low, high) = interval.unwrap();
        (high / low).ln() / 2.0
    };
    let [quiet, noisy] = [0.0, 0.3].map(|scatter| with(scatter)[0].clone());
    let of = |one: &Overall| half_width(one.alone.unwrap().interval);
    assert!(of(&noisy) > 2.0 * of(&quiet), "{noisy:?} {quiet:?}");
    assert_eq!(noisy.interval, quiet.interval);
}
