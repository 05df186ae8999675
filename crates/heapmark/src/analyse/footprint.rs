//! How the memory of a row's processes was sampled, and how much more of it several threads need than
//! one. The figures themselves are metrics.

use super::failure::Failed;
use crate::metric::{self, OVERHEAD_FROM_BYTES};
use crate::observe::memory_profile::MemoryProfile;
use crate::plan::Case;
use crate::store::{Purpose, Record, RunFile};
use serde::Serialize;

/// How the memory of a row's processes was sampled.
#[derive(Clone, Debug, Serialize)]
pub struct Sampling {
    /// Processes that ended `ok` before a sample saw live bytes.
    pub unseen: usize,
    /// The relative error of the kernel's quick count of memory against its page tables, if it is
    /// more than 1 %. Figures of the count may be off by that much; `overhead_at_peak_demand` uses
    /// the page tables.
    pub count_off_by: Option<f64>,
    /// Most CPU time that sampling a process took, as a share of a core.
    pub share: Option<f64>,
}

impl Sampling {
    pub(super) fn of(records: &[&Record]) -> Sampling {
        let has_footprint = |record: &&&Record| {
            let measurement = record.measurement.as_ref();
            record.purpose == Purpose::Memory
                && measurement.is_some_and(|it| it.footprint.is_some())
        };
        let own = || records.iter().filter(has_footprint);
        let profiles = || own().filter_map(|record| record.memory.as_deref());
        Sampling {
            unseen: own().count() - profiles().count(),
            count_off_by: profiles().filter_map(count_off_by).max_by(f64::total_cmp),
            share: profiles()
                .map(|profile| profile.sampling_share)
                .max_by(f64::total_cmp),
        }
    }
}

/// The case in which one thread makes the calls of this one's threads.
pub(super) fn played_by_one<'a>(run: &'a RunFile, case: &Case) -> Option<&'a Case> {
    let mut cases = run.plan.cases.iter();
    cases.find(|other| {
        other.workload == case.workload && other.is_played_by_one() && !case.is_played_by_one()
    })
}

/// Per block, the highest resident heap of several threads over that of one thread; none if one of
/// its processes failed.
pub(super) fn blow_up(several: &[&Record], one: &[&Record]) -> Vec<f64> {
    if Failed::among(one).is_some() {
        return Vec::new();
    }
    let of_block = |ours: &&Record| {
        let theirs = one
            .iter()
            .filter(|record| record.block == ours.block)
            .find_map(|record| record.memory.as_deref())?;
        metric::blow_up(ours.memory.as_deref()?, theirs)
    };
    several.iter().filter_map(of_block).collect()
}

/// The error of the count if the process read both values, and if it is too large.
fn count_off_by(profile: &MemoryProfile) -> Option<f64> {
    const TOO_MUCH: f64 = 0.01;
    profile
        .rss_cross_check
        .iter()
        .flatten()
        .filter(|it| it.walked_bytes as f64 >= OVERHEAD_FROM_BYTES)
        .map(|it| it.counted_bytes.abs_diff(it.walked_bytes) as f64 / it.walked_bytes as f64)
        .filter(|share| *share > TOO_MUCH)
        .max_by(f64::total_cmp)
}
