//! An allocator against its own copy, many times: how often this machine would report a difference
//! that does not exist, and how many blocks it takes to see a small one.

use crate::metric::Process;
use crate::store::{Purpose, Record};
use heapmark_stats::ALPHA;
use heapmark_stats::{Finding, half_width, judge_family, median};
use serde::Serialize;
use std::collections::BTreeMap;

/// Numbers of blocks that are tried.
const SIZES: [usize; 6] = [6, 10, 15, 20, 30, 40];
/// A half-width that is good enough to tell allocators apart.
const GOOD: f64 = 0.01;
/// "It differs by more than 2 %" is a common habit after one run of each.
const HABIT: f64 = 0.02;

/// The result of the pairs, by one clock.
#[derive(Clone, Debug, Serialize)]
pub struct Noise {
    /// Blocks with both processes.
    pub pairs: usize,
    /// Share of single pairs that differ by more than 2 %.
    pub single_runs_differ: f64,
    /// By number of blocks.
    pub levels: Vec<Level>,
    /// Blocks for a half-width of 1 %, extrapolated from the widest level by the square root law.
    pub blocks_for_one_percent: Option<u32>,
}

/// Comparisons of one size: every run of this many neighbouring blocks is one. They overlap, so
/// fewer of them are independent than their number suggests.
#[derive(Clone, Debug, Serialize)]
pub struct Level {
    /// Blocks in each.
    pub blocks: usize,
    /// The number of such runs of blocks.
    pub comparisons: usize,
    /// Share of them in which the copy was judged different.
    pub false_alarms: f64,
    /// Median half-width of the 95 % interval, in log units.
    pub half_width: f64,
}

/// From the samples of `original` and `copy`, by wall time and by CPU time.
pub fn noise(records: &[Record], original: &str, copy: &str) -> [Option<Noise>; 2] {
    let wall: fn(&Process) -> Option<f64> = |process| Some(process.ns_per_op);
    [wall, |process| process.cpu_ns_per_op]
        .map(|value| of_logs(&logs(records, original, copy, value)))
}

fn logs(
    records: &[Record],
    original: &str,
    copy: &str,
    value: fn(&Process) -> Option<f64>,
) -> Vec<f64> {
    let mut blocks: BTreeMap<(u32, bool), f64> = BTreeMap::new();
    for record in records
        .iter()
        .filter(|record| record.purpose == Purpose::Sample && record.outcome.is_ok())
    {
        let measured = record
            .measurement
            .as_ref()
            .and_then(|m| value(&Process::new(m, record.threads)?));
        if let Some(measured) =
            measured.filter(|_| [original, copy].contains(&record.allocator.as_str()))
        {
            blocks.insert((record.block, record.allocator == copy), measured);
        }
    }
    let originals = blocks.iter().filter(|((_, is_copy), _)| !is_copy);
    originals
        .filter_map(|((block, _), own)| Some((blocks.get(&(*block, true))? / own).ln()))
        .collect()
}

fn of_logs(logs: &[f64]) -> Option<Noise> {
    let levels: Vec<Level> = SIZES
        .iter()
        .filter_map(|blocks| level(logs, *blocks))
        .collect();
    let widest = levels.last()?;
    let needed = widest.blocks as f64 * (widest.half_width / GOOD).powi(2);
    let differ = logs.iter().filter(|log| log.abs() > HABIT.ln_1p()).count();
    Some(Noise {
        pairs: logs.len(),
        single_runs_differ: differ as f64 / logs.len() as f64,
        blocks_for_one_percent: (needed <= 10_000.0)
            .then(|| (needed.ceil() as u32).max(SIZES[0] as u32)),
        levels,
    })
}

fn level(logs: &[f64], blocks: usize) -> Option<Level> {
    let judged: Vec<_> = logs
        .windows(blocks)
        .filter_map(|stretch| judge_family(&[stretch], blocks, ALPHA).pop().flatten())
        .collect();
    let alarm =
        |finding: Finding| matches!(finding, Finding::Lower | Finding::Higher | Finding::Small);
    let alarms = judged
        .iter()
        .filter(|judgement| alarm(judgement.finding))
        .count();
    let widths: Vec<f64> = judged
        .iter()
        .filter_map(|judgement| half_width(&judgement.shift))
        .collect();
    Some(Level {
        blocks,
        comparisons: judged.len(),
        false_alarms: alarms as f64 / judged.len() as f64,
        half_width: median(&widths)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform scatter of up to `scatter` around `shift`.
    fn planted(shift: f64, scatter: f64) -> Vec<f64> {
        (0..60)
            .map(|i| shift + scatter * (f64::from(i * 37 % 60) / 29.5 - 1.0))
            .collect()
    }

    #[test]
    fn equal_pairs_alarm_seldom_and_a_planted_shift_always() {
        let equal = of_logs(&planted(0.0, 0.03)).unwrap();
        let shifted = of_logs(&planted(0.08, 0.03)).unwrap();
        assert!(
            equal.levels.iter().all(|level| level.false_alarms < 0.1),
            "{equal:?}"
        );
        assert!(
            shifted.levels.iter().all(|level| level.false_alarms == 1.0),
            "{shifted:?}"
        );
        assert!(shifted.single_runs_differ > equal.single_runs_differ);
    }

    #[test]
    fn more_scatter_takes_more_blocks() {
        let blocks = |scatter| {
            of_logs(&planted(0.0, scatter))
                .unwrap()
                .blocks_for_one_percent
                .unwrap()
        };
        assert!(
            blocks(0.06) > 2 * blocks(0.03),
            "{} {}",
            blocks(0.06),
            blocks(0.03)
        );
        assert!(
            of_logs(&planted(0.0, 0.1)[..5]).is_none(),
            "too few for any level"
        );
    }
}
