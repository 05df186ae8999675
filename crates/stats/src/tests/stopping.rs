//! When a run is to end.

use super::super::{Interval, Next, Shift, Stop, Stopping, half_width, shift};

/// 1 %, or 40 blocks; all of `least` blocks if these are more.
pub(super) fn usual(least: usize) -> Stopping {
    Stopping {
        least,
        most: least.max(40),
        precision: 0.01,
        far_precision: 0.025,
    }
}

/// An interval of this half-width around this estimate.
fn of(half_width: f64, estimate: f64) -> Option<Shift> {
    let (low, high) = (estimate - half_width, estimate + half_width);
    Some(Shift {
        estimate,
        interval: Some(Interval { low, high }),
        n: 10,
    })
}

const WIDE: f64 = 0.0101;
const NARROW: f64 = 0.01;

#[test]
fn every_interval_has_to_be_narrow() {
    let usual = usual(10);
    assert_eq!(
        usual.after(20, &[of(NARROW, 0.0), of(NARROW, 0.0)], false),
        Next::Stop(Stop::Precision)
    );
    assert_eq!(
        usual.after(20, &[of(NARROW, 0.0), of(WIDE, 0.0)], false),
        Next::GoOn
    );
    assert_eq!(usual.after(20, &[of(NARROW, 0.0), None], false), Next::GoOn);
}

/// A tenth of the log ratio is enough, from a tenth on, and never more than 2.5 %.
#[test]
fn far_from_equality_a_wider_interval_is_enough() {
    let usual = usual(10);
    let ends = |half_width, estimate| {
        usual.after(20, &[of(half_width, estimate)], false) == Next::Stop(Stop::Precision)
    };
    assert!(!ends(WIDE, 0.09) && !ends(WIDE, -0.09));
    assert!(ends(0.019, 0.2) && ends(0.019, -0.2) && !ends(0.021, -0.2));
    assert!(ends(0.024, -1.0) && !ends(0.026, -1.0));
}

#[test]
fn precision_waits_for_the_least_number_of_blocks() {
    let usual = usual(13);
    assert_eq!(usual.after(12, &[of(NARROW, 0.0)], false), Next::GoOn);
    assert_eq!(
        usual.after(13, &[of(NARROW, 0.0)], false),
        Next::Stop(Stop::Precision)
    );
}

#[test]
fn limits_end_a_run_however_wide_its_intervals_are() {
    let usual = usual(10);
    assert_eq!(usual.after(39, &[of(WIDE, 0.0)], false), Next::GoOn);
    assert_eq!(
        usual.after(40, &[of(WIDE, 0.0)], false),
        Next::Stop(Stop::MaxBlocks)
    );
    assert_eq!(usual.after(3, &[None], true), Next::Stop(Stop::Budget));
    assert_eq!(
        Stopping { most: 5, ..usual }.after(5, &[None], false),
        Next::Stop(Stop::MaxBlocks)
    );
}

#[test]
fn the_most_blocks_are_never_fewer_than_the_least() {
    assert_eq!((usual(10).most, usual(60).most), (40, 60));
}

/// The same scatter around another value ends at the same block.
#[test]
fn where_an_interval_lies_does_not_matter() {
    let width =
        |by: f64| half_width(&shift(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(|d| d + by)).unwrap());
    assert_eq!(width(0.0), width(1024.0));
    assert_eq!(half_width(&shift(&[1.0, 2.0]).unwrap()), None);
}
