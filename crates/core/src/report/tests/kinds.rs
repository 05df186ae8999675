//! Properties that the tables of all kinds of runs share.

use super::{WIDE, exported, on};
use crate::analyse::compare::{Side, between, within};
use crate::analyse::fake_run::FakeRun;
use crate::analyse::{analyse, standings};
use crate::metric::WALL;
use crate::plan::{Counter, Factor, HugePages, Mode, Target};
use crate::report::{ComparisonSubject, Format, comparison as compared, render};

/// Makes runs of another kind of those that time.
const KINDS: [fn(FakeRun) -> FakeRun; 4] = [
    |lab| lab,
    |lab| lab.timing_calls(16, |_| vec![(20, 1000)]),
    |lab| lab.following_memory(|_| Some((8, 16))),
    |mut lab| {
        lab.run.plan.mode = Mode::Count(Counter::Kernel);
        lab
    },
];

#[test]
fn what_a_case_says_of_itself_and_what_its_mark_means_stand_below_each_kind_of_table() {
    for kind in KINDS {
        let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
        let case = &mut lab.run.plan.cases[0];
        (case.caution, case.oversubscribed) = (Some("Calls that failed: 3.".into()), true);
        let page = on(WIDE, &kind(lab));
        assert!(page.contains("2 threads (oversubscribed)"), "{page}");
        assert_eq!(page.matches("Calls that failed: 3.").count(), 1, "{page}");
        assert_eq!(
            page.matches("the scheduler is measured too").count(),
            1,
            "{page}"
        );
    }
}

#[test]
fn a_heading_names_the_factor_in_each_kind_of_table() {
    for kind in KINDS {
        let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3);
        let advised = Factor::HugePages(HugePages::Advised);
        let under = lab.run.plan.cases[0].under(advised);
        lab.run.plan.cases.push(under);
        let page = on(WIDE, &kind(lab.fill(|_, _, _| 20.0)));
        assert!(page.contains("2 threads, huge pages: advised"), "{page}");
    }
}

#[test]
fn an_allocator_that_is_slow_once_and_fast_in_a_used_heap_is_told_so_and_no_word_is_of_both() {
    let mut lab = FakeRun::new(&["glibc", "hoard"], &["trace:a", "trace:a-reuse"], 12);
    lab.run
        .plan
        .cases
        .iter_mut()
        .for_each(|case| case.target = Target::Kernel("replay".into()));
    lab.run.plan.cases[0].cold = 0;
    let lab = lab.fill(|case, name, _| match (case, name) {
        ("trace:a", "hoard") => 30.0,
        ("trace:a-reuse", "hoard") => 5.0,
        _ => 20.0,
    });
    let page = on(WIDE, &lab).replace('\n', " ");
    assert!(
        page.contains("First rounds: glibc, the baseline, is the fastest here, over 1 case"),
        "{page}"
    );
    assert!(
        page.contains("Later rounds: hoard is the fastest here, over 1 case"),
        "{page}"
    );
    assert!(
        !page.contains("all cases") && !page.contains("over 2 cases"),
        "{page}"
    );
}

/// A run whose cases are replays at the recorded times.
fn paced() -> FakeRun {
    let mut lab =
        FakeRun::new(&["glibc", "hoard", "null"], &["larson"], 10).fill(|_, name, _| match name {
            "null" => 19.0,
            "hoard" => 10.0,
            _ => 20.0,
        });
    lab.allocator("null").tier = "floor".into();
    let case = &mut lab.run.plan.cases[0];
    (case.target, case.cold) = (Target::Kernel("replay".into()), 0);
    case.parameters.insert("mode".into(), "paced".into());
    lab
}

#[test]
fn of_a_paced_replay_memory_is_told_and_no_time() {
    let page = on(WIDE, &paced());
    assert!(page.contains("hoard") && page.contains("1.20x"), "{page}");
    assert!(
        page.contains("No verdict: a paced replay takes the recorded time"),
        "{page}"
    );
    for word in [
        "ns/op", "time /", "CPU", "floor", "A/A", "harness", "faster",
    ] {
        assert!(!page.contains(word), "{word}: {page}");
    }
    let mut timed = paced();
    timed.run.plan.cases[0]
        .parameters
        .insert("mode".into(), "speed".into());
    assert!(
        on(WIDE, &timed).contains("the harness takes more than half"),
        "else there is much to say"
    );
}

#[test]
fn paced_replays_are_not_compared_by_time() {
    let lab = paced();
    let side = || Side {
        head: &lab.run,
        records: &lab.records,
    };
    for comparison in [
        within(&side(), WALL, 0.01),
        between(&side(), &side(), WALL, 0.01),
    ] {
        assert!(comparison.rows.is_empty(), "{:?}", comparison.rows);
        let whys: Vec<&str> = comparison
            .left_out
            .iter()
            .map(|left| left.why.as_str())
            .collect();
        assert!(
            !whys.is_empty() && whys.iter().all(|why| why.contains("recorded times")),
            "{whys:?}"
        );
    }
    assert!(
        standings(&lab.run, &lab.records).is_empty(),
        "nothing would become more precise"
    );
}

/// The new machine takes twice the time for all, and an allocator that scatters is not known to have changed.
#[test]
fn a_mark_of_a_comparison_follows_from_the_ratio_that_is_judged() {
    let of = |by: f64| {
        FakeRun::new(&["glibc", "hoard"], &["larson"], 12).fill(move |_, name, block| {
            let scatter = match (name, block % 3) {
                ("glibc", _) | (_, 0) => 1.0,
                (_, 1) => 0.8,
                _ => 1.25,
            };
            20.0 * by * scatter
        })
    };
    let (old, new) = (of(1.0), of(2.0));
    fn side(lab: &FakeRun) -> Side<'_> {
        Side {
            head: &lab.run,
            records: &lab.records,
        }
    }
    let comparison = between(&side(&old), &side(&new), WALL, 0.01);
    let subject = ComparisonSubject {
        new: &new.run,
        old: Some(&old.run),
        by: WALL,
        threshold: 0.01,
    };
    let text = render::terminal(&compared(subject, &comparison), WIDE);
    assert!(text.contains("2.00") && text.contains("unclear"), "{text}");
    assert!(!text.contains("slower?"), "{text}");
}

#[test]
fn a_pull_request_does_not_name_the_harnesss_own_floor() {
    let mut lab = FakeRun::new(&["glibc", "rpmalloc", "null"], &["larson"], 10)
        .fill(|_, name, _| name.len() as f64);
    lab.allocator("null").tier = "floor".into();
    lab.allocator("rpmalloc").release = "rpmalloc 2".into();
    let text = exported(Format::Pr, &lab);
    assert!(text.contains("rpmalloc is rpmalloc 2."), "{text}");
}

#[test]
fn a_pull_request_says_how_many_rows_it_leaves_out_where_it_is_shown() {
    let names = ["glibc", "a", "b", "c", "d", "e", "f"];
    let lab = FakeRun::new(&names, &["larson"], 10).fill(|_, _, _| 20.0);
    let text = exported(Format::Pr, &lab);
    assert!(text.contains("\nAnd 2 more rows. heapmark "), "{text}");
}

#[test]
fn a_pull_request_has_a_command_only_if_it_repeats_the_run() {
    let lab = || FakeRun::new(&["hoard", "glibc"], &["larson"], 10).fill(|_, _, _| 20.0);
    let again = |lab: FakeRun| {
        let text = exported(Format::Pr, &lab);
        text.lines().last().unwrap().to_owned()
    };
    assert!(again(lab()).ends_with("--baseline hoard`"));
    let mut changed = lab();
    changed.run.set = vec!["larson.chunks=1 00".into()];
    changed.run.threads = vec!["1".into(), "max".into()];
    let line = again(changed);
    assert!(
        line.contains(" quick -t '1,max' --set 'larson.chunks=1 00' "),
        "{line}"
    );
    let mut planned = lab();
    planned.run.suite = "selftest".into();
    assert!(!again(planned).contains("Again"));
    let mut named = lab();
    named.run.set = vec!["larson.chunks=`1".into()];
    assert!(!again(named).contains("Again"));
    let latency = lab().timing_calls(16, |_| vec![(20, 1000)]);
    let refused = crate::report::export(Format::Pr, &latency.run, &latency.records);
    assert!(refused.is_err());
    let mut replay = lab();
    replay.run.suite = "custom".into();
    replay.run.plan.cases[0].target = Target::Kernel("replay".into());
    assert!(!again(replay).contains("Again"));
}

#[test]
fn each_number_of_a_row_stands_below_its_own_name() {
    let mut lab = FakeRun::new(&["glibc", "rpmalloc", "null"], &["larson"], 10)
        .fill(|_, name, block| name.len() as f64 + f64::from(block * block));
    lab.allocator("null").tier = "floor".into();
    let text = exported(Format::Rows, &lab);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    for (numbers, line) in analyse(&lab.run, &lab.records).cases[0]
        .rows
        .iter()
        .zip(&lines[1..])
    {
        let (ratio, memory) = (numbers.time().ratio, numbers.memory());
        for (column, number) in [
            ("threads", Some(2.0)),
            ("blocks", Some(numbers.blocks as f64)),
            ("samples", Some(numbers.samples as f64)),
            ("planned_blocks", Some(10.0)),
            ("ns_per_op", Some(numbers.time().spread.median)),
            ("ns_per_op_min", Some(numbers.time().spread.min)),
            ("ns_per_op_max", Some(numbers.time().spread.max)),
            ("purge_share", numbers.median("purge_share")),
            ("mops_per_s", Some(numbers.rate().median)),
            ("mops_per_s_min", Some(numbers.rate().min)),
            ("cpu_ns_per_op", numbers.median("cpu_ns_per_op")),
            (
                "cpu_ns_per_op_max",
                numbers.cell("cpu_ns_per_op").map(|it| it.spread.max),
            ),
            ("ratio", ratio.map(|it| it.ratio)),
            ("ratio_low", ratio.and_then(|it| Some(it.interval?.0))),
            ("ratio_high", ratio.and_then(|it| Some(it.interval?.1))),
            ("ratio_pairs", ratio.map(|it| it.pairs as f64)),
            (
                "cpu_ratio",
                numbers.ratio("cpu_ns_per_op").map(|it| it.ratio),
            ),
            ("peak_rss_bytes", memory.map(|it| it.peak_rss_bytes)),
            ("overhead", memory.and_then(|it| it.overhead)),
            (
                "memory_ratio",
                numbers.ratio("grown_bytes").map(|it| it.ratio),
            ),
            ("floor_share", numbers.floor_share),
            ("net_ns_per_op", numbers.net_ns_per_op),
        ] {
            let place = lines[0].iter().position(|title| *title == column).unwrap();
            assert_eq!(line[place].parse().ok(), number, "{column}: {text}");
        }
    }
}
