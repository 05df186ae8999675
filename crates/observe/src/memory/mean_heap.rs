//! How much memory a process held on average while its measured iterations ran.

use serde::{Deserialize, Serialize};

/// The least number of looks for a mean.
const LEAST_LOOKS: usize = 10;

/// The mean of a process's heap over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanHeap {
    /// Number of looks during measured iterations.
    pub looks: u64,
    /// Time from the first look to the last.
    pub span_ns: u64,
    /// Growth of the resident set since just before the first operation, and what the allocator held
    /// before; interpolated linearly between looks.
    pub bytes: u64,
    /// Wall time of a measured iteration, on average.
    pub iteration_ns: u64,
}

impl MeanHeap {
    /// Computes the mean from the time and the resident set of each look.
    pub fn of(looks: &[(u64, u64)], before_bytes: u64, iteration_ns: u64) -> Option<MeanHeap> {
        let (&(first_ns, _), &(last_ns, _)) = (looks.first()?, looks.last()?);
        let span_ns = last_ns.saturating_sub(first_ns);
        if looks.len() < LEAST_LOOKS || span_ns == 0 {
            return None;
        }
        let grown = |rss_bytes: u64| rss_bytes.saturating_sub(before_bytes) as f64;
        let between = |pair: &[(u64, u64)]| {
            let ((from_ns, before), (to_ns, after)) = (pair[0], pair[1]);
            to_ns.saturating_sub(from_ns) as f64 * (grown(before) + grown(after)) / 2.0
        };
        let byte_ns: f64 = looks.windows(2).map(between).sum();
        let bytes = (byte_ns / span_ns as f64).round() as u64;
        Some(MeanHeap {
            looks: looks.len() as u64,
            span_ns,
            bytes,
            iteration_ns,
        })
    }

    /// Returns the memory times the duration of one iteration, in GiB seconds.
    pub fn gib_seconds(&self) -> f64 {
        self.bytes as f64 / (1u64 << 30) as f64 * self.iteration_ns as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_count_by_the_time_between_them_and_what_was_there_before_does_not() {
        // Looks at times 0 to 8 that see 10, then a long stretch with 110.
        let mut looks: Vec<(u64, u64)> = (0..9).map(|time| (time, 1010)).collect();
        looks.extend([(10, 1110), (1000, 1110)]);
        let mean = MeanHeap::of(&looks, 1000, 2_000_000_000).unwrap();
        assert_eq!(
            (mean.looks, mean.span_ns, mean.bytes),
            (11, 1000, 109),
            "(8 * 10 + 2 * 60 + 990 * 110) / 1000"
        );
        assert_eq!(
            MeanHeap::of(&looks, 2000, 1).unwrap().bytes,
            0,
            "less than before is no growth"
        );
        assert_eq!(
            MeanHeap::of(&looks[..9], 1000, 1),
            None,
            "nine looks are too few"
        );
        assert_eq!(MeanHeap::of(&[(5, 1); 20], 0, 1), None, "no time went by");
        let mean = MeanHeap {
            bytes: 3 << 29,
            ..mean
        };
        assert_eq!(mean.gib_seconds(), 3.0);
    }
}
