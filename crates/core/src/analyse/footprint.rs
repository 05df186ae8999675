//! How the memory of a row's processes was sampled, and how much more of it several threads need than
//! one. The figures themselves are metrics.

use super::failure::Failed;
use crate::metric;
use crate::plan::Case;
use crate::store::{Purpose, Record, RunFile};
use serde::Serialize;

/// How the memory of a row's processes was sampled.
#[derive(Clone, Debug, Serialize)]
pub struct Sampling {
    /// The number of processes that ended `ok` before any sample contained live bytes.
    pub unseen: usize,
    /// The most CPU time that sampling a process took, as a share of a core.
    pub share: Option<f64>,
}

impl Sampling {
    pub(super) fn of(records: &[&Record]) -> Sampling {
        let measured = || {
            records.iter().filter(|record| {
                let measurement = record.measurement.as_ref();
                record.purpose == Purpose::Memory
                    && measurement.is_some_and(|measurement| measurement.footprint.is_some())
            })
        };
        let profiles = || measured().filter_map(|record| record.memory.as_deref());
        Sampling {
            unseen: measured().count() - profiles().count(),
            share: profiles()
                .map(|profile| profile.sampling_share)
                .max_by(f64::total_cmp),
        }
    }
}

/// The case in which one thread makes all the calls that the threads of this case make.
pub(super) fn played_by_one<'a>(run: &'a RunFile, case: &Case) -> Option<&'a Case> {
    run.plan.cases.iter().find(|other| {
        other.workload == case.workload && other.is_played_by_one() && !case.is_played_by_one()
    })
}

/// Per block, the highest resident heap of several threads over that of one thread; none if a
/// process with one thread failed.
pub(super) fn blow_up(several: &[&Record], one: &[&Record]) -> Vec<f64> {
    if Failed::among(one).is_some() {
        return Vec::new();
    }
    several
        .iter()
        .filter_map(|ours| {
            let theirs = one
                .iter()
                .filter(|record| record.block == ours.block)
                .find_map(|record| record.memory.as_deref())?;
            metric::blow_up(ours.memory.as_deref()?, theirs)
        })
        .collect()
}
