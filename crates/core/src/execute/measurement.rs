//! What one process measured about itself, as its guest reported it, and what the kernel counted
//! for it. Raw data: nothing here is averaged or compared.

use super::{Footprint, Latency, Thin, TurnsTaken};
use ecow::EcoString;
use heapmark_wire::Launched;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that a process with outcome `ok` reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// Timed repetitions of the workload, in order; the cold ones first.
    pub iterations: Vec<Iteration>,
    /// The clocks of each worker thread over the measured iterations.
    pub threads: Thin<Vec<ThreadTime>>,
    /// Calls by function over all iterations, cold ones too: `malloc`, `free`, …
    pub calls: Thin<BTreeMap<String, u64>>,
    /// Resident set just before the first operation.
    pub baseline_rss_bytes: u64,
    /// The part of `baseline_rss_bytes` that the allocator held before its first block of the
    /// workload; 0 in results from before this was stored.
    #[serde(default)]
    pub held_before_bytes: u64,
    /// Highest resident set of the process's life (its own `VmHWM`).
    pub peak_rss_bytes: u64,
    /// Highest sum of requested sizes of live blocks.
    pub requested_peak_bytes: u64,
    /// The purge rule of this process: `called`, `configured` or `none`.
    pub purge: EcoString,
    /// Further figures of the workload, by name with unit: `incarnations`, `swap_collisions`, …
    pub figures: BTreeMap<String, f64>,
    /// What the workload found, as text: `write_back`, …
    #[serde(default)]
    pub notes: Thin<BTreeMap<String, String>>,
    /// How long single calls took, if the process timed calls: then nothing else that it reports is a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Box<Latency>>,
    /// The process's memory, if the process was sampled for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footprint: Option<Box<Footprint>>,
    /// The turns that the process took with the one that it is compared with. Then its time is its CPU time, because
    /// the wall time contains the other process's turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsTaken>,
}

impl Measurement {
    /// Returns the measurement of a process that is the workload as a whole, and did this many operations.
    pub(super) fn of_whole_process(launched: &Launched, ops: u64) -> Measurement {
        Measurement {
            iterations: vec![Iteration {
                wall_ns: launched.wall_ns,
                user_ns: launched.user_ns,
                sys_ns: launched.sys_ns,
                minor_faults: launched.minor_faults,
                ops,
                ..Iteration::default()
            }],
            peak_rss_bytes: launched.max_rss_bytes,
            purge: "none".into(),
            ..Measurement::default()
        }
    }

    /// Adds the measurement of a later process that did the same work, as further iterations. Memory stays that of the
    /// first process: a quicker side of a duet runs more processes, and the highest of more peaks is higher.
    pub(super) fn add(&mut self, later: Measurement) {
        self.iterations.extend(later.iterations);
        for (thread, later) in self.threads.iter_mut().zip(&*later.threads) {
            thread.wall_ns += later.wall_ns;
            thread.cpu_ns += later.cpu_ns;
        }
        for (function, calls) in &*later.calls {
            *self.calls.entry(function.clone()).or_default() += calls;
        }
    }

    /// Returns the bytes that were resident just before the first operation and are not the allocator's.
    pub fn outside_bytes(&self) -> u64 {
        self.baseline_rss_bytes
            .saturating_sub(self.held_before_bytes)
    }

    /// Returns the allocator's memory when most was resident; `None` if less was than before the
    /// first operation.
    pub fn heap_peak_bytes(&self) -> Option<u64> {
        self.peak_rss_bytes.checked_sub(self.outside_bytes())
    }

    /// Returns the iterations that results come from: all but the cold ones.
    pub fn measured(&self) -> impl Iterator<Item = &Iteration> + Clone {
        self.iterations.iter().filter(|iteration| !iteration.cold)
    }
}

/// Returns the name of the figure of a counted process: how often an event occurred per operation.
pub fn per_operation(event: &str) -> String {
    format!("{event}_per_operation")
}

/// One timed repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Whether this is a warm-up repetition, which is kept but never part of a result.
    pub cold: bool,
    /// Wall time of the measured phase as the workload defines it, `purge_ns` included.
    pub wall_ns: u64,
    /// The part of `wall_ns` that the purge call took; 0 if the workload does not count it.
    pub purge_ns: u64,
    /// User CPU time of the process in the measured phase.
    pub user_ns: u64,
    /// System CPU time of the process in the measured phase.
    pub sys_ns: u64,
    /// Minor page faults in the measured phase.
    pub minor_faults: u64,
    /// Operations of all threads: calls that allocate or release one block.
    pub ops: u64,
}

/// The clocks of one worker thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreadTime {
    /// From the start signal for all workers to this worker's end, summed over measured iterations.
    pub wall_ns: u64,
    /// `CLOCK_THREAD_CPUTIME_ID` over the same span.
    pub cpu_ns: u64,
}

/// The kernel's account of the whole child process, start-up included (`wait4`).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Time from spawn to wait.
    pub wall_ns: u64,
    /// User CPU time.
    pub user_ns: u64,
    /// System CPU time.
    pub sys_ns: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// How often the process gave up the CPU itself.
    pub voluntary_switches: u64,
    /// How often the process was preempted.
    pub involuntary_switches: u64,
    /// `ru_maxrss`: includes what the child inherited before it executed the guest, so read
    /// [`Measurement::peak_rss_bytes`] instead.
    pub max_rss_bytes: u64,
}

impl Usage {
    /// Returns the sum of user and system CPU time.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.sys_ns
    }

    /// Returns the usage of two processes together: sums, and the larger of the peaks.
    pub(super) fn and(&self, later: &Usage) -> Usage {
        Usage {
            wall_ns: self.wall_ns + later.wall_ns,
            user_ns: self.user_ns + later.user_ns,
            sys_ns: self.sys_ns + later.sys_ns,
            minor_faults: self.minor_faults + later.minor_faults,
            major_faults: self.major_faults + later.major_faults,
            voluntary_switches: self.voluntary_switches + later.voluntary_switches,
            involuntary_switches: self.involuntary_switches + later.involuntary_switches,
            max_rss_bytes: self.max_rss_bytes.max(later.max_rss_bytes),
        }
    }
}

impl From<Launched> for Usage {
    fn from(told: Launched) -> Usage {
        Usage {
            wall_ns: told.wall_ns,
            user_ns: told.user_ns,
            sys_ns: told.sys_ns,
            minor_faults: told.minor_faults,
            major_faults: told.major_faults,
            voluntary_switches: told.voluntary_switches,
            involuntary_switches: told.involuntary_switches,
            max_rss_bytes: told.max_rss_bytes,
        }
    }
}

/// Which loaded objects served the malloc family in a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Function name to index into `objects`; functions that no object defines are left out.
    pub owners: BTreeMap<String, usize>,
    /// The objects that define these functions, and every preloaded object.
    pub objects: Vec<LoadedObject>,
}

impl Proof {
    /// Returns whether the guest got beyond its proof. The last line of the proof names the owner
    /// of `free` or of an operator; every process has some object that defines `malloc` and `free`.
    pub fn is_complete(&self) -> bool {
        let wanted = ["malloc", "free"];
        wanted.iter().all(|name| self.owners.contains_key(*name))
    }
}

/// A shared object that was loaded in a measured process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadedObject {
    /// Path as the dynamic linker reports it.
    pub path: String,
    /// Device of the file.
    pub device: u64,
    /// Inode of the file.
    pub inode: u64,
    /// GNU build-id in hex; empty if the file has none.
    pub build_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_side_is_that_of_its_first_process_however_many_follow() {
        let of = |baseline_rss_bytes, peak_rss_bytes| Measurement {
            iterations: vec![Iteration::default()],
            baseline_rss_bytes,
            peak_rss_bytes,
            ..Measurement::default()
        };
        let mut side = of(2, 14);
        side.add(of(4, 17));
        assert_eq!(side.iterations.len(), 2);
        assert_eq!(side.heap_peak_bytes(), Some(12));
    }
}
