//! Rank statistics of paired differences. Knows nothing of allocators, time or units; takes numbers and gives numbers.
//!
//! Nothing here drops an outlier. A value that is not finite makes the answer `None`: whoever calls decides what missing means.

pub mod hodges_lehmann;
pub mod mean;
pub mod median;
mod normal;
pub mod wilcoxon;

pub use hodges_lehmann::{Interval, Shift, shift};
pub use mean::{geometric_mean, mean};
pub use median::median;
pub use wilcoxon::{SignedRank, signed_rank};

#[cfg(test)]
mod tests;
