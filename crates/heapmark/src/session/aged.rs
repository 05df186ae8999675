//! What ages the heaps of a run: as much as its workload has live, of the sizes that it requests. The
//! baseline's check with a fresh heap counts both.

use super::Session;
use crate::execute::Job;
use crate::plan::{Cell, Litter};

/// Note: how often each size is requested.
pub const SIZES: &str = "sizes";
/// Figure: the most requested bytes that are live at a time.
pub const MOST_LIVE: &str = "most_live_bytes";
/// Figure: threads that allocate; of a command.
pub const ALLOCATING_THREADS: &str = "allocating_threads";

impl Session {
    /// The job with the litter of its cell, in a run of aged heaps; and with the order to count sizes
    /// in the process of which the others' litter follows.
    pub(super) fn with_litter(&self, cell: &Cell, job: Job) -> Job {
        let plan = &self.selection.plan;
        let Some(stay) = plan.age() else {
            return job;
        };
        let fresh = plan.check_of_baseline(plan.fresh(cell.case));
        let litter = self.case(cell).age.map_or_else(Litter::none, |_| {
            let record = self.known.get(&fresh.id);
            let counted = record.and_then(|record| record.measurement.as_ref());
            let figure = |name: &str| {
                let figure = counted.and_then(|counted| counted.figures.get(name));
                figure.map_or(0, |value| *value as u64)
            };
            let sizes = counted.and_then(|counted| counted.notes.get(SIZES));
            Litter::of(
                stay,
                figure(MOST_LIVE),
                sizes.map_or("", String::as_str),
                figure(ALLOCATING_THREADS) > 1,
            )
        });
        Job {
            counts_sizes: job.check && cell.id == fresh.id,
            litter: Some(litter),
            ..job
        }
    }
}
