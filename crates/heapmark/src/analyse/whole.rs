//! The figures of a row whose workload is a whole process: its time and the findings of its check.
//! Must not compare rows.

use super::group::Group;
use super::numbers::PLACEMENT;
use super::spread::Spread;
use crate::execute::{Iteration, Measurement};
use crate::metric::LITTER;
use serde::Serialize;

/// With fewer calls per operation, malloc serves only start-up and heap growth; the objects come
/// from elsewhere.
const CALLS_THAT_MATTER: f64 = 0.01;

/// A whole process. Medians over processes; pauses come from the one process that recorded its own.
#[derive(Clone, Debug, Serialize)]
pub struct Whole {
    /// From its start to its end.
    pub wall_ns: Spread,
    /// User and system CPU time of all its threads.
    pub cpu_ns: Option<Spread>,
    /// CPU time over wall time: above 1 if helper threads work.
    pub parallel_share: Option<f64>,
    /// The same program with next to nothing to do.
    pub startup_ns: Option<f64>,
    /// The longest pause or release that the runtime or the program reported.
    pub longest_pause_ns: Option<f64>,
    /// Pauses that it reported: 0 differs from `None`.
    pub pauses: Option<f64>,
    /// The longest building of one small tree, by the program's own clock.
    pub longest_step_ns: Option<f64>,
    /// The largest process of a tree, as the kernel counts it.
    pub largest_process_bytes: Option<f64>,
    /// The tree's memory, with shared pages divided among the processes that share them, in a
    /// process that was not timed.
    pub peak_pss_bytes: Option<f64>,
    /// Processes of a tree that a witness reported.
    pub processes: Option<f64>,
    /// Calls of allocating functions per operation; `None` if they were not counted.
    pub malloc_calls_per_operation: Option<f64>,
}

/// The figure of a sample that is its start-up time.
const STARTUP: &str = "startup_ns";
/// The figure of the largest process of its tree.
const LARGEST: &str = "largest_process_rss_bytes";

/// Whether some table uses this figure of a sample; exports include all.
pub fn reads_figure(name: &str) -> bool {
    name == STARTUP || name == LARGEST || PLACEMENT.contains(&name) || LITTER.contains(&name)
}

impl Whole {
    pub(super) fn new(group: &Group) -> Option<Whole> {
        let measured = |time: fn(&Iteration) -> u64| {
            let total = |m: &Measurement| m.measured().map(|one| time(one) as f64).sum::<f64>();
            Spread::of(&group.values(|measurement, _| Some(total(measurement))))
        };
        let wall_ns = measured(|one| one.wall_ns)?;
        let cpu_ns = measured(|one| one.user_ns + one.sys_ns).filter(|cpu| cpu.median > 0.0);
        let median = |name: &str| group.median_of(|m, _| m.figures.get(name).copied());
        let told = |name: &str| group.check?.figures.get(name).copied();
        let longest = |wanted: fn(&str) -> bool| {
            let figures = group.check?.figures.iter();
            let longest = figures.filter(|(name, _)| wanted(name));
            longest.map(|(_, value)| *value).max_by(f64::total_cmp)
        };
        Some(Whole {
            wall_ns,
            cpu_ns,
            parallel_share: cpu_ns.map(|cpu| cpu.median / wall_ns.median),
            startup_ns: median(STARTUP),
            longest_pause_ns: longest(|name| ["pause_max_ns", "release_max_ns"].contains(&name)),
            pauses: told("pauses"),
            longest_step_ns: longest(|name| name.ends_with("_longest_build_ns")),
            largest_process_bytes: median(LARGEST),
            peak_pss_bytes: told("peak_pss_bytes"),
            processes: told("processes"),
            malloc_calls_per_operation: told("malloc_calls_per_operation"),
        })
    }

    /// Whether another allocator would have changed the row; `None` if calls were not counted.
    pub fn responds_to_malloc(&self) -> Option<bool> {
        self.malloc_calls_per_operation
            .map(|calls| calls >= CALLS_THAT_MATTER)
    }
}
