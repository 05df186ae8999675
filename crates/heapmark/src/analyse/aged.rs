//! Each allocator in an aged heap compared with itself in a fresh one, block by block.

use super::group::{CaseGroups, Group};
use super::ratio::Ratio;
use super::spread::Spread;
use super::verdict::{TIME, Verdict, Verdicts};
use crate::metric::Process;
use heapmark_stats::{blocks_needed, judge_family};
use serde::Serialize;

/// An allocator in an aged heap over itself in a fresh one.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AgedOverFresh {
    /// Of their times; above 1: slower with age.
    pub ratio: Ratio,
    /// The ratios of single blocks.
    pub blocks: Spread,
    /// Of their CPU times.
    pub cpu_ratio: Option<Ratio>,
    /// The verdict on `ratio`.
    pub verdict: Option<Verdict>,
}

const CPU: fn(&Process) -> Option<f64> = |process| process.cpu_ns_per_op;

/// The rows of aged cases that are compared with those of the same allocators in a fresh heap: the
/// place of the case and of the row, both rows.
pub fn pairs<'g, 'a>(
    tables: &'g [CaseGroups<'a>],
) -> impl Iterator<Item = (usize, usize, &'g Group<'a>, &'g Group<'a>)> {
    (1..tables.len())
        .filter(|place| tables[*place].case.age.is_some())
        .flat_map(move |place| {
            tables[place]
                .groups
                .iter()
                .enumerate()
                .filter_map(move |(row, group)| {
                    let fresh = tables[place - 1].named(&group.allocator.name)?;
                    group.role.ranks().then_some((place, row, group, fresh))
                })
        })
}

/// Their ln of aged over fresh, a block each.
pub fn logs(aged: &Group, fresh: &Group) -> Vec<f64> {
    aged.log_ratios(fresh, TIME).into_values().collect()
}

/// All comparisons of a run, by the places of case and row. They are one family.
pub fn judge(
    tables: &[CaseGroups],
    calls: &[Verdicts],
    alpha: f64,
) -> Vec<(usize, usize, AgedOverFresh)> {
    let pairs: Vec<_> = pairs(tables).collect();
    let logs: Vec<Vec<f64>> = pairs
        .iter()
        .map(|(_, _, aged, fresh)| logs(aged, fresh))
        .collect();
    let judged = judge_family(&logs, blocks_needed(logs.len(), alpha) as usize, alpha);
    pairs
        .iter()
        .zip(&logs)
        .zip(judged)
        .filter_map(|(((place, row, aged, fresh), logs), judgement)| {
            let ratios: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
            let withheld = calls[*place].withheld().or(calls[*place - 1].withheld());
            let over = AgedOverFresh {
                ratio: Ratio::from_logs(logs)?,
                blocks: Spread::of(&ratios)?,
                cpu_ratio: Ratio::of(aged, fresh, CPU),
                verdict: judgement.map(|judgement| withheld.unwrap_or(Verdict::of(&judgement))),
            };
            Some((*place, *row, over))
        })
        .collect()
}
