//! Whether a command runs for a fixed time (`-d 5s`, a benchmark that repeats until its time is over):
//! then its time is the same under every allocator, and only the amount of its work differs.

use crate::execute::Measurement;
use crate::execute::user_command::{SLOWER_CALLS, SLOWER_WALL};

/// The largest ratio of calls that shows a fixed time. While calls of malloc and free take ten times
/// the CPU time of the whole command, a command with a fixed amount of work still makes all its
/// calls, and one with a fixed time about a tenth of them.
const FEWER_CALLS: f64 = 0.7;
/// The largest ratio of wall times for a fixed time. Calls are slow for one and a half times the wall
/// time: fixed work then takes more than twice as long, and a fixed time as long as before.
const SAME_WALL: f64 = 1.5;

/// Returns whether the check of the baseline shows a fixed time. Both ratios must be small: fewer
/// calls alone may be chance, as in a program that polls or that a closed pipe ends; the same wall
/// time alone may be that of a program that waits, or allocates beside its work.
pub fn is_fixed(check: &Measurement) -> bool {
    let figure = |name: &str| check.figures.get(name).copied();
    figure(SLOWER_CALLS)
        .zip(figure(SLOWER_WALL))
        .is_some_and(|(calls, wall)| calls <= FEWER_CALLS && wall <= SAME_WALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_whose_calls_take_longer_and_become_fewer_in_the_same_time_has_a_fixed_one() {
        let of = |calls: f64, wall: f64| {
            let figures = [(SLOWER_CALLS, calls), (SLOWER_WALL, wall)];
            is_fixed(&Measurement {
                figures: figures.map(|(name, ratio)| (name.to_owned(), ratio)).into(),
                ..Measurement::default()
            })
        };
        assert!(of(0.1, 1.0), "a loop until a deadline");
        assert!(of(0.6, 1.2), "the same on a machine that was busier before");
        assert!(
            !of(1.0, 2.35),
            "so much work, all of it one after the other"
        );
        assert!(!of(1.0, 1.1), "so much work, most of it waits");
        assert!(!of(0.97, 1.3), "work that several threads divide");
        assert!(!of(0.5, 2.5), "work of another amount each time");
        assert!(!is_fixed(&Measurement::default()), "not asked");
    }
}
