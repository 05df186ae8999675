//! What a process takes of a kind of memory if nothing limits it: where the search for its smallest
//! limit begins. Sampled from outside: a short peak between two looks is missed.

use super::maps::Region;
use super::pace::Pace;
use super::process_files::{ProcessFiles, Walked};
use crate::observe::clock::thread_cpu_ns;
use crate::plan::LimitKind;
use heapmark_wire::{Known, Page};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// Most bytes that a limit would have counted, the harness's included.
    pub most_bytes: u64,
    /// Those of the harness's own tables and stacks.
    pub harness_bytes: u64,
    /// Most bytes that the kernel could have taken back at once, in all processes: they were freed
    /// by MADV_FREE.
    pub reclaimable_bytes: u64,
    /// How often it was sampled.
    pub looks: u64,
}

/// Nothing is timed, so these looks may cost more than others.
const UNTIMED: u32 = 10;

/// Samples a process, or a tree of processes.
pub struct DemandSampler {
    kind: LimitKind,
    demand: Demand,
    pace: Pace,
}

impl DemandSampler {
    /// For a limit of this kind.
    pub fn new(kind: LimitKind) -> DemandSampler {
        DemandSampler {
            kind,
            demand: Demand::default(),
            pace: Pace::default(),
        }
    }

    /// Samples a guest, whose page tells which ranges are the harness's.
    pub fn look_at_guest(&mut self, pid: i32, page: &Page) -> Duration {
        let own = page.look(|_, watched| {
            let known: Vec<Known> = watched.ranges().known().collect();
            match self.kind {
                LimitKind::Cgroup => Some(watched.held().harness_bytes()),
                kind => {
                    let mut files = ProcessFiles::of(pid);
                    files.maps().map(|maps| counted(maps, &known, kind))
                }
            }
        });
        let demand = &mut self.demand;
        demand.harness_bytes = demand.harness_bytes.max(own.unwrap_or(0));
        self.look(&[pid])
    }

    /// Samples these processes; returns the wait until the next look.
    pub fn look(&mut self, processes: &[i32]) -> Duration {
        let files = || processes.iter().copied().map(ProcessFiles::of);
        let of_each = files().filter_map(|mut files| match self.kind {
            LimitKind::Cgroup => files.resident_bytes(),
            LimitKind::Data => files.status_bytes("VmData:"),
            LimitKind::As => files.status_bytes("VmPeak:"),
        });
        let bytes = match self.kind {
            LimitKind::Cgroup => of_each.sum(),
            // Each process has a limit of its own.
            LimitKind::Data | LimitKind::As => of_each.max().unwrap_or(0),
        };
        let walked = files().filter_map(|mut files| files.walked());
        let reclaimable = walked.map(|it: Walked| it.lazily_free_bytes).sum();
        let demand = &mut self.demand;
        demand.most_bytes = demand.most_bytes.max(bytes);
        demand.reclaimable_bytes = demand.reclaimable_bytes.max(reclaimable);
        demand.looks += 1;
        self.pace.next(thread_cpu_ns()) / UNTIMED
    }

    /// What was sampled; of a group that was charged, the kernel knows the peak itself. `None` for a
    /// process that ended before it was seen.
    pub fn seen(&self, charged_bytes: Option<u64>) -> Option<Demand> {
        let demand = Demand {
            most_bytes: charged_bytes.unwrap_or(self.demand.most_bytes),
            ..self.demand
        };
        (demand.looks > 0).then_some(demand)
    }
}

/// How much of the known ranges such a limit counts, given the process's maps.
fn counted(maps: &str, known: &[Known], kind: LimitKind) -> u64 {
    let regions = maps.lines().filter_map(Region::parse);
    let counted = regions.filter(|region| kind != LimitKind::Data || region.is_data);
    counted
        .map(|region| known.iter().map(|range| region.shared(range)).sum::<u64>())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_wire::RangeKind;

    #[test]
    fn a_limit_on_data_counts_what_is_private_and_can_be_written_and_one_on_addresses_all() {
        let maps = "\
7f0000000000-7f0000010000 ---p 00000000 00:00 0 
7f0000010000-7f0000100000 rw-p 00000000 00:00 0 
7f0000200000-7f0000300000 rw-s 00000000 00:01 99                         /memfd:heapmark-page (deleted)
7f0000400000-7f0000410000 r--p 00000000 00:01 98                         /lib/x.so
";
        let known = |start, end, kind| Known { start, end, kind };
        let known = [
            known(0x7f0000000000, 0x7f0000050000, RangeKind::Stack),
            known(0x7f0000200000, 0x7f0000300000, RangeKind::Harness),
            known(0x7f0000400000, 0x7f0000410000, RangeKind::Harness),
            known(0x7f0000500000, 0x7f0000600000, RangeKind::Harness),
        ];
        assert_eq!(counted(maps, &known, LimitKind::Data), 0x40000);
        assert_eq!(
            counted(maps, &known, LimitKind::As),
            0x50000 + 0x100000 + 0x10000
        );
        assert_eq!(counted("nonsense\n", &known, LimitKind::As), 0);
    }
}
