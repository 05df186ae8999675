//! Each allocator over all cases together: geometric means of its ratios. Raw times are never
//! averaged across workloads.

use super::Verdict;
use super::judged_case::JudgedCase;
use super::memory::{Memory, MemoryRatio};
use super::ratio::{Ratio, ends};
use super::role::Role;
use super::table::TableRow;
use crate::store::RunFile;
use heapmark_stats::{
    BETWEEN_RUNS, LEAST_MACHINES, above_floor, geometric_mean, machines, mean, mean_shift,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// An allocator over all cases, compared with the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Overall {
    /// The allocator's name.
    pub allocator: String,
    /// Geometric mean over cases of the allocator's time over the baseline's; 1 for the baseline.
    pub ratio: f64,
    /// 95 % interval by bootstrap of whole blocks; `None` with fewer than 6 blocks in some case, and
    /// for the baseline.
    pub interval: Option<(f64, f64)>,
    /// The 95 % interval for the ratio in another run on the same machine: `interval`, widened by
    /// how much runs differ beyond it. `None` without an interval.
    pub run_to_run: Option<(f64, f64)>,
    /// The 95 % interval for the ratio in another case of this kind, derived from how far these
    /// cases are apart; `None` with fewer than three cases.
    pub next_case: Option<(f64, f64)>,
    /// The ratio of malloc and free alone, with the harness left out in each block; `None` if that
    /// was not measured in each case.
    pub alone: Option<Ratio>,
    /// The number of cases that are included.
    pub cases: usize,
    /// The number of included cases in which the allocator is faster than the baseline.
    pub faster: usize,
    /// The number of included cases in which the allocator is slower than the baseline.
    pub slower: usize,
    /// The ratio of the times outside the kernel; `None` if some case has no such time.
    pub user_ratio: Option<f64>,
    /// The allocator's memory over the baseline's; `None` if no case has any.
    pub memory: Option<MemoryRatio>,
    /// The kernel's part of the allocator's time, mean over cases, 0 to 1; `None` without a floor.
    pub kernel_share: Option<f64>,
}

/// Returns the interval for another run, whose own noise is as large as that of this run.
fn run_to_run(ratio: f64, (low, high): (f64, f64)) -> (f64, f64) {
    let other = 1.96 * BETWEEN_RUNS;
    let reach = |end: f64| (2.0 * ((end / ratio).ln().powi(2) + other.powi(2))).sqrt();
    (ratio * (-reach(low)).exp(), ratio * reach(high).exp())
}

/// Summarizes these cases, the fastest allocator first. Includes only allocators with numbers in every case that
/// counts, and returns nothing unless there are several such cases. A case in which the A/A copy differs counts
/// like any other: its ratios are noisier, not biased, and a mean over fewer cases would answer another question.
pub fn overall(run: &RunFile, judged: &[JudgedCase]) -> Vec<Overall> {
    let mut tables = judged.to_vec();
    tables.retain(|judged| judged.table.case.is_for_allocators() && judged.case.counts());
    // For a single case, its table is enough.
    if tables.len() < 2 {
        return Vec::new();
    }
    let mut all: Vec<Overall> = run
        .allocators
        .iter()
        .filter_map(|info| {
            let role = Role::of(info, &run.plan.baseline);
            role.ranks()
                .then(|| of_allocator(&info.name, role, &tables, run))?
        })
        .collect();
    all.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    all
}

fn of_allocator(name: &str, role: Role, tables: &[JudgedCase], run: &RunFile) -> Option<Overall> {
    let over_cases = |of_case: fn(&str, &JudgedCase) -> Option<BTreeMap<u32, f64>>| {
        let logs = tables.iter().map(|judged| of_case(name, judged));
        mean_shift(&logs.collect::<Option<Vec<_>>>()?, run.plan.seed)
    };
    let shift = over_cases(by_block)?;
    let alone = over_cases(alone_by_block).filter(|_| role == Role::Candidate);
    let rows_of = |name: &str| -> Option<Vec<&TableRow>> {
        let rows = tables.iter().map(|judged| judged.case.row(name));
        rows.map(|row| row.filter(|row| row.has_run())).collect()
    };
    let rows = rows_of(name)?;
    let memory_of = |rows: &[&TableRow]| -> Vec<Option<Memory>> {
        rows.iter().map(|row| row.memory()).collect()
    };
    let with = |verdict| {
        rows.iter()
            .filter(|row| row.time().verdict == Some(verdict))
            .count()
    };
    let base = rows_of(&run.plan.baseline);
    let user = rows
        .iter()
        .map(|row| Some(row.ratio("user_ns_per_op")?.ratio));
    let kernel = rows
        .iter()
        .map(|row| Some(row.parts?.kernel_ns / row.time().spread.median));
    let ratio = shift.estimate.exp();
    let interval = shift.interval.filter(|_| role == Role::Candidate).map(ends);
    Some(Overall {
        allocator: name.to_owned(),
        ratio,
        interval,
        next_case: next_case(&rows).filter(|_| role == Role::Candidate),
        run_to_run: interval.map(|interval| run_to_run(ratio, interval)),
        alone: alone.map(|shift| Ratio {
            ratio: shift.estimate.exp(),
            interval: shift.interval.map(ends),
            pairs: shift.blocks,
        }),
        cases: shift.cells,
        faster: with(Verdict::Faster),
        slower: with(Verdict::Slower),
        user_ratio: (user.collect::<Option<Vec<f64>>>()).and_then(|ratios| geometric_mean(&ratios)),
        memory: (base.as_ref())
            .and_then(|base| MemoryRatio::new(&memory_of(&rows), &memory_of(base))),
        kernel_share: (kernel.collect::<Option<Vec<f64>>>()).and_then(|shares| mean(&shares)),
    })
}

/// The interval for the ratio in another case, if these cases are a sample of its kind.
fn next_case(rows: &[&TableRow]) -> Option<(f64, f64)> {
    let logs = rows.iter().map(|row| Some(row.time().ratio?.ratio.ln()));
    let all = machines(&logs.collect::<Option<Vec<f64>>>()?)?;
    (all.machines >= LEAST_MACHINES).then(|| ends(all.next))
}

/// ln of the allocator's time over the baseline's, by block; `None` if there is none.
fn by_block(name: &str, judged: &JudgedCase) -> Option<BTreeMap<u32, f64>> {
    let baseline = judged.table.named(&judged.case.baseline)?;
    let logs = judged.table.named(name)?.log_times(baseline, judged.clock);
    (!logs.is_empty()).then_some(logs)
}

/// Returns ln of the allocator's time over the baseline's, both without the harness's time. The
/// null allocator shows that time in each block, so the interval includes its noise.
fn alone_by_block(name: &str, judged: &JudgedCase) -> Option<BTreeMap<u32, f64>> {
    let baseline = judged.table.named(&judged.case.baseline)?;
    let floor = judged.table.fastest(Role::Floor)?;
    let floors = floor.log_times(baseline, judged.clock);
    let without = |(block, log): (u32, f64)| {
        let floor = floors.get(&block)?.exp();
        let alone = above_floor(log.exp(), floor) / above_floor(1.0, floor);
        Some((block, alone.ln()))
    };
    let logs: BTreeMap<u32, f64> = by_block(name, judged)?
        .into_iter()
        .filter_map(without)
        .collect();
    (!logs.is_empty()).then_some(logs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_run_has_noise_of_its_own_and_another_state_of_the_machine() {
        let reach = |low, high| {
            let (low, high) = run_to_run(0.5, (low, high));
            [(0.5f64 / low).ln(), (high / 0.5).ln()]
        };
        let of_state = 1.96 * BETWEEN_RUNS * 2f64.sqrt();
        for reach in reach(0.5, 0.5) {
            assert!((reach - of_state).abs() < 1e-9, "{reach}");
        }
        let [down, up] = reach(0.25, 0.6);
        assert!(down > up && up > of_state);
        let noise_alone = 2f64.ln() * 2f64.sqrt();
        assert!((noise_alone..noise_alone * 1.02).contains(&down), "{down}");
    }
}
