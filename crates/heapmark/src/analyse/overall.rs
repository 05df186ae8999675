//! Each allocator over all cases together: geometric means of its ratios. Raw times are never
//! averaged across workloads.

use super::memory::{Memory, MemoryRatio};
use super::role::Role;
use super::{Case, JudgedCase, Numbers, Verdict};
use crate::store::RunFile;
use heapmark_stats::{geometric_mean, mean, mean_shift};
use serde::Serialize;
use std::collections::BTreeMap;

/// An allocator over all cases, compared with the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Overall {
    /// Its name.
    pub allocator: String,
    /// Geometric mean over cases of its time over the baseline's; 1 for the baseline.
    pub ratio: f64,
    /// 95 % interval by bootstrap of whole blocks; `None` with fewer than 6 blocks in some case, and
    /// for the baseline.
    pub interval: Option<(f64, f64)>,
    /// Cases that are included: those in which something is claimed.
    pub cases: usize,
    /// Cases among them in which it is faster than the baseline.
    pub faster: usize,
    /// Cases among them in which it is slower.
    pub slower: usize,
    /// Geometric mean of its user time over the baseline's; `None` if some case has none.
    pub user_ratio: Option<f64>,
    /// Its memory over the baseline's; `None` if no case has any.
    pub memory: Option<MemoryRatio>,
    /// The kernel's part of its time, mean over cases, 0 to 1; `None` without a floor.
    pub kernel_share: Option<f64>,
}

/// Covers these cases. The fastest first; only allocators with numbers in every case that counts,
/// and only if there are several such cases.
pub(super) fn overall(run: &RunFile, judged: &[JudgedCase]) -> Vec<Overall> {
    let counts = |case: &Case| !case.aa_copy_differs && case.times_operations();
    let mut tables = judged.to_vec();
    tables.retain(|judged| counts(judged.case));
    // For a single case, its table is enough.
    if tables.len() < 2 {
        return Vec::new();
    }
    let all = run.allocators.iter();
    let mut all: Vec<Overall> = all
        .filter_map(|info| {
            let role = Role::of(info, &run.plan.baseline);
            matches!(role, Role::Candidate | Role::Baseline)
                .then(|| of_allocator(&info.name, role, &tables, run))?
        })
        .collect();
    all.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    all
}

fn of_allocator(name: &str, role: Role, tables: &[JudgedCase], run: &RunFile) -> Option<Overall> {
    let logs = tables.iter().map(|judged| by_block(name, judged));
    let shift = mean_shift(&logs.collect::<Option<Vec<_>>>()?, run.plan.seed)?;
    let numbers_of = |name: &str| -> Option<Vec<&Numbers>> {
        let rows = tables.iter().map(|judged| judged.row(name)?.0.numbers());
        rows.collect()
    };
    let own = numbers_of(name)?;
    let memory_of = |numbers: &[&Numbers]| -> Vec<Option<Memory>> {
        numbers.iter().map(|numbers| numbers.memory).collect()
    };
    let with = |verdict| own.iter().filter(|it| it.verdict == Some(verdict)).count();
    let user = own.iter().map(|numbers| Some(numbers.user_ratio?.ratio));
    let kernel = own.iter().map(|numbers| {
        let parts = numbers.parts?;
        Some(parts.kernel_ns / numbers.ns_per_op.median)
    });
    Some(Overall {
        allocator: name.to_owned(),
        ratio: shift.estimate.exp(),
        interval: (shift.interval)
            .filter(|_| role == Role::Candidate)
            .map(|it| (it.low.exp(), it.high.exp())),
        cases: shift.cells,
        faster: with(Verdict::Faster),
        slower: with(Verdict::Slower),
        user_ratio: (user.collect::<Option<Vec<f64>>>()).and_then(|ratios| geometric_mean(&ratios)),
        memory: numbers_of(&run.plan.baseline)
            .and_then(|theirs| MemoryRatio::new(&memory_of(&own), &memory_of(&theirs))),
        kernel_share: (kernel.collect::<Option<Vec<f64>>>()).and_then(|shares| mean(&shares)),
    })
}

/// Cases that are left out because the A/A copy differs there and nothing is claimed.
pub(super) fn without(judged: &[JudgedCase]) -> Vec<String> {
    let differs = |case: &Case| case.aa_copy_differs && case.times_operations();
    let found = judged.iter().filter(|judged| differs(judged.case));
    found.map(|judged| judged.table.case.label()).collect()
}

/// ln of its time over the baseline's, without a high floor, by block; `None` if there is none.
fn by_block(name: &str, judged: &JudgedCase) -> Option<BTreeMap<u32, f64>> {
    let baseline = judged.table.named(&judged.case.baseline)?;
    let logs = judged
        .table
        .named(name)?
        .log_times(baseline, judged.floor_ns);
    (!logs.is_empty()).then_some(logs)
}
