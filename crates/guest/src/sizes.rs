//! Size distributions: classes with weights, computed by the host from the workload's parameters.

use crate::memory::HarnessTable;
use crate::rng::SplitMix;

/// Sizes and the frequency of each.
pub struct Sizes {
    sizes: HarnessTable<u32>,
    /// Cumulative weights; the last entry is the sum of all weights.
    until: HarnessTable<u32>,
}

impl Sizes {
    /// Reads `SIZE:WEIGHT,SIZE:WEIGHT,…`; the weights must sum up to less than 2^32.
    pub fn parse(text: &str) -> Sizes {
        let classes = text.split(',').count();
        let mut sizes = Sizes {
            sizes: HarnessTable::zeroed(classes),
            until: HarnessTable::zeroed(classes),
        };
        let mut sum = 0u32;
        for (index, class) in text.split(',').enumerate() {
            let parsed = class
                .split_once(':')
                .and_then(|(s, w)| Some((s.parse().ok()?, w.parse::<u32>().ok()?)));
            let Some((size, until)) =
                parsed.and_then(|(size, weight)| Some((size, sum.checked_add(weight)?)))
            else {
                fail!("error", "`{class}` is no SIZE:WEIGHT");
            };
            sum = until;
            sizes.sizes[index] = size;
            sizes.until[index] = until;
        }
        if sum == 0 {
            fail!("error", "a size distribution of weight 0");
        }
        sizes
    }

    /// Draws one size.
    pub fn draw(&self, random: &mut SplitMix) -> u32 {
        let ticket = random.below(self.until[self.until.len() - 1]);
        self.sizes[self.until.partition_point(|&until| until <= ticket)]
    }

    /// Draws `each` sizes for each worker from a stream that follows from the seed; no size is
    /// below `least`.
    pub fn table(&self, workers: usize, each: usize, seed: u64, least: u32) -> HarnessTable<u32> {
        let mut drawn = HarnessTable::zeroed(workers * each);
        for (worker, part) in drawn.chunks_mut(each.max(1)).enumerate() {
            let mut random = SplitMix::new(seed, worker as u64);
            part.fill_with(|| self.draw(&mut random).max(least));
        }
        drawn
    }

    /// The mean of all draws.
    pub fn mean(&self) -> f64 {
        let mut before = 0;
        let mut sum = 0.0;
        for (&size, &until) in self.sizes.iter().zip(self.until.iter()) {
            sum += f64::from(size) * f64::from(until - before);
            before = until;
        }
        sum / f64::from(before)
    }

    /// The largest size that can be drawn.
    pub fn largest(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
}

/// The total bytes of blocks of these sizes.
pub fn sum(sizes: &[u32]) -> u64 {
    sizes.iter().map(|&size| u64::from(size)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_drawn_as_often_as_their_weights_say() {
        let sizes = Sizes::parse("50:1,100:3");
        let mut random = SplitMix::new(1, 0);
        let large = (0..100_000)
            .filter(|_| sizes.draw(&mut random) == 100)
            .count();
        assert!((74_000..76_000).contains(&large), "{large}");
        assert_eq!(sizes.largest(), 100);
        assert_eq!(sizes.mean(), 87.5);
    }

    #[test]
    fn a_class_of_weight_zero_is_never_drawn() {
        let sizes = Sizes::parse("1:0,2:5,3:0");
        let mut random = SplitMix::new(1, 0);
        assert!((0..1000).all(|_| sizes.draw(&mut random) == 2));
    }
}
