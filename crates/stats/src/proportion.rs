//! How far a share that was seen in few trials can be from the true one.

use crate::normal::Z_975;

/// Returns the 95 % interval of Wilson (1927) for the chance of an event that occurred in `times`
/// of `trials` trials: it is within 0 and 1, and meaningful even if the event occurred in none or
/// all of the trials. `None` if there were no trials.
pub fn wilson(times: u32, trials: u32) -> Option<(f64, f64)> {
    if trials == 0 || times > trials {
        return None;
    }
    let n = f64::from(trials);
    let share = f64::from(times) / n;
    let z2 = Z_975 * Z_975;
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let spread = (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let half = Z_975 * spread / (1.0 + z2 / n);
    Some(((middle - half).max(0.0), (middle + half).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_published_tables() {
        // Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (times, trials, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = wilson(times, trials).unwrap();
            assert!((found.0 - low).abs() < 1e-4, "{times}/{trials}: {found:?}");
            assert!((found.1 - high).abs() < 1e-4, "{times}/{trials}: {found:?}");
        }
    }

    #[test]
    fn no_trials_and_more_hits_than_trials_have_none() {
        assert_eq!(wilson(0, 0), None);
        assert_eq!(wilson(2, 1), None);
        assert_eq!(wilson(8, 8).unwrap().1, 1.0);
    }
}
