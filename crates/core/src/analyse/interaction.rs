//! Builds of a command, each under several allocators: whether the gain of one depends on the other. If a build and an
//! allocator do not affect each other, the ratios of each by itself multiply, block by block.

use super::group::CaseGroups;
use super::ratio::Ratio;
use super::verdict::{Verdict, Verdicts};
use crate::metric::WALL;
use crate::plan::UserCommand;
use heapmark_stats::judge_family;
use serde::Serialize;
use std::collections::BTreeMap;

/// A build under an allocator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interaction {
    /// The build's name.
    pub variant: String,
    /// The allocator's name.
    pub allocator: String,
    /// The time of both together over what the build and the allocator take by themselves; above 1:
    /// together they gain less.
    pub ratio: Ratio,
    /// The verdict on `ratio`.
    pub verdict: Verdict,
}

/// All interactions of a case, judged as one family; none if the rows are not variants under allocators.
pub fn interactions(
    command: &UserCommand,
    table: &CaseGroups,
    calls: &Verdicts,
    alpha: f64,
) -> Vec<Interaction> {
    let mut pairs = Vec::new();
    let mut all = Vec::new();
    let Some(baseline) = table.baseline() else {
        return Vec::new();
    };
    let over_baseline = |row: &str| -> Option<BTreeMap<u32, f64>> {
        Some(table.named(row)?.log_times(baseline, table.clock()))
    };
    let name = &baseline.allocator.name;
    let Some((first, usual)) = name.split_once('+').filter(|_| !table.is_paced()) else {
        return Vec::new();
    };
    for variant in command
        .variants
        .iter()
        .filter(|variant| variant.name != first)
    {
        let Some(build) = over_baseline(&format!("{}+{usual}", variant.name)) else {
            continue;
        };
        for group in &table.groups {
            let row = &group.allocator.name;
            let Some(allocator) = row.strip_prefix(&format!("{}+", variant.name)) else {
                continue;
            };
            let alone = over_baseline(&format!("{first}+{allocator}"));
            let both = over_baseline(row);
            let Some((both, alone)) = both.zip(alone).filter(|_| allocator != usual) else {
                continue;
            };
            let logs = both
                .iter()
                .filter_map(|(block, both)| Some(both - build.get(block)? - alone.get(block)?));
            all.push(logs.collect::<Vec<f64>>());
            pairs.push((variant.name.clone(), allocator.to_owned()));
        }
    }
    let judged = judge_family(&all, alpha);
    let judged = pairs.into_iter().zip(&all).zip(judged);
    // Two ratios are compared, and each may be off.
    let apart = 2.0 * calls.equals_apart(table, WALL);
    let interactions = judged.filter_map(|(((variant, allocator), logs), judgement)| {
        Some(Interaction {
            variant,
            allocator,
            ratio: Ratio::from_logs(logs)?,
            verdict: Verdict::beside_equals(&judgement?, apart),
        })
    });
    interactions.collect()
}
