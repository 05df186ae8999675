//! Tests of comparisons, by the values of fake runs.

use super::*;
use crate::analyse::analyse;
use crate::analyse::fake_run::{FakeRun, crash, noise};
use crate::execute::user_command::{SLOWER_CALLS, SLOWER_WALL};
use crate::metric::{self, WALL};
use crate::plan::Target;

fn lab(times: impl Fn(&str) -> f64) -> FakeRun {
    FakeRun::new(&["glibc", "hoard"], &["larson"], 12)
        .fill(|_, name, block| times(name) * noise(name, block))
}

fn side(lab: &FakeRun) -> Side<'_> {
    Side {
        head: &lab.run,
        records: &lab.records,
    }
}

fn word(comparison: &Comparison, name: &str) -> Option<&'static str> {
    comparison
        .rows
        .iter()
        .find(|row| row.allocator == name)
        .unwrap()
        .verdict
        .map(Verdict::word)
}

#[test]
fn within_a_run_candidates_stand_beside_the_baseline_by_the_threshold_that_is_asked_for() {
    let lab = lab(|name| if name == "hoard" { 21.0 } else { 20.0 });
    let at = |threshold| within(&side(&lab), WALL, threshold);
    assert_eq!(
        (word(&at(0.01), "hoard"), at(0.01).rows.len()),
        (Some("slower"), 1)
    );
    assert!((at(0.01).rows[0].ratio.ratio - 1.05).abs() < 0.01);
    assert_eq!(word(&at(0.2), "hoard"), Some("same"));
    let cpu = metric::all().find(|metric| metric.is_named("cpu")).unwrap();
    assert_eq!(
        word(&within(&side(&lab), cpu, 0.01), "hoard"),
        Some("slower")
    );
}

#[test]
fn a_machine_that_got_slower_is_not_an_allocator_that_did() {
    let (old, new) = (lab(|_| 20.0), lab(|_| 40.0));
    let both = between(&side(&old), &side(&new), WALL, 0.01);
    assert_eq!(both.anchor.as_deref(), Some("glibc"));
    assert_eq!(
        (word(&both, "glibc"), word(&both, "hoard")),
        (None, Some("unclear"))
    );
    // Two runs of one binary are known to be the same only to what runs differ by.
    let roughly = between(&side(&old), &side(&new), WALL, 0.2);
    assert_eq!(word(&roughly, "hoard"), Some("same"));
    let hoard = both
        .rows
        .iter()
        .find(|row| row.allocator == "hoard")
        .unwrap();
    assert!(
        (hoard.ratio.ratio - 2.0).abs() < 0.02
            && (hoard.beside_anchor.unwrap().ratio - 1.0).abs() < 0.01
    );
}

#[test]
fn an_allocator_that_got_slower_beside_its_anchor_is_one() {
    let (old, new) = (
        lab(|_| 20.0),
        lab(|name| if name == "hoard" { 24.0 } else { 20.0 }),
    );
    assert_eq!(
        word(&between(&side(&old), &side(&new), WALL, 0.01), "hoard"),
        Some("slower")
    );
    let little = lab(|name| if name == "hoard" { 21.0 } else { 20.0 });
    assert_eq!(
        word(&between(&side(&old), &side(&little), WALL, 0.01), "hoard"),
        Some("unclear"),
        "the state of the machine may be that"
    );
    assert_eq!(
        word(&between(&side(&new), &side(&old), WALL, 0.01), "hoard"),
        Some("faster")
    );
}

#[test]
fn without_a_common_baseline_rows_are_judged_as_they_are_and_the_difference_is_told() {
    let (old, mut new) = (lab(|_| 20.0), lab(|_| 24.0));
    new.allocator("glibc").version = "2.99".into();
    new.run.machine.insert("cpu".into(), "Abacus 3".into());
    let both = between(&side(&old), &side(&new), WALL, 0.01);
    assert_eq!(
        (
            both.anchor.clone(),
            word(&both, "glibc"),
            word(&both, "hoard")
        ),
        (None, Some("slower"), Some("slower"))
    );
    let differing: Vec<&str> = both
        .differences
        .iter()
        .map(|difference| difference.what.as_str())
        .collect();
    assert_eq!(differing, ["cpu", "glibc"]);
    // Nor is a library the same that needs another one than before.
    let (old, mut new) = (lab(|_| 20.0), lab(|_| 20.0));
    let needs = &mut new.allocator("glibc").needs;
    needs.insert("/opt/libcore.so".into(), "0123456789abcdef".into());
    assert_eq!(between(&side(&old), &side(&new), WALL, 0.01).anchor, None);
}

#[test]
fn processes_of_one_block_are_one_value() {
    let in_three_parts = |ns: f64| {
        FakeRun::new(&["glibc", "hoard"], &["larson"], 3)
            .fill(|_, name, block| ns * noise(name, block))
            .in_three_parts("glibc")
    };
    let (old, mut new) = (in_three_parts(20.0), in_three_parts(30.0));
    new.allocator("glibc").version = "2.99".into();
    let both = between(&side(&old), &side(&new), WALL, 0.01);
    assert_eq!(
        (both.anchor.as_deref(), both.rows[0].ratio.pairs),
        (None, 3)
    );
    assert_eq!(word(&both, "glibc"), Some("too few blocks"));
}

#[test]
fn where_no_allocator_changes_the_time_memory_is_compared_and_no_time() {
    fn paced(mut lab: FakeRun) -> FakeRun {
        let case = &mut lab.run.plan.cases[0];
        case.target = Target::Kernel("replay".into());
        case.parameters.insert("mode".into(), "paced".into());
        lab
    }
    fn until_a_time(lab: FakeRun) -> FakeRun {
        let figures = [(SLOWER_CALLS, 0.1), (SLOWER_WALL, 1.0)];
        lab.told("larson@2/check/glibc", &figures)
    }
    let kinds: [fn(FakeRun) -> FakeRun; 2] = [paced, until_a_time];
    let memory = metric::all()
        .find(|metric| metric.is_named("memory"))
        .unwrap();
    for kind in kinds {
        let holding = |more_bytes: u64| {
            let mut lab = lab(|_| 20.0);
            for record in &mut lab.records {
                if let Some(measurement) = &mut record.measurement {
                    let is_hoard = record.allocator == "hoard";
                    measurement.peak_rss_bytes += if is_hoard { more_bytes } else { 0 };
                }
            }
            kind(lab)
        };
        let (old, new) = (holding(0), holding(12 << 20));
        let by = |metric| {
            [
                within(&side(&new), metric, 0.01),
                between(&side(&old), &side(&new), metric, 0.01),
            ]
        };
        for comparison in by(memory) {
            assert_eq!(word(&comparison, "hoard"), Some("slower"));
        }
        for comparison in by(WALL) {
            assert!(comparison.rows.is_empty(), "{:?}", comparison.rows);
            assert!(comparison.left_out[0].why.contains("no allocator changes"));
        }
    }
}

#[test]
fn rows_without_a_counterpart_say_why() {
    let old = lab(|_| 20.0);
    let why = |new: &FakeRun| {
        between(&side(&old), &side(new), WALL, 0.01).left_out[0]
            .why
            .clone()
    };
    let mut other_work = lab(|_| 20.0);
    other_work.run.plan.cases[0]
        .parameters
        .insert("chunks".into(), "7".into());
    assert_eq!(why(&other_work), "chunks was not set and is 7: other work");
    let failed = lab(|_| 20.0).fail("larson@2/b01/hoard", crash());
    assert_eq!(why(&failed), "one of the runs has no numbers for it");
    let crashed = lab(|_| 40.0).fail("larson@2/b01/glibc", crash());
    let moved = between(&side(&old), &side(&crashed), WALL, 0.01);
    let whys: Vec<&str> = moved.left_out.iter().map(|left| &*left.why).collect();
    assert_eq!(whys, [NO_NUMBERS, NO_ANCHOR]);
    let mut elsewhere = lab(|_| 20.0);
    elsewhere.run.plan.cases[0].threads = 3;
    assert_eq!(why(&elsewhere), "the old run does not have its case");
    let less = FakeRun::new(&["glibc"], &["larson"], 12).fill(|_, _, _| 20.0);
    assert_eq!(why(&less), "the new run does not have it");
}

#[test]
fn what_the_copy_of_the_baseline_shows_is_claimed_of_no_allocator() {
    let lab_with = |copy: f64, slower: f64, [glibc, hoard]: [f64; 2]| {
        let names = ["glibc", "hoard", "glibc (copy)"];
        let mut lab = FakeRun::new(&names, &["open-loop"], 12).fill(|_, name, block| {
            let factor = match name {
                "glibc (copy)" => copy,
                "hoard" => slower,
                _ => 1.0,
            };
            20.0 * factor * noise("", block)
        });
        lab.run.plan.aa_copy = Some("glibc (copy)".into());
        lab.run.plan.allocators.pop();
        lab.allocator("glibc (copy)").tier = "aa-copy".into();
        for record in &mut lab.records {
            let p99_ns = match &*record.allocator {
                "glibc" => glibc,
                "hoard" => hoard,
                _ => glibc * copy,
            };
            if let Some(measurement) = &mut record.measurement {
                let noisy = p99_ns * noise(&record.allocator, record.block);
                measurement.figures.insert("open_p99_ns".into(), noisy);
                let is_hoard = record.allocator == "hoard";
                measurement.peak_rss_bytes += if is_hoard { 12 << 20 } else { 0 };
            }
        }
        lab
    };
    let lab = |copy, p99_ns| lab_with(copy, 1.0, p99_ns);
    let words = |lab: &FakeRun| {
        ["ns_per_op", "grown_bytes", "open_p99_ns"].map(|key| {
            let by = metric::all().find(|metric| metric.is_named(key)).unwrap();
            word(&within(&side(lab), by, 0.01), "hoard").unwrap()
        })
    };
    assert_eq!(
        words(&lab(1.0, [1000.0, 5000.0])),
        ["same", "slower", "slower"]
    );
    // Memory does not depend on what else the machine does.
    assert_eq!(
        words(&lab(1.5, [1000.0, 5000.0])),
        ["withheld: A/A", "slower", "withheld: A/A"]
    );
    // Nothing is claimed about an allocator beside itself in another run, whichever of the two runs was disturbed.
    let [quiet, disturbed] = [1.0, 1.5].map(|copy| lab(copy, [1000.0, 5000.0]));
    for (old, new) in [(&quiet, &disturbed), (&disturbed, &quiet)] {
        let both = between(&side(old), &side(new), WALL, 0.01);
        assert_eq!(word(&both, "hoard"), Some("withheld: A/A"));
    }
    let both = between(&side(&quiet), &side(&quiet), WALL, 0.2);
    assert_eq!(word(&both, "hoard"), Some("same"));
    // Memory has no state of the machine in it.
    let memory = metric::all().find(|metric| metric.is_named("memory"));
    let both = between(&side(&quiet), &side(&quiet), memory.unwrap(), 0.01);
    assert_eq!(word(&both, "hoard"), Some("same"));
    // What differs by more than the copy does is no doing of the machine.
    for (slower, expected) in [(1.2, "withheld: A/A"), (2.0, "slower")] {
        let disturbed = lab_with(1.5, slower, [1000.0, 5000.0]);
        let within = within(&side(&disturbed), WALL, 0.01);
        let between = between(&side(&quiet), &side(&disturbed), WALL, 0.01);
        for found in [within, between] {
            assert_eq!(word(&found, "hoard"), Some(expected));
        }
    }
    let by_p99 = metric::all()
        .find(|metric| metric.is_named("open_p99_ns"))
        .unwrap();
    // The ratio is that of the run's own table.
    let some = lab(1.0, [1000.0, 5000.0]);
    let of_table = analyse(&some.run, &some.records).cases[0]
        .row("hoard")
        .unwrap()
        .ratio("open_p99_ns");
    let compared = within(&side(&some), by_p99, 0.01).rows[0].ratio.ratio;
    assert_eq!(Some(compared), of_table.map(|ratio| ratio.ratio));
    let nothing = within(&side(&lab(1.0, [0.0, 0.0])), by_p99, 0.01);
    assert_eq!(nothing.rows[0].ratio.ratio, 1.0);
}

/// Nine of ten blocks agree, and the tenth is not the smallest: p is 0.037 in a family of one.
#[test]
fn a_row_that_failed_counts_in_the_family_as_it_does_in_the_table() {
    let lab = FakeRun::new(&["glibc", "a", "b"], &["larson"], 10).fill(|_, name, block| {
        let sign = if block == 6 { -1.0 } else { 1.0 };
        20.0 * match name {
            "a" => (sign * 0.01 * f64::from(block + 1)).exp(),
            _ => 1.0,
        }
    });
    let lab = lab.fail("larson@2/b01/b", crash());
    let analysis = analyse(&lab.run, &lab.records);
    let row = analysis.cases[0].row("a").unwrap();
    let shown = row.time().verdict.map(Verdict::word);
    assert_eq!(shown, Some("unclear"));
    assert_eq!(word(&within(&side(&lab), WALL, 0.01), "a"), shown);
}

/// One run is sure that turns matter, and the other, with more scatter, is not.
#[test]
fn turns_make_no_difference_between_two_runs_of_one_binary() {
    let lab = |scatter: f64| {
        let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 12).fill(|_, name, block| {
            let short = if block.is_multiple_of(2) { 0.03 } else { 0.0 };
            let noise = if (block / 2).is_multiple_of(2) {
                scatter
            } else {
                -scatter
            };
            20.0 * match name {
                "hoard" => f64::exp(short + noise),
                _ => 1.0,
            }
        });
        lab.in_turns()
    };
    let (old, new) = (lab(0.001), lab(0.05));
    let both = between(&side(&old), &side(&new), WALL, 0.01);
    let hoard = both.rows.iter().find(|row| row.allocator == "hoard");
    let ratio = hoard.unwrap().beside_anchor.unwrap().ratio;
    assert!((ratio - 1.0).abs() < 0.005, "{ratio}");
}

#[test]
fn a_high_floor_withholds_no_comparison() {
    let with_floor = |factor: f64| {
        let mut lab =
            FakeRun::new(&["glibc", "hoard", "null"], &["larson"], 12).fill(|_, name, block| {
                if name == "null" {
                    15.0
                } else {
                    20.0 * noise(name, block) * if name == "hoard" { factor } else { 1.0 }
                }
            });
        lab.allocator("null").tier = "floor".into();
        lab
    };
    let (old, new) = (with_floor(1.0), with_floor(1.3));
    assert_eq!(
        word(&between(&side(&old), &side(&new), WALL, 0.01), "hoard"),
        Some("slower")
    );
    assert_eq!(
        word(&within(&side(&new), WALL, 0.01), "hoard"),
        Some("slower")
    );
}
