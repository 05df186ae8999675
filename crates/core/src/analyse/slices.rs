//! Whether a ratio depends on how long turns were: at the begin of each, a process finds its data taken out of the caches, and
//! allocators may pay differently for that. Then it is the ratio of turns without end, a of a + b / length.

use heapmark_stats::{mean, welch};

/// A chance of one in a hundred calls a ratio dependent that is not.
const LEVEL: f64 = 0.01;

/// The log ratio of a duet, and how long its turns were; `None`: its processes ran alone.
#[derive(Clone, Copy)]
pub struct Duet {
    pub log: f64,
    pub slice_ns: Option<u64>,
}

/// What turns of a finite length add to a log ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence {
    /// The log ratio of short turns less that of long ones.
    pub short_over_long: f64,
    /// b, in log units times nanoseconds.
    slope_ns: f64,
    /// How many times the error of a exceeds that of a mean of as many.
    widens: f64,
}

/// `None` if it cannot be told from chance.
pub fn dependence(duets: &[Duet]) -> Option<Dependence> {
    let lengths = || duets.iter().filter_map(|duet| duet.slice_ns);
    let (short, long) = (lengths().min()?, lengths().max()?);
    let of = |length: u64| -> Vec<f64> {
        let own = duets.iter().filter(|duet| duet.slice_ns == Some(length));
        own.map(|duet| duet.log).collect()
    };
    let (at_short, at_long) = (of(short), of(long));
    if short == long || welch(&at_short, &at_long)? >= LEVEL {
        return None;
    }
    let short_over_long = mean(&at_short)? - mean(&at_long)?;
    let (short, long) = (short as f64, long as f64);
    let weight = |length: f64, count: usize| (length / (long - short)).powi(2) / count as f64;
    let variance = weight(short, at_short.len()) + weight(long, at_long.len());
    Some(Dependence {
        short_over_long,
        slope_ns: short_over_long / (1.0 / short - 1.0 / long),
        widens: (variance * duets.len() as f64).sqrt(),
    })
}

/// The log ratios as they would be with turns without end, scattered as widely as that estimate is; as they are if they do not
/// depend on turns.
pub fn of_endless_turns(duets: &[Duet]) -> Vec<f64> {
    let as_they_are = || duets.iter().map(|duet| duet.log).collect();
    let Some(found) = dependence(duets) else {
        return as_they_are();
    };
    let of_one = |duet: &Duet| {
        let added = duet
            .slice_ns
            .map_or(0.0, |slice_ns| found.slope_ns / slice_ns as f64);
        duet.log - added
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

    /// Ten duets with turns of 10 and of 40 ms, with this ratio in turns without end and this much more in those of 10 ms.
    fn duets(log: f64, more_at_10_ms: f64, scatter: f64) -> Vec<Duet> {
        let one = |place: u64| {
            let ms = [10, 40][place as usize % 2];
            let noise = (place / 2 * 7 % 5) as f64 / 2.0 - 1.0;
            Duet {
                log: log + more_at_10_ms * 10.0 / ms as f64 + scatter * noise,
                slice_ns: Some(ms * 1_000_000),
            }
        };
        (0..10).map(one).collect()
    }

    #[test]
    fn a_ratio_that_depends_on_turns_is_that_of_turns_without_end() {
        let found = duets(-0.1, 0.04, 0.004);
        assert!((dependence(&found).unwrap().short_over_long - 0.03).abs() < 1e-9);
        let of = |logs: &[f64]| shift(logs).unwrap();
        let told = of(&of_endless_turns(&found));
        assert!((told.estimate + 0.1).abs() < 1e-9, "{told:?}");
        let plain = duets(-0.1, 0.0, 0.004);
        let known = of(&of_endless_turns(&plain));
        let widths = [told, known].map(|it| it.interval.unwrap().half_width());
        assert!(widths[0] > 1.8 * widths[1], "{widths:?}");
    }

    #[test]
    fn ratios_that_do_not_depend_on_turns_stay_as_they_are() {
        for duets in [duets(-0.1, 0.0, 0.01), duets(-0.1, 0.005, 0.01)] {
            assert_eq!(dependence(&duets), None);
            let logs: Vec<f64> = duets.iter().map(|duet| duet.log).collect();
            assert_eq!(of_endless_turns(&duets), logs);
        }
        let mut alone = duets(0.2, 0.04, 0.001);
        alone.iter_mut().for_each(|duet| duet.slice_ns = None);
        assert_eq!(dependence(&alone), None);
    }
}
