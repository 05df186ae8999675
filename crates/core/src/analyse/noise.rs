//! An allocator against its own copy, many times: how often this machine would report a difference
//! that does not exist, and how many blocks it takes to find a small one; for comparison, what
//! common habits would have reported about the same processes.

use crate::metric::Process;
use crate::store::{Purpose, Record};
use clap::ValueEnum;
use heapmark_stats::ALPHA;
use heapmark_stats::{Judgement, half_width, judge_family, mean, median, welch};
use std::collections::BTreeMap;
use std::iter::zip;

/// Numbers of blocks that are tried.
const SIZES: [usize; 6] = [6, 10, 15, 20, 30, 40];
/// A half-width that is good enough to tell allocators apart.
const GOOD: f64 = 0.01;
/// Common habits report any difference of more than this share.
const DIFFERS: f64 = 0.02;
/// A difference that is planted in the times of equals, to see whether it is found.
pub const PLANTED: f64 = 0.05;
/// How often each side runs, if a habit repeats at all.
const REPEATED: usize = 10;

/// How others compare two allocators: all runs of one, then all of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Habit {
    /// One run of each; more than 2 % apart is a difference
    Once,
    /// Ten runs of each; means more than 2 % apart are a difference
    Mean,
    /// Ten runs of each; a difference if Welch's t-test has p < 0.05
    TTest,
}

impl Habit {
    /// How often the habit runs each side.
    fn runs(self) -> usize {
        match self {
            Habit::Once => 1,
            Habit::Mean | Habit::TTest => REPEATED,
        }
    }

    /// Whether the habit calls the second half of these times different from the first.
    fn differ(self, times: &[f64]) -> bool {
        let (first, second) = times.split_at(self.runs());
        match self {
            Habit::Once | Habit::Mean => zip(mean(first), mean(second))
                .any(|(first, second)| (second / first - 1.0).abs() > DIFFERS),
            Habit::TTest => welch(first, second).is_some_and(|p| p < ALPHA),
        }
    }

    /// Returns what the habit reports about processes in the order in which they ran. All ran the
    /// same bytes, so each stretch of consecutive ones could have been "first one allocator, then the other".
    fn judge(self, times: &[f64]) -> Level {
        let stretches = || times.windows(2 * self.runs());
        let share = |planted: f64| {
            let found = stretches().filter(|times| {
                let mut times = times.to_vec();
                let (_, second) = times.split_at_mut(self.runs());
                second.iter_mut().for_each(|time| *time *= planted);
                self.differ(&times)
            });
            found.count() as f64 / stretches().len().max(1) as f64
        };
        Level {
            comparisons: stretches().len(),
            false_alarms: share(1.0),
            finds_planted: share(1.0 + PLANTED),
            half_width: None,
        }
    }
}

/// How processes were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each process alone, by wall time.
    WallTime,
    /// Each process alone, by CPU time.
    CpuTime,
    /// Processes in turns, by CPU time.
    Turns,
}

/// A way to compare, and what it reports about equals.
#[derive(Clone, Debug)]
pub struct Noise {
    /// The way to compare.
    pub way: Way,
    /// What each habit would have reported; habits use wall times.
    pub habits: Vec<(Habit, Level)>,
    /// The comparisons for each number of blocks.
    pub levels: Vec<(usize, Level)>,
    /// Blocks for a half-width of 1 %, extrapolated from the widest level by the square root law.
    pub blocks_for_one_percent: Option<u32>,
}

/// Comparisons of one kind, which overlap: fewer of them are independent than their number suggests.
#[derive(Clone, Debug)]
pub struct Level {
    /// The number of comparisons.
    pub comparisons: usize,
    /// The share of comparisons in which the copy was judged different.
    pub false_alarms: f64,
    /// The share of comparisons in which a difference of [`PLANTED`] is found that was added to the copy's times.
    pub finds_planted: f64,
    /// Median half-width of the 95 % interval, in log units; a habit has none.
    pub half_width: Option<f64>,
}

/// Returns what each way reports about the samples of `original` and `copy`, which ran alone and in
/// turns. Ways without enough blocks are left out.
pub fn noise(records: &[Record], original: &str, copy: &str) -> Vec<Noise> {
    let ways = [Way::WallTime, Way::CpuTime, Way::Turns];
    let of_way = |way: Way| {
        let timed = || {
            records.iter().filter_map(move |record| {
                let is_one = [original, copy].contains(&record.allocator.as_str());
                let is_sample = record.purpose == Purpose::Sample && record.outcome.is_ok();
                let is_of_way = record.took_turns() == (way == Way::Turns);
                let measurement = record
                    .measurement
                    .as_ref()
                    .filter(|_| is_one && is_sample && is_of_way)?;
                let process = Process::new(measurement, record.threads)?;
                let time = match way {
                    Way::WallTime => process.ns_per_op(),
                    Way::CpuTime | Way::Turns => process.cpu_ns_per_op()?,
                };
                Some((record, time))
            })
        };
        let blocks: BTreeMap<(u32, bool), f64> = timed()
            .map(|(record, time)| ((record.block, record.allocator == copy), time))
            .collect();
        let logs: Vec<f64> = blocks
            .iter()
            .filter(|((_, is_copy), _)| !is_copy)
            .filter_map(|((block, _), time)| Some((blocks.get(&(*block, true))? / time).ln()))
            .collect();
        // The habits repeat no disturbed process: all processes count, in the order in which they ran.
        let in_order: Vec<f64> = timed().map(|(_, time)| time).collect();
        of_times(way, &logs, &in_order)
    };
    ways.into_iter().filter_map(of_way).collect()
}

fn of_times(way: Way, logs: &[f64], in_order: &[f64]) -> Option<Noise> {
    let levels: Vec<(usize, Level)> = SIZES
        .iter()
        .filter_map(|blocks| Some((*blocks, level(logs, *blocks)?)))
        .collect();
    let (blocks, widest) = levels.last()?;
    let needed = *blocks as f64 * (widest.half_width? / GOOD).powi(2);
    let habits = Habit::value_variants().iter().copied();
    Some(Noise {
        way,
        habits: habits
            .filter(|_| way == Way::WallTime)
            .map(|habit| (habit, habit.judge(in_order)))
            .filter(|(_, level)| level.comparisons > 0)
            .collect(),
        blocks_for_one_percent: (needed <= 10_000.0)
            .then(|| (needed.ceil() as u32).max(SIZES[0] as u32)),
        levels,
    })
}

fn level(logs: &[f64], blocks: usize) -> Option<Level> {
    let judged = |planted: f64| -> Vec<Judgement> {
        let planted: Vec<f64> = logs.iter().map(|log| log + planted.ln()).collect();
        let stretches = planted.windows(blocks);
        stretches
            .filter_map(|stretch| judge_family(&[stretch], ALPHA).pop().flatten())
            .collect()
    };
    let share = |judged: &[Judgement]| {
        let differ = judged
            .iter()
            .filter(|judgement| judgement.finding.is_difference());
        differ.count() as f64 / judged.len() as f64
    };
    let equal = judged(1.0);
    let widths: Vec<f64> = equal
        .iter()
        .filter_map(|judgement| half_width(&judgement.shift))
        .collect();
    Some(Level {
        comparisons: equal.len(),
        false_alarms: share(&equal),
        finds_planted: share(&judged(1.0 + PLANTED)),
        half_width: Some(median(&widths)?),
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
        of_times(Way::Turns, logs, &[])
    }

    #[test]
    fn equal_pairs_alarm_seldom_and_a_planted_shift_always() {
        let equal = of_logs(&planted(0.0, 0.03)).unwrap();
        let shifted = of_logs(&planted(0.08, 0.03)).unwrap();
        assert!(
            equal
                .levels
                .iter()
                .all(|(_, level)| level.false_alarms < 0.1),
            "{equal:?}"
        );
        assert!(
            shifted
                .levels
                .iter()
                .all(|(_, level)| level.false_alarms == 1.0),
            "{shifted:?}"
        );
    }

    #[test]
    fn habits_take_drift_for_a_difference_and_equal_times_for_none() {
        let steady: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i % 2)).collect();
        let drifting: Vec<f64> = (0..40).map(|i| 100.0 * 1.03_f64.powi(i)).collect();
        for habit in Habit::value_variants() {
            let found = |times: &[f64]| {
                let level = habit.judge(times);
                [level.false_alarms, level.finds_planted]
            };
            assert_eq!(found(&steady), [0.0, 1.0], "{habit:?}");
            assert_eq!(found(&drifting)[0], 1.0, "{habit:?}");
            assert_eq!(habit.judge(&steady[..1]).comparisons, 0, "{habit:?}");
        }
        assert_eq!(Habit::Once.judge(&steady).comparisons, 39);
        assert_eq!(Habit::TTest.judge(&steady).comparisons, 21);
    }

    #[test]
    fn a_planted_difference_is_found_where_scatter_is_small() {
        let finds = |scatter| -> Vec<f64> {
            let noise = of_logs(&planted(0.0, scatter)).unwrap();
            noise
                .levels
                .iter()
                .map(|(_, level)| level.finds_planted)
                .collect()
        };
        assert!(
            finds(0.01).iter().all(|share| *share == 1.0),
            "{:?}",
            finds(0.01)
        );
        assert!(
            finds(0.5).iter().all(|share| *share < 0.5),
            "{:?}",
            finds(0.5)
        );
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
