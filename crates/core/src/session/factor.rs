//! What a factor changes: the rule for huge pages, the CPUs that are reported, and the litter that ages the heaps of a run.
//! There is as much litter as the workload has live memory, in the sizes that the workload requests. The baseline's check
//! with a fresh heap counts both.

use super::Session;
use crate::execute::Job;
use crate::execute::user_command::{AGED_PROGRAM, ALLOCATING_THREADS, MOST_LIVE, SIZES, UNCOUNTED};
use crate::plan::{Cell, Litter};

impl Session {
    /// Puts a job under the factor of its cell: sets the rule for huge pages, the reported CPUs and,
    /// in a run of aged heaps, the litter. In the process from which the litter of the others is
    /// derived, the job also counts sizes.
    pub(super) fn under_factor(&self, cell: &Cell, job: Job) -> Job {
        let plan = &self.selection.plan;
        let job = Job {
            huge_pages: plan.huge_pages_of(self.case(cell)),
            cpus_seen: plan.cpus_seen_of(self.case(cell)),
            ..job
        };
        let Some(stay) = plan.age() else {
            return job;
        };
        let fresh = plan.check_of_baseline(plan.plain(cell.case));
        let litter = self.case(cell).age().map_or_else(Litter::none, |_| {
            let record = self.known.get(&fresh.id);
            let counted = record.and_then(|record| record.measurement.as_ref());
            let figure = |name: &str| {
                counted
                    .and_then(|counted| counted.figures.get(name))
                    .map_or(0, |value| *value as u64)
            };
            let note = |name: &str| {
                counted
                    .and_then(|counted| counted.notes.get(name))
                    .map_or("", String::as_str)
            };
            let by_threads = figure(ALLOCATING_THREADS) > 1;
            Litter {
                program: note(AGED_PROGRAM).to_owned(),
                ..Litter::of(stay, figure(MOST_LIVE), note(SIZES), by_threads)
            }
        });
        Job {
            counts_sizes: job.check && cell.id == fresh.id,
            litter: Some(litter),
            ..job
        }
    }

    /// Returns why the heap of a cell cannot be aged, if no check has shown what the workload requests.
    pub(super) fn cannot_age(&self, cell: &Cell) -> Option<String> {
        self.case(cell).age()?;
        let plan = &self.selection.plan;
        let fresh = plan.check_of_baseline(plan.plain(cell.case)).id;
        let check = self.known.get(&fresh)?;
        let why = if check.outcome.is_ok() {
            let measured = check.measurement.as_ref()?;
            measured.notes.get(UNCOUNTED)?.clone()
        } else {
            format!("it ended {}", check.outcome)
        };
        Some(format!(
            "{fresh} shows with which sizes to age the heap, and {why}"
        ))
    }
}
