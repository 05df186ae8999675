//! Statistics of paired differences: estimates, tests, findings, and when to stop. Independent of
//! allocators, time and units: takes numbers and returns numbers.
//!
//! Nothing here drops an outlier. A value that is not finite makes the result `None`: the caller
//! decides what a missing result means.

mod alpha;
mod bootstrap;
mod entropy;
mod finding;
mod floor;
mod hodges_lehmann;
mod holm;
mod machines;
mod mean;
mod median;
mod modes;
mod nested;
mod normal;
mod proportion;
mod rank_correlation;
mod runs;
mod stopping;
mod student;
mod two_samples;
mod wilcoxon;

pub use alpha::{ALPHA, ALPHA_UNTIL_PRECISE, LEAST_BLOCKS, blocks_for_ranks};
pub use bootstrap::{MeanShift, mean_shift};
pub use entropy::{Bits, shannon};
pub use finding::{
    BlocksMore, Finding, Judgement, MOST_BLOCKS_MORE, Rule, THRESHOLD, Tested, judge_family,
    judge_tested, paired, unpaired,
};
pub use floor::above_floor;
pub use hodges_lehmann::{Interval, Shift, shift};
pub use holm::holm;
pub use machines::{Doubled, LEAST_MACHINES, LEAST_TO_TRANSFER, Machines, Transfer, machines};
pub use mean::{geometric_mean, mean, standard_deviation};
pub use median::median;
pub use modes::{Mode, Modes, modes};
pub use nested::{Spreads, spreads};
pub use proportion::wilson;
pub use rank_correlation::rank_correlation;
pub use runs::BETWEEN_RUNS;
pub use stopping::{Next, Stop, Stopping, half_width};
pub use student::student;
pub use two_samples::{rank_sum, shift_between, welch};
pub use wilcoxon::signed_rank;

#[cfg(test)]
mod tests;
