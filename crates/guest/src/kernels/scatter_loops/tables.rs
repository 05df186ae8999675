//! The constants of the document's program: sizes, how many blocks a loop frees and allocates, and
//! strides. The program's random values are literals. Those here come from a fixed generator with a
//! seed for which the tables have the expected means.

use super::*;

/// Number of entries in a size table.
pub const SIZES: usize = 2000;
/// Number of entries in the table of allocation counts.
pub const ALLOCATIONS: usize = 311;
/// Number of entries in the table of free counts: coprime to `ALLOCATIONS`, so that the combination
/// repeats late.
pub const FREES: usize = 257;

/// The one seed, of many that were tried, for which 2000 draws have the mean, median and 99th
/// percentile of the formulas.
const SIZE_START: u64 = 3565;
/// The seed for which the percentages have the means 65.3 and 63.3.
const COUNT_START: u64 = 573;

/// The frequency of small sizes. The names are loose: neither variant is an exact linear or
/// exponential density.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    Even,
    Linear,
    Exponential,
}

impl Distribution {
    /// Computes one size from three adjacent draws from `0..=range`.
    fn size(self, min: u32, range: u32, [first, second, third]: [u32; 3]) -> u32 {
        let weight = |draw: u32| 1.0 - f64::from(draw) / f64::from(range);
        let (w, next_w) = (weight(first), weight(second));
        min + match self {
            Distribution::Even => first,
            Distribution::Linear => (f64::from(third) * (w + next_w - 1.0).abs()) as u32,
            Distribution::Exponential => (f64::from(third) * w * next_w) as u32,
        }
    }
}

/// Returns sizes in `min..=max` in the order of use.
pub fn sizes(distribution: Distribution, min: u32, max: u32) -> HarnessTable<u32> {
    draw(distribution, min, max, SIZES, SIZE_START)
}

/// Returns a table of [`SIZES`] entries, all of the same size.
pub fn fixed(size: u32) -> HarnessTable<u32> {
    let mut table = HarnessTable::zeroed(SIZES);
    table.fill(size);
    table
}

fn draw(
    distribution: Distribution,
    min: u32,
    max: u32,
    len: usize,
    start: u64,
) -> HarnessTable<u32> {
    let range = max.saturating_sub(min).max(1);
    let mut random = SplitMix::new(start, 0);
    let mut draws = HarnessTable::<u32>::zeroed(len);
    // 53 bits make a fraction of 1; half a step is added before truncation, so that the result is
    // rounded.
    draws.fill_with(|| (f64::from(range) * random.unit() + 0.5) as u32);
    let mut table = HarnessTable::zeroed(len);
    for (index, size) in table.iter_mut().enumerate() {
        *size = distribution
            .size(
                min,
                range,
                [0, 1, 2].map(|ahead| draws[(index + ahead) % len]),
            )
            .min(max);
    }
    table
}

/// Returns how many blocks each loop allocates: 30 to 99 per cent of `ops`.
pub fn allocations(ops: u64) -> HarnessTable<u64> {
    percentages(ALLOCATIONS, 1, ops * 10)
}

/// Returns how many slots each loop frees, if occupied: 30 to 99 per cent of 0.8 `ops`.
pub fn frees(ops: u64) -> HarnessTable<u64> {
    percentages(FREES, 2, ops * 8)
}

fn percentages(len: usize, stream: u64, of_tenths: u64) -> HarnessTable<u64> {
    let mut random = SplitMix::new(COUNT_START, stream);
    let mut table = HarnessTable::zeroed(len);
    table.fill_with(|| of_tenths * u64::from(30 + random.below(70)) / 1000);
    table
}

/// Returns the sum of the steps of all loops of a sequence.
pub fn steps(table: &[u64], sequence: usize, loops: u64) -> u64 {
    let (whole, rest) = (loops / table.len() as u64, loops % table.len() as u64);
    let begun: u64 = (0..rest as usize)
        .map(|index| table[(sequence + index) % table.len()])
        .sum();
    whole * table.iter().sum::<u64>() + begun
}

/// Returns the strides of allocating and freeing: the two smallest primes from 7 on that do not
/// divide `blocks`, so that both walks visit every slot.
pub fn strides(blocks: usize) -> (usize, usize) {
    let is_prime = |n: &usize| {
        (2..*n)
            .take_while(|d| d * d <= *n)
            .all(|d| !n.is_multiple_of(d))
    };
    let mut primes = (7..)
        .filter(is_prime)
        .filter(|prime| !blocks.is_multiple_of(*prime));
    let mut next = || primes.next().unwrap_or(1);
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distribution, smallest, largest; mean, median and 99th percentile of 200,000 draws, computed
    /// independently of this code.
    const CHECKS: [(Distribution, u32, u32, [f64; 3]); 5] = [
        (Distribution::Even, 16, 1000, [508.0, 508.0, 990.0]),
        (Distribution::Linear, 16, 8000, [1342.0, 898.0, 5639.0]),
        (Distribution::Linear, 16, 16000, [2675.0, 1785.0, 11311.0]),
        (
            Distribution::Exponential,
            128,
            64000,
            [8100.0, 4500.0, 41545.0],
        ),
        (
            Distribution::Exponential,
            512,
            160_000,
            [20496.0, 11523.0, 103_603.0],
        ),
    ];

    fn assert_within_a_hundredth(mut table: HarnessTable<u32>, expected: [f64; 3]) {
        table.sort_unstable();
        let mean = table.iter().map(|&size| f64::from(size)).sum::<f64>() / table.len() as f64;
        let found = [
            mean,
            f64::from(table[table.len() / 2]),
            f64::from(table[table.len() * 99 / 100]),
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
        }
    }

    #[test]
    fn two_hundred_thousand_draws_have_the_expected_figures() {
        for (distribution, min, max, expected) in CHECKS {
            assert_within_a_hundredth(draw(distribution, min, max, 200_000, 0), expected);
        }
    }

    #[test]
    fn the_table_that_is_used_has_them_too() {
        for (distribution, min, max, expected) in CHECKS {
            let table = sizes(distribution, min, max);
            assert!(table.iter().all(|size| (min..=max).contains(size)));
            assert_within_a_hundredth(table, expected);
        }
    }

    #[test]
    fn no_range_gives_one_size() {
        for distribution in [
            Distribution::Even,
            Distribution::Linear,
            Distribution::Exponential,
        ] {
            for size in [0, 1, 64] {
                assert!(
                    sizes(distribution, size, size)
                        .iter()
                        .all(|found| *found == size)
                );
            }
        }
    }

    #[test]
    fn five_thousand_ops_are_3264_allocation_steps_and_2534_free_steps_on_average() {
        let mean = |table: HarnessTable<u64>| table.iter().sum::<u64>() as f64 / table.len() as f64;
        assert_eq!(
            (mean(allocations(5000)).round(), mean(frees(5000)).round()),
            (3264.0, 2534.0)
        );
        assert!(
            allocations(100)
                .iter()
                .all(|count| (30..=99).contains(count))
        );
        assert!(frees(1000).iter().all(|count| (240..=792).contains(count)));
        assert_eq!((ALLOCATIONS, FREES), (allocations(1).len(), frees(1).len()));
    }

    #[test]
    fn steps_are_the_sum_over_the_loops() {
        let table = allocations(100);
        for (sequence, loops) in [(0, 0), (0, 5), (1, 311), (1, 1000), (310, 2)] {
            let sum: u64 = (0..loops)
                .map(|l| table[(sequence + l) % table.len()])
                .sum();
            assert_eq!(steps(&table, sequence, loops as u64), sum);
        }
    }

    #[test]
    fn strides_are_primes_that_do_not_divide_the_blocks() {
        for blocks in [50_000, 30_000, 20_000, 1, 10] {
            assert_eq!(strides(blocks), (7, 11));
        }
        assert_eq!(strides(7), (11, 13));
        assert_eq!(strides(7 * 11 * 17), (13, 19));
    }
}
