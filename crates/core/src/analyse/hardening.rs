//! The price that allocators pay in a run for the misuses that they detect in `heapmark check`. The
//! price is not a score: the share counts small programs, all with the same weight.

use super::{Analysis, TableRow};
use crate::store::Detection;
use heapmark_stats::mean;

/// An allocator whose hardening was checked before the run.
#[derive(Clone, Debug, PartialEq)]
pub struct HardeningCost<'a> {
    /// The allocator's name.
    pub allocator: &'a str,
    /// The share of processes in which a misuse was detected, mean over the misuses.
    pub detected: f64,
    /// The number of misuses that `detected` is a mean over, the same for all allocators of the run.
    pub misuses: usize,
    /// The time over the baseline's, over all cases or in the only one.
    pub time: f64,
    /// The 95 % interval of `time`.
    pub interval: Option<(f64, f64)>,
    /// The memory over the baseline's.
    pub memory: Option<f64>,
}

impl Analysis {
    /// Returns the costs of the run's allocators, in plan order; none if there are fewer than two
    /// to compare, or none of them may be hardened. Misuses that were not tried equally often on
    /// all allocators are left out: their shares would not be comparable.
    pub fn hardening_costs(&self) -> Vec<HardeningCost<'_>> {
        let priced = self.checked.iter().filter_map(|(name, checked)| {
            let all = checked.hardening.as_slice();
            let price = self.price(name).filter(|_| !all.is_empty())?;
            Some((name.as_str(), all, price))
        });
        let priced: Vec<(&str, &[Detection], Price)> = priced.collect();
        let [(_, first, _), others @ ..] = priced.as_slice() else {
            return Vec::new();
        };
        let is_everywhere = |one: &&Detection| {
            let has = |all: &[Detection]| {
                let mut all = all.iter();
                all.any(|other| other.check == one.check && other.of == one.of)
            };
            others.iter().all(|(_, all, _)| has(all))
        };
        let common: Vec<&Detection> = first.iter().filter(is_everywhere).collect();
        let is_hardened =
            |entry: &(&str, &[Detection], Price)| self.hardened.iter().any(|name| name == entry.0);
        if others.is_empty() || common.is_empty() || !priced.iter().any(is_hardened) {
            return Vec::new();
        }
        let is_common =
            |one: &&Detection| common.iter().any(|detection| detection.check == one.check);
        let costs = priced.iter().filter_map(|(name, all, price)| {
            let shares = all.iter().filter(is_common);
            let shares =
                shares.map(|detection| f64::from(detection.detected) / f64::from(detection.of));
            Some(HardeningCost {
                allocator: name,
                detected: mean(&shares.collect::<Vec<f64>>())?,
                misuses: common.len(),
                time: price.time,
                interval: price.interval,
                memory: price.memory,
            })
        });
        costs.collect()
    }

    /// What the allocator costs over all cases, or in the only one; `None` if the run does not compare the allocator.
    fn price(&self, allocator: &str) -> Option<Price> {
        let base = &self.baseline;
        if let Some(one) = self
            .overall
            .iter()
            .find(|overall| overall.allocator == *allocator)
        {
            let peak = |name: &str| self.held_by(name)?.peak;
            // All rows use the same measure: a value that a row lacks is not replaced by another measure.
            let memory = match peak(base) {
                Some(base) => peak(allocator).map(|bytes| bytes / base),
                None => one.memory.map(|memory| memory.ratio),
            };
            return Some(Price {
                time: one.ratio,
                interval: one.interval,
                memory,
            });
        }
        let case = self.only_case()?;
        let row = case.row(allocator)?;
        let peak = |row: &TableRow| row.median("peak_rss_bytes");
        let grown = row.ratio("grown_bytes").map(|ratio| ratio.ratio);
        let ratio = row.time().ratio?;
        Some(Price {
            time: ratio.ratio,
            interval: ratio.interval,
            memory: grown.or_else(|| Some(peak(row)? / peak(case.baseline_row()?)?)),
        })
    }
}

/// An allocator's time and memory over the baseline's.
struct Price {
    time: f64,
    interval: Option<(f64, f64)>,
    memory: Option<f64>,
}

#[cfg(test)]
mod tests {
    use crate::analyse::fake_run::FakeRun;
    use crate::analyse::{Held, analyse};

    #[test]
    fn memory_of_all_rows_is_one_measure() {
        let lab = FakeRun::new(&["glibc", "a", "b"], &["larson", "xmalloc"], 6);
        let lab = lab.fill(|_, _, _| 20.0);
        let mut analysis = analyse(&lab.run, &lab.records);
        assert!(analysis.price("b").unwrap().memory.is_some());
        let held = |allocator: &str, peak| Held {
            allocator: allocator.into(),
            peak,
            replays: 5,
            pool: None,
            fan_in: None,
            returned: None,
        };
        analysis.held = vec![
            held("glibc", Some(2.0)),
            held("a", Some(3.0)),
            held("b", None),
        ];
        let memory = ["a", "b"].map(|name| analysis.price(name).unwrap().memory);
        assert_eq!(memory, [Some(1.5), None]);
    }
}
