//! Whether a ratio depends on how long turns were: at the beginning of each turn, a process finds
//! its data evicted from the caches, and allocators may differ in how much that costs. If so, the
//! reported ratio is that of endless turns, the `a` in `a + b / length`.

use crate::execute::TurnsTaken;
use crate::metric::{Metric, Unit};
use heapmark_stats::{mean, median, welch};
use std::collections::BTreeMap;

/// The accepted probability of calling a ratio dependent on turns although it is not.
const LEVEL: f64 = 0.01;

/// The longest turns must be at least this many times as long as the shortest; otherwise they show
/// nothing about the effect of length, as the scheduler may have cut all turns short.
const LEAST_APART: f64 = 1.5;

/// The share of the requested length below which the scheduler's turns are reported as too short.
const LEAST_TAKEN: f64 = 0.5;

/// Returns whether a metric measures time, which the length of turns can change. Memory does not depend on it: a line
/// through its scatter would be due to chance.
pub fn is_of_time(metric: &Metric) -> bool {
    matches!(metric.unit, Unit::Ns | Unit::MopsPerS)
}

/// The log ratio of a duet, and the length of its turns; `None` if its processes ran alone.
#[derive(Clone, Copy)]
pub struct Duet {
    pub log: f64,
    pub turn: Option<Length>,
}

/// The requested and the actual length of turns, in nanoseconds.
#[derive(Clone, Copy)]
pub struct Length {
    pub asked_ns: u64,
    pub taken_ns: u64,
}

impl Length {
    /// Returns the length of a process's turns; the requested length if the process took none.
    pub fn of(turns: &TurnsTaken) -> Length {
        Length {
            asked_ns: turns.slice_ns,
            taken_ns: turns.turn_ns.unwrap_or(turns.slice_ns).max(1),
        }
    }
}

/// What turns of a finite length add to a log ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependence {
    /// The log ratio of short turns minus that of long ones.
    pub short_over_long: f64,
    /// The requested lengths of turns, and what each adds to the log ratio.
    added: Vec<(u64, f64)>,
    /// The error of the estimate `a`, divided by that of a mean over the same number of duets.
    widens: f64,
}

/// Warns if the scheduler's turns were, in the median, much shorter than requested.
pub fn cut_short(turns: &[Length]) -> Option<String> {
    let of = |ns: fn(&Length) -> u64| {
        let all: Vec<f64> = turns.iter().map(|turn| ns(turn) as f64 / 1e6).collect();
        median(&all)
    };
    let (asked_ms, taken_ms) = (of(|turn| turn.asked_ns)?, of(|turn| turn.taken_ns)?);
    (taken_ms < LEAST_TAKEN * asked_ms).then(|| {
        format!(
            "The scheduler's turns took {taken_ms:.1} ms, not {asked_ms:.0} as asked for: other tasks on their CPU ended them."
        )
    })
}

/// Returns how the log ratios depend on the length of turns, by a least-squares line over `1 / length`; `None` if the dependence may
/// be chance.
pub fn dependence(duets: &[Duet]) -> Option<Dependence> {
    let mut lengths: BTreeMap<u64, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for duet in duets {
        let turn = duet.turn?;
        let (logs, often) = lengths.entry(turn.asked_ns).or_default();
        logs.push(duet.log);
        often.push(1.0 / turn.taken_ns as f64);
    }
    let (_, (at_short, most_often)) = lengths.first_key_value()?;
    let (_, (at_long, seldom)) = lengths.last_key_value()?;
    if mean(most_often)? < LEAST_APART * mean(seldom)? || welch(at_short, at_long)? >= LEVEL {
        return None;
    }
    let short_over_long = mean(at_short)? - mean(at_long)?;
    let n = duets.len() as f64;
    let often = lengths
        .iter()
        .filter_map(|(asked_ns, (_, often))| Some((*asked_ns, mean(often)?)));
    let often: BTreeMap<u64, f64> = often.collect();
    let point = |duet: &Duet| Some((often[&duet.turn?.asked_ns], duet.log));
    let (x, y): (Vec<f64>, Vec<f64>) = duets.iter().filter_map(point).unzip();
    let (middle, level) = (mean(&x)?, mean(&y)?);
    let spread: f64 = x.iter().map(|x| (x - middle).powi(2)).sum();
    let both = x.iter().zip(&y).map(|(x, y)| (x - middle) * (y - level));
    let of_one = both.sum::<f64>() / spread;
    // The line takes one degree of freedom more than a mean.
    let freedom = (n - 1.0) / (n - 2.0);
    Some(Dependence {
        short_over_long,
        added: often
            .into_iter()
            .map(|(asked_ns, often)| (asked_ns, of_one * often))
            .collect(),
        widens: ((1.0 + n * middle.powi(2) / spread) * freedom).sqrt(),
    })
}

/// The log ratios as they would be with endless turns, scattered as widely as the error of that
/// estimate demands; unchanged if they do not depend on turns.
pub fn of_endless_turns(duets: &[Duet]) -> Vec<f64> {
    let as_they_are = || duets.iter().map(|duet| duet.log).collect();
    let Some(found) = dependence(duets) else {
        return as_they_are();
    };
    let of_one = |duet: &Duet| {
        let asked_ns = duet.turn.map(|turn| turn.asked_ns);
        let added = found.added.iter().find(|(at, _)| Some(*at) == asked_ns);
        duet.log - added.map_or(0.0, |(_, added)| *added)
    };
    let logs: Vec<f64> = duets.iter().map(of_one).collect();
    let Some(centre) = mean(&logs) else {
        return as_they_are();
    };
    let widened = |log: f64| centre + found.widens * (log - centre);
    logs.into_iter().map(widened).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_stats::shift;

    /// Ten duets with turns of 10 and of 40 ms, with this log ratio in endless turns and this much
    /// more in turns of 10 ms.
    fn duets(log: f64, more_at_10_ms: f64, scatter: f64) -> Vec<Duet> {
        let one = |place: u64| {
            let ms = [10, 40][place as usize % 2];
            let noise = (place / 2 * 7 % 5) as f64 / 2.0 - 1.0;
            Duet {
                log: log + more_at_10_ms * 10.0 / ms as f64 + scatter * noise,
                turn: Some(Length {
                    asked_ns: ms * 1_000_000,
                    taken_ns: ms * 1_000_000,
                }),
            }
        };
        (0..10).map(one).collect()
    }

    #[test]
    fn turns_are_called_short_if_most_are_below_half_of_what_was_asked_for() {
        let turns = |taken_ms: [u64; 3]| {
            let turns = taken_ms.map(|ms| Length {
                asked_ns: 10_000_000,
                taken_ns: ms * 1_000_000,
            });
            cut_short(&turns)
        };
        assert_eq!(turns([6, 4, 12]), None);
        let text = turns([3, 12, 4]).unwrap();
        assert!(
            text.starts_with("The scheduler's turns took 4.0 ms, not 10 as"),
            "{text}"
        );
        assert_eq!(cut_short(&[]), None);
    }

    #[test]
    fn a_ratio_that_depends_on_turns_is_that_of_turns_without_end() {
        let found = duets(-0.1, 0.04, 0.004);
        assert!((dependence(&found).unwrap().short_over_long - 0.03).abs() < 1e-9);
        let of = |logs: &[f64]| shift(logs).unwrap();
        let endless = of(&of_endless_turns(&found));
        assert!((endless.estimate + 0.1).abs() < 1e-9, "{endless:?}");
        let plain = duets(-0.1, 0.0, 0.004);
        let known = of(&of_endless_turns(&plain));
        let widths = [endless, known].map(|shift| shift.interval.unwrap().half_width());
        assert!(widths[0] > 1.8 * widths[1], "{widths:?}");
    }

    #[test]
    fn lengths_between_the_shortest_and_the_longest_lie_on_the_line() {
        let of = |ms: u64, noise: f64| Duet {
            log: -0.1 + 0.4 / ms as f64 + noise,
            turn: Some(Length {
                asked_ns: ms * 1_000_000,
                taken_ns: ms * 1_000_000,
            }),
        };
        let noises = [0.001, -0.001, 0.002, -0.002];
        let duets = [10, 20, 40].map(|ms| noises.map(|noise| of(ms, noise)));
        let logs = of_endless_turns(duets.as_flattened());
        assert!((mean(&logs).unwrap() + 0.1).abs() < 1e-9, "{logs:?}");
        assert!(logs.iter().all(|log| (log + 0.1).abs() < 0.01), "{logs:?}");
    }

    #[test]
    fn ratios_that_do_not_depend_on_turns_stay_as_they_are() {
        for duets in [duets(-0.1, 0.0, 0.01), duets(-0.1, 0.005, 0.01)] {
            assert_eq!(dependence(&duets), None);
            let logs: Vec<f64> = duets.iter().map(|duet| duet.log).collect();
            assert_eq!(of_endless_turns(&duets), logs);
        }
        // Other programs ended all turns after some 3 ms.
        let mut cut_short = duets(0.2, 0.04, 0.001);
        let turns = cut_short.iter_mut().filter_map(|duet| duet.turn.as_mut());
        turns.for_each(|turn| turn.taken_ns = 3_000_000 + turn.asked_ns / 100);
        assert_eq!(dependence(&cut_short), None);
        let mut alone = duets(0.2, 0.04, 0.001);
        alone.iter_mut().for_each(|duet| duet.turn = None);
        assert_eq!(dependence(&alone), None);
    }
}
