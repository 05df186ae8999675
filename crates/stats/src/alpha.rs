//! How sure a verdict is, and how many blocks that takes.

/// The chance of a false alarm that verdicts accept, over all their comparisons together.
pub const ALPHA: f64 = 0.05;

/// The limit for p in a run that may end because its intervals are narrow enough, chosen so that
/// the chance of a false alarm stays below [`ALPHA`]. Intervals that are narrow by chance end such
/// a run, and these miss the truth more often: at 0.05 a single comparison of equals is called
/// different in up to 7.1 % of runs, at this level in up to 4.8 %. Simulated with normal, Laplace,
/// uniform and contaminated scatter and Student's t with 3 degrees of freedom, of 1.2 to 4 times
/// the precision; 10 to 40, 16 to 60 and 10 to 200 blocks; 5000 to 40,000 runs of each. From 6 to 40
/// blocks, of 0.8 to 2.4 times the precision and 1500 runs of each, it was 2.3 to 5.1 %.
pub const ALPHA_UNTIL_PRECISE: f64 = 0.033;

/// With fewer blocks nothing is claimed: they show too little of their own scatter, and their ranks have no 95 % interval.
pub const LEAST_BLOCKS: u32 = 6;

/// Returns the number of blocks with which the signed-rank test can decide this many comparisons, with each p
/// compared with `alpha`: with fewer, not even blocks that all agree could pass the correction for that many.
pub fn blocks_for_ranks(comparisons: usize, alpha: f64) -> u32 {
    const LEAST: u32 = 10;
    let needed = 1.0 + (comparisons as f64 / alpha).log2();
    LEAST.max(needed.ceil() as u32)
}
