//! When two values differ, and when a value lies between bounds. The rule of the whole module:
//! values that were measured in the same blocks differ if Student's test of their log ratios, block
//! by block, finds a difference; other values differ if the ranges of their processes do not touch,
//! or if the Mann-Whitney test finds a difference. With fewer than 5 processes there is no verdict.

use super::judged::{Number, ValueBlocks, Verdict};
use heapmark_core::analyse::Spread;
use heapmark_stats::{geometric_mean, mean, median, rank_sum, student};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The fewest processes for a verdict.
pub const LEAST_SAMPLES: usize = 5;
/// Two values differ if chance alone would set them as far apart in at most this share of cases.
/// The ranges of five processes each do not touch by chance in 0.8 %.
const ALPHA: f64 = 0.01;

/// The order of one value relative to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Below,
    Level,
    Above,
}

/// The order of `a` relative to `b`.
pub fn order(a: &Number, b: &Number) -> Order {
    match ratios(a, b) {
        Some(ratios) => beside_ratio(&ratios, 1.0),
        None => order_of(&a.values, &b.values),
    }
}

/// The ratio in each block that both numbers have; `None` if they share too few blocks, or if a
/// value is not positive.
fn ratios(a: &Number, b: &Number) -> Option<BTreeMap<u32, f64>> {
    let run = |number: &Number| number.blocks.as_ref().map(|blocks| blocks.run);
    if run(a)? != run(b)? {
        return None;
    }
    let theirs = by_block(b)?;
    let ours = by_block(a)?;
    let ratio = |(block, ours): (u32, f64)| Some((block, ours / theirs.get(&block)?));
    let ratios: BTreeMap<u32, f64> = ours.into_iter().filter_map(ratio).collect();
    let is_enough = ratios.len() >= LEAST_SAMPLES;
    let is_sound = ratios
        .values()
        .all(|ratio| ratio.is_finite() && *ratio > 0.0);
    (is_enough && is_sound).then_some(ratios)
}

/// The mean of each block's values.
fn by_block(number: &Number) -> Option<BTreeMap<u32, f64>> {
    let blocks = &number.blocks.as_ref()?.of;
    let mut all: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (block, value) in blocks.iter().zip(&number.values) {
        all.entry(*block).or_default().push(*value);
    }
    let means = all.into_iter();
    means
        .map(|(block, values)| Some((block, geometric_mean(&values)?)))
        .collect()
}

/// The order of ratios, one for each block, relative to a bound.
fn beside_ratio(ratios: &BTreeMap<u32, f64>, bound: f64) -> Order {
    if bound <= 0.0 {
        return Order::Above;
    }
    if bound.is_infinite() {
        return Order::Below;
    }
    let logs: Vec<f64> = ratios.values().map(|ratio| (ratio / bound).ln()).collect();
    let Some((mean, middle)) = mean(&logs).zip(median(&logs)) else {
        return Order::Level;
    };
    let differ = student(&logs).is_some_and(|p| p <= ALPHA);
    // A single block with an extreme ratio does not decide the direction.
    match differ && mean * middle > 0.0 {
        true if mean < 0.0 => Order::Below,
        true => Order::Above,
        false => Order::Level,
    }
}

fn order_of(a: &[f64], b: &[f64]) -> Order {
    let Some((a_seen, b_seen)) = Spread::of(a).zip(Spread::of(b)) else {
        return Order::Level;
    };
    // The rank-sum test is approximate if values are equal, as counts of pages often are.
    let is_apart = a_seen.max < b_seen.min || b_seen.max < a_seen.min;
    let differ = is_apart || rank_sum(a, b).is_some_and(|p| p <= ALPHA);
    match a_seen.median.total_cmp(&b_seen.median) {
        Ordering::Less if differ => Order::Below,
        Ordering::Greater if differ => Order::Above,
        _ => Order::Level,
    }
}

/// The order of a value relative to a bound: all of its processes lie beyond the bound; or, for a
/// quotient, the ratios by block differ from the bound, or the dividend differs from the divisor
/// times the bound.
fn beside(value: &Number, bound: f64) -> Order {
    if value.measure.is_none()
        && let Some(ratios) = by_block(value)
    {
        return beside_ratio(&ratios, bound);
    }
    if let Some(divisor) = &value.divisor {
        let bounds: Vec<f64> = divisor.iter().map(|one| one * bound).collect();
        return order_of(&value.values, &bounds);
    }
    if value.max < bound {
        Order::Below
    } else if value.min > bound {
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

/// Whether the median lies between two bounds; outside, the value must differ from the nearer
/// bound.
pub fn between(value: &Number, low: f64, high: f64) -> Verdict {
    let is_inside = (low..=high).contains(&value.median);
    let is_outside = beside(value, low) == Order::Below || beside(value, high) == Order::Above;
    verdict(value.samples, is_inside, is_outside)
}

/// Whether a value lies above a bound, and differs from that bound.
pub fn beyond(value: &Number, bound: f64) -> Verdict {
    let found = beside(value, bound);
    verdict(value.samples, found == Order::Above, found == Order::Below)
}

/// The verdict is unclear with too few processes, or if the claim neither holds nor fails; a claim
/// that holds does not fail.
pub fn verdict(samples: usize, holds: bool, fails: bool) -> Verdict {
    if samples < LEAST_SAMPLES || !(holds || fails) {
        Verdict::Unclear
    } else if holds {
        Verdict::Holds
    } else {
        Verdict::DoesNotHold
    }
}

/// The quotient of `a` over `b`, block by block if they share blocks; otherwise the range is the
/// widest that both ranges allow.
pub fn quotient(a: &Number, b: &Number) -> Number {
    let row = if a.row == b.row {
        a.row.clone()
    } else {
        format!("{} / {}", a.row, b.row)
    };
    let by_block = ratios(a, b).and_then(|ratios| {
        let blocks = ValueBlocks {
            run: a.blocks.as_ref()?.run,
            of: ratios.keys().copied().collect(),
        };
        Some(Number {
            blocks: Some(blocks),
            ..Number::of(row.clone(), None, ratios.into_values().collect())?
        })
    });
    by_block.unwrap_or_else(|| Number {
        row,
        measure: None,
        median: a.median / b.median,
        min: a.min / b.max,
        max: a.max / b.min,
        samples: a.samples.min(b.samples),
        values: a.values.clone(),
        divisor: Some(b.values.clone()),
        blocks: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number<const N: usize>(values: [f64; N]) -> Number {
        Number::of("a".into(), None, values.into()).unwrap()
    }

    /// A number from twenty processes, one of which has another value.
    fn twenty(most: f64, one: f64) -> Number {
        let mut values: [f64; 20] = std::array::from_fn(|place| most + place as f64 / 1000.0);
        values[0] = one;
        number(values)
    }

    #[test]
    fn values_differ_if_chance_hardly_sets_them_so_far_apart() {
        let ten = number([9.0, 9.5, 10.0, 11.0, 11.5]);
        let order_to_ten = |values| order(&number(values), &ten);
        assert_eq!(order_to_ten([11.6, 11.7, 11.8, 11.9, 12.0]), Order::Above);
        assert_eq!(order_to_ten([5.0, 6.0, 7.0, 8.0, 8.9]), Order::Below);
        assert_eq!(order_to_ten([12.0, 12.0, 13.0, 14.0, 15.0]), Order::Above);
        // Medians that are far apart mean nothing if the processes of one row are as far apart
        // themselves.
        assert_eq!(order_to_ten([8.0, 11.2, 14.0, 15.0, 16.0]), Order::Level);
        assert_eq!(order(&number([0.0; 5]), &number([0.0; 5])), Order::Level);
        assert_eq!(order(&number([0.0; 5]), &number([1.0; 5])), Order::Below);
        // A single process among many hides no difference.
        assert_eq!(order(&twenty(10.0, 30.0), &twenty(11.0, 5.0)), Order::Below);
    }

    /// A number from a run with this seed, with a value for each block.
    fn in_blocks<const N: usize>(run: u64, values: [f64; N]) -> Number {
        let blocks = ValueBlocks {
            run,
            of: (0..N as u32).collect(),
        };
        Number {
            blocks: Some(blocks),
            ..number(values)
        }
    }

    #[test]
    fn what_slows_both_rows_of_a_block_hides_no_difference() {
        let slow = in_blocks(7, [10.0, 14.0, 11.0, 20.0, 12.0]);
        let fast = in_blocks(7, [9.0, 12.7, 9.8, 18.1, 10.9]);
        assert_eq!(order(&fast, &slow), Order::Below);
        assert_eq!(order(&slow, &fast), Order::Above);
        let ratio = quotient(&slow, &fast);
        assert!(1.09 < ratio.min && ratio.max < 1.13, "{ratio:?}");
        assert_eq!(between(&ratio, 0.0, 1.05), Verdict::DoesNotHold);
        assert_eq!(beyond(&ratio, 1.05), Verdict::Holds);
        assert_eq!(between(&ratio, 0.0, f64::INFINITY), Verdict::Holds);
        // ValueBlocks of two runs have nothing in common.
        let elsewhere = in_blocks(8, [9.0, 12.7, 9.8, 18.1, 10.9]);
        assert_eq!(order(&elsewhere, &slow), Order::Level);
        // A single block decides nothing.
        let once = in_blocks(7, [10.0, 14.0, 11.0, 90.0, 12.0]);
        assert_eq!(order(&once, &slow), Order::Level);
    }

    #[test]
    fn four_processes_say_nothing() {
        let few = number([1.0; 4]);
        assert_eq!(
            lies(&few, Order::Below, &number([9.0; 5])),
            Verdict::Unclear
        );
        assert_eq!(between(&few, 0.0, 2.0), Verdict::Unclear);
        assert_eq!(beyond(&few, 0.5), Verdict::Unclear);
    }

    #[test]
    fn bounds_are_missed_clearly_or_not() {
        let found = |values| between(&number(values), 2.0, 4.0);
        assert_eq!(found([1.0, 1.5, 2.0, 2.5, 3.0]), Verdict::Holds);
        assert_eq!(found([1.0, 1.1, 1.2, 1.3, 2.1]), Verdict::Unclear);
        assert_eq!(found([1.0, 1.1, 1.2, 1.3, 1.9]), Verdict::DoesNotHold);
        assert_eq!(found([4.1, 4.2, 4.3, 4.4, 4.5]), Verdict::DoesNotHold);
    }

    #[test]
    fn a_quotient_is_held_against_a_bound_by_the_processes_of_both_rows() {
        let ten = number([9.0, 9.5, 10.0, 10.5, 11.0]);
        let over_ten = |values| quotient(&number(values), &ten);
        let triple = over_ten([27.0, 28.5, 30.0, 31.5, 33.0]);
        assert_eq!((triple.min, triple.median), (27.0 / 11.0, 3.0));
        assert_eq!(between(&triple, 0.0, 2.0), Verdict::DoesNotHold);
        assert_eq!(beyond(&triple, 2.0), Verdict::Holds);
        assert_eq!(beyond(&triple, 4.0), Verdict::DoesNotHold);
        let wide = over_ten([12.0, 15.0, 30.0, 31.5, 33.0]);
        assert_eq!(between(&wide, 0.0, 2.0), Verdict::Unclear);
        assert_eq!(beyond(&wide, 2.0), Verdict::Unclear);
    }

    #[test]
    fn a_quotient_has_the_widest_range() {
        let found = quotient(&number([2.0, 3.0, 4.0]), &number([1.0, 2.0, 4.0]));
        assert_eq!((found.min, found.median, found.max), (0.5, 1.5, 4.0));
    }
}
