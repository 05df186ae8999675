//! When two values differ, and when one lies between bounds. The rule of the whole module: values
//! differ if their ranges do not touch, or if their medians are more than 10 % apart; with fewer
//! than 5 processes there is no verdict.

use super::judged::{Number, Verdict};

/// The fewest processes for a verdict.
pub const LEAST_SAMPLES: usize = 5;
/// Medians that are further apart than this share of the larger one differ.
const APART: f64 = 0.1;

/// The order of one value relative to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Below,
    Level,
    Above,
}

/// The order of `a` relative to `b`.
pub fn order(a: &Number, b: &Number) -> Order {
    let apart = (a.median - b.median).abs() > APART * a.median.abs().max(b.median.abs());
    if a.max < b.min || apart && a.median < b.median {
        Order::Below
    } else if b.max < a.min || apart && a.median > b.median {
        Order::Above
    } else {
        Order::Level
    }
}

/// Whether `a` has the wanted order relative to `b`.
pub fn lies(a: &Number, wanted: Order, b: &Number) -> Verdict {
    let found = order(a, b);
    let samples = a.samples.min(b.samples);
    verdict(samples, found == wanted, found != Order::Level)
}

/// Whether the median lies between two bounds; outside, it must differ from the nearer one.
pub fn between(value: &Number, low: f64, high: f64) -> Verdict {
    let bound = |bound| Number::bare(bound, value.samples);
    let is_inside = (low..=high).contains(&value.median);
    let is_outside =
        order(value, &bound(low)) == Order::Below || order(value, &bound(high)) == Order::Above;
    verdict(value.samples, is_inside, is_outside)
}

/// Unclear with too few processes, and if it neither holds nor fails; what holds does not fail.
pub fn verdict(samples: usize, holds: bool, fails: bool) -> Verdict {
    if samples < LEAST_SAMPLES || !(holds || fails) {
        Verdict::Unclear
    } else if holds {
        Verdict::Holds
    } else {
        Verdict::DoesNotHold
    }
}

/// `a` over `b`; the range is the widest that both ranges allow.
pub fn quotient(a: &Number, b: &Number) -> Number {
    Number {
        row: if a.row == b.row {
            a.row.clone()
        } else {
            format!("{} / {}", a.row, b.row)
        },
        measure: None,
        median: a.median / b.median,
        min: a.min / b.max,
        max: a.max / b.min,
        samples: a.samples.min(b.samples),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(min: f64, median: f64, max: f64) -> Number {
        Number {
            row: "a".into(),
            measure: None,
            median,
            min,
            max,
            samples: 5,
        }
    }

    #[test]
    fn values_differ_by_their_ranges_or_by_a_tenth() {
        let ten = number(9.0, 10.0, 11.5);
        assert_eq!(order(&number(11.6, 11.7, 11.8), &ten), Order::Above);
        assert_eq!(order(&number(10.0, 10.9, 12.0), &ten), Order::Level);
        assert_eq!(order(&number(10.0, 11.2, 12.0), &ten), Order::Above);
        assert_eq!(order(&number(8.0, 8.9, 12.0), &ten), Order::Below);
        assert_eq!(
            order(&number(-1.0, 0.0, 1.0), &number(0.0, 0.0, 0.0)),
            Order::Level
        );
    }

    #[test]
    fn four_processes_say_nothing() {
        let few = Number {
            samples: 4,
            ..number(1.0, 1.0, 1.0)
        };
        assert_eq!(
            lies(&few, Order::Below, &number(9.0, 9.0, 9.0)),
            Verdict::Unclear
        );
        assert_eq!(between(&few, 0.0, 2.0), Verdict::Unclear);
    }

    #[test]
    fn bounds_are_missed_clearly_or_not() {
        assert_eq!(between(&number(1.0, 2.0, 3.0), 2.0, 4.0), Verdict::Holds);
        assert_eq!(between(&number(1.0, 1.9, 3.0), 2.0, 4.0), Verdict::Unclear);
        assert_eq!(
            between(&number(1.0, 1.7, 3.0), 2.0, 4.0),
            Verdict::DoesNotHold
        );
        assert_eq!(
            between(&number(4.1, 4.2, 4.3), 2.0, 4.0),
            Verdict::DoesNotHold
        );
    }

    #[test]
    fn a_quotient_has_the_widest_range() {
        let found = quotient(&number(2.0, 3.0, 4.0), &number(1.0, 2.0, 4.0));
        assert_eq!((found.min, found.median, found.max), (0.5, 1.5, 4.0));
    }
}
