//! An allocator against its own copy, many times: how often this machine would report a difference
//! that does not exist, and how many blocks it takes to see a small one; beside it, what common
//! habits would have reported of the same processes.

use crate::metric::Process;
use crate::store::{Purpose, Record};
use clap::ValueEnum;
use heapmark_stats::ALPHA;
use heapmark_stats::{Finding, half_width, judge_family, mean, median, welch};
use serde::Serialize;
use std::collections::BTreeMap;
use std::iter::zip;

/// Numbers of blocks that are tried.
const SIZES: [usize; 6] = [6, 10, 15, 20, 30, 40];
/// A half-width that is good enough to tell allocators apart.
const GOOD: f64 = 0.01;
/// "It differs by more than 2 %" is a common habit.
const DIFFERS: f64 = 0.02;
/// How often each side runs, if a habit repeats at all.
const REPEATED: usize = 10;

/// How others compare two allocators: all runs of one, then all of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Habit {
    /// One run of each; more than 2 % apart is a difference
    Once,
    /// Ten runs of each; means more than 2 % apart are a difference
    Mean,
    /// Ten runs of each; a difference if Welch's t-test has p < 0.05
    TTest,
}

impl Habit {
    /// Runs of each side.
    fn runs(self) -> usize {
        match self {
            Habit::Once => 1,
            Habit::Mean | Habit::TTest => REPEATED,
        }
    }

    /// Whether it calls the second half of these times different from the first.
    fn differ(self, times: &[f64]) -> bool {
        let (first, second) = times.split_at(self.runs());
        match self {
            Habit::Once | Habit::Mean => zip(mean(first), mean(second))
                .any(|(first, second)| (second / first - 1.0).abs() > DIFFERS),
            Habit::TTest => welch(first, second).is_some_and(|p| p < ALPHA),
        }
    }

    /// What it makes of processes in the order in which they ran. All ran the same bytes, so each
    /// stretch of neighbours could have been "first one allocator, then the other".
    fn judge(self, times: &[f64]) -> HabitLevel {
        let stretches = times.windows(2 * self.runs());
        let comparisons = stretches.len();
        let alarms = stretches.filter(|times| self.differ(times)).count();
        HabitLevel {
            habit: self,
            comparisons,
            false_alarms: (comparisons > 0).then(|| alarms as f64 / comparisons as f64),
        }
    }
}

/// What a habit makes of equals.
#[derive(Clone, Debug, Serialize)]
pub struct HabitLevel {
    /// The habit.
    pub habit: Habit,
    /// Stretches of processes, each a comparison; they overlap.
    pub comparisons: usize,
    /// Share of them in which it sees a difference; absent without comparisons.
    pub false_alarms: Option<f64>,
}

/// The result of the pairs, by one clock.
#[derive(Clone, Debug, Serialize)]
pub struct Noise {
    /// Blocks with both processes.
    pub pairs: usize,
    /// What each habit would have said.
    pub habits: Vec<HabitLevel>,
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
    [wall, |process| process.cpu_ns_per_op].map(|value| {
        let timed = || {
            records.iter().filter_map(move |record| {
                let is_one = [original, copy].contains(&record.allocator.as_str());
                let is_sample = record.purpose == Purpose::Sample && record.outcome.is_ok();
                let measurement = record
                    .measurement
                    .as_ref()
                    .filter(|_| is_one && is_sample)?;
                let time = value(&Process::new(measurement, record.threads)?)?;
                Some((record, time))
            })
        };
        let blocks: BTreeMap<(u32, bool), f64> = timed()
            .map(|(record, time)| ((record.block, record.allocator == copy), time))
            .collect();
        let logs: Vec<f64> = blocks
            .iter()
            .filter(|((_, is_copy), _)| !is_copy)
            .filter_map(|((block, _), own)| Some((blocks.get(&(*block, true))? / own).ln()))
            .collect();
        // No habit repeats a disturbed process: all count, in the order in which they ran.
        let in_order: Vec<f64> = timed().map(|(_, time)| time).collect();
        of_times(&logs, &in_order)
    })
}

fn of_times(logs: &[f64], in_order: &[f64]) -> Option<Noise> {
    let levels: Vec<Level> = SIZES
        .iter()
        .filter_map(|blocks| level(logs, *blocks))
        .collect();
    let widest = levels.last()?;
    let needed = widest.blocks as f64 * (widest.half_width / GOOD).powi(2);
    Some(Noise {
        pairs: logs.len(),
        habits: Habit::value_variants()
            .iter()
            .map(|habit| habit.judge(in_order))
            .collect(),
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

    fn of_logs(logs: &[f64]) -> Option<Noise> {
        of_times(logs, &[])
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
    }

    #[test]
    fn habits_take_drift_for_a_difference_and_equal_times_for_none() {
        let steady: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i % 2)).collect();
        let drifting: Vec<f64> = (0..40).map(|i| 100.0 * 1.03_f64.powi(i)).collect();
        for habit in Habit::value_variants() {
            let alarms = |times: &[f64]| habit.judge(times).false_alarms;
            assert_eq!(alarms(&steady), Some(0.0), "{habit:?}");
            assert_eq!(alarms(&drifting), Some(1.0), "{habit:?}");
            assert_eq!(alarms(&steady[..1]), None, "{habit:?}");
        }
        assert_eq!(Habit::Once.judge(&steady).comparisons, 39);
        assert_eq!(Habit::TTest.judge(&steady).comparisons, 21);
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
