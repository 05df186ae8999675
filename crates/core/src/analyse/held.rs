//! What each allocator holds for what is live, in the cases whose memory a run measures beside its
//! times: a few numbers for its first answer. Must not compare times.

use super::{Table, TableRow};
pub use crate::metric::MemoryShape;
use crate::metric::{FigureRole, key_in};
use crate::plan::Case;
use heapmark_stats::geometric_mean;
use serde::Serialize;

/// The metric of a replay.
pub const PEAK: &str = "peak_over_peak";

/// An allocator in them. Each number is `None` if some process that it needs did not end `ok`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// The allocator's name.
    pub allocator: String,
    /// Highest resident heap / most live bytes, geometric mean over the replays.
    pub peak: Option<f64>,
    /// Replays behind that.
    pub replays: usize,
    /// Resident heap after requests on any thread of a pool / memory of one request.
    pub pool: Option<f64>,
    /// Highest resident heap / the most bytes that can be live, if one thread only frees.
    pub fan_in: Option<f64>,
    /// The part of a burst that goes back while the process sleeps.
    pub returned: Option<f64>,
}

/// Below this many times the baseline's, nothing is called bad: a change makes it no worse.
pub const BAD: f64 = 1.5;
/// Shares that are returned differ by more than this if they differ at all.
const LEAST_SHARE: f64 = 0.05;

impl Held {
    /// The number of a shape.
    pub fn of(&self, shape: MemoryShape) -> Option<f64> {
        match shape {
            MemoryShape::Peak => self.peak,
            MemoryShape::Pool => self.pool,
            MemoryShape::FanIn => self.fan_in,
            MemoryShape::Returned => self.returned,
        }
    }

    /// The worse of the two shapes of servers.
    pub fn worst(&self) -> Option<f64> {
        Some(self.pool?.max(self.fan_in?))
    }

    /// The number of a shape, larger for more memory.
    pub fn burden(&self, shape: MemoryShape) -> Option<f64> {
        let number = self.of(shape)?;
        Some(match shape {
            MemoryShape::Returned => (1.0 - number).max(0.0) + LEAST_SHARE,
            _ => number,
        })
    }
}

/// What this allocator is worst at beside the best one, and that; `None` if it is not bad at
/// anything. What the baseline is as bad at is no reason against another allocator; of a baseline
/// without a number, or the baseline itself, the best allocator's takes its place.
pub fn weakness<'a>(
    all: &'a [Held],
    allocator: &str,
    baseline: &str,
) -> Option<(MemoryShape, &'a Held)> {
    let named = |name: &str| all.iter().find(|held| held.allocator == name);
    let own = named(allocator)?;
    let base = named(baseline).filter(|_| allocator != baseline);
    let (_, shape, best) = MemoryShape::ALL
        .into_iter()
        .filter_map(|shape| {
            let (least, best) = all
                .iter()
                .filter_map(|held| Some((held.burden(shape)?, held)))
                .min_by(|(a, _), (b, _)| a.total_cmp(b))?;
            let own = own.burden(shape)?;
            let base = base.and_then(|base| base.burden(shape)).unwrap_or(least);
            (own / base >= BAD).then_some((own / least, shape, best))
        })
        .max_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    Some((shape, best))
}

/// Whether no allocator was seen to return anything while it slept; false if that is not known of
/// all of them.
pub fn none_returns(all: &[Held]) -> bool {
    !all.is_empty()
        && all
            .iter()
            .all(|held| held.returned.is_some_and(|share| share < LEAST_SHARE))
}

/// The cases without a factor whose highest resident heap over the most live bytes is known.
pub fn with_peaks(tables: &[Table]) -> Vec<&Table> {
    let has_peak = |row: &TableRow| row.role.ranks() && row.median(PEAK).is_some();
    let is_known = |table: &&Table| table.factor.is_none() && table.rows.iter().any(has_peak);
    tables.iter().filter(is_known).collect()
}

/// The highest resident heap over the most live bytes of each allocator that ranks, the least first:
/// geometric mean over the cases without a factor that have one, whose number is second. An allocator
/// that lacks one of these is left out.
pub fn peaks(tables: &[Table]) -> (Vec<(&str, f64)>, usize) {
    let cases = with_peaks(tables);
    let of = |name: &str| -> Option<f64> {
        let own = cases.iter().map(|table| table.row(name)?.median(PEAK));
        geometric_mean(&own.collect::<Option<Vec<f64>>>()?)
    };
    let rows = cases.first().into_iter().flat_map(|table| &table.rows);
    let mut peaks: Vec<(&str, f64)> = rows
        .filter(|row| row.role.ranks())
        .filter_map(|row| Some((row.allocator.as_str(), of(&row.allocator)?)))
        .collect();
    peaks.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    (peaks, cases.len())
}

/// What a case is measured for; `None` if it is none of these.
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

/// Every allocator in these cases, in plan order.
pub(super) fn held(allocators: &[String], cases: &[Case], tables: &[Table]) -> Vec<Held> {
    let shaped: Vec<(&Table, MemoryShape)> = (tables.iter().zip(cases))
        .filter_map(|(table, case)| Some((table, shape(table, case)?)))
        .collect();
    let of_allocator = |name: &String| {
        // Of every such case, or nothing.
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
        assert!(none_returns(&all[2..3]) && !none_returns(&all) && !none_returns(&[]));
        assert_eq!(all[1].worst(), Some(12.0));
    }
}
