//! A floor: the part of each time that is the same on both sides of a ratio.

/// The least share of a time that is left: noise may put a time below the floor.
const LEAST_SHARE: f64 = 0.02;

/// A time without the floor. A mean of ratios that leaves out the cases with a high floor is biased
/// towards 1, since those are the cases with the fastest rows; with the floor taken out of them it is
/// less so (`tests::floor`).
pub fn above_floor(time: f64, floor: f64) -> f64 {
    (time - floor).max(LEAST_SHARE * time)
}
