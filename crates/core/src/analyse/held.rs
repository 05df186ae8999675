//! How much memory each allocator holds relative to what is live, in the cases whose memory a run
//! measures besides its times: a few numbers for the run's first answer. Must not compare times.

use super::{Table, TableRow};
pub use crate::metric::MemoryShape;
use crate::metric::{FigureRole, key_in};
use crate::plan::Case;
use heapmark_stats::geometric_mean;
use serde::Serialize;

/// The key of the metric that a replay measures: highest resident heap / most live bytes.
pub const PEAK: &str = "peak_over_peak";

/// The memory of an allocator in the cases that measure it. Each number is `None` if some process that it is
/// derived from did not end `ok`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// The allocator's name.
    pub allocator: String,
    /// Highest resident heap / most live bytes, geometric mean over the replays.
    pub peak: Option<f64>,
    /// The number of replays behind `peak`.
    pub replays: usize,
    /// Resident heap after requests on any thread of a pool / memory of one request.
    pub pool: Option<f64>,
    /// Highest resident heap / the most bytes that can be live, if one thread only frees.
    pub fan_in: Option<f64>,
    /// The share of a burst's memory that is returned while the process sleeps.
    pub returned: Option<f64>,
}

/// The least ratio to the baseline's number from which a number is called bad: below it, a change
/// of allocator makes little difference.
pub const BAD: f64 = 1.5;
/// Returned shares that differ by less than this count as equal.
const LEAST_SHARE: f64 = 0.05;

impl Held {
    /// The allocator's number for a shape.
    pub fn of(&self, shape: MemoryShape) -> Option<f64> {
        match shape {
            MemoryShape::Peak => self.peak,
            MemoryShape::Pool => self.pool,
            MemoryShape::FanIn => self.fan_in,
            MemoryShape::Returned => self.returned,
        }
    }

    /// The worse of the numbers for the two shapes of servers.
    pub fn worst(&self) -> Option<f64> {
        Some(self.pool?.max(self.fan_in?))
    }

    /// The allocator's number for a shape, converted so that a larger number means more memory.
    pub fn burden(&self, shape: MemoryShape) -> Option<f64> {
        let number = self.of(shape)?;
        Some(match shape {
            MemoryShape::Returned => (1.0 - number).max(0.0) + LEAST_SHARE,
            _ => number,
        })
    }
}

/// Returns the shape at which this allocator compares worst with the best one, and that best one; `None` if the
/// allocator is not bad at any shape. A shape at which the baseline is just as bad does not count against another
/// allocator; if the baseline has no number, or is the allocator itself, the best allocator takes its place.
pub fn weakness<'a>(
    all: &'a [Held],
    allocator: &str,
    baseline: &str,
) -> Option<(MemoryShape, &'a Held)> {
    let named = |name: &str| all.iter().find(|held| held.allocator == name);
    let held = named(allocator)?;
    let base = named(baseline).filter(|_| allocator != baseline);
    let (_, shape, best) = MemoryShape::ALL
        .into_iter()
        .filter_map(|shape| {
            let (least, best) = all
                .iter()
                .filter_map(|held| Some((held.burden(shape)?, held)))
                .min_by(|(a, _), (b, _)| a.total_cmp(b))?;
            let burden = held.burden(shape)?;
            let base = base.and_then(|base| base.burden(shape)).unwrap_or(least);
            (burden / base >= BAD).then_some((burden / least, shape, best))
        })
        .max_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    Some((shape, best))
}

/// The cases without a factor whose highest resident heap over the most live bytes is known. Cases in which one thread makes
/// the calls of several do not represent the program, and are left out.
pub fn with_peaks(tables: &[Table]) -> Vec<&Table> {
    let has_peak = |row: &TableRow| row.role.ranks() && row.median(PEAK).is_some();
    let is_known = |table: &&Table| {
        table.factor.is_none() && !table.played_by_one && table.rows.iter().any(has_peak)
    };
    tables.iter().filter(is_known).collect()
}

/// The highest resident heap over the most live bytes of each allocator that ranks, the least
/// first: the geometric mean over the cases without a factor that have such a ratio, and then the
/// number of these cases. An allocator that lacks a ratio in one of them is left out.
pub fn peaks(tables: &[Table]) -> (Vec<(&str, f64)>, usize) {
    let cases = with_peaks(tables);
    let of = |name: &str| -> Option<f64> {
        let ratios = cases.iter().map(|table| table.row(name)?.median(PEAK));
        geometric_mean(&ratios.collect::<Option<Vec<f64>>>()?)
    };
    let rows = cases.first().into_iter().flat_map(|table| &table.rows);
    let mut peaks: Vec<(&str, f64)> = rows
        .filter(|row| row.role.ranks())
        .filter_map(|row| Some((row.allocator.as_str(), of(&row.allocator)?)))
        .collect();
    peaks.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    (peaks, cases.len())
}

/// The shape of memory use that a case measures; `None` if it measures none.
fn shape(table: &Table, case: &Case) -> Option<MemoryShape> {
    if case.is_replay() {
        return Some(MemoryShape::Peak);
    }
    let mut cells = table.rows.iter().flat_map(|row| &row.cells);
    cells.find_map(|cell| match cell.metric.role()? {
        FigureRole::Held(shape) => Some(shape),
        _ => None,
    })
}

/// What every allocator holds in these cases, in plan order.
pub(super) fn held(allocators: &[String], cases: &[Case], tables: &[Table]) -> Vec<Held> {
    let shaped: Vec<(&Table, MemoryShape)> = (tables.iter().zip(cases))
        .filter_map(|(table, case)| Some((table, shape(table, case)?)))
        .collect();
    let of_allocator = |name: &String| {
        // The values from every case of this shape, or none if a case lacks one.
        let all = |wanted: MemoryShape| -> Option<Vec<f64>> {
            let key = match wanted {
                MemoryShape::Peak => PEAK,
                _ => key_in(FigureRole::Held(wanted)),
            };
            let value = |table: &Table| table.row(name)?.median(key);
            shaped
                .iter()
                .filter(|(_, shape)| *shape == wanted)
                .map(|(table, _)| value(table))
                .collect()
        };
        let most = |wanted| all(wanted)?.into_iter().max_by(f64::total_cmp);
        Held {
            allocator: name.clone(),
            peak: all(MemoryShape::Peak).and_then(|peaks| geometric_mean(&peaks)),
            replays: (shaped.iter())
                .filter(|(_, shape)| *shape == MemoryShape::Peak)
                .count(),
            pool: most(MemoryShape::Pool),
            fan_in: most(MemoryShape::FanIn),
            returned: all(MemoryShape::Returned)
                .and_then(|shares| shares.into_iter().min_by(f64::total_cmp)),
        }
    };
    if shaped.is_empty() {
        Vec::new()
    } else {
        allocators.iter().map(of_allocator).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(allocator: &str, peak: f64, pool: Option<f64>, returned: f64) -> Held {
        Held {
            allocator: allocator.into(),
            peak: Some(peak),
            replays: 5,
            pool,
            fan_in: Some(1.2),
            returned: Some(returned),
        }
    }

    #[test]
    fn an_allocator_is_bad_at_what_it_holds_most_of_beside_the_best() {
        let all = [
            one("fair", 1.2, Some(1.5), 0.9),
            one("hoards", 1.9, Some(12.0), 0.9),
            one("keeps", 1.3, Some(1.6), 0.0),
            one("failed", 1.3, None, 0.9),
            one("hoards as much", 1.2, Some(10.0), 0.9),
        ];
        let beside = |name: &str, baseline: &str| {
            weakness(&all, name, baseline).map(|(shape, best)| (shape, best.allocator.as_str()))
        };
        let of = |name: &str| beside(name, "fair");
        assert_eq!(of("hoards"), Some((MemoryShape::Pool, "fair")));
        assert_eq!(
            beside("hoards", "hoards as much"),
            Some((MemoryShape::Peak, "fair")),
            "a baseline that is as bad at a pool is better at the peak"
        );
        assert_eq!(
            beside("hoards", "failed"),
            Some((MemoryShape::Pool, "fair")),
            "beside a baseline without a number, the best one counts"
        );
        assert_eq!(
            of("keeps").map(|(shape, _)| shape),
            Some(MemoryShape::Returned)
        );
        assert_eq!(of("fair"), None);
        assert_eq!(
            of("failed"),
            None,
            "nothing is said of what was not measured"
        );
        assert_eq!(all[3].worst(), None);
        assert_eq!(all[1].worst(), Some(12.0));
    }
}
