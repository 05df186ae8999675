//! Memory by values: what is over what, and what is no figure.

use super::super::artificial::{Lab, crash};
use super::super::{FootprintRow, Footprints, analyse};

fn lab(course: impl Fn(&str) -> Option<(u64, u64)>) -> Lab {
    Lab::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0).following_memory(course)
}

fn rows(lab: &Lab) -> Vec<FootprintRow> {
    let analysis = analyse(&lab.run, &lab.records);
    assert!(analysis.cases.is_empty(), "nothing of such a run is a time");
    analysis.footprints[0].rows.clone()
}

fn held(row: &FootprintRow) -> &Footprints {
    row.footprints.as_ref().unwrap()
}

#[test]
fn each_overhead_is_resident_over_live_at_its_moment() {
    let rows = rows(&lab(|name| Some(if name == "hoard" { (8, 12) } else { (8, 16) })));
    assert_eq!(rows[0].allocator, "hoard", "the least first");
    let held = held(&rows[0]);
    let median = |spread: Option<crate::analyse::Spread>| spread.unwrap().median;
    assert_eq!((held.processes, held.peak_demand_bytes.median), (3, f64::from(8 << 20)));
    assert_eq!((median(held.overhead_at_peak_demand), median(held.overhead_at_peak_footprint)), (1.5, 3.0));
    assert_eq!((median(held.peak_over_peak), median(held.mean_overhead)), (3.0, 3.0));
    assert_eq!((median(held.page_occupancy), median(held.huge_share)), (0.5, 0.5));
    let kept: Vec<(u64, f64)> = held.retained.iter().map(|kept| (kept.after_ms, kept.heap_bytes.median)).collect();
    assert_eq!(kept, [(100, f64::from(3 << 20))], "the harness's tables taken out");
}

#[test]
fn below_a_mebibyte_pages_decide_and_no_overhead_is_told() {
    let rows = rows(&lab(|_| Some((0, 1))));
    let held = held(&rows[0]);
    assert!(held.overhead_at_peak_demand.is_none() && held.mean_overhead.is_none() && held.peak_over_peak.is_none());
}

#[test]
fn what_was_over_too_soon_or_failed_has_a_reason_and_no_figure() {
    let lab = lab(|name| (name == "glibc").then_some((8, 16)));
    let row = rows(&lab).into_iter().find(|row| row.allocator == "hoard").unwrap();
    assert_eq!((row.footprints.is_none(), row.unseen), (true, 3));
    let lab = lab.fail("larson@2/b01/glibc", crash());
    let row = rows(&lab).into_iter().find(|row| row.allocator == "glibc").unwrap();
    assert!(row.footprints.is_none() && row.failed.is_some());
}
