//! Each allocator under a factor (an aged heap, huge pages, other reported CPUs), compared block by
//! block with itself without the factor.

use super::group::{CaseGroups, Group, of_blocks};
use super::ratio::Ratio;
use super::spread::Spread;
use super::verdict::{TIME, Verdict, Verdicts};
use crate::metric::{Process, WALL};
use heapmark_stats::judge_family;
use serde::Serialize;

/// An allocator under a factor over the same allocator without it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FactorRatio {
    /// The ratio of the times; above 1: slower under the factor.
    pub ratio: Ratio,
    /// The spread of the ratios of single blocks.
    pub blocks: Spread,
    /// The ratio of the CPU times.
    pub cpu_ratio: Option<Ratio>,
    /// The verdict on `ratio`.
    pub verdict: Option<Verdict>,
}

const CPU: fn(&Process) -> Option<f64> = |process| process.cpu_ns_per_op();

/// Pairs the rows of cases with a factor with those of the same allocators without it: returns the
/// indices of the case and of the row, and both rows. Times that no allocator changes are left out.
pub fn pairs<'g, 'a>(
    tables: &'g [CaseGroups<'a>],
) -> impl Iterator<Item = (usize, usize, &'g Group<'a>, &'g Group<'a>)> {
    let has_factor = |place: &usize| tables[*place].case.factor.is_some();
    let has_times = |place: &usize| !tables[*place - 1].is_paced();
    let places = (1..tables.len()).filter(has_factor).filter(has_times);
    places.flat_map(move |place| {
        let rows = tables[place].groups.iter().enumerate();
        rows.filter_map(move |(row, group)| {
            let is_compared = group.role.ranks();
            let plain = tables[place - 1].named(&group.allocator.name)?;
            is_compared.then_some((place, row, group, plain))
        })
    })
}

/// ln of the time under the factor over the time without it, one value for each block.
pub fn logs(under: &Group, plain: &Group) -> Vec<f64> {
    of_blocks(under.log_ratios(plain, TIME))
}

/// Judges all comparisons of a run as one family; returns each with the indices of its case and row.
pub fn judge(
    tables: &[CaseGroups],
    calls: &[Verdicts],
    alpha: f64,
) -> Vec<(usize, usize, FactorRatio)> {
    let pairs: Vec<_> = pairs(tables).collect();
    let logs: Vec<Vec<f64>> = pairs
        .iter()
        .map(|(_, _, under, plain)| logs(under, plain))
        .collect();
    let judged = judge_family(&logs, alpha);
    let compared = pairs.iter().zip(&logs).zip(judged);
    compared
        .filter_map(|(((place, row, under, plain), logs), judgement)| {
            let ratios: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
            let apart = |place: usize| calls[place].equals_apart(&tables[place], WALL);
            let apart = apart(*place) + apart(*place - 1);
            let over = FactorRatio {
                ratio: Ratio::from_logs(logs)?,
                blocks: Spread::of(&ratios)?,
                cpu_ratio: Ratio::of(under, plain, CPU),
                verdict: judgement.map(|judgement| Verdict::beside_equals(&judgement, apart)),
            };
            Some((*place, *row, over))
        })
        .collect()
}
