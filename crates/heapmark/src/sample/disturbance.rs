//! What else the machine did while something was measured: counters before and after, and their difference as shares.
//! Reads and subtracts; what is too much, somebody else decides.
//!
//! The files stay open, so a snapshot is a read of each. The kernel makes the text at each read, for /proc/stat over all
//! CPUs and interrupts: a snapshot costs more the more of them there are.

use super::cgroup::Groups;
use super::counters::{CpuTicks, Stall, Throttled, value};
use super::root::Root;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The open files.
pub struct Counters {
    stat: Option<File>,
    cpu_pressure: Option<File>,
    memory_pressure: Option<File>,
    vmstat: Option<File>,
    /// Of the own control group and those above it.
    cpu_stats: Vec<File>,
    buffer: Vec<u8>,
}

/// Counters at one moment. What the kernel does not tell is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Of the monotonic clock.
    pub at_ns: u64,
    /// CPU time of what is measured, as whoever took the snapshot knows it.
    pub own_cpu_ns: u64,
    /// CPU time of all programs, the kernel and interrupts; counted in clock ticks of 10 ms.
    pub busy_ns: Option<u64>,
    /// CPU time that the hypervisor gave to others.
    pub steal_ns: Option<u64>,
    /// Time in which some task of the machine waited for a CPU.
    pub cpu_stall_ns: Option<u64>,
    /// Time in which some task of the machine waited for memory.
    pub memory_stall_ns: Option<u64>,
    /// Pages read from swap.
    pub swapped_in_pages: Option<u64>,
    /// Pages written to swap.
    pub swapped_out_pages: Option<u64>,
    /// Time in which the own control groups stood still because their CPU time was used up.
    pub throttled_ns: Option<u64>,
    /// How often they did.
    pub throttled_times: Option<u64>,
}

/// What happened between two snapshots. Absent where one of them does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Time between them.
    pub wall_ns: u64,
    /// CPU time of others, as a share of one core: (busy - own) / wall. Busy time is counted in ticks, so over a short time it may be
    /// a little below nothing.
    pub foreign_cpu_share: Option<f64>,
    /// CPU time that the hypervisor gave to others, as a share of one core.
    pub steal_share: Option<f64>,
    /// Share of the time in which some task waited for a CPU; one of those measured may be that task.
    pub cpu_stall_share: Option<f64>,
    /// Share of the time in which some task waited for memory.
    pub memory_stall_share: Option<f64>,
    /// Pages swapped in and out.
    pub swapped_pages: Option<u64>,
    /// Time throttled, over all groups.
    pub throttled_ns: Option<u64>,
    /// How often throttled.
    pub throttled_times: Option<u64>,
}

impl Counters {
    /// Opens what is there.
    pub fn open(root: &Root) -> Counters {
        let open = |file: &str| File::open(root.path(file)).ok();
        let folders = Groups::of(root, "cpu").map(|groups| groups.folders).unwrap_or_default();
        Counters {
            stat: open("proc/stat"),
            cpu_pressure: open("proc/pressure/cpu"),
            memory_pressure: open("proc/pressure/memory"),
            vmstat: open("proc/vmstat"),
            cpu_stats: folders.iter().filter_map(|folder| open(&format!("{folder}/cpu.stat"))).collect(),
            buffer: vec![0; 16 << 10],
        }
    }

    /// Reads them.
    pub fn snapshot(&mut self, own_cpu_ns: u64) -> Snapshot {
        let buffer = &mut self.buffer;
        let at_ns = now_ns();
        // Its first line is enough; the rest is long.
        let ticks = self.stat.as_ref().and_then(|file| CpuTicks::read(text(file, &mut buffer[..512])?));
        let mut stall_ns = |file: &Option<File>| {
            let stall = Stall::read(text(file.as_ref()?, buffer)?)?;
            Some(stall.total_us * 1000)
        };
        let (cpu_stall_ns, memory_stall_ns) = (stall_ns(&self.cpu_pressure), stall_ns(&self.memory_pressure));
        let vmstat = self.vmstat.as_ref().and_then(|file| text(file, buffer));
        let pages = |key| value(vmstat?, key);
        let (swapped_in_pages, swapped_out_pages) = (pages("pswpin"), pages("pswpout"));
        let one = |file: &File| Throttled::read(text(file, buffer)?);
        let throttled = self.cpu_stats.iter().filter_map(one).reduce(|sum, one| sum + one);
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        Snapshot {
            at_ns,
            own_cpu_ns,
            busy_ns: ticks.map(|ticks| ticks.busy * tick_ns),
            steal_ns: ticks.map(|ticks| ticks.steal * tick_ns),
            cpu_stall_ns,
            memory_stall_ns,
            swapped_in_pages,
            swapped_out_pages,
            throttled_ns: throttled.map(|throttled| throttled.total_ns),
            throttled_times: throttled.map(|throttled| throttled.times),
        }
    }
}

impl Disturbance {
    /// What lies between two snapshots, the earlier one first.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Disturbance {
        let wall_ns = after.at_ns.saturating_sub(before.at_ns);
        let grown = |counter: fn(&Snapshot) -> Option<u64>| Some(counter(after)?.saturating_sub(counter(before)?));
        let share = |ns: f64| (wall_ns > 0).then(|| ns / wall_ns as f64);
        let share_of = |counter| grown(counter).and_then(|ns| share(ns as f64));
        let own_ns = after.own_cpu_ns.saturating_sub(before.own_cpu_ns) as f64;
        Disturbance {
            wall_ns,
            foreign_cpu_share: grown(|one| one.busy_ns).and_then(|busy_ns| share(busy_ns as f64 - own_ns)),
            steal_share: share_of(|one| one.steal_ns),
            cpu_stall_share: share_of(|one| one.cpu_stall_ns),
            memory_stall_share: share_of(|one| one.memory_stall_ns),
            swapped_pages: grown(|one| Some(one.swapped_in_pages? + one.swapped_out_pages?)),
            throttled_ns: grown(|one| one.throttled_ns),
            throttled_times: grown(|one| one.throttled_times),
        }
    }
}

/// The file from its beginning, as far as there is room.
fn text<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
    let mut length = 0;
    // The kernel hands out files of many lines a page at a time.
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], length as u64).ok()? {
            0 => break,
            read => length += read,
        }
    }
    std::str::from_utf8(&buffer[..length]).ok()
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn plant(root: &Path, user: u64, steal: u64, stall_us: u64, swapped: u64, throttled: u64) {
        // As long as on a real machine: the first line must be found in a part of it.
        let interrupts = " 0".repeat(4000);
        write(root, "proc/stat", &format!("cpu  {user} 0 0 900 0 0 0 {steal} 0 0\nintr 1{interrupts}\n"));
        let pressure = |us| format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n");
        write(root, "proc/pressure/cpu", &pressure(stall_us));
        write(root, "proc/pressure/memory", &pressure(2 * stall_us));
        write(root, "proc/vmstat", &format!("nr_free_pages 7\npswpin {swapped}\npswpout {}\n", 2 * swapped));
        write(root, "proc/self/cgroup", "0::/job\n");
        write(root, "proc/self/mountinfo", "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let stat = format!("nr_periods 9\nnr_throttled {throttled}\nthrottled_usec {}\n", 10 * throttled);
        write(root, "sys/fs/cgroup/job/cpu.stat", &stat);
    }

    #[test]
    fn planted_counters_come_back_as_shares() {
        let dir = tempfile::tempdir().unwrap();
        plant(dir.path(), 1000, 50, 4_000, 3, 1);
        let mut counters = Counters::open(&Root::at(dir.path()));
        let mut before = counters.snapshot(500_000_000);
        plant(dir.path(), 1150, 60, 54_000, 5, 4);
        let mut after = counters.snapshot(1_000_000_000);
        assert!(after.at_ns > before.at_ns);
        // One second, so that the shares are plain.
        (before.at_ns, after.at_ns) = (0, 1_000_000_000);
        let expected = Disturbance {
            wall_ns: 1_000_000_000,
            foreign_cpu_share: Some(1.0),
            steal_share: Some(0.1),
            cpu_stall_share: Some(0.05),
            memory_stall_share: Some(0.1),
            swapped_pages: Some(6),
            throttled_ns: Some(30_000),
            throttled_times: Some(3),
        };
        let found = Disturbance::between(&before, &after);
        assert_eq!(found, expected);
        let stored = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Disturbance>(&stored).unwrap(), found);
    }

    #[test]
    fn what_is_not_told_is_absent_and_not_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut counters = Counters::open(&Root::at(dir.path()));
        let (before, after) = (counters.snapshot(0), counters.snapshot(0));
        let found = Disturbance::between(&before, &after);
        assert_eq!((found.foreign_cpu_share, found.steal_share, found.swapped_pages), (None, None, None));
        assert_eq!((found.cpu_stall_share, found.memory_stall_share, found.throttled_ns), (None, None, None));
    }

    #[test]
    fn this_machine_is_busier_after_work_than_before() {
        let mut counters = Counters::open(&Root::machine());
        let before = counters.snapshot(0);
        // Until the kernel has counted it: ticks are coarse.
        let mut after = before;
        while after.busy_ns == before.busy_ns {
            std::hint::black_box((0..100_000).sum::<u64>());
            after = counters.snapshot(0);
        }
        assert!(Disturbance::between(&before, &after).foreign_cpu_share.unwrap() > 0.0);
    }
}
