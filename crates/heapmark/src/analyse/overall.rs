//! Each candidate over all cases together: the geometric mean of its ratios. Raw times are never
//! averaged across workloads.

use super::role::Role;
use super::{Case, JudgedCase};
use crate::store::RunFile;
use heapmark_stats::mean_shift;
use serde::Serialize;
use std::collections::BTreeMap;

/// A candidate's time over the baseline's, over all cases.
#[derive(Clone, Debug, Serialize)]
pub struct Overall {
    /// Its name.
    pub allocator: String,
    /// Geometric mean over cases of its ratio in each.
    pub ratio: f64,
    /// 95 % interval by bootstrap of whole blocks; `None` with fewer than 6 blocks in some case.
    pub interval: Option<(f64, f64)>,
    /// Cases that are included: those in which something is claimed.
    pub cases: usize,
}

/// Covers these cases. The fastest first; only candidates with numbers in every case that counts,
/// and only if there are several such cases.
pub(super) fn overall(run: &RunFile, judged: &[JudgedCase]) -> Vec<Overall> {
    let counts = |case: &Case| !case.aa_copy_differs && case.times_operations();
    let mut tables = judged.to_vec();
    tables.retain(|judged| counts(judged.case));
    // For a single case, its table is enough.
    if tables.len() < 2 {
        return Vec::new();
    }
    let mut all = Vec::new();
    for info in &run.allocators {
        if Role::of(info, &run.plan.baseline) != Role::Candidate {
            continue;
        }
        let logs = tables.iter().map(|judged| by_block(&info.name, judged));
        let logs: Option<Vec<BTreeMap<u32, f64>>> = logs.collect();
        let Some(shift) = logs.and_then(|logs| mean_shift(&logs, run.plan.seed)) else {
            continue;
        };
        all.push(Overall {
            allocator: info.name.clone(),
            ratio: shift.estimate.exp(),
            interval: shift.interval.map(|it| (it.low.exp(), it.high.exp())),
            cases: shift.cells,
        });
    }
    all.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    all
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
