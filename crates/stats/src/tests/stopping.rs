//! When a run is to end.

use super::super::{Next, Stop, Stopping, half_width, shift};

/// 1 %, or 40 blocks; all of `least` blocks if these are more.
pub(super) fn usual(least: usize) -> Stopping {
    Stopping {
        least,
        most: least.max(40),
        precision: 0.01,
    }
}

const WIDE: Option<f64> = Some(0.0101);
const NARROW: Option<f64> = Some(0.01);

#[test]
fn every_interval_has_to_be_narrow() {
    let usual = usual(10);
    assert_eq!(
        usual.after(20, &[NARROW, NARROW], false),
        Next::Stop(Stop::Precision)
    );
    assert_eq!(usual.after(20, &[NARROW, WIDE], false), Next::GoOn);
    assert_eq!(usual.after(20, &[NARROW, None], false), Next::GoOn);
}

#[test]
fn precision_waits_for_the_least_number_of_blocks() {
    let usual = usual(13);
    assert_eq!(usual.after(12, &[NARROW], false), Next::GoOn);
    assert_eq!(
        usual.after(13, &[NARROW], false),
        Next::Stop(Stop::Precision)
    );
}

#[test]
fn limits_end_a_run_however_wide_its_intervals_are() {
    let usual = usual(10);
    assert_eq!(usual.after(39, &[WIDE], false), Next::GoOn);
    assert_eq!(usual.after(40, &[WIDE], false), Next::Stop(Stop::MaxBlocks));
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
