//! A floor: the part of each time that is the same on both sides of a ratio.

/// The least share of a time that is left: noise may put a time below the floor.
const LEAST_SHARE: f64 = 0.02;

/// Returns a time without the floor. A mean over cases of ratios as they were measured is biased
/// towards 1, and so is one without the cases whose floor is high, since those have the fastest rows;
/// with the floor taken out of all times it is not (`tests::floor`). Taken out of those with a high
/// floor only, a mean would jump whenever one of them comes to lie on the other side of the limit.
pub fn above_floor(time: f64, floor: f64) -> f64 {
    (time - floor).max(LEAST_SHARE * time)
}
